"""`spl log`, `show`, `put`, `get`: records as they are."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single
from spl.cli.context import current, kernel, read_file
from spl.cli.output import emit, write
from spl.cli.render.text import fields, outline, short, table, when
from spl.cli.sanitize import visible

if TYPE_CHECKING:
    from spl.contracts.records import Appended, EntryDocument, EntryList, EntryPart, RecordDocument
    from spl.kernel.home import Kernel
    from spl.store.log import Selection

_POLL_S = 0.2
_HEADERS = ("position", "record", "kind", "at", "by", "about")


def log(
    kind: str | None = typer.Option(None, help="Only this kind."),
    thread: str | None = typer.Option(None, help="Only the thread of this root."),
    by: str | None = typer.Option(None, help="Only this author's records: a DID."),
    start: int = typer.Option(0, "--from", min=0, help="The first position."),
    stop: int | None = typer.Option(None, "--to", min=0, help="The position behind the last."),
    limit: int | None = typer.Option(None, min=1, help="How many at the most; 50 as text."),
    newest: bool = typer.Option(False, "--newest", help="The newest first."),
    follow: bool = typer.Option(
        False, "--follow", help="Go on as the log grows; JSON is one document a line."
    ),
) -> None:
    """List records in the order of the log.

    Example: spl log --kind core.run.end.v1 --limit 5
    """
    from spl.kernel.names import resolve_id  # noqa: PLC0415 - imported when called
    from spl.kernel.records import list_entries  # noqa: PLC0415
    from spl.store.log import Selection  # noqa: PLC0415

    home = kernel()
    selection = Selection(
        start=start,
        stop=stop,
        kind=kind,
        thread=None if thread is None else resolve_id(home.log, thread),
        by=by,  # type: ignore[arg-type]
        newest_first=newest,
    )
    if follow:
        _follow(home, selection)
        return
    emit(list_entries(home, selection, limit=limit or (None if current().json else 50)), _render_list)


def _follow(home: Kernel, selection: Selection) -> None:
    import msgspec  # noqa: PLC0415 - imported when called

    from spl.contracts.records import EntryDocument  # noqa: PLC0415
    from spl.kernel.records import scan_entries  # noqa: PLC0415

    while selection.stop is None or selection.start < selection.stop:
        size = home.log.size()
        for part in scan_entries(home, msgspec.structs.replace(selection, newest_first=False)):
            emit(EntryDocument(id=part.id, entry=part), _render_followed)
        sys.stdout.flush()
        selection = msgspec.structs.replace(selection, start=max(size, selection.start))
        time.sleep(_POLL_S)


def show(record: str = typer.Argument(help="The record's id or unique prefix.")) -> None:
    """Show one record in full.

    Example: spl show 3f2a9c1b
    """
    from spl.kernel.records import show_record  # noqa: PLC0415 - imported when called

    emit(show_record(kernel(), record), _render)


def put(
    file: str = typer.Argument(help='JSON: {"kind", "body", "thread"?, "refs"?}; - is standard input.'),
) -> None:
    """Append a record of a namespace of your own.

    Example: spl put note.json
    """
    from spl.kernel.records import put_record  # noqa: PLC0415 - imported when called

    emit(put_record(kernel(create=True), read_file(file), file), _render_appended)


def get(
    record: str = typer.Argument(help="The record's id or unique prefix."),
    raw: bool = typer.Option(False, "--raw", help="The record's bytes as they are, instead of digits."),
    entry: bool = typer.Option(
        False,
        "--entry",
        help="The bytes of the log's entry as they are: record and signature, as the tree has them.",
    ),
) -> None:
    """Print a record's bytes.

    Example: spl get 3f2a9c1b --raw | b3sum --derive-key 'spl 2026-12-01 record id v1'
    """
    from spl.errors import UsageError, WithdrawnError  # noqa: PLC0415 - imported when called
    from spl.kernel.records import get_entry, show_record  # noqa: PLC0415

    if raw + entry + current().json > 1:
        raise UsageError("--raw, --entry and --json exclude each other")
    home = kernel()
    found = get_entry(home, record)
    data = found.record
    if data is None:
        raise WithdrawnError(f"the record {record} was withdrawn")
    if raw:
        sys.stdout.buffer.write(data)
    elif entry:
        from spl.store.tree import encode_entry  # noqa: PLC0415 - as above

        sys.stdout.buffer.write(encode_entry(data, found.signature))
    elif current().json:
        emit(show_record(home, record), _render)
    else:
        write(data.hex())


def _row(part: EntryPart) -> tuple[object, ...]:
    by = (
        "-"
        if part.by is None
        else f"…{part.by[-8:]}"
        if part.signature == "signed"
        else f"{part.by} (unsigned)"
    )
    return (part.position, short(part.id), part.kind or part.signature, when(part.at), by, part.summary or "")


def _render_followed(document: EntryDocument) -> str:
    return "  ".join(visible(str(cell)) for cell in _row(document.entry))


def _render_list(document: EntryList) -> str:
    text = table(_HEADERS, [_row(part) for part in document.entries]) or "no records"
    return text + ("\n… more; raise --limit, or go on with --from" if document.more else "")


def _render(document: RecordDocument) -> str:
    part = document.entry
    refs = [f"{role} {short(target)}" for role, ids in document.refs.items() for target in ids]
    return fields(
        [
            ("record", document.id.hex()),
            ("position", part.position),
            ("kind", part.kind),
            ("state", None if part.by else part.signature),
            ("by", f"{part.by} ({part.signature})" if part.by else None),
            ("at", when(part.at) if part.by else None),
            ("thread", short(part.thread) if part.thread else None),
            ("refs", ", ".join(refs) or None),
            ("facet", document.facet.hex() if document.facet else None),
            ("opaque", part.opaque),
            ("redaction", document.redaction.hex() if document.redaction else None),
            ("redacted at", when(document.redacted_at) if document.redacted_at is not None else None),
            ("reason", document.reason),
            ("withheld", f"{document.withheld} secrets" if document.withheld else None),
            ("body", outline(document.body)),
        ]
    )


def _render_appended(document: Appended) -> str:
    return fields([("record", document.id.hex()), ("position", document.position), ("kind", document.kind)])


log_app = single(log)
show_app = single(show)
put_app = single(put)
get_app = single(get)

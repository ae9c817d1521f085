"""`spl log`, `show`, `put`, `get`, `verify`: records as they are."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single
from spl.cli.context import current, kernel, read_file
from spl.cli.output import emit, progress, write
from spl.cli.render.text import fields, outline, short, table, when
from spl.cli.sanitize import visible

if TYPE_CHECKING:
    from spl.contracts.records import Appended, EntryDocument, EntryList, EntryPart, RecordDocument
    from spl.contracts.verify import VerifyDocument
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
) -> None:
    """Print a record's bytes.

    Example: spl get 3f2a9c1b --raw | b3sum --derive-key 'spl 2026-12-01 record id v1'
    """
    from spl.errors import UsageError, WithdrawnError  # noqa: PLC0415 - imported when called
    from spl.kernel.records import get_entry, show_record  # noqa: PLC0415

    if raw and current().json:
        raise UsageError("--raw and --json exclude each other")
    home = kernel()
    data = get_entry(home, record).record
    if data is None:
        raise WithdrawnError(f"the record {record} was withdrawn")
    if raw:
        sys.stdout.buffer.write(data)
    elif current().json:
        emit(show_record(home, record), _render)
    else:
        write(data.hex())


def verify(
    signatures: bool = typer.Option(True, "--signatures/--no-signatures", help="Check signatures."),
    rebuild: bool = typer.Option(
        False, "--rebuild-projections", help="Derive the projections anew, and no more."
    ),
) -> None:
    """Check everything that the home holds; exits 6 when anything is wrong.

    Example: spl verify
    """
    from spl.kernel.proof import rebuild_projections, verify_home  # noqa: PLC0415 - imported when called

    home = kernel()
    if rebuild:
        rebuild_projections(home)
    document = verify_home(home, signatures=signatures, progress=progress("verify"))
    emit(document, _render_verify)
    if not document.ok:
        from spl.errors import DamagedError  # noqa: PLC0415 - only when something is wrong

        raise typer.Exit(DamagedError.exit_status)


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
            ("by", f"{part.by} ({part.signature})"),
            ("at", when(part.at)),
            ("thread", short(part.thread) if part.thread else None),
            ("refs", ", ".join(refs) or None),
            ("facet", document.facet.hex() if document.facet else None),
            ("opaque", part.opaque),
            ("redaction", document.redaction.hex() if document.redaction else None),
            ("reason", document.reason),
            ("withheld", f"{document.withheld} secrets" if document.withheld else None),
            ("body", outline(document.body)),
        ]
    )


def _render_appended(document: Appended) -> str:
    return fields([("record", document.id.hex()), ("position", document.position), ("kind", document.kind)])


def _render_verify(document: VerifyDocument) -> str:
    unsigned = (
        "" if document.signatures_checked else "; signatures were not checked, so this is not a clean verify"
    )
    head = f"{document.size} records, {document.blobs_checked} blobs: {len(document.faults)} faults{unsigned}"
    rows = [
        (
            level,
            finding.check,
            "-" if finding.position is None else finding.position,
            (finding.id or "-")[:12],
            finding.message,
        )
        for level, findings in (("fault", document.faults), ("notice", document.notices))
        for finding in findings
    ]
    return "\n".join(filter(None, [head, table(("", "check", "position", "id", "message"), rows)]))


log_app = single(log)
show_app = single(show)
put_app = single(put)
get_app = single(get)
verify_app = single(verify)

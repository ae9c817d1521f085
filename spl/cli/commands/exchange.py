"""`spl export` and `spl import`: records for another home, with everything they refer to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from spl.cli.commands.single import single
from spl.cli.context import current, kernel
from spl.cli.output import emit, progress
from spl.cli.render.text import fields, short
from spl.cli.sanitize import visible

if TYPE_CHECKING:
    from spl.contracts.exchange import ExportDocument, ImportDocument

_FORMATS = ("bundle", "jsonl")


def export(
    records: list[str] = typer.Argument(
        None, help="Ids or unique prefixes; the root of a thread means the thread. Everything when absent."
    ),
    out: str = typer.Option(..., "--out", "-o", help="The file; - is standard output."),
    form: str = typer.Option(
        "bundle", "--format", help="bundle, for spl import, or jsonl: a record a line, for other tools."
    ),
) -> None:
    """Write records, all that they refer to, their blobs, and the proof that this log holds them.

    Example: spl export -o evidence.spl
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel.export import export as write_bundle  # noqa: PLC0415
    from spl.kernel.export import export_lines  # noqa: PLC0415

    if form not in _FORMATS:
        raise UsageError(f"no format is called {form!r}", hint="bundle or jsonl")
    if out == "-" and current().json:
        raise UsageError("--json and -o - exclude each other: both write to standard output")
    written = write_bundle if form == "bundle" else export_lines
    home = kernel()
    with _written(out) as write:
        document = written(home, records or [], write, path=out)
    if out != "-":
        emit(document, _render_export)


def import_(
    file: str = typer.Argument(help="A bundle; - is standard input."),
    key: str | None = typer.Option(
        None, help="The key of the log that it must come from, as spl checkpoint --key prints it there."
    ),
) -> None:
    """Append the records of a bundle that this home does not hold: all of them, or none.

    Everything is checked first. Nothing in a bundle is executed, and what others installed, scored or preferred takes
    no effect here.

    Example: spl import evidence.spl
    """
    from spl.kernel.bundle_import import import_bundle  # noqa: PLC0415 - imported when called

    with _opened(file) as source:
        emit(import_bundle(kernel(create=True), source, key=key, progress=progress("import")), _render_import)


@contextmanager
def _written(path: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes; the file stands there whole when the block ends, or not at all."""
    from spl.cli.target import target  # noqa: PLC0415 - imported when called

    if path == "-":
        yield sys.stdout.buffer.write
        return
    with target(path) as answer, answer.file() as file:
        yield file.write


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    from spl.errors import FileInputError  # noqa: PLC0415 - imported when called

    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; only the opening is caught
    except OSError as error:
        raise FileInputError(f"cannot read {path}: {error.strerror}") from error
    with file:
        yield file


def _render_export(document: ExportDocument) -> str:
    left_out = ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in document.excluded.items())
    return fields(
        [
            ("written", visible(document.path)),
            ("records", document.records),
            ("blobs", document.blobs if document.format == "bundle" else None),
            ("bytes", document.bytes),
            ("left out", left_out or None),
            ("log", document.origin),
            ("head", f"{short(document.root)} at {document.size}" if document.root else None),
            ("key", document.key),
        ]
    )


def _render_import(document: ImportDocument) -> str:
    quiet = ", ".join(f"{count} {kind}" for kind, count in document.without_effect.items())
    redactions = [f"spl redact {rid.hex()[:12]}" for rid in document.withdrawn_there]
    secrets = [rid.hex()[:12] for rid in document.suspicious]
    return fields(
        [
            ("from", visible(document.origin)),
            ("head there", f"{short(document.root)} at {document.checkpoint_size}"),
            ("appended", document.appended),
            ("already there", document.already_there),
            ("withdrawn here", document.withdrawn_here or None),
            ("not readable", document.opaque or None),
            ("blobs", document.blobs),
            ("no effect here", quiet or None),
            ("withdrawn there", ", ".join(redactions) or None),
            ("look at", f"{', '.join(secrets)}: may hold a secret" if secrets else None),
            ("records now", document.size),
        ]
    )


export_app = single(export)
import_app = single(import_)

"""`spl redact`: withdraw the content of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single
from spl.cli.context import kernel
from spl.cli.output import emit
from spl.cli.render.text import fields
from spl.cli.sanitize import visible

if TYPE_CHECKING:
    from spl.contracts.records import RedactionDocument


def redact(
    record: str = typer.Argument(help="The record's id or unique prefix."),
    reason: str = typer.Option(..., help="Why; it stays in the log."),
) -> None:
    """Withdraw the content of a record for ever; its place in the log and all proofs stay.

    Example: spl redact 3f2a9c1b --reason "holds a customer's name"
    """
    from spl.kernel.redact import redact as withdraw  # noqa: PLC0415 - imported when called

    emit(withdraw(kernel(), record, reason), _render)


def _render(document: RedactionDocument) -> str:
    done = "withdrawn" if document.appended else "withdrawn before"
    rows = [
        (done, document.record.hex()),
        ("position", document.position),
        ("redaction", document.id.hex()),
        ("reason", document.reason),
        ("blobs unlinked", len(document.blobs) or None),
    ]
    return "\n".join([fields(rows), *(f"note: {visible(warning)}" for warning in document.warnings)])


redact_app = single(redact)

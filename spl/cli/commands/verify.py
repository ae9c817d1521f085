"""`spl verify`: everything that the home holds, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single
from spl.cli.context import kernel
from spl.cli.output import emit, progress
from spl.cli.render.text import table

if TYPE_CHECKING:
    from spl.contracts.verify import VerifyDocument


def verify(
    signatures: bool = typer.Option(True, "--signatures/--no-signatures", help="Check signatures."),
    rebuild: bool = typer.Option(
        False, "--rebuild-projections", help="Derive the projections anew, and no more."
    ),
) -> None:
    """Check everything that the home holds; exits 6 when anything is wrong.

    Example: spl verify
    """
    from spl.kernel.verify import rebuild_projections, verify_home  # noqa: PLC0415 - imported when called

    home = kernel()
    if rebuild:
        rebuild_projections(home)
    document = verify_home(home, signatures=signatures, progress=progress("verify"))
    emit(document, _render_verify)
    if not document.ok:
        from spl.errors import DamagedError  # noqa: PLC0415 - only when something is wrong

        raise typer.Exit(DamagedError.exit_status)


def _render_verify(document: VerifyDocument) -> str:
    unsigned = (
        "" if document.signatures_checked else "; signatures were not checked, so this is not a clean verify"
    )
    faults = len(document.faults) + document.faults_omitted
    head = f"{document.size} records, {document.blobs_checked} blobs: {faults} faults{unsigned}"
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
    omitted = [
        f"… {count} more {what}"
        for count, what in ((document.faults_omitted, "faults"), (document.notices_omitted, "notices"))
        if count
    ]
    return "\n".join(filter(None, [head, table(("", "check", "position", "id", "message"), rows), *omitted]))


verify_app = single(verify)

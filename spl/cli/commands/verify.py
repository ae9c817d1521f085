"""`spl verify`: everything that the home holds, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single
from spl.cli.context import kernel
from spl.cli.output import emit, progress
from spl.cli.render.text import table

if TYPE_CHECKING:
    from spl.contracts.verify import RefoldPart, VerifyDocument


def verify(
    signatures: bool = typer.Option(True, "--signatures/--no-signatures", help="Check signatures."),
    quick: bool = typer.Option(False, "--quick", help="Only what is newer than the last clean verification."),
    refold: bool = typer.Option(False, "--refold", help="Fold every score again, too."),
    rebuild: bool = typer.Option(
        False,
        "--rebuild-projections",
        help="Derive the projections anew first: the one thing that it repairs.",
    ),
) -> None:
    """Check everything that the home holds; exits 6 when anything is wrong.

    Example: spl verify --refold
    """
    from spl.kernel.verify import Depth, rebuild_projections, verify_home  # noqa: PLC0415 - imported when called

    home = kernel()
    if rebuild:
        rebuild_projections(home)
    depth = Depth(signatures=signatures, quick=quick, scores=refold)
    document = verify_home(home, depth, progress=progress("verify"))
    emit(document, _render_verify)
    if not document.ok:
        from spl.errors import DamagedError  # noqa: PLC0415 - only when something is wrong

        raise typer.Exit(DamagedError.exit_status)


def _render_verify(document: VerifyDocument) -> str:
    unsigned = (
        "" if document.signatures_checked else "; signatures were not checked, so this is not a clean verify"
    )
    faults = len(document.faults) + document.faults_omitted
    looked = f"{document.size} records" if document.since is None else _newer(document.size, document.since)
    head = f"{looked}, {document.blobs_checked} blobs: {faults} faults{unsigned}"
    scores = document.scores
    folded = None if scores is None else _folded(scores)
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
    return "\n".join(
        filter(None, [head, folded, table(("", "check", "position", "id", "message"), rows), *omitted])
    )


def _folded(scores: RefoldPart) -> str:
    return (
        f"scores folded again: {scores.reproduced} reproduced, {scores.differing} differ, "
        f"{scores.not_reproducible} not reproducible"
    )


def _newer(size: int, since: int) -> str:
    return f"{size - since} of {size} records, those since the last clean verification"


verify_app = single(verify)

"""`spl eval score`, `history`, `compare`, `regressions` and `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.report import report
from spl.cli.commands.single import COMMON, group
from spl.cli.context import kernel
from spl.cli.output import emit

if TYPE_CHECKING:
    from spl.contracts.comparison import GatePart
    from spl.kernel.compare import Gate

app = group("Scores and histories.\n\nExample: spl eval score smoke --actor my-agent --definition incumbent")


@app.command("score", epilog=COMMON)
def score(
    suite: str = typer.Argument(help="The suite: name, id or id prefix."),
    actor: str = typer.Option(help="Whose runs: name, DID, id or id prefix."),
    definition: str = typer.Option(help="Id, facet, a prefix of either, or: incumbent, latest."),
) -> None:
    """Grade the runs that the log holds, and append one score; nothing is executed.

    Structure (was the run well-formed) and substance (did it do the right thing) are two figures. A case without a
    run is left out and counted.

    Example: spl eval score smoke --actor my-agent --definition incumbent
    """
    from spl.cli.render.figures import render_score  # noqa: PLC0415 - imported when called
    from spl.kernel.score import score_suite  # noqa: PLC0415

    emit(score_suite(kernel(create=True), suite, actor, definition), render_score)


@app.command("history", epilog=COMMON)
def history(
    actor: str = typer.Argument(help="Whose: name, DID, id or id prefix."),
    suite: str | None = typer.Option(None, help="Only on this suite."),
    since: str | None = typer.Option(
        None, help="Only definitions scored at this time or later: 2026-12-01, or 2026-12-01T09:30:00Z."
    ),
    limit: int | None = typer.Option(
        None, min=1, help="Only so many definitions of each suite revision, the latest."
    ),
) -> None:
    """Show whether an actor is getting better, and on which axis.

    What --since and --limit leave out is counted; changes are against predecessors all the same.

    Example: spl eval history my-agent --limit 10
    """
    from spl.cli.render.figures import render_history  # noqa: PLC0415 - imported when called
    from spl.folds.history import Window  # noqa: PLC0415
    from spl.kernel.history import history as actor_history  # noqa: PLC0415

    window = Window(None if since is None else _instant(since), limit)
    emit(actor_history(kernel(), actor, suite, window), render_history)


def _instant(text: str) -> int:
    """Return the milliseconds since 1970 UTC of a day, which begins at midnight UTC, or of a time.

    Raises:
        UsageError: It is neither.
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.records.instants import parse_instant  # noqa: PLC0415

    try:
        return parse_instant(f"{text}T00:00:00Z" if len(text) == len("2026-12-01") else text)
    except ValueError as error:
        raise UsageError(
            f"--since is a day such as 2026-12-01 or a time such as 2026-12-01T09:30:00Z, not {text!r}"
        ) from error


_COMMON = typer.Option(
    False, "--common", help="Compare on the cases that both sides cover; the others are listed."
)
_MARGIN = typer.Option(
    None, min=0.0, max=1.0, help="The difference that does not matter; needed for equivalent."
)
_ALPHA = typer.Option(0.05, min=0.0, max=0.5, help="The level of each test, after Holm over the axes.")
_MIXED = typer.Option(
    False, "--allow-mixed", help="Accept runs that were made with several programs or time limits."
)
_GATE = typer.Option(False, "--gate", help="Exit 3 when an axis is worse, 4 when one is not comparable.")
_ALLOW = typer.Option([], help="How much worse an axis may be, such as structure=0.02; may be repeated.")
_INCONCLUSIVE = typer.Option(
    False, "--gate-inconclusive", help="A gate that exits 5 when an axis is inconclusive."
)


@app.command("compare", epilog=COMMON)
def compare(
    sides: tuple[str, str] = typer.Argument(
        metavar="BASE CANDIDATE", help="Definitions (id, facet, prefix, incumbent, latest), or scores."
    ),
    suite: str | None = typer.Option(None, help="The suite; needed for definitions."),
    actor: str | None = typer.Option(None, help="Whose; needed for incumbent, latest and a shared facet."),
    common: bool = _COMMON,
    margin: float | None = _MARGIN,
    alpha: float = _ALPHA,
    allow_mixed: bool = _MIXED,
    gate: bool = _GATE,
    allow: list[str] = _ALLOW,
    gate_inconclusive: bool = _INCONCLUSIVE,
) -> None:
    """Say whether a candidate beats the base, axis by axis, and how sure that is; nothing is executed.

    Example: spl eval compare incumbent latest --suite smoke --actor my-agent --gate
    """
    from spl.cli.render.comparison import render_comparison  # noqa: PLC0415 - imported when called
    from spl.folds.regression import Question  # noqa: PLC0415
    from spl.kernel.compare import Asked  # noqa: PLC0415
    from spl.kernel.compare import compare as compare_sides  # noqa: PLC0415

    question = Question(alpha=alpha, margin=margin, common=common, allow_mixed=allow_mixed)
    asked = Asked(
        suite=suite, actor=actor, question=question, gate=_gate(allow, on=gate, unsure=gate_inconclusive)
    )
    document = compare_sides(kernel(), *sides, asked)
    emit(document, render_comparison)
    if document.gate is not None:
        _exit(document.gate)
    elif not document.tested:
        from spl.errors import NotComparableError  # noqa: PLC0415

        raise typer.Exit(NotComparableError.exit_status)


@app.command("regressions", epilog=COMMON)
def regressions(
    actor: str = typer.Argument(help="Whose: name, DID, id or id prefix."),
    suite: str | None = typer.Option(None, help="Only on this suite."),
    common: bool = _COMMON,
    margin: float | None = _MARGIN,
    alpha: float = _ALPHA,
    allow_mixed: bool = _MIXED,
    gate: bool = _GATE,
    allow: list[str] = _ALLOW,
    gate_inconclusive: bool = _INCONCLUSIVE,
) -> None:
    """Compare every install with the one that it succeeded, and the candidates with the incumbent.

    Example: spl eval regressions my-agent --gate
    """
    from spl.cli.render.comparison import render_regressions  # noqa: PLC0415 - imported when called
    from spl.folds.regression import Question  # noqa: PLC0415
    from spl.kernel.compare import Asked, actor_regressions  # noqa: PLC0415

    question = Question(alpha=alpha, margin=margin, common=common, allow_mixed=allow_mixed)
    asked = Asked(suite=suite, question=question, gate=_gate(allow, on=gate, unsure=gate_inconclusive))
    document = actor_regressions(kernel(), actor, asked)
    emit(document, render_regressions)
    if document.gate is not None:
        _exit(document.gate)


app.command("report", epilog=COMMON)(report)


def _gate(allow: list[str], *, on: bool, unsure: bool) -> Gate | None:
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel.compare import Gate  # noqa: PLC0415

    allowed = {}
    for text in allow:
        axis, _, amount = text.partition("=")
        try:
            allowed[axis] = float(amount)
        except ValueError:
            allowed[axis] = -1.0
        if axis not in ("structure", "substance") or not 0 <= allowed[axis] <= 1:
            raise UsageError(f"--allow is structure=X or substance=X with X from 0 to 1, not {text!r}")
    if allow and not on and not unsure:
        raise UsageError("--allow needs --gate")
    return Gate(allow=allowed, inconclusive=unsure) if on or unsure else None


def _exit(answer: GatePart) -> None:
    status = {"pass": 0, "fail": 3, "refused": 4, "inconclusive": 5}[answer.outcome]
    if status:
        raise typer.Exit(status)

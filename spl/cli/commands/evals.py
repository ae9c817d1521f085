"""`spl eval score` and `spl eval history`."""

from __future__ import annotations

import typer

from spl.cli.commands.single import COMMON, group
from spl.cli.context import kernel
from spl.cli.output import emit

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
) -> None:
    """Show whether an actor is getting better, and on which axis.

    Example: spl eval history my-agent
    """
    from spl.cli.render.figures import render_history  # noqa: PLC0415 - imported when called
    from spl.kernel.score import history as actor_history  # noqa: PLC0415

    emit(actor_history(kernel(), actor, suite), render_history)

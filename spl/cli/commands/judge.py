"""`spl judge` and `spl verdict`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import COMMON, group, single
from spl.cli.context import kernel
from spl.cli.output import emit
from spl.cli.render.text import fields, short, table

if TYPE_CHECKING:
    from spl.contracts.verdicts import VerdictDocument, VerdictList

app = group("Preferences: list and retract them.\n\nExample: spl verdict list")


def judge(
    winner: str = typer.Argument(
        help="The preferred run, score or definition: id, facet, prefix, incumbent, latest."
    ),
    over: str = typer.Argument(metavar="over", help="The word over."),
    loser: str = typer.Argument(help="The other."),
    feature: list[str] = typer.Option([], help="What the winner had; may be repeated."),
    loser_feature: list[str] = typer.Option([], help="What the loser had; may be repeated."),
    basis: str | None = typer.Option(None, help="Why, in words."),
    axis: str | None = typer.Option(None, help="structure or substance."),
    actor: str | None = typer.Option(None, help="Whose definition incumbent or latest means."),
) -> None:
    """Record that one record is preferred over another, with what differed.

    Example: spl judge 3f2a9c1b over 77aa01de --feature "asks before deleting" --axis substance
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel.judge import judge as judge_pair  # noqa: PLC0415
    from spl.records.verdicts import PairVerdict  # noqa: PLC0415

    if over != "over":
        raise UsageError("a preference reads: spl judge WINNER over LOSER")
    if axis is not None and axis not in ("structure", "substance"):
        raise UsageError(f"--axis is structure or substance, not {axis!r}")
    verdict = PairVerdict(features=feature, loser_features=loser_feature, basis=basis, axis=axis)  # type: ignore[arg-type]
    emit(judge_pair(kernel(create=True), winner, loser, verdict, actor=actor), _render)


@app.command("list", epilog=COMMON)
def list_(
    actor: str | None = typer.Option(None, help="Only verdicts about this actor's definitions."),
) -> None:
    """Fold the verdicts: won and lost by facet and by feature, cycles.

    Example: spl verdict list
    """
    from spl.kernel.judge import list_verdicts  # noqa: PLC0415 - imported when called

    emit(list_verdicts(kernel(), actor), _render_list)


@app.command("retract", epilog=COMMON)
def retract(
    verdict: str = typer.Argument(help="The verdict's id or prefix."),
    reason: str = typer.Option(help="Why it no longer counts."),
) -> None:
    """Retract a verdict: it stays in the log and counts no longer.

    Example: spl verdict retract ID --reason wrong
    """
    from spl.kernel.judge import retract as retract_verdict  # noqa: PLC0415 - imported when called

    emit(retract_verdict(kernel(), verdict, reason), _render)


def _render(document: VerdictDocument) -> str:
    part = document.verdict
    return fields(
        [
            ("verdict", document.id.hex()),
            ("winner", f"{short(part.winner)} facet {short(part.winner_facet)}"),
            ("over", f"{short(part.loser)} facet {short(part.loser_facet)}"),
            ("axis", part.axis or "unspecified"),
            ("winner had", ", ".join(part.features) or None),
            ("loser had", ", ".join(part.loser_features) or None),
            ("basis", part.basis),
            ("retracted by", short(document.retraction) if document.retraction else None),
        ]
    )


def _render_list(document: VerdictList) -> str:
    if not document.verdicts:
        return "no verdicts yet; spl judge WINNER over LOSER"
    rows = [
        (
            short(part.id),
            short(part.winner_facet or part.winner),
            short(part.loser_facet or part.loser),
            part.axis or "-",
            ", ".join(part.features) or part.basis or "-",
            "retracted" if part.retracted else "foreign" if part.foreign else "",
        )
        for part in document.verdicts
    ]
    parts = [table(("verdict", "winner", "loser", "axis", "because", ""), rows)]
    if document.facets:
        tallies = [(short(t.facet), sum(t.won.values()), sum(t.lost.values())) for t in document.facets]
        parts.append(table(("facet", "won", "lost"), tallies))
    if document.features:
        parts.append(
            table(("feature", "won", "lost"), [(f.feature, f.won, f.lost) for f in document.features])
        )
    parts += [f"cycle: {' > '.join(map(short, group))}" for group in document.cycles]
    return "\n\n".join(parts)


judge_app = single(judge)

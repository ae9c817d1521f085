"""Comparisons as a person reads them: the verdict of each axis first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from spl.cli.render.figures import percent
from spl.cli.render.text import fields, short, table
from spl.cli.sanitize import visible
from spl.contracts.comparison import (
    AxisComparison,
    CaseChangePart,
    CompareDocument,
    GatePart,
    RegressionsDocument,
)

_AXES = ("structure", "substance")
_MOST = 10


def render_comparison(document: CompareDocument) -> str:
    """Return one comparison as text."""
    head = fields(
        [
            ("suite", document.suite_name),
            ("base", f"{short(document.base.definition)}  facet {short(document.base.facet)}"),
            ("candidate", f"{short(document.candidate.definition)}  facet {short(document.candidate.facet)}"),
        ]
    )
    parts = [head]
    for axis in _AXES:
        figures: AxisComparison = getattr(document, axis)
        parts.append(f"{axis}: {figures.verdict}\n{fields(_axis(figures))}")
    won, lost = document.preferences.won, document.preferences.lost
    if won or lost:
        parts.append(f"verdicts: the candidate won {sum(won.values())} and lost {sum(lost.values())}")
    parts.append(f"alpha {document.alpha:g}, Holm over {document.tested} axes; nothing more is corrected for")
    return "\n\n".join([*parts, *_gate(document.gate)])


def _axis(figures: AxisComparison) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = [("  because", figures.reason)]
    if figures.base is not None and figures.candidate is not None:
        sides = [
            f"{side.passed}/{side.of} {percent(side.rate.rate)}" for side in (figures.base, figures.candidate)
        ]
        pairs.append(("  rates", f"{' → '.join(sides)} over {figures.cases} cases"))
    if figures.difference is not None:
        interval = "" if figures.low is None else f" [{_points(figures.low)}, {_points(figures.high)}]"
        pairs.append(("  difference", _points(figures.difference) + interval))
    if figures.test is not None:
        pairs.append(
            ("  p", f"{figures.test.p:.4g}, adjusted {figures.test.p_adjusted:.4g} ({figures.test.name})")
        )
    if figures.cells is not None:
        c = figures.cells
        cells = f"{c.both_pass} both pass, {c.regressed} regressed, {c.improved} improved, {c.both_fail} both fail"
        pairs.append(("  cells", cells))
    if figures.directions is not None:
        d = figures.directions
        pairs.append(("  cases", f"{d.lower} lower, {d.higher} higher, {d.equal} equal"))
    if figures.detectable is not None:
        pairs.append(("  detectable", f"{_points(figures.detectable)} with power 0.8"))
    return [
        *pairs,
        ("  regressed", _keys(figures.regressed)),
        ("  improved", _keys(figures.improved)),
        ("  only base", _names(figures.only_base)),
        ("  only candidate", _names(figures.only_candidate)),
    ]


def _points(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f}"


def _keys(changes: Sequence[CaseChangePart]) -> str | None:
    return _names([change.key for change in changes])


def _names(names: Sequence[str]) -> str | None:
    shown = ", ".join(names[:_MOST])
    return (f"{shown}, … {len(names) - _MOST} more" if len(names) > _MOST else shown) or None


def render_regressions(document: RegressionsDocument) -> str:
    """Return an actor's installs and candidates, each against what came before it."""
    parts = [f"{visible(document.actor_name)}: each definition against the one before it"]
    for suite in document.suites:
        rows = []
        for step in suite.steps:
            found = step.comparison
            verdicts = (
                ["not scored"] * 2 if found is None else [_verdict(getattr(found, axis)) for axis in _AXES]
            )
            rows.append((step.change, short(step.base), short(step.candidate), *verdicts))
        headers = ("", "base", "candidate", *_AXES)
        parts.append(f"{visible(suite.name)}\n{table(headers, rows) or 'nothing to compare yet'}")
    if not document.suites:
        parts.append("no scores yet; spl eval score SUITE --actor ACTOR --definition ID")
    return "\n\n".join([*parts, *_gate(document.gate)])


def _verdict(figures: AxisComparison) -> str:
    difference = "" if figures.difference is None else f" {_points(figures.difference)}"
    return figures.verdict + difference


def _gate(answer: GatePart | None) -> list[str]:
    if answer is None:
        return []
    reasons = {"fail": answer.failed, "refused": answer.refused, "inconclusive": answer.inconclusive}
    named = ", ".join(reasons.get(answer.outcome, []))
    return [f"gate: {answer.outcome}" + (f" ({named})" if named else "")]

"""Figures as a person reads them: passed/of with the interval, an arrow for each axis, a sparkline for each axis."""

from __future__ import annotations

from collections.abc import Sequence

from spl.cli.render.money import cost, per_passed
from spl.cli.render.text import fields, short, table
from spl.cli.sanitize import visible
from spl.contracts.scores import (
    ChangePart,
    FlakyPart,
    HistoryDocument,
    HistoryLine,
    HistoryRevision,
    HistorySuite,
    RatePart,
    ScoreDocument,
)
from spl.records.evals import Axis

_BARS = "▁▂▃▄▅▆▇█"


def figure(axis: Axis | None, rate: RatePart | None) -> str:
    """Return `passed/of  rate [low, high]`; never a rate alone."""
    if axis is None or rate is None:
        return "-"
    if rate.rate is None:
        return f"{axis.passed}/{axis.of}"
    mean = " mean of cases" if rate.repeats else ""
    interval = "" if rate.low is None else f" [{percent(rate.low)}, {percent(rate.high)}]"
    return f"{axis.passed}/{axis.of} {percent(rate.rate)}{mean}{interval}"


def percent(rate: float | None) -> str:
    """Return a rate in percent, to one decimal."""
    return "-" if rate is None else f"{100 * rate:.1f}%"


def arrow(change: ChangePart | None) -> str:
    """Return how one axis moved against its predecessor."""
    if change is None:
        return "·"
    if change.difference is None:
        return "?"
    if change.difference == 0:
        return "→ 0.0"
    return f"{'▲' if change.difference > 0 else '▼'} {100 * change.difference:+.1f}"


def sparkline(rates: Sequence[float | None]) -> str:
    """Return one bar for each figure, between 0 and 1; a blank where there is none."""
    return "".join(" " if rate is None else _BARS[min(7, int(rate * 8))] for rate in rates)


def render_score(document: ScoreDocument) -> str:
    """Return one score as text."""
    runs = document.runs
    ended = ("completed", "failed", "timed_out", "cancelled", "blocked", "open")
    states = ", ".join(f"{getattr(runs, name)} {name}" for name in ended if getattr(runs, name))
    head = fields(
        [
            (
                "score",
                document.id.hex() + ("" if document.appended else " (said before; nothing was appended)"),
            ),
            ("suite", f"{document.suite_name}  revision {short(document.suite_revision)}"),
            ("actor", document.actor_name),
            ("definition", f"{short(document.definition)}  facet {short(document.facet)}"),
            ("structure", _axis_line(document.structure, document.structure_rate)),
            ("substance", _axis_line(document.substance, document.substance_rate)),
            (
                "runs",
                f"{runs.matched} matched: {states}" + (f"; {runs.trials} trials" if runs.trials else ""),
            ),
            ("", f"tool calls unknown in {runs.tool_calls_unknown}" if runs.tool_calls_unknown else None),
            ("observed", "mixed programs or time limits" if document.observed.mixed else None),
            ("cost", _cost_line(document)),
            ("usage", _usage_line(document)),
            ("recovered", ", ".join(document.recovered) or None),
            ("flaky", _flaky_line(document.flaky)),
        ]
    )
    rows = [
        (grade.key or "-", grade.structure, grade.substance, short(grade.run), _reasons(grade.reasons))
        for grade in document.grades
        if grade.structure != "pass" or grade.substance != "pass"
    ]
    listed = table(("case", "structure", "substance", "run", "because"), rows[:_MOST])
    more = f"\n… {len(rows) - _MOST} more; --json has them all" if len(rows) > _MOST else ""
    return "\n\n".join(filter(None, [head, listed + more if listed else ""]))


_MOST = 20


def _reasons(reasons: Sequence[object]) -> str:
    return "; ".join(f"{r.id} {r.found}" for r in reasons[:3]) + ("; …" if len(reasons) > 3 else "")  # type: ignore[attr-defined]  # noqa: PLR2004 - three fit a line


def _axis_line(axis: Axis, rate: RatePart) -> str:
    left_out = [
        f"{count} {name}"
        for name, count in (("ungraded", axis.ungraded), ("without a run", axis.no_run))
        if count
    ]
    parts = [figure(axis, rate), f"covers {axis.covered} of {axis.cases} cases"]
    if left_out:
        parts.append(
            f"{', '.join(left_out)}; between {percent(rate.worst)} and {percent(rate.best)} if they ran"
        )
    if rate.pass_at:
        k = len(rate.pass_at)
        parts.append(f"pass@{k} {percent(rate.pass_at[-1])}, pass^{k} {percent(rate.pass_all[-1])}")
    return "; ".join(parts)


def _cost_line(document: ScoreDocument) -> str:
    figures = document.cost
    text = cost(figures)
    if document.spent.per_passed_nusd is not None:
        text += f"; {per_passed(document.spent)} per passed run"
    return f"{text}; requests: {figures.priced} priced, {figures.unpriced} unpriced, {figures.error} in error"


def _flaky_line(parts: Sequence[FlakyPart]) -> str | None:
    """Return the cases with both outcomes, by axis, with how often each passed."""
    by_axis: dict[str, list[str]] = {}
    for part in parts:
        by_axis.setdefault(part.axis, []).append(f"{part.key} {part.passed}/{part.of}")
    return (
        "; ".join(
            f"{axis}: {', '.join(cases[:_MOST])}"
            + (f" and {len(cases) - _MOST} more" if cases[_MOST:] else "")
            for axis, cases in by_axis.items()
        )
        or None
    )


def _usage_line(document: ScoreDocument) -> str | None:
    usage = document.usage
    parts = [
        f"{name.removesuffix('_tokens')} {total.total:,} ({total.runs} runs)"
        for name in ("requests", "input_tokens", "output_tokens")
        if (total := getattr(usage, name)) is not None
    ]
    return ", ".join(parts) or None


def render_history(document: HistoryDocument) -> str:
    """Return a history as text: for each suite a table, and a sparkline for each axis."""
    parts = [f"{visible(document.actor_name)}: is it getting better, and on which axis"]
    parts += [_render_suite(suite) for suite in document.suites]
    if not document.suites:
        parts.append("no scores yet; spl eval score SUITE --actor ACTOR --definition ID")
    if document.unscored:
        names = ", ".join(f"{short(line.facet)} ({visible(line.label or '-')})" for line in document.unscored)
        parts.append(f"not scored: {names}")
    if document.foreign_scores:
        parts.append(f"{len(document.foreign_scores)} foreign scores do not count")
    return "\n\n".join(parts)


def _render_suite(suite: HistorySuite) -> str:
    latest = HistoryRevision(
        revision=suite.revision, cases=suite.cases, lines=suite.lines, left_out=suite.left_out
    )
    tables = [_render_revision(visible(suite.name), latest)]
    tables += [_render_revision("earlier", revision) for revision in suite.earlier if revision.lines]
    unseen = sum(not revision.lines for revision in suite.earlier)
    if unseen:
        tables.append(f"{unseen} earlier revisions have no score that was asked for")
    return "\n\n".join(tables)


def _render_revision(name: str, suite: HistoryRevision) -> str:
    head = f"{name}  {suite.cases} cases  revision {short(suite.revision)}"
    rows = [
        (
            "*" if line.incumbent else "",
            short(line.facet),
            line.label or "-",
            figure(line.structure, line.structure_rate),
            arrow(line.structure_change),
            figure(line.substance, line.substance_rate),
            arrow(line.substance_change),
            cost(line.cost),
            per_passed(line.spent),
            f"{line.won}-{line.lost}",
            line.looks,
        )
        for line in suite.lines
    ]
    headers = (
        "",
        "facet",
        "definition",
        "structure",
        "",
        "substance",
        "",
        "cost",
        "per pass",
        "won-lost",
        "looks",
    )
    lines = [head, table(headers, rows)] if rows else [head]
    if suite.left_out:
        lines.append(f"{suite.left_out} more definitions were not asked for")
    if len(suite.lines) > 1:
        for axis in ("structure", "substance"):
            rates = [_rate(line, axis) for line in suite.lines]
            lines.append(f"{axis:<10} {sparkline(rates)}")
    reasons = [
        f"? {short(line.facet)} {name}: {change.not_comparable}"
        for line in suite.lines
        for name in ("structure", "substance")
        if (change := getattr(line, f"{name}_change")) is not None and change.not_comparable
    ]
    return "\n".join([*lines, *reasons])


def _rate(line: HistoryLine, axis: str) -> float | None:
    rate: RatePart | None = getattr(line, f"{axis}_rate")
    return None if rate is None else rate.rate

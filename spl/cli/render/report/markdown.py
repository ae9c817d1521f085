"""The report as Markdown for a pull request: nothing from data is read as markup, a mention, a link or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from spl.cli.render.figures import percent
from spl.cli.render.report import readings
from spl.cli.render.report.readings import AXES, Names
from spl.cli.sanitize import visible
from spl.contracts.comparison import AxisComparison, StepPart
from spl.contracts.report import CaseRow, ReportDocument, ReportSuite
from spl.records.verdicts import AxisName

_LONGEST: Final = 120  # characters of a name
_MOST: Final = 20  # flips that are named
_WORD_JOINER: Final = "\N{WORD JOINER}"
_MARKUP: Final = re.compile(r"[\\`*_\[\]<>#|~$&]")
# Mentions and addresses, issue numbers, emoji names, links: each is broken where it would begin.
_LINKED: Final = re.compile(r"(?<=[@#:])(?=\S)|(?<=www)(?=\.)|(?<=\bgh)(?=-)|(?<=\S)(?=@)", re.IGNORECASE)


def render_markdown(document: ReportDocument) -> str:
    """Return the report as GitHub-flavoured Markdown, the answer first and the ids last."""
    known = readings.names(document)
    parts = [f"# {text(document.actor_name)}: is it getting better, and on which axis"]
    if not document.suites:
        parts.append("No scores yet; `spl eval score SUITE --actor ACTOR --definition ID` makes one.")
    for suite in document.suites:
        parts += _suite(suite, known)
    parts += _verdicts(document, known)
    if document.unscored:
        listed = ", ".join(text(known.of(line.facet).label) for line in document.unscored)
        parts.append(f"Without any score: {listed}.")
    left_out = {**document.excluded, **document.verdicts.excluded}
    if left_out:
        parts.append(
            "Left out: " + ", ".join(f"{count} {text(why)}" for why, count in left_out.items()) + "."
        )
    parts.append(
        "Intervals are at 95%; p is two-sided, exact where the size allows it, and adjusted over the axes of one "
        "comparison and nothing more."
    )
    return "\n\n".join(parts) + "\n"


def text(value: str) -> str:
    """Return untrusted text as Markdown that shows it: one line, cut where it is long, every sign of markup escaped.

    A mention, an issue number and an address become plain text by a word joiner within them, which has no width.
    """
    shown = visible(value)
    shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
    joined = _LINKED.sub(_WORD_JOINER, shown)
    return _MARKUP.sub(_escaped, joined)


def _escaped(found: re.Match[str]) -> str:
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(found[0], "\\" + found[0])


def _table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; cells are Markdown already."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _suite(suite: ReportSuite, known: Names) -> list[str]:
    parts = [
        f"## {text(suite.name)}",
        f"{suite.cases} cases, revision `{suite.revision.hex()[:12]}`"
        + ("." if suite.current else "; the suite has changed since it was last scored."),
    ]
    if suite.steps:
        parts += [f"### {axis.title()}: changes\n\n{_steps(suite.steps, axis, known)}" for axis in AXES]
    parts += [f"### {axis.title()}: figures\n\n{_figures(suite, axis, known)}" for axis in AXES]
    parts.append(f"### Cost\n\n{_costs(suite, known)}")
    flips = [line for axis in AXES for line in _flips(suite, axis, known)]
    if flips:
        parts.append(_folded("Flips against the predecessor", "\n".join(flips)))
    flaky = [
        (text(part.key), _name(line.line.facet, known), part.axis, f"{part.passed}/{part.of}")
        for line in suite.lines
        for part in line.flaky
    ]
    if flaky:
        parts.append("### Flaky cases\n\n" + _table(("case", "definition", "axis", "passed"), flaky))
    parts.append(_folded("The records behind the figures", _ids(suite, known)))
    return parts


def _name(facet: bytes, known: Names) -> str:
    found = known.of(facet)  # type: ignore[arg-type] # a facet by its type
    return f"{found.number} {text(found.tail)}" if found.number else text(found.tail)


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def _steps(steps: Sequence[StepPart], axis: AxisName, known: Names) -> str:
    headers = (
        "candidate",
        "base",
        "verdict",
        "difference, points",
        "95% interval",
        "improved",
        "regressed",
        "p",
    )
    rows: list[list[str]] = []
    for step in steps:
        base, candidate = (text(name) for name in readings.step_names(step, known))
        if step.comparison is None:
            rows.append([candidate, base, "not scored", *["-"] * 5])
            continue
        found: AxisComparison = getattr(step.comparison, axis)
        if found.difference is None or found.test is None:
            rows.append([candidate, base, f"not comparable: {text(found.reason or '')}", *["-"] * 5])
            continue
        improved, regressed = readings.moved(found) or (0, 0)
        rows.append(
            [
                candidate,
                base,
                f"**{found.verdict}**",
                readings.points(found.difference),
                readings.interval(found.low, found.high),
                str(improved),
                str(regressed),
                readings.p_value(found.test.p_adjusted).replace("<", "&lt;"),
            ]
        )
    return _table(headers, rows)


def _figures(suite: ReportSuite, axis: AxisName, known: Names) -> str:
    headers = ("definition", "passed", "rate", "95% interval", "change", "cases covered", "if all had run")
    rows = []
    for part in suite.lines:
        line = part.line
        name = _name(line.facet, known) + (" (incumbent)" if line.incumbent else "")
        figures, rate = getattr(line, axis), getattr(line, f"{axis}_rate")
        if figures is None or rate is None:
            rows.append([name, "no score", *["-"] * 5])
            continue
        rows.append(
            [
                name,
                f"{figures.passed}/{figures.of}",
                percent(rate.rate) + (" (mean of cases)" if rate.repeats else ""),
                readings.rate_interval(rate),
                text(readings.change(getattr(line, f"{axis}_change"))),
                readings.coverage(figures),
                readings.bounds(figures, rate),
            ]
        )
    return _table(headers, rows)


def _costs(suite: ReportSuite, known: Names) -> str:
    rows = [
        (
            _name(part.line.facet, known),
            readings.spent(part.line.spent, part.line.spent.nusd),
            readings.spent(part.line.spent, part.line.spent.per_passed_nusd),
            readings.priced(part.line.spent),
        )
        for part in suite.lines
        if part.line.spent is not None
    ]
    return _table(("definition", "cost of all runs", "cost per passed run", "known from"), rows)


def _flips(suite: ReportSuite, axis: AxisName, known: Names) -> list[str]:
    lines = []
    for i, part in enumerate(suite.lines):
        for word in ("improved", "regressed"):
            keys = [row.key for row in suite.rows if _flip(row, i, axis) == word]
            if keys:
                named = ", ".join(map(text, keys[:_MOST])) + (
                    f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
                )
                lines.append(f"* {_name(part.line.facet, known)}, {axis}, {word} {len(keys)}: {named}")
    return lines


def _flip(row: CaseRow, index: int, axis: AxisName) -> str | None:
    return readings.cell_axis(row.cells[index], axis).flip


def _ids(suite: ReportSuite, known: Names) -> str:
    rows = [
        (
            _name(part.line.facet, known),
            f"`{part.line.facet.hex()[:12]}`",
            ", ".join(f"`{record.hex()[:12]}`" for record in part.line.definitions),
            "none" if part.line.score is None else f"`{part.line.score.hex()}`",
            part.line.looks,
            "-" if part.scorer is None else f"{text(part.scorer.name)} {part.scorer.version}",
        )
        for part in suite.lines
    ]
    head = f"Suite `{suite.suite.hex()}`, revision `{suite.revision.hex()}`.\n\n"
    return head + _table(("definition", "facet", "records", "score", "looks", "scorer"), rows)


def _verdicts(document: ReportDocument, known: Names) -> list[str]:
    found = document.verdicts
    if not found.facets:
        return []
    rows = [(_name(tally.facet, known), _by_axis(tally.won), _by_axis(tally.lost)) for tally in found.facets]
    parts = ["## Verdicts", _table(("definition", "won", "lost"), rows)]
    if found.features:
        features = [(text(tally.feature), tally.won, tally.lost) for tally in found.features]
        parts.append(_table(("feature", "on the winning side", "on the losing side"), features))
    parts += [
        "A cycle: each of "
        + ", ".join(_name(facet, known) for facet in group)
        + " is preferred to every other."
        for group in found.cycles
    ]
    return parts


def _by_axis(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {axis}" for axis, count in counts.items()) or "0"

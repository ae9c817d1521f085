"""The report as one page that opens from disk: no script, no network, nothing from data that is not text.

Every expression of the template passes the sanitiser and then the escapes of an autoescaping template engine; the
content security policy allows the page's one style sheet, by its hash, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spl.cli.render import figures, money
from spl.cli.render.report import readings
from spl.cli.render.report.charts import Point, Span, Words, interval_chart, scatter_chart
from spl.cli.render.report.readings import AXES, Definition, Names
from spl.cli.sanitize import visible
from spl.contracts.comparison import AxisComparison, StepPart
from spl.contracts.report import CellAxis, ReportDocument, ReportLine, ReportSuite
from spl.contracts.scores import RatePart
from spl.records.verdicts import AxisName

_PACKAGE: Final = "spl.cli.render.report"
_TEMPLATE, _STYLE = "page.html", "page.css"
_LONGEST: Final = 160  # characters of a name; the document has all of it
_NUSD: Final = 1_000_000_000


def render_page(document: ReportDocument) -> str:
    """Return the report as a self-contained HTML page."""
    environment = _environment()
    style = resources.files(_PACKAGE).joinpath(_STYLE).read_text("utf-8")
    known = readings.names(document)
    return environment.get_template(_TEMPLATE).render(
        document=document,
        style=Markup(style),  # noqa: S704 - the project's own
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        suites=[_suite(suite, known, f"s{i}") for i, suite in enumerate(document.suites, 1)],
        known=known,
        AXES=AXES,
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE, ""),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bounds": readings.bounds,
        "clip": _clip,
        "percent": figures.percent,
        "points": readings.points,
        "p_value": readings.p_value,
        "hex": bytes.hex,
    }
    environment.globals |= {
        "cell": _cell,
        "change": readings.change,
        "cost": money.cost,
        "coverage": readings.coverage,
        "difference_interval": readings.interval,
        "moved": readings.moved,
        "priced": readings.priced,
        "rate_interval": readings.rate_interval,
        "spent": readings.spent,
        "step_names": readings.step_names,
    }
    return environment


def _shown(value: object) -> object:
    """Return what an expression of the template shows: text without hidden characters, before it is escaped."""
    return value if isinstance(value, Markup) else visible(str(value))


def _clip(text: str, most: int = _LONGEST) -> str:
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


class _Row(msgspec.Struct, frozen=True):
    """A definition on a suite: what it is called, and its line."""

    named: Definition
    part: ReportLine


class _Matrix(msgspec.Struct, frozen=True):
    """The table of cases by definition on one axis."""

    rows: list[tuple[str, list[CellAxis]]]
    alike: dict[str, list[str]]
    flips: int


class _SuiteView(msgspec.Struct, frozen=True):
    """A suite with its charts drawn and its cases sorted."""

    anchor: str
    part: ReportSuite
    rows: list[_Row]
    scored: list[_Row]
    forest: dict[AxisName, Markup]
    differences: dict[AxisName, Markup]
    scatter: Markup | None
    matrix: dict[AxisName, _Matrix]
    latest: StepPart | None
    repeats: bool


def _suite(suite: ReportSuite, known: Names, anchor: str) -> _SuiteView:
    rows = [_Row(known.of(line.line.facet), line) for line in suite.lines]
    columns = readings.scored(suite)
    compared = [step for step in suite.steps if step.comparison is not None]
    return _SuiteView(
        anchor=anchor,
        part=suite,
        rows=rows,
        scored=[rows[i] for i in columns],
        forest={axis: chart for axis in AXES if (chart := _forest(rows, axis, anchor))},
        differences={axis: chart for axis in AXES if (chart := _differences(compared, axis, known, anchor))},
        scatter=_scatter(rows, anchor),
        matrix={axis: _matrix(suite, columns, axis) for axis in AXES},
        latest=compared[-1] if compared else None,
        repeats=any(_rate(row.part, axis).repeats for row in rows for axis in AXES if row.part.line.score),
    )


def _rate(line: ReportLine, axis: AxisName) -> RatePart:
    rate: RatePart | None = getattr(line.line, f"{axis}_rate")
    return rate or RatePart(repeats=False)


def _forest(rows: Sequence[_Row], axis: AxisName, anchor: str) -> Markup | None:
    spans = []
    for row in rows:
        rate = _rate(row.part, axis)
        if rate.rate is not None:
            open_ended = rate.worst != rate.best
            span = Span(
                label=f"{row.named.number}  {row.named.tail}",
                at=rate.rate,
                low=rate.low,
                high=rate.high,
                worst=rate.worst if open_ended else None,
                best=rate.best if open_ended else None,
                name="incumbent" if row.part.line.incumbent else "",
            )
            spans.append(span)
    if not spans:
        return None
    about = f"{len(spans)} definitions from first to last; the table below holds the numbers."
    words = Words(f"{anchor}-{axis}", f"{axis.title()}: rate with its 95% interval", about)
    return interval_chart(spans, words, (0.0, 1.0))


def _differences(steps: Sequence[StepPart], axis: AxisName, known: Names, anchor: str) -> Markup | None:
    spans = []
    for step in steps:
        found: AxisComparison = getattr(step.comparison, axis)
        if found.difference is not None:
            base, candidate = readings.step_numbers(step, known)
            span = Span(
                label=f"{base} → {candidate}",
                at=found.difference,
                low=found.low,
                high=found.high,
                name=found.verdict,
            )
            spans.append(span)
    if len(spans) < 2 or not any(span.at for span in spans):  # noqa: PLR2004 - one difference needs no picture
        return None
    reach = max(abs(end) for span in spans for end in (span.at, span.low or 0.0, span.high or 0.0))
    about = f"{len(spans)} comparisons, candidate less base; the table below holds the numbers."
    words = Words(f"{anchor}-{axis}-steps", f"{axis.title()}: difference with its 95% interval", about)
    return interval_chart(spans, words, (-reach * 1.05, reach * 1.05))


def _scatter(rows: Sequence[_Row], anchor: str) -> Markup | None:
    found = []
    for row in rows:
        spent, rate, runs = row.part.line.spent, _rate(row.part, "substance"), row.part.runs
        if spent is None or runs is None or not spent.nusd or spent.nusd < 0 or rate.rate is None:
            continue
        name = "partial" if spent.coverage == "partial" else "incumbent" if row.part.line.incumbent else ""
        found.append(
            Point(
                label=str(row.named.number),
                x=spent.nusd / runs.matched / _NUSD,
                y=rate.rate,
                low=rate.low,
                high=rate.high,
                name=name,
            )
        )
    if len(found) < 2:  # noqa: PLR2004 - one point needs no picture
        return None
    about = f"{len(found)} definitions by their number; the table below holds the amounts."
    words = Words(f"{anchor}-cost", "Cost of a run against substance, with its 95% interval", about)
    return scatter_chart(found, words, "mean cost of a run, US dollars", "substance")


def _matrix(suite: ReportSuite, columns: Sequence[int], axis: AxisName) -> _Matrix:
    cases = readings.sorted_cases(suite, axis)
    rows = [(row.key, [readings.cell_axis(row.cells[i], axis) for i in columns]) for row in cases.shown]
    flips = sum(cell.flip is not None for _, cells in rows for cell in cells)
    return _Matrix(rows, cases.alike, flips)


def _cell(cell: CellAxis) -> Markup:
    """Return a cell of the table of cases; what colour says, a sign or a word says too."""
    return _drawn(cell.passed, cell.of, cell.ungraded, cell.flip)


@lru_cache(maxsize=4096)
def _drawn(passed: int, of: int, ungraded: int, flip: str | None) -> Markup:
    if of == 0:
        return Markup('<td class="u">?</td>') if ungraded else Markup('<td class="n">·</td>')
    name = "p" if passed == of else "f" if passed == 0 else "m"
    sign = "✓" if passed == of else "✗" if passed == 0 else ""
    text = sign if of == 1 else f"{passed}/{of}"
    if flip is None:
        return Markup('<td class="{}">{}</td>').format(name, text)
    mark = "▲" if flip == "improved" else "▼"
    return Markup('<td class="{} {}">{}{}<b> {}</b></td>').format(
        name, flip[0], mark, "" if of == 1 else text, flip
    )

"""The report as CSV: one row for each suite, definition and axis; amounts in US dollars, unknown ones empty."""

from __future__ import annotations

import csv
import io
from typing import Final

from spl.cli.sanitize import visible
from spl.codec.money import format_usd
from spl.contracts.report import ReportDocument, ReportLine, ReportSuite
from spl.contracts.scores import ChangePart, RatePart
from spl.records.evals import Axis
from spl.records.verdicts import AxisName

AXES: Final[tuple[AxisName, AxisName]] = ("structure", "substance")
COLUMNS: Final = (
    "suite",
    "definition",
    "axis",
    "incumbent",
    "passed",
    "of",
    "rate",
    "low",
    "high",
    "worst",
    "best",
    "cases",
    "covered",
    "ungraded",
    "no_run",
    "change",
    "not_comparable",
    "flaky",
    "cost_usd",
    "cost_per_passed_usd",
    "cost_coverage",
    "won",
    "lost",
    "looks",
    "facet",
    "score",
    "suite_id",
    "suite_revision",
    "scorer",
)
_TRIGGERS: Final = ("=", "+", "-", "@", "\t", "\r")


def render_csv(document: ReportDocument) -> str:
    """Return the report as CSV with a header, as RFC 4180 writes it; a cell without a value is unknown.

    Costs are of the whole definition and stand in the rows of substance, where what passed is what they are against.
    """
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for suite in document.suites:
        for line in suite.lines:
            for axis in AXES:
                rows.writerow(_row(suite, line, axis))
    return out.getvalue()


def guarded(text: str) -> str:
    """Return untrusted text that no spreadsheet takes for a formula, without hidden characters.

    Source: OWASP, "CSV Injection": what begins with = + - @, a tab or a carriage return is put behind an apostrophe.
    """
    return ("'" if text.startswith(_TRIGGERS) else "") + visible(text)


def _row(suite: ReportSuite, part: ReportLine, axis: AxisName) -> list[object]:
    line = part.line
    figures: Axis | None = getattr(line, axis)
    rate: RatePart = getattr(line, f"{axis}_rate") or RatePart(repeats=False)
    change: ChangePart = getattr(line, f"{axis}_change") or ChangePart()
    spent = part.line.spent if axis == "substance" else None
    counts = (
        [None, None, None, None, None]
        if figures is None
        else [figures.passed, figures.of, figures.covered, figures.ungraded, figures.no_run]
    )
    return [
        guarded(suite.name),
        guarded(line.label or ""),
        axis,
        "yes" if line.incumbent else "no",
        counts[0],
        counts[1],
        rate.rate,
        rate.low,
        rate.high,
        rate.worst,
        rate.best,
        suite.cases,
        *counts[2:],
        change.difference,
        guarded(change.not_comparable or ""),
        None if figures is None else sum(flaky.axis == axis for flaky in part.flaky),
        None if spent is None or spent.nusd is None else format_usd(spent.nusd),
        None if spent is None or spent.per_passed_nusd is None else format_usd(spent.per_passed_nusd),
        None if spent is None else spent.coverage,
        line.won,
        line.lost,
        line.looks,
        line.facet.hex(),
        None if line.score is None else line.score.hex(),
        suite.suite.hex(),
        suite.revision.hex(),
        None if part.scorer is None else guarded(f"{part.scorer.name} {part.scorer.version}"),
    ]

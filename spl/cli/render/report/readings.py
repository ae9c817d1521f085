"""How the parts of a report read, in any format: names of definitions, points, p-values, costs, and which cases differ.

Text from records stays as it is here; each format passes it through the sanitiser and its own escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from spl.cli.render.figures import percent
from spl.cli.render.money import usd
from spl.contracts.comparison import AxisComparison, StepPart
from spl.contracts.report import CaseRow, CellAxis, CellPart, ReportDocument, ReportSuite
from spl.contracts.scores import ChangePart, HistoryLine, RatePart, SpentPart
from spl.ids import Facet, RecordId
from spl.records.evals import Axis
from spl.records.verdicts import AxisName

AXES: tuple[AxisName, AxisName] = ("structure", "substance")
MINUS = "\N{MINUS SIGN}"


class Definition(Struct, frozen=True):
    """A definition as the report names it: one number on the whole page, its label, and the label's own end."""

    number: int
    label: str
    tail: str
    facet: Facet


class Names(Struct, frozen=True):
    """The definitions of a report by facet, and by the ids of their records."""

    facets: dict[Facet, Definition]
    records: dict[RecordId, Definition]

    def of(self, facet: Facet) -> Definition:
        """Return a definition by its facet; one of another actor is named by its digits."""
        return self.facets.get(facet) or Definition(0, facet.hex()[:12], facet.hex()[:12], facet)


def names(document: ReportDocument) -> Names:
    """Return the names of all definitions, numbered in the order of the document."""
    lines: dict[Facet, HistoryLine] = {}
    for line in _lines(document):
        lines.setdefault(line.facet, line)
    labels = [line.label or facet.hex()[:12] for facet, line in lines.items()]
    found = Names({}, {})
    for number, (line, label, tail) in enumerate(zip(lines.values(), labels, tails(labels), strict=True), 1):
        named = Definition(number, label, tail, line.facet)
        found.facets[line.facet] = named
        found.records.update(dict.fromkeys(line.definitions, named))
    return found


def _lines(document: ReportDocument) -> Iterator[HistoryLine]:
    for suite in document.suites:
        for line in suite.lines:
            yield line.line
    yield from document.unscored


def tails(labels: Sequence[str]) -> list[str]:
    """Return labels without the leading words that all of them share, so that a short form still tells them apart."""
    words = [label.split() for label in labels]
    shared = 0
    if len(words) > 1:
        while (
            all(len(found) > shared + 1 for found in words) and len({found[shared] for found in words}) == 1
        ):
            shared += 1
    return [" ".join(found[shared:]) or label for found, label in zip(words, labels, strict=True)]


def points(difference: float | None) -> str:
    """Return a difference of rates in percentage points, with its sign."""
    if difference is None:
        return "-"
    text = f"{100 * difference:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") and difference == 0 else text.replace("-", MINUS)


def interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval of a difference, in percentage points."""
    return "no interval" if low is None or high is None else f"{points(low)} to {points(high)}"


def rate_interval(rate: RatePart | None) -> str:
    """Return the ends of the interval of a rate."""
    if rate is None or rate.low is None:
        return "-"
    return f"{percent(rate.low)} to {percent(rate.high)}"


def bounds(axis: Axis | None, rate: RatePart | None) -> str:
    """Return what the rate could be if every uncovered case had failed or passed; nothing where all are covered."""
    if axis is None or rate is None or rate.worst is None or not axis.ungraded + axis.no_run:
        return "-"
    return f"{percent(rate.worst)} to {percent(rate.best)}"


def coverage(axis: Axis | None) -> str:
    """Return how many cases are covered, and why the others are not."""
    if axis is None:
        return "-"
    parts = [f"{axis.covered} of {axis.cases}"]
    parts += [f"{axis.ungraded} ungraded"] if axis.ungraded else []
    parts += [f"{axis.no_run} without a run"] if axis.no_run else []
    return ", ".join(parts)


def change(found: ChangePart | None) -> str:
    """Return the change against the predecessor, or why there is none."""
    if found is None:
        return "no predecessor"
    return (
        points(found.difference)
        if found.not_comparable is None
        else f"not comparable: {found.not_comparable}"
    )


def p_value(p: float) -> str:
    """Return a p-value as statisticians print it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"  # noqa: PLR2004 - below it, digits tell nothing


def moved(found: AxisComparison) -> tuple[int, int] | None:
    """Return how many cases improved and regressed; with repeats, whose rate rose and fell."""
    if found.cells is not None:
        return found.cells.improved, found.cells.regressed
    return None if found.directions is None else (found.directions.higher, found.directions.lower)


def step_names(step: StepPart, known: Names) -> tuple[str, str]:
    """Return what the two sides of a step are called: base, then candidate."""
    base, candidate = (_record_name(side, known) for side in (step.base, step.candidate))
    return base, candidate


def step_numbers(step: StepPart, known: Names) -> tuple[str, str]:
    """Return the numbers of the two sides of a step, for where there is little room."""
    base, candidate = (
        str(known.records[side].number) if side in known.records else side.hex()[:12]
        for side in (step.base, step.candidate)
    )
    return base, candidate


def _record_name(record: RecordId, known: Names) -> str:
    found = known.records.get(record)
    return record.hex()[:12] if found is None else f"{found.number} {found.tail}"


def spent(part: SpentPart | None, nusd: int | None) -> str:
    """Return an amount with what is known of it: unknown is said, a lower bound is said, zero is never put for either.

    Args:
        part: The costs of a definition.
        nusd: One of its amounts.
    """
    if part is None or part.coverage == "not_applicable":
        return "not reported"
    if part.nusd is None:
        return "unknown"
    if nusd is None:
        return "none passed"
    return usd(nusd) if part.coverage == "complete" else f"at least {usd(nusd)}"


def priced(part: SpentPart | None) -> str:
    """Return how far the cost is known."""
    if part is None or part.coverage == "not_applicable":
        return "no usage reported"
    return f"{part.coverage}: {part.priced:,} of {part.of:,} requests priced"


class Sorted(Struct, frozen=True):
    """The cases of a suite on one axis: those to show one by one, hardest first, and those on which all agree.

    Attributes:
        alike: Keys by what every scored definition did: `passed by all`, `failed by all`, `not graded`.
    """

    shown: list[CaseRow]
    alike: dict[str, list[str]]


FEW: Final = 40  # so many cases are shown one by one even where all agree


def sorted_cases(suite: ReportSuite, axis: AxisName) -> Sorted:
    """Return the cases of a suite by the share of their graded runs that passed."""
    alike: dict[str, list[str]] = {"passed by all": [], "failed by all": [], "not graded": []}
    shown: list[tuple[float, CaseRow]] = []
    columns = scored(suite)
    for row in suite.rows:
        cells = [cell_axis(row.cells[i], axis) for i in columns]
        passed, of = sum(cell.passed for cell in cells), sum(cell.of for cell in cells)
        if len(suite.rows) <= FEW or 0 < passed < of or (of and any(cell.of == 0 for cell in cells)):
            shown.append((passed / of if of else -1.0, row))
        else:
            alike["not graded" if not of else "passed by all" if passed else "failed by all"].append(row.key)
    shown.sort(key=lambda pair: pair[0])
    return Sorted([row for _, row in shown], {name: keys for name, keys in alike.items() if keys})


def scored(suite: ReportSuite) -> list[int]:
    """Return the indices of the lines that have a score; only those have cells to look at."""
    return [i for i, line in enumerate(suite.lines) if line.line.score is not None]


def cell_axis(cell: CellPart, axis: AxisName) -> CellAxis:
    """Return one axis of a cell."""
    return cell.structure if axis == "structure" else cell.substance

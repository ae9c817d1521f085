"""The report's own figures: the table of cases by definition, flaky cases, and cost against what passed.

The data's way: the kernel reads the history, the comparisons and the verdicts as their own folds conclude them, and
the scores with their tables of grades; `suite_report` lays those side by side, line by line and case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from spl.contracts.comparison import StepPart
from spl.contracts.report import (
    CaseRow,
    CellAxis,
    CellPart,
    Flip,
    ReportLine,
    ReportSuite,
)
from spl.contracts.scores import HistoryLine, HistorySuite, ReasonPart
from spl.folds.comparable import why_not
from spl.folds.grade import Mark
from spl.folds.score import flaky
from spl.ids import CaseFacet, Facet
from spl.records.evals import Score
from spl.records.verdicts import AxisName

NAME = "spl.report"
VERSION = 1
AXES: tuple[AxisName, AxisName] = ("structure", "substance")


class GradeInput(Struct, frozen=True):
    """The grade of one run, from the table of a score; each reason is (kind, id, found)."""

    case_facet: CaseFacet
    structure: Mark
    substance: Mark
    reasons: Sequence[tuple[str, str, str]]


class LineInput(Struct, frozen=True):
    """The score behind a line of the history, with its table of grades in log order."""

    body: Score
    grades: Sequence[GradeInput]


class CasesInput(Struct, frozen=True):
    """The cases of the suite.

    Attributes:
        keys: Of every case that a score attempted, and of every current one.
        facets: The current ones.
        current: Whether the latest scored revision is the one that the suite has now.
    """

    keys: Mapping[CaseFacet, str]
    facets: Sequence[CaseFacet]
    current: bool


def suite_report(
    history: HistorySuite, cases: CasesInput, scores: Mapping[Facet, LineInput], steps: Sequence[StepPart]
) -> ReportSuite:
    """Return the report on one suite.

    Args:
        history: The lines, as their own fold concludes them.
        cases: What was attempted.
        scores: The score of each line that has one under the revision of `history`.
        steps: The comparisons on this suite.
    """
    attempted = {grade.case_facet for score in scores.values() for grade in score.grades}
    known = attempted | set(cases.facets) if cases.current else attempted
    order = sorted(known, key=lambda facet: (cases.keys[facet], facet))
    tables = {facet: _tallies(score.grades) for facet, score in scores.items()}
    columns = [_column(line, order, scores, tables) for line in history.lines]
    rows = [
        CaseRow(key=cases.keys[facet], facet=facet, cells=[column[i] for column in columns])
        for i, facet in enumerate(order)
    ]
    lines = [_line(line, scores.get(line.facet), cases.keys) for line in history.lines]
    return ReportSuite(
        suite=history.suite,
        name=history.name,
        revision=history.revision,
        current=cases.current,
        cases=history.cases,
        lines=lines,
        rows=rows,
        steps=list(steps),
    )


class _Tally(Struct):
    """The grades of one case under one definition."""

    passed: dict[AxisName, int]
    of: dict[AxisName, int]
    ungraded: dict[AxisName, int]
    reasons: dict[tuple[str, str, str], None]


def _tallies(grades: Iterable[GradeInput]) -> dict[CaseFacet, _Tally]:
    found: dict[CaseFacet, _Tally] = {}
    for grade in grades:
        tally = found.get(grade.case_facet)
        if tally is None:
            tally = found[grade.case_facet] = _Tally(_zeros(), _zeros(), _zeros(), {})
        for axis in AXES:
            mark: Mark = getattr(grade, axis)
            if mark == "ungraded":
                tally.ungraded[axis] += 1
            else:
                tally.of[axis] += 1
                tally.passed[axis] += mark == "pass"
        tally.reasons.update(dict.fromkeys(map(tuple, grade.reasons)))  # type: ignore[arg-type] # three texts each
    return found


def _zeros() -> dict[AxisName, int]:
    return dict.fromkeys(AXES, 0)


_NO_RUN = CellPart(structure=CellAxis(), substance=CellAxis())


def _column(
    line: HistoryLine,
    order: Sequence[CaseFacet],
    scores: Mapping[Facet, LineInput],
    tables: Mapping[Facet, Mapping[CaseFacet, _Tally]],
) -> list[CellPart]:
    """Return the cells of one line, case by case."""
    own = scores.get(line.facet)
    before = None if line.predecessor is None else scores.get(line.predecessor)
    table = tables.get(line.facet, {})
    base: dict[AxisName, Mapping[CaseFacet, _Tally]] = {axis: {} for axis in AXES}
    if own is not None and before is not None and line.predecessor is not None:
        for axis in AXES:  # a case that both cover may be compared even where the totals may not
            if why_not(axis, before.body, own.body, common=True) is None:
                base[axis] = tables[line.predecessor]
    return [_cell(table.get(facet), {axis: base[axis].get(facet) for axis in AXES}) for facet in order]


def _cell(tally: _Tally | None, base: Mapping[AxisName, _Tally | None]) -> CellPart:
    if tally is None:
        return _NO_RUN
    return CellPart(
        structure=_cell_axis("structure", tally, base["structure"]),
        substance=_cell_axis("substance", tally, base["substance"]),
        reasons=[ReasonPart(kind=kind, id=name, found=found) for kind, name, found in tally.reasons],
    )


def _cell_axis(axis: AxisName, tally: _Tally, base: _Tally | None) -> CellAxis:
    return CellAxis(
        passed=tally.passed[axis],
        of=tally.of[axis],
        ungraded=tally.ungraded[axis],
        flip=None if base is None else _flip(axis, base, tally),
    )


def _flip(axis: AxisName, base: _Tally, tally: _Tally) -> Flip | None:
    if not base.of[axis] or not tally.of[axis]:
        return None
    before = base.passed[axis] * tally.of[axis]  # the two rates over one denominator
    after = tally.passed[axis] * base.of[axis]
    return None if before == after else "improved" if after > before else "regressed"


def _line(line: HistoryLine, score: LineInput | None, keys: Mapping[CaseFacet, str]) -> ReportLine:
    if score is None:
        return ReportLine(line=line)
    body = score.body
    return ReportLine(
        line=line,
        scorer=body.scorer,
        runs=body.runs,
        observed=body.observed,
        as_of=body.as_of,
        flaky=flaky(keys, ((grade.case_facet, grade.structure, grade.substance) for grade in score.grades)),
    )

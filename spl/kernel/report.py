"""The report: what the history, the comparisons and the verdicts say of one actor, in one document."""

from __future__ import annotations

from collections.abc import Mapping

from spl.codec import digest
from spl.contracts.comparison import FoldPart, StepPart
from spl.contracts.report import ReportDocument, ReportSuite
from spl.contracts.scores import HistorySuite
from spl.folds.report import NAME, VERSION, CasesInput, GradeInput, LineInput, suite_report
from spl.ids import CaseFacet, Facet, RecordId
from spl.kernel.compare import Asked, actor_regressions
from spl.kernel.grades import GradeRow, decode_grades
from spl.kernel.history import history
from spl.kernel.home import Kernel
from spl.kernel.judge import list_verdicts
from spl.kernel.names import record_of
from spl.kernel.score import read_cases
from spl.records.evals import Case, Score


def actor_report(kernel: Kernel, actor: str, suite: str | None = None) -> ReportDocument:
    """Return the report on an actor; nothing is executed and nothing is written.

    Every figure is the one that `spl eval history`, `compare`, `regressions` and `spl verdict list` give.

    Args:
        kernel: The open home.
        actor: Whose report.
        suite: Only on this suite.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor or suite is not one.
        DamagedError: The grades of a score cannot be read.
    """
    past = history(kernel, actor, suite)
    compared = actor_regressions(kernel, actor, Asked(suite=suite))
    steps = {found.suite: found.steps for found in compared.suites}
    return ReportDocument(
        actor=past.actor,
        actor_name=past.actor_name,
        suites=[_suite(kernel, found, steps.get(found.suite, [])) for found in past.suites],
        unscored=past.unscored,
        verdicts=list_verdicts(kernel, actor),
        foreign_scores=past.foreign_scores,
        fold=FoldPart(name=NAME, version=VERSION),
        excluded=past.excluded,
    )


def _suite(kernel: Kernel, past: HistorySuite, steps: list[StepPart]) -> ReportSuite:
    scores: dict[Facet, LineInput] = {}
    cases: dict[CaseFacet, RecordId] = {}
    for line in past.lines:
        if line.score is None:
            continue
        record = record_of(kernel.log, line.score)
        assert isinstance(record.body, Score)  # noqa: S101 - the history names only scores
        grades = decode_grades(kernel, record)
        scores[line.facet] = LineInput(record.body, [_grade(grade) for grade in grades])
        cases.update((grade.case_facet, grade.case) for grade in grades)
    return suite_report(past, _cases(kernel, past, cases), scores, steps)


def _grade(row: GradeRow) -> GradeInput:
    return GradeInput(row.case_facet, row.structure, row.substance, row.reasons)


def _cases(kernel: Kernel, past: HistorySuite, attempted: Mapping[CaseFacet, RecordId]) -> CasesInput:
    """Return the keys of the suite's cases: of current ones, else from the case that was attempted."""
    now = read_cases(kernel.log, past.suite)
    keys = {case.facet: case.key for case in now}
    for facet, case in attempted.items():
        if facet not in keys:
            body = record_of(kernel.log, case).body
            keys[facet] = body.key if isinstance(body, Case) else case.hex()[:12]
    facets = [case.facet for case in now]
    return CasesInput(keys, facets, digest.suite_revision(facets) == past.revision)

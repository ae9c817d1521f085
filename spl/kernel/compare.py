"""Comparisons: the latest scores of two definitions, or two scores, and an actor's whole line of installs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from spl.contracts.comparison import CompareDocument, RegressionsDocument, RegressionSuite
from spl.errors import InputError, RefusedError
from spl.folds.regression import (
    MarkInput,
    Question,
    SideInput,
    SuiteInput,
    gate,
    regressions,
)
from spl.folds.regression import compare as fold_compare
from spl.ids import CaseFacet, RecordId, is_prefix
from spl.kernel.grades import GradeRow, decode_grades, own_scores
from spl.kernel.history import definition_inputs
from spl.kernel.home import Kernel
from spl.kernel.judge import verdicts_about
from spl.kernel.names import found_of, record_of, resolve_actor, resolve_definition, resolve_suite
from spl.records.envelope import Record
from spl.records.evals import Case, Score
from spl.records.registry import SCORE
from spl.store.log import ScoreRow


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer becomes an exit status.

    Attributes:
        allow: By axis, how much worse is still accepted, as a difference of rates.
        inconclusive: Whether an inconclusive axis is an answer of its own.
    """

    allow: Mapping[str, float] = {}
    inconclusive: bool = False


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        suite: The suite; may be absent where both sides are scores of one.
        actor: Whose definitions `incumbent`, `latest` and shared facets mean.
        question: How to compare.
        gate: How the answer becomes an exit status; none when absent.
    """

    suite: str | None = None
    actor: str | None = None
    question: Question = Question()
    gate: Gate | None = None


def compare(kernel: Kernel, base: str, candidate: str, asked: Asked) -> CompareDocument:
    """Return the comparison of two definitions by their latest scores, or of two scores; nothing is executed.

    Args:
        kernel: The open home.
        base: A definition (id, facet, prefix, `incumbent`, `latest`) or a score (id, prefix).
        candidate: What is asked about, likewise.
        asked: The suite, the actor, and how.

    Raises:
        UnknownIdError, UnknownNameError, AmbiguousIdError, AmbiguousNameError, InputError: Nothing, or several things,
            are meant.
        RefusedError: A side has no score; the hint names the command that makes one.
    """
    rows = [_score_row(kernel, text, asked) for text in (base, candidate)]
    if rows[0].suite != rows[1].suite:
        raise InputError("the two scores are of different suites")
    sides = [_scored(kernel, row) for row in rows]
    suite = _suite_input(kernel, rows[0].suite, sides)
    verdicts = verdicts_about(kernel, {row.facet for row in rows})
    document = fold_compare(suite, sides[0].side, sides[1].side, verdicts, asked.question)
    if asked.gate is not None:
        found = gate([document], asked.gate.allow, inconclusive=asked.gate.inconclusive)
        return msgspec.structs.replace(document, gate=found)
    return document


def actor_regressions(kernel: Kernel, actor: str, asked: Asked) -> RegressionsDocument:
    """Return every install against the one that it succeeded, and every candidate against the incumbent.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor or the suite is not one.
    """
    view = kernel.log
    owner = resolve_actor(view, actor)
    only = None if asked.suite is None else resolve_suite(view, asked.suite).id
    definitions = definition_inputs(view, owner.id)
    rows = own_scores(kernel, view.scores(actor=owner.id, suite=only))
    verdicts = verdicts_about(kernel, {definition.facet for definition in definitions})
    suites = []
    for named in view.suites():
        latest = {row.facet: row for row in rows if row.suite == named.id}
        if latest:
            scored = {facet: _scored(kernel, row) for facet, row in latest.items()}
            suite = _suite_input(kernel, named.id, list(scored.values()))
            sides = {facet: found.side for facet, found in scored.items()}
            steps = regressions(suite, definitions, sides, verdicts, asked.question)
            suites.append(RegressionSuite(suite=named.id, name=named.name, steps=steps))
    document = RegressionsDocument(actor=owner.id, actor_name=owner.name, suites=suites, excluded={})
    if asked.gate is None:
        return document
    comparisons = [step.comparison for suite in suites for step in suite.steps if step.comparison is not None]
    return msgspec.structs.replace(
        document, gate=gate(comparisons, asked.gate.allow, inconclusive=asked.gate.inconclusive)
    )


class _Scored(msgspec.Struct, frozen=True):
    """One side for the fold, with the table of grades that it came from."""

    side: SideInput
    grades: list[GradeRow]


def _score_row(kernel: Kernel, text: str, asked: Asked) -> ScoreRow:
    """Return the score that is meant, or the latest of the definition that is."""
    view = kernel.log
    score = _score_named(kernel, text)
    if score is not None:
        rows = view.scores(suite=score.ref("suite"), actor=score.ref("actor"))
        return next(row for row in rows if row.id == score.id)
    owner = None if asked.actor is None else resolve_actor(view, asked.actor).id
    definition = resolve_definition(view, text, owner)
    if asked.suite is None:
        raise InputError("comparing definitions needs a suite", hint="add --suite")
    suite = resolve_suite(view, asked.suite)
    rows = view.scores(actor=definition.actor, suite=suite.id, facet=definition.facet)
    own = own_scores(kernel, rows)
    if not own:
        raise RefusedError(
            f"the definition {definition.id.hex()[:12]} has no score on {suite.name}",
            hint=f"spl eval score {suite.name} --actor {definition.actor.hex()[:12]} "
            f"--definition {definition.id.hex()[:12]}",
        )
    return own[-1]


def _score_named(kernel: Kernel, text: str) -> Record | None:
    ids = kernel.log.resolve(text, limit=2) if is_prefix(text) else []
    record = record_of(kernel.log, ids[0]) if len(ids) == 1 else None
    return record if record is not None and record.kind == SCORE else None


def _scored(kernel: Kernel, row: ScoreRow) -> _Scored:
    record = record_of(kernel.log, row.id)
    definition = record.ref("definition")
    assert isinstance(record.body, Score)  # noqa: S101 - the row was derived from it
    assert definition is not None  # noqa: S101 - the kind demands it
    grades = decode_grades(kernel, record)
    marks = [MarkInput(grade.case_facet, grade.structure, grade.substance) for grade in grades]
    return _Scored(SideInput(row.actor, definition, row.id, record.body, marks), grades)


def _suite_input(kernel: Kernel, suite: RecordId, sides: Sequence[_Scored]) -> SuiteInput:
    """Return the suite with the keys of all cases that the sides cover: current ones, else from the case itself."""
    view = kernel.log
    keys: dict[CaseFacet, str] = {row.facet: row.key for row in view.cases(suite)}
    for grade in (grade for scored in sides for grade in scored.grades):
        if grade.case_facet not in keys:
            body = found_of(view, grade.case).body
            keys[grade.case_facet] = body.key if isinstance(body, Case) else grade.case.hex()[:12]
    body = found_of(view, suite).body
    return SuiteInput(suite, getattr(body, "name", suite.hex()[:12]), keys)

"""Scores: reads what concerns one, folds, and appends what was concluded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from spl.contracts.scores import (
    GradePart,
    ReasonPart,
    ScoreDocument,
)
from spl.errors import NothingToGradeError
from spl.folds.cost import spent
from spl.folds.inputs import CaseInput, RunInput
from spl.folds.score import GradedRun, flaky, graded_runs, rates, recovered, score
from spl.ids import Facet, RecordId
from spl.kernel.content import CBOR, put_blob, unfold_end
from spl.kernel.grades import GRADES, encode_grades, own_scores
from spl.kernel.home import Kernel
from spl.kernel.names import record_of, resolve_actor, resolve_definition, resolve_suite
from spl.records.envelope import Draft, read_record
from spl.records.evals import Case, Score
from spl.records.runs import RunEnd, RunStart
from spl.store.log import DefinitionRow, Entry, NameRow, RunRow, Transaction, View
from spl.store.remains import WITHDRAWN

OPAQUE = "opaque"


def score_suite(kernel: Kernel, suite: str, actor: str, definition: str) -> ScoreDocument:
    """Grade a definition's runs on a suite, and append one score unless the latest says the same.

    Reading, grading and appending are one transaction over one position of the log.

    Raises:
        UnknownNameError, UnknownIdError, AmbiguousNameError, AmbiguousIdError: A name means nothing, or several.
        NothingToGradeError: No run matches; nothing was written, and the details say what would have matched.
    """
    view = kernel.log
    named = resolve_suite(view, suite)
    owner = resolve_actor(view, actor)
    row = resolve_definition(view, definition, owner.id)

    def append(tx: Transaction) -> ScoreDocument:
        cases = read_cases(tx, named.id)
        runs, excluded = read_runs(kernel, tx, owner.id, row.facet, cases)
        if not runs:
            raise _nothing_to_grade(tx, named, owner, row, cases)
        graded = graded_runs(cases, runs)
        body = score(row.facet, cases, graded, tx.size())
        latest = own_scores(kernel, tx.scores(actor=owner.id, suite=named.id, facet=row.facet), tx)[-1:]
        old = record_of(tx, latest[0].id) if latest else None
        if old is not None and isinstance(old.body, Score) and _same(old.body, body):
            return _document((named, owner, row), old.id, old.body, graded, excluded)
        table = put_blob(kernel.blobs, encode_grades(graded), GRADES, CBOR)
        entry = tx.append(
            Draft(
                body=body,
                by=kernel.kernel,
                thread=named.id,
                refs={"suite": (named.id,), "actor": (owner.id,), "definition": (row.id,)},
                blobs=(table,),
            )
        )
        return _document((named, owner, row), entry.id, body, graded, excluded, appended=True)

    return kernel.transact(append)


def read_cases(view: View, suite: RecordId) -> list[CaseInput]:
    """Return a suite's current cases, for a fold."""
    rows = view.cases(suite)
    found = []
    for row, entry in zip(rows, view.at([row.position for row in rows]), strict=True):
        body = _body(entry)
        if isinstance(body, Case):
            found.append(CaseInput(row.id, row.key, row.facet, body.expect))
    return found


def read_runs(
    kernel: Kernel,
    view: View,
    actor: RecordId,
    facet: Facet,
    cases: Sequence[CaseInput],
    as_of: int | None = None,
) -> tuple[list[RunInput], dict[str, int]]:
    """Return the runs of an actor under a facet on some cases, for a fold, and what was left out, by reason.

    A run whose start cannot be read, or whose end was withdrawn or is opaque, is graded by nobody and counted. With
    `as_of`, the runs are those of the time when the log had that size: what ended later is open.
    """
    rows = list(view.runs(actor=actor, facet=facet, case_facets=[case.facet for case in cases]))
    if as_of is not None:
        rows = [_at(row, as_of) for row in rows if row.position < as_of]
    starts = view.at([row.position for row in rows])
    ended = [row.end_position for row in rows if row.end_position is not None]
    ends = dict(zip(ended, view.at(ended), strict=True))
    found: list[RunInput] = []
    excluded: Counter[str] = Counter()
    for row, start in zip(rows, starts, strict=True):
        run = _run_input(kernel, row, start, ends)
        if isinstance(run, str):
            excluded[run] += 1
        else:
            found.append(run)
    return found, dict(excluded)


def _at(row: RunRow, as_of: int) -> RunRow:
    """Return a run as it was when the log had a size."""
    if row.end_position is None or row.end_position < as_of:
        return row
    return msgspec.structs.replace(row, end_position=None)


def _run_input(kernel: Kernel, row: RunRow, start: Entry, ends: dict[int, Entry]) -> RunInput | str:
    """Return a run for a fold, or the reason why it is left out."""
    if start.record is None:
        return WITHDRAWN
    body = _body(start)
    if not isinstance(body, RunStart) or row.case_facet is None:
        return OPAQUE
    end: RunEnd | None = None
    if row.end_position is not None:
        entry = ends[row.end_position]
        if entry.record is None:
            return WITHDRAWN
        record = read_record(entry.record, entry.id)
        if not isinstance(record.body, RunEnd):
            return OPAQUE
        end = unfold_end(kernel.blobs, record)
    return RunInput(
        id=row.id,
        case_facet=row.case_facet,
        position=row.position,
        trial=body.trial,
        observed=body.observed,
        end=end,
    )


def _body(entry: Entry) -> object:
    return None if entry.record is None else read_record(entry.record, entry.id).body


def _same(old: Score, new: Score) -> bool:
    return msgspec.structs.replace(old, as_of=new.as_of) == new


def _nothing_to_grade(
    view: View, suite: NameRow, actor: NameRow, row: DefinitionRow, cases: Sequence[CaseInput]
) -> NothingToGradeError:
    """Return the refusal, with what would have matched."""
    current = {case.facet for case in cases}
    others = Counter((run.actor.hex(), run.facet.hex()) for run in view.runs(case_facets=list(current)))
    older = sum(
        run.case_facet is not None and run.case_facet not in current
        for run in view.runs(actor=actor.id, facet=row.facet)
    )
    known = ", ".join(f"{facet[:12]} ({count} runs)" for (_, facet), count in list(others.items())[:5])
    hint = (
        f"definitions with runs on this suite: {known}" if known else "no definition has a run on this suite"
    )
    if older:
        hint += f"; {older} runs of this definition are of other suites or of older revisions of the cases"
    return NothingToGradeError(
        f"no run of {actor.name} under the definition {row.id.hex()[:12]} matches a current case of {suite.name}",
        hint=hint,
        details={
            "suite": suite.id.hex(),
            "actor": actor.id.hex(),
            "facet": row.facet.hex(),
            "older_case_runs": older,
            "with_runs": [
                {"actor": by, "facet": facet, "runs": count} for (by, facet), count in others.items()
            ],
        },
    )


def _document(
    names: tuple[NameRow, NameRow, DefinitionRow],
    record_id: RecordId,
    body: Score,
    graded: Sequence[GradedRun],
    excluded: dict[str, int],
    *,
    appended: bool = False,
) -> ScoreDocument:
    suite, actor, definition = names
    cases = body.structure.cases
    return ScoreDocument(
        id=record_id,
        appended=appended,
        suite=suite.id,
        suite_name=suite.name,
        actor=actor.id,
        actor_name=actor.name,
        definition=definition.id,
        structure_rate=rates(cases, [(item.case.facet, item.grade.structure) for item in graded]),
        substance_rate=rates(cases, [(item.case.facet, item.grade.substance) for item in graded]),
        spent=spent(body.cost, body.substance),
        recovered=recovered(graded),
        flaky=flaky(
            {item.case.facet: item.case.key for item in graded},
            ((item.case.facet, item.grade.structure, item.grade.substance) for item in graded),
        ),
        grades=[_grade_part(item) for item in graded],
        excluded=excluded,
        **{field: getattr(body, field) for field in body.__struct_fields__},
    )


def _grade_part(item: GradedRun) -> GradePart:
    return GradePart(
        case=item.case.id,
        case_facet=item.case.facet,
        run=item.run.id,
        structure=item.grade.structure,
        substance=item.grade.substance,
        key=item.case.key,
        reasons=[ReasonPart(kind=r.kind, id=r.id, found=r.found) for r in item.grade.reasons],
    )

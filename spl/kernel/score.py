"""Scores and histories: reads what concerns them, folds, and appends what was concluded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from spl.codec import canonical
from spl.contracts.scores import (
    GradePart,
    HistoryDocument,
    HistorySuite,
    ReasonPart,
    ScoreDocument,
)
from spl.errors import DamagedError, NothingToGradeError
from spl.folds.grade import Mark
from spl.folds.history import DefinitionInput, FacetInput, ScoreInput, line, suite_history
from spl.folds.inputs import CaseInput, RunInput
from spl.folds.score import GradedRun, graded_runs, rates, recovered, score
from spl.ids import CaseFacet, Facet, RecordId
from spl.kernel.content import CBOR, put_blob, unfold_end
from spl.kernel.home import Kernel
from spl.kernel.names import found_of, record_of, resolve_actor, resolve_definition, resolve_suite
from spl.records.definitions import Definition
from spl.records.envelope import Draft, Record, read_record
from spl.records.evals import Case, Score
from spl.records.runs import RunEnd, RunStart
from spl.records.verdicts import PairVerdict
from spl.store.log import DefinitionRow, Entry, NameRow, RunRow, ScoreRow, Transaction, View
from spl.store.remains import WITHDRAWN

GRADES = "grades"
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
    kernel: Kernel, view: View, actor: RecordId, facet: Facet, cases: Sequence[CaseInput]
) -> tuple[list[RunInput], dict[str, int]]:
    """Return the runs of an actor under a facet on some cases, for a fold, and what was left out, by reason.

    A run whose start cannot be read, or whose end was withdrawn or is opaque, is graded by nobody and counted.
    """
    rows = list(view.runs(actor=actor, facet=facet, case_facets=[case.facet for case in cases]))
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


def encode_grades(graded: Sequence[GradedRun]) -> bytes:
    """Return the table of grades, canonical CBOR: case facet, case id, run id, two marks, reasons."""
    return canonical.encode(
        [
            [
                item.case.facet,
                item.case.id,
                item.run.id,
                item.grade.structure,
                item.grade.substance,
                [[reason.kind, reason.id, reason.found] for reason in item.grade.reasons],
            ]
            for item in graded
        ]
    )


class GradeRow(msgspec.Struct, frozen=True, array_like=True):
    """One line of a stored table of grades."""

    case_facet: CaseFacet
    case: RecordId
    run: RecordId
    structure: Mark
    substance: Mark
    reasons: list[tuple[str, str, str]]


def decode_grades(kernel: Kernel, record: Record) -> list[GradeRow]:
    """Return the table of grades of a score.

    Raises:
        DamagedError: Its blob is missing, altered or malformed.
    """
    ref = record.blob(GRADES)
    if ref is None:
        return []
    try:
        return msgspec.convert(
            canonical.decode(kernel.blobs.get(ref.h)), list[GradeRow], builtin_types=(bytes,)
        )
    except msgspec.ValidationError as error:
        raise DamagedError(f"the grades of score {record.id.hex()} are not readable: {error}") from error


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
    cases = _case_count(body)
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
        recovered=recovered(graded),
        grades=[_grade_part(item) for item in graded],
        excluded=excluded,
        **{field: getattr(body, field) for field in body.__struct_fields__},
    )


def _case_count(body: Score) -> int:
    """Return how many cases the suite had; either axis says so."""
    return body.structure.covered + body.structure.ungraded + body.structure.no_run


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


def history(kernel: Kernel, actor: str, suite: str | None = None) -> HistoryDocument:
    """Return an actor's history: by suite, then by facet in order of first appearance.

    Args:
        kernel: The open home.
        actor: Whose history.
        suite: Only on this suite.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor or suite is not one.
    """
    view = kernel.log
    owner = resolve_actor(view, actor)
    only = None if suite is None else resolve_suite(view, suite).id
    definitions = definition_inputs(view, owner.id)
    facets = [_facet_input(kernel, owner.id, facet) for facet in dict.fromkeys(d.facet for d in definitions)]
    rows = view.scores(actor=owner.id, suite=only)
    own = own_scores(kernel, rows)
    suites = [
        _suite_history(kernel, row, definitions, facets, own)
        for row in view.suites()
        if any(score.suite == row.id for score in own)
    ]
    scored = {row.facet for row in own}
    unscored = [line(facet, definitions, 0, {}) for facet in facets if facet.facet not in scored]
    foreign = [row.id for row in rows if found_of(view, row.id).by != kernel.kernel]
    places = [*(found.id for found in rows), *(found.id for found in view.definitions(actor=owner.id))]
    withdrawn = sum(view.withdrawn(place) is not None for place in places)
    excluded = {"foreign": len(foreign), WITHDRAWN: withdrawn}
    return HistoryDocument(
        actor=owner.id,
        actor_name=owner.name,
        suites=suites,
        unscored=unscored,
        foreign_scores=foreign,
        excluded={reason: count for reason, count in excluded.items() if count},
    )


def own_scores(kernel: Kernel, rows: Sequence[ScoreRow], view: View | None = None) -> list[ScoreRow]:
    """Return the scores by this home's kernel that were not withdrawn; only those count."""
    looked = kernel.log if view is None else view
    found = [(row, found_of(looked, row.id)) for row in rows]
    return [row for row, record in found if record.by == kernel.kernel and isinstance(record.body, Score)]


def _suite_history(
    kernel: Kernel,
    suite: NameRow,
    definitions: list[DefinitionInput],
    facets: list[FacetInput],
    scores: list[ScoreRow],
) -> HistorySuite:
    mine = [row for row in scores if row.suite == suite.id]
    inputs = [_score_input(kernel, row) for row in mine]
    return suite_history((suite.id, suite.name), definitions, facets, inputs)


def _score_input(kernel: Kernel, row: ScoreRow) -> ScoreInput:
    record = record_of(kernel.log, row.id)
    body = record.body
    assert isinstance(body, Score)  # noqa: S101 - the row was derived from it
    grades = decode_grades(kernel, record)
    cases = _case_count(body)
    return ScoreInput(
        id=row.id,
        position=row.position,
        body=body,
        structure=rates(cases, [(grade.case_facet, grade.structure) for grade in grades]),
        substance=rates(cases, [(grade.case_facet, grade.substance) for grade in grades]),
    )


def definition_inputs(view: View, actor: RecordId) -> list[DefinitionInput]:
    """Return an actor's definitions in log order, for a fold."""
    rows = view.definitions(actor=actor)
    found = []
    for row, entry in zip(rows, view.at([row.position for row in rows]), strict=True):
        body = _body(entry)
        if isinstance(body, Definition):
            found.append(
                DefinitionInput(row.id, row.position, row.facet, body.state, row.incumbent, _label(body))
            )
    return found


def _label(body: Definition) -> str:
    """Return what a person would call a definition: its note, model, system, or program."""
    behaviour = body.behaviour
    argv = behaviour.get("argv")
    words = " ".join(map(str, argv)) if isinstance(argv, list) else None
    named = [behaviour.get("system"), behaviour.get("version"), behaviour.get("model")]
    return (
        body.note or " ".join(str(part) for part in named if part) or words or str(behaviour.get("adapter"))
    )


def _facet_input(kernel: Kernel, actor: RecordId, facet: Facet) -> FacetInput:
    view = kernel.log
    first = next(iter(view.runs(actor=actor, facet=facet)), None)
    won = lost = 0
    for row in view.verdicts(facet=facet):
        verdict = found_of(view, row.id)
        retracted = any(found_of(view, rid).by == verdict.by for rid in view.referrers(row.id, "verdict"))
        if retracted or verdict.by != kernel.operator or not isinstance(verdict.body, PairVerdict):
            continue
        won += row.winner == facet
        lost += row.loser == facet
    return FacetInput(facet, None if first is None else first.position, won, lost)

"""Histories: reads an actor's definitions, scores and verdicts, and folds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spl.contracts.scores import HistoryDocument, HistorySuite
from spl.folds.history import (
    DefinitionInput,
    FacetInput,
    RatedScore,
    ScoreInput,
    Window,
    latest_scores,
    line,
    suite_history,
)
from spl.folds.score import rates
from spl.ids import Facet, RecordId
from spl.kernel.grades import decode_grades, own_scores
from spl.kernel.home import Kernel
from spl.kernel.names import found_of, record_of, resolve_actor, resolve_suite
from spl.records.definitions import Definition
from spl.records.envelope import Record, read_record
from spl.records.evals import Score
from spl.records.verdicts import PairVerdict
from spl.store.log import ScoreRow, View
from spl.store.remains import WITHDRAWN


def history(
    kernel: Kernel, actor: str, suite: str | None = None, window: Window | None = None
) -> HistoryDocument:
    """Return an actor's history: by suite and revision, then by facet in order of first appearance.

    Args:
        kernel: The open home.
        actor: Whose history.
        suite: Only on this suite.
        window: Which lines are wanted; all when absent.

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
    scored = {row.facet for row in own}
    mine = {row.id for row in own}
    foreign = [row.id for row in rows if row.id not in mine and found_of(view, row.id).by != kernel.kernel]
    places = [*(found.id for found in rows), *(found.id for found in view.definitions(actor=owner.id))]
    withdrawn = sum(view.withdrawn(place) is not None for place in places)
    excluded = {"foreign": len(foreign), WITHDRAWN: withdrawn}
    return HistoryDocument(
        actor=owner.id,
        actor_name=owner.name,
        suites=[
            _suite_history(kernel, (named.id, named.name), definitions, facets, own, window or Window())
            for named in view.suites()
            if any(row.suite == named.id for row in own)
        ],
        unscored=[line(facet, definitions, 0, {}) for facet in facets if facet.facet not in scored],
        foreign_scores=foreign,
        excluded={reason: count for reason, count in excluded.items() if count},
    )


def _suite_history(
    kernel: Kernel,
    suite: tuple[RecordId, str],
    definitions: Sequence[DefinitionInput],
    facets: Sequence[FacetInput],
    rows: Iterable[ScoreRow],
    window: Window,
) -> HistorySuite:
    records = {row.id: record_of(kernel.log, row.id) for row in rows if row.suite == suite[0]}
    scores = [
        ScoreInput(row.id, row.position, records[row.id].at, body)
        for row in rows
        if row.id in records and isinstance(body := records[row.id].body, Score)
    ]
    rated = [_rated(kernel, records[score.id], score) for score in latest_scores(scores)]
    return suite_history(suite, definitions, facets, scores, rated, window)


def _rated(kernel: Kernel, record: Record, score: ScoreInput) -> RatedScore:
    grades = decode_grades(kernel, record)
    cases = score.body.structure.cases
    return RatedScore(
        score,
        rates(cases, [(grade.case_facet, grade.structure) for grade in grades]),
        rates(cases, [(grade.case_facet, grade.substance) for grade in grades]),
    )


def definition_inputs(view: View, actor: RecordId) -> list[DefinitionInput]:
    """Return an actor's definitions in log order, for a fold."""
    rows = view.definitions(actor=actor)
    found = []
    for row, entry in zip(rows, view.at([row.position for row in rows]), strict=True):
        body = None if entry.record is None else read_record(entry.record, entry.id).body
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

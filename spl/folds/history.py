"""The history: is it getting better, and on which axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from spl.contracts.scores import ChangePart, HistoryLine, HistoryRevision, HistorySuite, RatePart
from spl.folds.comparable import why_not
from spl.folds.cost import spent
from spl.folds.statistics import rounded
from spl.ids import Digest, Facet, RecordId
from spl.records.evals import Score
from spl.records.verdicts import AxisName


class DefinitionInput(Struct, frozen=True):
    """A definition of the actor, in log order; `label` is what a person would call it."""

    id: RecordId
    position: int
    facet: Facet
    state: str
    incumbent: bool
    label: str


class ScoreInput(Struct, frozen=True):
    """A score by this home's kernel; `at` is when it was taken, in milliseconds since 1970 UTC."""

    id: RecordId
    position: int
    at: int
    body: Score


class RatedScore(Struct, frozen=True):
    """A score, with how its axes read."""

    score: ScoreInput
    structure: RatePart
    substance: RatePart


class Window(Struct, frozen=True):
    """Which lines are wanted; what is left out is counted, and predecessors count all the same.

    Attributes:
        since_ms: Only lines whose latest score under the revision was taken then or later, since 1970 UTC.
        limit: Only so many of them under each revision, those that appeared last.
    """

    since_ms: int | None = None
    limit: int | None = None


class FacetInput(Struct, frozen=True):
    """What else is known of a facet: the position of its first run, and its verdicts."""

    facet: Facet
    first_run: int | None
    won: int
    lost: int


def latest_scores(scores: Iterable[ScoreInput]) -> list[ScoreInput]:
    """Return the latest score of each facet under each revision, of scores in log order."""
    return list({(score.body.suite_revision, score.body.facet): score for score in scores}.values())


def suite_history(
    suite: tuple[RecordId, str],
    definitions: Sequence[DefinitionInput],
    facets: Sequence[FacetInput],
    scores: Sequence[ScoreInput],
    rated: Sequence[RatedScore],
    window: Window,
) -> HistorySuite:
    """Return the history on one suite.

    Args:
        suite: Its id and its name.
        definitions: All of the actor's, in log order.
        facets: One for each facet of those, in order of first appearance.
        scores: The scores on this suite, in log order; at least one.
        rated: The `latest_scores` of those.
        window: Which lines are wanted.
    """
    looks = Counter(score.body.facet for score in scores)
    last_at = {score.body.suite_revision: score.position for score in scores}
    latest, *before = sorted(last_at, key=lambda revision: -last_at[revision])
    known = [facet for facet in facets if facet.facet in looks]

    def revision(digest: Digest, *, everyone: bool) -> HistoryRevision:
        here = {found.score.body.facet: found for found in rated if found.score.body.suite_revision == digest}
        lines = [
            line(facet, definitions, looks[facet.facet], here)
            for facet in known
            if everyone or facet.facet in here
        ]
        shown = _shown(lines, window)
        cases = next(iter(here.values())).score.body.structure.cases  # then: the suite may have moved on
        return HistoryRevision(revision=digest, cases=cases, lines=shown, left_out=len(lines) - len(shown))

    now = revision(latest, everyone=True)
    return HistorySuite(
        suite=suite[0],
        name=suite[1],
        revision=now.revision,
        cases=now.cases,
        lines=now.lines,
        left_out=now.left_out,
        earlier=[revision(digest, everyone=False) for digest in before],
    )


def _shown(lines: Sequence[HistoryLine], window: Window) -> list[HistoryLine]:
    since = window.since_ms
    wanted = [found for found in lines if since is None or (found.scored_at or 0) >= since]
    return wanted if window.limit is None else wanted[max(0, len(wanted) - window.limit) :]


def line(
    facet: FacetInput,
    definitions: Sequence[DefinitionInput],
    looks: int,
    latest: Mapping[Facet, RatedScore],
) -> HistoryLine:
    """Return the line of one facet.

    Args:
        facet: The facet.
        definitions: All of the actor's, in log order.
        looks: How many scores were taken of it.
        latest: The latest score of each facet under the suite revision.
    """
    own = [definition for definition in definitions if definition.facet == facet.facet]
    installed = [definition for definition in definitions if definition.incumbent]
    before = predecessor(facet, definitions)
    found = latest.get(facet.facet)
    base = latest.get(before) if before is not None else None
    bare = HistoryLine(
        facet=facet.facet,
        definitions=[definition.id for definition in own],
        states=sorted({definition.state for definition in own}),
        incumbent=bool(installed) and installed[-1].facet == facet.facet,
        looks=looks,
        won=facet.won,
        lost=facet.lost,
        label=own[0].label if own else None,
        predecessor=before,
    )
    if found is None:
        return bare
    body = found.score.body
    return msgspec.structs.replace(
        bare,
        score=found.score.id,
        scored_at=found.score.at,
        structure=body.structure,
        substance=body.substance,
        structure_rate=found.structure,
        substance_rate=found.substance,
        structure_change=_change("structure", base, found, before),
        substance_change=_change("substance", base, found, before),
        cost=body.cost,
        spent=spent(body.cost, body.substance),
    )


def predecessor(facet: FacetInput, definitions: Sequence[DefinitionInput]) -> Facet | None:
    """Return the facet that this one came after.

    It is the facet that its first install succeeded; of one never installed, the incumbent at its first run (or at its
    first record, when it has no run).
    """
    installs = [definition for definition in definitions if definition.incumbent]
    first = next((d.position for d in installs if d.facet == facet.facet), None)
    if first is None:
        own = [definition.position for definition in definitions if definition.facet == facet.facet]
        first = facet.first_run if facet.first_run is not None else min(own, default=0)
    earlier = [d.facet for d in installs if d.position < first and d.facet != facet.facet]
    return earlier[-1] if earlier else None


def _change(
    axis: AxisName, base: RatedScore | None, found: RatedScore, before: Facet | None
) -> ChangePart | None:
    if before is None:
        return None
    if base is None:
        return ChangePart(not_comparable="the predecessor has no score under this suite revision")
    reason = why_not(axis, base.score.body, found.score.body)
    if reason is not None:
        return ChangePart(not_comparable=reason)
    return ChangePart(difference=rounded(getattr(found, axis).rate - getattr(base, axis).rate))

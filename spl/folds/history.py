"""The history: is it getting better, and on which axis."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from spl.contracts.scores import ChangePart, HistoryLine, HistorySuite, RatePart
from spl.folds.comparable import why_not
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
    """A score by this home's kernel, with how its axes read."""

    id: RecordId
    position: int
    body: Score
    structure: RatePart
    substance: RatePart


class FacetInput(Struct, frozen=True):
    """What else is known of a facet: the position of its first run, and its verdicts."""

    facet: Facet
    first_run: int | None
    won: int
    lost: int


def suite_history(
    suite: tuple[RecordId, str],
    definitions: Sequence[DefinitionInput],
    facets: Sequence[FacetInput],
    scores: Sequence[ScoreInput],
) -> HistorySuite:
    """Return the history on one suite.

    Args:
        suite: Its id and its name.
        definitions: All of the actor's, in log order.
        facets: One for each facet of those, in order of first appearance.
        scores: The scores on this suite, in log order; at least one.
    """
    revision = scores[-1].body.suite_revision
    latest = {score.body.facet: score for score in scores if score.body.suite_revision == revision}
    looks = [score.body.facet for score in scores]
    lines = [
        line(facet, definitions, looks.count(facet.facet), latest) for facet in facets if facet.facet in looks
    ]
    axis = scores[-1].body.structure
    cases = axis.covered + axis.ungraded + axis.no_run  # of this revision: the suite may have moved on
    return HistorySuite(suite=suite[0], name=suite[1], revision=Digest(revision), cases=cases, lines=lines)


def line(
    facet: FacetInput,
    definitions: Sequence[DefinitionInput],
    looks: int,
    latest: dict[Facet, ScoreInput],
) -> HistoryLine:
    """Return the line of one facet.

    Args:
        facet: The facet.
        definitions: All of the actor's, in log order.
        looks: How many scores were taken of it.
        latest: The latest score of each facet under the latest suite revision.
    """
    own = [definition for definition in definitions if definition.facet == facet.facet]
    installed = [definition for definition in definitions if definition.incumbent]
    before = predecessor(facet, definitions)
    score = latest.get(facet.facet)
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
    if score is None:
        return bare
    return msgspec.structs.replace(
        bare,
        score=score.id,
        structure=score.body.structure,
        substance=score.body.substance,
        structure_rate=score.structure,
        substance_rate=score.substance,
        structure_change=_change("structure", base, score, before),
        substance_change=_change("substance", base, score, before),
        cost=score.body.cost,
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
    axis: AxisName, base: ScoreInput | None, score: ScoreInput, before: Facet | None
) -> ChangePart | None:
    if before is None:
        return None
    if base is None:
        return ChangePart(not_comparable="the predecessor has no score under this suite revision")
    reason = why_not(axis, base.body, score.body)
    if reason is not None:
        return ChangePart(not_comparable=reason)
    old, new = getattr(base, axis).rate, getattr(score, axis).rate
    return ChangePart(difference=rounded(new - old))

"""The fold over preferences: who won and lost, which features stood where, and cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from spl.contracts.verdicts import FacetTally, FeatureTally, VerdictList, VerdictPart
from spl.ids import Facet

UNSPECIFIED = "unspecified"


def verdicts(parts: Iterable[VerdictPart], *, withdrawn: int = 0) -> VerdictList:
    """Return the fold of verdicts in log order.

    Args:
        parts: Every verdict, marked where it was retracted or is foreign; those are listed and do not count.
        withdrawn: How many more there were.
    """
    listed = list(parts)
    counted = [part for part in listed if not part.retracted and not part.foreign]
    won: dict[Facet, Counter[str]] = {}
    lost: dict[Facet, Counter[str]] = {}
    for part in counted:
        axis = part.axis or UNSPECIFIED
        if part.winner_facet is not None:
            won.setdefault(part.winner_facet, Counter())[axis] += 1
        if part.loser_facet is not None:
            lost.setdefault(part.loser_facet, Counter())[axis] += 1
    excluded = Counter(
        "retracted" if part.retracted else "foreign" for part in listed if part.retracted or part.foreign
    )
    excluded += Counter(withdrawn=withdrawn)
    return VerdictList(
        verdicts=listed,
        facets=[
            FacetTally(facet=facet, won=dict(won.get(facet, {})), lost=dict(lost.get(facet, {})))
            for facet in dict.fromkeys([*won, *lost])
        ],
        features=_features(counted),
        cycles=cycles(counted),
        excluded=dict(excluded),
    )


def _features(counted: list[VerdictPart]) -> list[FeatureTally]:
    won = Counter(feature for part in counted for feature in part.features)
    lost = Counter(feature for part in counted for feature in part.loser_features)
    names = sorted({*won, *lost}, key=lambda name: (-won[name] - lost[name], name))
    return [FeatureTally(feature=name, won=won[name], lost=lost[name]) for name in names]


def cycles(counted: Iterable[VerdictPart]) -> list[list[Facet]]:
    """Return the groups of facets of which each is preferred, directly or not, to every other; sorted."""
    beats: dict[Facet, set[Facet]] = {}
    for part in counted:
        if part.winner_facet and part.loser_facet and part.winner_facet != part.loser_facet:
            beats.setdefault(part.winner_facet, set()).add(part.loser_facet)
    reach = {facet: _reachable(beats, facet) for facet in beats}
    groups = {
        tuple(sorted(other for other in reach[facet] if facet in reach.get(other, ())))
        for facet in reach
        if facet in reach[facet]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(beats: dict[Facet, set[Facet]], start: Facet) -> set[Facet]:
    seen: set[Facet] = set()
    waiting = list(beats.get(start, ()))
    while waiting:
        facet = waiting.pop()
        if facet not in seen:
            seen.add(facet)
            waiting.extend(beats.get(facet, ()))
    return seen


def on_the_way(edges: Iterable[tuple[Facet | None, Facet | None]], facets: Collection[Facet]) -> set[Facet]:
    """Return the facets from which preferences lead to one of some facets, with those.

    Args:
        edges: Winner and loser of preferences; with all that is preferred over by the facets, and so on, the answer
            holds every cycle that runs through two of them.
        facets: Where the ways end.
    """
    beaten_by: dict[Facet, set[Facet]] = {}
    for winner, loser in edges:
        if winner and loser:
            beaten_by.setdefault(loser, set()).add(winner)
    return set(facets).union(*(_reachable(beaten_by, facet) for facet in facets))

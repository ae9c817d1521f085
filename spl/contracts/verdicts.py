"""The documents of preferences: one as it was recorded, and the fold over all."""

from __future__ import annotations

from spl.contracts.document import Document, Part
from spl.ids import Facet, RecordId
from spl.records.verdicts import AxisName


class VerdictPart(Part, frozen=True):
    """One verdict; the facets are those that its two sides resolve to."""

    id: RecordId
    winner: RecordId
    loser: RecordId
    features: list[str]
    loser_features: list[str]
    axis: AxisName | None = None
    basis: str | None = None
    winner_facet: Facet | None = None
    loser_facet: Facet | None = None
    retracted: bool = False
    foreign: bool = False


class VerdictDocument(Document, frozen=True, tag="spl.verdict.v1"):
    """One verdict as it was recorded, or the retraction of one."""

    id: RecordId
    verdict: VerdictPart
    retraction: RecordId | None = None
    appended: bool = True


class FacetTally(Part, frozen=True):
    """What a facet won and lost, by axis; `unspecified` where the verdict names none."""

    facet: Facet
    won: dict[str, int]
    lost: dict[str, int]


class FeatureTally(Part, frozen=True):
    """How often a feature stood on the winning and on the losing side."""

    feature: str
    won: int
    lost: int


class VerdictList(Document, frozen=True, tag="spl.verdicts.v1"):
    """The fold over verdicts; retracted and foreign ones are listed and do not count.

    Attributes:
        cycles: Groups of facets of which each is preferred, directly or not, to every other.
    """

    verdicts: list[VerdictPart]
    facets: list[FacetTally]
    features: list[FeatureTally]
    cycles: list[list[Facet]]
    excluded: dict[str, int]

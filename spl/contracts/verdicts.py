"""The document that records a preference; the fold over preferences has its own."""

from __future__ import annotations

from spl.contracts.document import Document
from spl.ids import Facet, RecordId
from spl.records.verdicts import AxisName


class VerdictDocument(Document, frozen=True, tag="spl.verdict.v1"):
    """One verdict, as it was recorded; the facets are those that its two sides resolve to."""

    id: RecordId
    winner: RecordId
    loser: RecordId
    features: list[str]
    loser_features: list[str]
    axis: AxisName | None = None
    basis: str | None = None
    winner_facet: Facet | None = None
    loser_facet: Facet | None = None
    retracted: RecordId | None = None

"""Preferences of one record over another, retractions, and withdrawals."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from spl.ids import BlobId, Digest, RecordId
from spl.records.definitions import Body, Count, LongText, Name, check_long_text

AxisName: TypeAlias = Literal["structure", "substance"]


class PairVerdict(Body, frozen=True):
    """`core.verdict.pair.v1`: `refs.winner` is preferred to `refs.loser`."""

    features: list[Name]
    loser_features: list[Name]
    basis: LongText | None = None
    axis: AxisName | None = None

    def __post_init__(self) -> None:
        check_long_text(self.basis)


class Retraction(Body, frozen=True):
    """`core.verdict.retract.v1`: the verdict named in `refs.verdict` no longer counts."""

    reason: Annotated[str, Meta(min_length=1)]


class Redaction(Body, frozen=True):
    """`core.redaction.v1`: the content at a position was withdrawn; its leaf stays."""

    position: Count
    leaf: Digest
    record: RecordId
    blobs: list[BlobId]
    reason: Annotated[str, Meta(min_length=1)]

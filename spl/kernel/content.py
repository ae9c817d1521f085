"""Long content: into blobs on the way in, back in place on the way out.

A text of more than 16,384 bytes, or a list that encodes to more than 16 KiB, stands in a blob; folds and
documents see the value itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from spl.codec import canonical
from spl.errors import DamagedError
from spl.ids import BlobId
from spl.records.definitions import MAX_LONG_TEXT_BYTES, Body, LongText
from spl.records.envelope import BlobRef, Record
from spl.records.runs import MAX_LIST_BYTES, Result, RunEnd, Usage
from spl.records.secrets import Secrets
from spl.records.wire import from_map

B = TypeVar("B", bound=Body)

TEXT = "text/plain; charset=utf-8"
CBOR = "application/cbor"
_LISTS: dict[str, Any] = {"results": list[Result], "changed_files": list[str], "usage": list[Usage]}


class Blobs(Protocol):
    """What the kernel needs of a blob store."""

    def put(self, data: bytes) -> BlobId:
        """Store content durably and return its id."""

    def get(self, blob: BlobId) -> bytes:
        """Return content, verified against its id."""

    def stream(self, blob: BlobId) -> Iterator[bytes]:
        """Yield content in pieces; what was yielded is known to be right once it ends."""

    def __contains__(self, blob: BlobId) -> bool:
        """Say whether the content is there."""

    def remove(self, blob: BlobId) -> None:
        """Unlink content; only a withdrawal does."""


class Place(Protocol):
    """Where content goes: a blob store, and what may not enter it."""

    @property
    def blobs(self) -> Blobs:
        """The store."""

    @property
    def secrets(self) -> Secrets:
        """What may not enter."""


def put_blob(blobs: Blobs, data: bytes, role: str, media_type: str) -> BlobRef:
    """Store content and return the reference that a record carries."""
    return BlobRef(h=blobs.put(data), n=len(data), t=media_type, r=role)


def put_text(place: Place, data: bytes, role: str, media_type: str = TEXT) -> tuple[BlobRef, int]:
    """Store text without its secrets; return the reference, and how many secrets were replaced.

    The count belongs into the `withheld` of the draft that names the blob.
    """
    kept, withheld = place.secrets.withhold_bytes(data)
    return put_blob(place.blobs, kept, role, media_type), withheld


class Fitted(NamedTuple, Generic[B]):
    """A body that fits into a record, what stands beside it, and how many secrets were replaced."""

    body: B
    blobs: tuple[BlobRef, ...]
    withheld: int


def fit(place: Place, body: B, *, texts: tuple[str, ...] = ()) -> Fitted[B]:
    """Return a body whose long texts and lists stand in blobs, without their secrets.

    Secrets in what stays in the body are replaced when it is appended.

    Args:
        place: Where blobs go, and what may not enter.
        body: The body, with every value in place.
        texts: Its fields that may be long.
    """
    blobs, secrets = place.blobs, place.secrets
    changes: dict[str, Any] = {}
    refs: list[BlobRef] = []
    withheld = 0
    for field in texts:
        text = getattr(body, field)
        if isinstance(text, str):
            text, count = secrets.withhold(text)
            withheld += count
            changes[field] = text
            if len(raw := text.encode()) > MAX_LONG_TEXT_BYTES:
                refs.append(put_blob(blobs, raw, field, TEXT))
                changes[field] = refs[-1].h
    if isinstance(body, RunEnd):
        for field in _LISTS:
            items = getattr(body, field)
            if not items:
                continue
            plain = msgspec.to_builtins(items, builtin_types=(bytes,))
            raw = canonical.encode(plain)
            if len(raw) > MAX_LIST_BYTES:
                if secrets.suspects(raw):
                    plain, count = secrets.withhold_value(plain)
                    withheld += count
                    raw = canonical.encode(plain)
                refs.append(put_blob(blobs, raw, field, CBOR))
                changes[field] = None
    return Fitted(msgspec.structs.replace(body, **changes) if changes else body, tuple(refs), withheld)


def unfold_text(blobs: Blobs, text: LongText | None) -> str | None:
    """Return a text wherever it stands.

    Raises:
        DamagedError: Its blob is missing or altered.
    """
    return blobs.get(text).decode("utf-8", "replace") if isinstance(text, bytes) else text


def unfold_end(blobs: Blobs, record: Record) -> RunEnd:
    """Return the end of a run with its lists and its answer in place.

    Raises:
        DamagedError: A blob is missing or altered, or does not hold what its role says.
    """
    end = record.body
    assert isinstance(end, RunEnd)  # noqa: S101 - the caller has looked at the kind
    if not record.blobs:
        return end
    changes: dict[str, Any] = {}
    if isinstance(end.answer, bytes):
        changes["answer"] = unfold_text(blobs, end.answer)
    for field, kind in _LISTS.items():
        ref = record.blob(field)
        if ref is not None and getattr(end, field) is None:
            try:
                changes[field] = from_map(canonical.decode(blobs.get(ref.h)), kind)
            except msgspec.ValidationError as error:
                raise DamagedError(
                    f"the {field} of run end {record.id.hex()} are not readable: {error}"
                ) from error
    return msgspec.structs.replace(end, **changes) if changes else end

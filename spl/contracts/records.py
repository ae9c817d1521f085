"""Documents about the home and its records as they are."""

from __future__ import annotations

from typing import Any

from spl.contracts.document import Document, Part
from spl.ids import BlobId, Did, Digest, RecordId


class EntryPart(Part, frozen=True):
    """An entry in a listing; `signature` is signed, unsigned or withdrawn (then nothing else is known)."""

    position: int
    id: RecordId
    signature: str
    kind: str | None = None
    by: Did | None = None
    at: int | None = None
    size: int | None = None
    thread: RecordId | None = None
    opaque: str | None = None
    summary: str | None = None


class EntryDocument(Document, frozen=True, tag="spl.entry.v1"):
    """One entry in the stream of `log --follow`."""

    id: RecordId
    entry: EntryPart


class EntryList(Document, frozen=True, tag="spl.log.v1"):
    """Entries of the log; `more` says that the limit left some out."""

    size: int
    entries: list[EntryPart]
    more: bool = False


class RecordDocument(Document, frozen=True, tag="spl.record.v1"):
    """One record in full: the entry, the envelope's references and blobs, and the body.

    Attributes:
        withheld: How many secrets were replaced before it was appended.
        redaction: Of a withdrawn record, the record that says so; `redacted_at` is when, and `reason` why.
    """

    id: RecordId
    entry: EntryPart
    leaf: Digest
    body: dict[str, Any]
    refs: dict[str, list[RecordId]] = {}
    blobs: list[dict[str, Any]] = []
    facet: Digest | None = None
    withheld: int = 0
    redaction: RecordId | None = None
    redacted_at: int | None = None
    reason: str | None = None


class Appended(Document, frozen=True, tag="spl.appended.v1"):
    """What `put` appended, or found there already."""

    id: RecordId
    position: int
    appended: bool
    kind: str


class RedactionDocument(Document, frozen=True, tag="spl.redaction.v1"):
    """What a withdrawal did.

    Attributes:
        id: The redaction.
        record: The withdrawn record.
        blobs: The blobs that were unlinked: no other record names them.
        appended: Whether this command withdrew it; else it had been before.
        warnings: What it could not do.
    """

    id: RecordId
    record: RecordId
    position: int
    leaf: Digest
    reason: str
    blobs: list[BlobId]
    appended: bool
    warnings: list[str]


class LastVerify(Part, frozen=True):
    """The last verification: when, how many entries it read, how many faults it found; clean without one."""

    at: int
    size: int
    faults: int
    clean: bool


class HomeDocument(Document, frozen=True, tag="spl.home.v1"):
    """Where a home is, how much it holds, and who it speaks as; `key` checks its checkpoints and proofs."""

    path: str
    size: int
    kernel: Did
    operator: Did
    created: bool = False
    root: Digest | None = None
    last: EntryPart | None = None
    bytes: int | None = None
    actors: int | None = None
    suites: int | None = None
    open_runs: int | None = None
    last_verify: LastVerify | None = None
    key: str | None = None

"""What was exported, and what was imported."""

from __future__ import annotations

from spl.contracts.document import Document
from spl.ids import Did, Digest, RecordId


class ExportDocument(Document, frozen=True, tag="spl.export.v1"):
    """What an export wrote.

    Attributes:
        path: The file.
        records: How many records.
        blobs: How many blobs; none in JSON lines.
        bytes: The length of the file.
        excluded: What was left out, by reason: `withdrawn`, and `refers_to_withdrawn`.
        origin: Whose log it is, and its head when the proofs were made; of bundles.
        key: The verifier key of that log.
    """

    path: str
    format: str
    records: int
    blobs: int
    bytes: int
    excluded: dict[str, int]
    origin: str | None = None
    size: int | None = None
    root: Digest | None = None
    key: str | None = None


class ImportDocument(Document, frozen=True, tag="spl.import.v1"):
    """What an import did.

    Attributes:
        origin: Whose log the records come from, with its size and root when they were exported.
        kernel: The identity that signed that checkpoint.
        records: How many records the bundle holds.
        appended: How many of them this home did not hold.
        already_there: How many it held.
        withdrawn_here: How many of those were withdrawn here; they stay so.
        opaque: How many of the appended ones this version cannot read.
        blobs: How many blobs were stored.
        without_effect: Appended definitions, scores and verdicts by others, by kind: they take no effect by arriving.
        withdrawn_there: Records that the exporting side withdrew and this home holds; `spl redact` does so here.
        suspicious: Records that hold what looks like a secret; a signed record cannot be changed.
        size: How many records this home holds now.
    """

    origin: str
    kernel: Did
    checkpoint_size: int
    root: Digest
    records: int
    appended: int
    already_there: int
    withdrawn_here: int
    opaque: int
    blobs: int
    without_effect: dict[str, int]
    withdrawn_there: list[RecordId]
    suspicious: list[RecordId]
    size: int

"""Documents about checkpoints and proofs."""

from __future__ import annotations

from spl.contracts.document import Document
from spl.ids import Did, Digest, RecordId


class CheckpointDocument(Document, frozen=True, tag="spl.checkpoint.v1"):
    """The signed head of the log.

    Attributes:
        note: The signed note, as others check it.
        key: The verifier key, for those others.
        signed: Whether it was signed now; it is the last one again when the log has not grown since.
    """

    origin: str
    size: int
    root: Digest
    note: str
    key: str
    signed: bool


class KeyDocument(Document, frozen=True, tag="spl.checkpoint_key.v1"):
    """The verifier key of the home's checkpoints, and the identity that it belongs to."""

    origin: str
    key: str
    kernel: Did


class ProofDocument(Document, frozen=True, tag="spl.proof.v1"):
    """A proof that was made.

    Attributes:
        kind: `inclusion` or `growth`.
        size: Of the log at the checkpoint that the proof leads to.
        proof: The content of the proof file.
        id: Of the record that is included.
        position: Of that record.
        old: How large the log was that has grown.
    """

    kind: str
    origin: str
    size: int
    root: Digest
    proof: str
    key: str
    id: RecordId | None = None
    position: int | None = None
    old: int | None = None


class ProofCheckDocument(Document, frozen=True, tag="spl.proof_check.v1"):
    """What a proof proves; `ok` is the answer, and `reason` says why it is no.

    Attributes:
        kind: `inclusion` or `growth`.
        reason: Why it proves nothing.
        record_kind: The kind that the record says it is.
        by: The author that the record names; its signature was checked, where the DID names a key.
        at: When, by the author's claim.
    """

    kind: str
    ok: bool
    reason: str | None = None
    origin: str | None = None
    size: int | None = None
    root: Digest | None = None
    id: RecordId | None = None
    position: int | None = None
    record_kind: str | None = None
    by: Did | None = None
    at: int | None = None
    old: int | None = None

"""Checking a proof where there is no home: all it takes is the proof, the record and the log's key."""

from __future__ import annotations

from spl.codec import canonical, digest
from spl.contracts.proof import ProofCheckDocument
from spl.errors import EncodingError, InputError, SignatureError
from spl.records.envelope import check_record
from spl.store import note, proofs, tree
from spl.store.keys import check_signature

INCLUSION, GROWTH = "inclusion", "growth"
_ENTRY, _MAP = 0x82, 5  # CBOR: an array of two; a record is a map (RFC 8949, section 3.1)


def check_proof(proof: bytes, subject: bytes, key: str) -> ProofCheckDocument:
    """Return what a proof proves about a record, or about an older checkpoint.

    Args:
        proof: The content of the proof file.
        subject: For a proof of inclusion the record's bytes, or those of its entry `[record, signature]`; for a proof
            of growth the older checkpoint, a signed note.
        key: The verifier key of the log.

    Raises:
        InputError: One of the three is not what it should be.
    """
    parsed, verifier = note.parse_proof(proof), note.parse_vkey(key)
    kind = INCLUSION if isinstance(parsed, note.Proof) else GROWTH
    try:
        head = _checkpoint(parsed.note.encode(), verifier)
        if isinstance(parsed, note.Proof):
            return _inclusion(parsed, head, subject)
        return _growth(parsed, head, subject, verifier)
    except SignatureError as error:
        return ProofCheckDocument(kind=kind, ok=False, reason=error.message)


def _checkpoint(text: bytes, verifier: note.VerifierKey) -> note.Checkpoint:
    found = note.parse_checkpoint(note.open_note(text, [verifier]))
    if found.origin != verifier.name:
        raise SignatureError(f"the checkpoint is of {found.origin}, and the key of {verifier.name}")
    return found


def _inclusion(proof: note.Proof, head: note.Checkpoint, subject: bytes) -> ProofCheckDocument:
    data, signature = _entry(subject, proof.extra or b"")
    leaf = tree.entry_leaf(data, signature)
    if not proofs.includes(leaf, proof.position, head.size, proof.path, head.root):
        return ProofCheckDocument(
            kind=INCLUSION,
            ok=False,
            reason=f"this is not the record that the proof is about, entry {proof.position} of the checkpoint's log: it"
            " is another one, or one of the two files was altered",
            origin=head.origin,
            size=head.size,
            root=head.root,
            id=digest.record_id(data),
            position=proof.position,
        )
    record = check_record(data, foreign=True)
    check_signature(record.by, data, signature)
    return ProofCheckDocument(
        kind=INCLUSION,
        ok=True,
        origin=head.origin,
        size=head.size,
        root=head.root,
        id=record.id,
        position=proof.position,
        record_kind=record.kind,
        by=record.by,
        at=record.at,
    )


def _entry(subject: bytes, signature: bytes) -> tuple[bytes, bytes]:
    """Return record and signature, from an entry or from a record and the signature that came with the proof."""
    if subject[:1] != bytes([_ENTRY]):
        if not subject or subject[0] >> 5 != _MAP:
            raise InputError(
                "the record file holds neither a record nor an entry", hint="spl get ID --raw writes a record"
            )
        return subject, signature
    try:
        entry = canonical.decode(subject)
    except EncodingError as error:
        raise InputError(f"the record file: {error.message}") from error
    match entry:
        case [bytes(record), bytes(signature)]:
            return record, signature
    raise InputError("the record file holds neither a record nor an entry")


def _growth(
    proof: note.GrowthProof, head: note.Checkpoint, subject: bytes, verifier: note.VerifierKey
) -> ProofCheckDocument:
    old = _checkpoint(subject, verifier)
    reason = None
    if old.size != proof.old:
        reason = f"the proof is about a log of {proof.old} entries, and the checkpoint of {old.size}"
    elif not proofs.extends(old.size, old.root, head.size, head.root, proof.path):
        reason = "the log of the proof's checkpoint does not begin with that of the older one"
    return ProofCheckDocument(
        kind=GROWTH,
        ok=reason is None,
        reason=reason,
        origin=head.origin,
        size=head.size,
        root=head.root,
        old=old.size,
    )

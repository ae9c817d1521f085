"""Checkpoints and proofs of a home's log.

A checkpoint is a promise for ever: whoever signs two that do not extend each other shows two histories (a **split
view**), and nobody can tell which one is true. So before it signs, the kernel proves to itself that the log extends the
checkpoint that it signed last.
"""

from __future__ import annotations

from spl.contracts.proof import CheckpointDocument, KeyDocument, ProofDocument
from spl.errors import DamagedError, OperationFailedError, SplitViewError
from spl.kernel.home import Kernel
from spl.kernel.records import get_entry
from spl.store import head, note, proofs, tree
from spl.store.keys import KeyStore
from spl.store.layout import Layout
from spl.store.sqlite import SqliteLog, SqliteTransaction


def show_key(kernel: Kernel) -> KeyDocument:
    """Return the verifier key, for those who check checkpoints and proofs elsewhere.

    Raises:
        OperationFailedError: The home is in memory.
    """
    key = _Signer(kernel).key
    return KeyDocument(origin=key.name, key=note.format_vkey(key), kernel=kernel.kernel)


def checkpoint(kernel: Kernel, *, accept_split_view: bool = False) -> CheckpointDocument:
    """Return the signed head of the log; it is on disk as the last one before anybody sees it.

    Args:
        kernel: The open home.
        accept_split_view: Sign although the log does not extend what was signed last, or nobody can say.

    Raises:
        SplitViewError: The log does not extend the last checkpoint, or that is missing.
        DamagedError: The file of the last checkpoint is not readable, or the stored tree is not that of the log.
        StorageError, LockTimeoutError: The disk or the lock did not let it; nothing was signed.
        OperationFailedError: The home is in memory.
    """
    home = _Signer(kernel)
    return home.log.transact(lambda tx: home.checkpoint(tx, accept_split_view=accept_split_view))


def prove(kernel: Kernel, record: str) -> ProofDocument:
    """Return the proof that a record is in the log, by id or unique prefix.

    It leads to the last checkpoint when that covers the record, else to a new one.

    Raises:
        UnknownIdError, AmbiguousIdError: None, or several, are meant.
        SplitViewError, DamagedError, StorageError, LockTimeoutError, OperationFailedError: As `checkpoint`.
    """
    home = _Signer(kernel)
    entry = get_entry(kernel, record)
    signed = home.last_covering(entry.position + 1) or checkpoint(kernel)
    path = proofs.inclusion(entry.position, signed.size, home.log.subtree)
    if not proofs.includes(entry.leaf, entry.position, signed.size, path, signed.root):
        raise DamagedError("the stored tree is not that of the entries")
    proof = note.Proof(entry.position, path, signed.note, entry.signature or None)
    return _document(
        signed, kind="inclusion", proof=note.format_proof(proof), id=entry.id, position=entry.position
    )


def prove_growth(kernel: Kernel, old: int | bytes) -> ProofDocument:
    """Return the proof that the log as it is has only grown since it had a size, or since a checkpoint.

    Args:
        kernel: The open home.
        old: The size, or a signed note of this log.

    Raises:
        InputError, SignatureError: The note is not a checkpoint that this home signed.
        SplitViewError: The log does not extend that checkpoint.
        DamagedError, StorageError, LockTimeoutError, OperationFailedError: As `checkpoint`.
    """
    home = _Signer(kernel)
    earlier = None
    if isinstance(old, bytes):
        earlier = note.parse_checkpoint(note.open_note(old, [home.key]))
        old = earlier.size
    if old > kernel.log.size():
        raise SplitViewError(f"the log has {kernel.log.size()} entries, not {old}")
    signed = checkpoint(kernel)
    root = proofs.range_root(0, old, home.log.subtree)
    if earlier is not None and earlier.root != root:
        raise SplitViewError(f"the first {old} entries of the log are not those of that checkpoint")
    path = proofs.consistency(old, signed.size, home.log.subtree)
    if not proofs.extends(old, root, signed.size, signed.root, path):
        raise DamagedError("the stored tree is not that of the entries")
    proof = note.GrowthProof(old, path, signed.note)
    return _document(signed, kind="growth", proof=note.format_growth(proof), old=old)


def _document(signed: CheckpointDocument, **fields: object) -> ProofDocument:
    return ProofDocument(
        origin=signed.origin,
        size=signed.size,
        root=signed.root,
        key=signed.key,
        **fields,  # type: ignore[arg-type]
    )


class _Signer:
    """What it takes to sign: the key, the log, and the place of the last checkpoint."""

    def __init__(self, kernel: Kernel) -> None:
        if (
            kernel.path is None
            or not isinstance(kernel.keys, KeyStore)
            or not isinstance(kernel.log, SqliteLog)
        ):
            raise OperationFailedError("a home in memory signs no checkpoints")
        self.key = head.verifier_key(kernel.kernel)
        self._kernel, self._keys, self.log = kernel, kernel.keys, kernel.log
        self._layout = Layout(kernel.path)

    def last_covering(self, size: int) -> CheckpointDocument | None:
        """Return the last checkpoint when it has at least this size and the log extends it."""
        last = head.load(self._layout.head, self.key)
        if last is None or last[0].size < size or head.gap(self.log, last[0]) is not None:
            return None
        return self._signed(*last, now=False)

    def checkpoint(self, tx: SqliteTransaction, *, accept_split_view: bool) -> CheckpointDocument:
        """Return the last checkpoint when it is that of the log now, else sign the log now; under the write lock."""
        last = self._last(accept_split_view=accept_split_view)
        current = note.Checkpoint(self.key.name, tx.size(), tree.root(self.log.subtrees()))
        if last is not None:
            if last[0] == current:
                return self._signed(*last, now=False)
            gap = head.gap(self.log, last[0])
            if gap is not None and not accept_split_view:
                raise _refusal(gap)
        text = note.sign_note(
            note.format_checkpoint(current),
            self.key,
            lambda data: self._keys.sign_note(self._kernel.kernel, data),
        )
        tx.note_signing()
        head.save(self._layout.head, self._layout.tmp, text)
        return self._signed(current, text, now=True)

    def _last(self, *, accept_split_view: bool) -> tuple[note.Checkpoint, str] | None:
        try:
            last = head.load(self._layout.head, self.key)
        except DamagedError:
            if accept_split_view:
                return None
            raise
        if last is None and self.log.has_signed() and not accept_split_view:
            raise _refusal(f"{self._layout.head} is missing, and this log has signed checkpoints before")
        return last

    def _signed(self, found: note.Checkpoint, text: str, *, now: bool) -> CheckpointDocument:
        return CheckpointDocument(
            origin=found.origin,
            size=found.size,
            root=found.root,
            note=text,
            key=note.format_vkey(self.key),
            signed=now,
        )


def _refusal(why: str) -> SplitViewError:
    return SplitViewError(
        f"nothing was signed: {why}. Was the home restored from a backup? Whoever has both checkpoints would hold a"
        " proof that this log shows two histories, for ever",
        hint="bring the newer log or its head.json back; spl checkpoint --accept-split-view signs all the same",
    )

"""Withdrawal: the content of a record is taken away, its leaf stays, and a redaction says who did it and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from spl.contracts.records import RedactionDocument
from spl.errors import InputError, SplError
from spl.ids import BlobId, RecordId
from spl.kernel.home import Kernel
from spl.kernel.names import resolve_id
from spl.kernel.naming import named_blobs, named_ids, named_trees, tree_files
from spl.records.envelope import Draft, Record, read_record
from spl.records.registry import REDACTION
from spl.records.verdicts import Redaction
from spl.store.log import Entry, Selection, Transaction, View

MAX_LISTED: Final = 1500  # ids that a redaction has room for; the files of a large fixture may be more
COPIES: Final = "copies elsewhere (exports, other homes, backups) are out of reach"
ROTATE: Final = "if it held a secret, the secret must be changed where it is used: it was in this log"


def redact(kernel: Kernel, text: str, reason: str) -> RedactionDocument:
    """Withdraw a record for ever; withdrawing it again changes nothing, but finishes what a crash cut short.

    Its place in the log, its leaf, and so all proofs stay valid. What other records concluded from it stands: a
    withdrawn first end keeps its run ended, a withdrawn install keeps its place; folds count what they leave out.
    Blobs that no other record names are unlinked.

    Args:
        kernel: The open home.
        text: The record's id or a unique prefix.
        reason: Why.

    Raises:
        UnknownIdError, AmbiguousIdError: None, or several, are meant.
        InputError: It is a redaction itself, or the reason is blank.
        StorageError: The redaction was recorded, and what it freed could not be overwritten; run it again.
    """
    if not reason.strip():
        raise InputError("a withdrawal needs a reason", hint="add --reason")
    record_id = resolve_id(kernel.log, text)
    done = kernel.transact(lambda tx: _withdraw(kernel, tx, record_id, reason))
    unlinked = _unlink(kernel, done.blobs, done.seen)
    _unlink(kernel, _left_behind(kernel), 0)
    kernel.log.scrub()
    return RedactionDocument(
        id=done.redaction.id,
        record=record_id,
        position=done.body.position,
        leaf=done.body.leaf,
        reason=done.body.reason,
        blobs=unlinked,
        appended=done.appended,
        warnings=[COPIES, ROTATE],
    )


class _Done(NamedTuple):
    """What one transaction did: the redaction, the blobs that may go, and how many entries were looked at."""

    redaction: Record
    body: Redaction
    blobs: list[BlobId]
    seen: int
    appended: bool


def _withdraw(kernel: Kernel, tx: Transaction, record_id: RecordId, reason: str) -> _Done:
    entry = tx.get(record_id)
    assert entry is not None  # noqa: S101 - it was just resolved
    if entry.record is None:
        redaction, body = _redaction_of(kernel, tx, entry)
        return _Done(redaction, body, body.blobs, 0, appended=False)
    record = read_record(entry.record, entry.id)
    if record.kind == REDACTION:
        raise InputError(f"{record_id.hex()[:12]} is a redaction, and those stay")
    blobs = _unshared(kernel, tx, list(named_blobs(record, kernel.blobs)), entry.position)
    body = Redaction(
        position=entry.position, leaf=entry.leaf, record=record_id, blobs=blobs[:MAX_LISTED], reason=reason
    )
    own = tx.append(Draft(body=body, by=kernel.operator))
    tx.withdraw(record_id, own.position)
    assert own.record is not None  # noqa: S101 - it was just appended
    redaction = read_record(own.record, own.id)
    assert isinstance(redaction.body, Redaction)  # noqa: S101 - as above
    return _Done(redaction, redaction.body, blobs, tx.size(), appended=True)


def _redaction_of(kernel: Kernel, view: View, entry: Entry) -> tuple[Record, Redaction]:
    """Return the redaction by which this home withdrew an entry, and its body."""
    for record, body in _own_redactions(kernel, view):
        if body.record == entry.id:
            return record, body
    raise InputError(f"{entry.id.hex()[:12]} is withdrawn, and no redaction of this home says so")


def _own_redactions(kernel: Kernel, view: View) -> Iterator[tuple[Record, Redaction]]:
    for entry in view.scan(Selection(kind=REDACTION, by=kernel.operator)):
        record = None if entry.record is None else read_record(entry.record, entry.id)
        if record is not None and isinstance(record.body, Redaction):
            yield record, record.body


def _left_behind(kernel: Kernel) -> list[BlobId]:
    """Return the blobs that redactions of this home list and that are there: a crash may have come between."""
    listed = (blob for _, body in _own_redactions(kernel, kernel.log) for blob in body.blobs)
    return [blob for blob in listed if blob in kernel.blobs]


def _unlink(kernel: Kernel, blobs: Iterable[BlobId], seen: int) -> list[BlobId]:
    """Unlink blobs under the write lock, unless a record came to name them in the meantime.

    Args:
        kernel: The open home.
        blobs: What nothing named among the first `seen` entries.
        seen: How many entries have been looked at.
    """
    there = [blob for blob in blobs if blob in kernel.blobs]
    if not there:
        return []

    def unlink(tx: Transaction) -> list[BlobId]:
        free = _unshared(kernel, tx, there, None, start=seen)
        for blob in free:
            kernel.blobs.remove(blob)
        return free

    return kernel.transact(unlink)


def _unshared(
    kernel: Kernel, view: View, blobs: list[BlobId], position: int | None, *, start: int = 0
) -> list[BlobId]:
    """Return those of the blobs that no living entry from `start` on names, but for the one at a position."""
    wanted = dict.fromkeys(blobs)
    expanded: set[BlobId] = set()
    for entry in view.scan(Selection(start=start)) if wanted else ():
        if entry.record is None or entry.position == position:
            continue
        try:
            record = read_record(entry.record, entry.id)
        except SplError:  # a damaged entry: verify says so
            continue
        for blob in named_ids(record):
            wanted.pop(blob, None)
        for tree in set(named_trees(record)) - expanded if wanted else ():
            expanded.add(tree)
            for blob in tree_files(kernel.blobs, tree):
                wanted.pop(blob, None)
        if not wanted:
            break
    return list(wanted)

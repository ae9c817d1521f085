"""What verification says about withdrawals: content that is gone must have been withdrawn by this home."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from spl.contracts.verify import Finding
from spl.errors import SplError
from spl.ids import BlobId, Digest, RecordId
from spl.records.envelope import Record, read_record
from spl.records.registry import KINDS, REDACTION, RUN_END
from spl.records.verdicts import Redaction
from spl.store.blobs import BlobStore
from spl.store.inspection import Withdrawal
from spl.store.keys import SIGNATURE_BYTES
from spl.store.log import Entry, Selection
from spl.store.remains import Remains, decode_remains, encode_remains
from spl.store.sqlite import SqliteLog

CHECK = "withdrawal"


def withdrawal_faults(log: SqliteLog) -> Iterator[Finding]:
    """Yield the entries whose content is gone although no redaction of this home says so, and what is kept wrongly."""
    said = {
        (entry.position, body.record): body.position
        for entry, record, body in _redactions(log)
        if record.by == log.operator and body.leaf == _leaf(log, body.position)
    }
    listed = set()
    for row in log.withdrawals():
        listed.add(row.position)
        identified = None if row.id is None else row.id.hex()
        for message in _wrong(log, row, said):
            yield Finding(check=CHECK, message=message, position=row.position, id=identified)
    for entry in log.emptied():
        if entry.position not in listed:
            message = "its content is gone, and no redaction of this home says so"
            yield Finding(check=CHECK, message=message, position=entry.position, id=entry.id.hex())


def _leaf(log: SqliteLog, position: int) -> Digest | None:
    found = log.at([position]) if position < log.size() else []
    return found[0].leaf if found else None


def _wrong(log: SqliteLog, row: Withdrawal, said: Mapping[tuple[int, RecordId], int]) -> Iterator[str]:
    """Yield what is wrong with a row of `withdrawals`: the content is gone, so only what others say can be compared."""
    if row.id is None or row.kind is None or row.by is None:
        yield "is listed as withdrawn, and there is no such entry"
        return
    if not row.emptied:
        yield "is listed as withdrawn, and its content is there"
    if said.get((row.redaction, row.id)) != row.position:
        yield "its content is gone, and no redaction of this home says so"
    if row.by.startswith("did:key:") and len(row.signature or b"") != SIGNATURE_BYTES:
        yield "the signature of a withdrawn record is gone"
    try:
        remains = decode_remains(row.remains)
    except SplError as error:
        yield error.message
        return
    if encode_remains(remains) != row.remains:
        yield "what is kept of a withdrawn record is not as it was written"
    yield from _wrong_places(log, row, remains)


def _wrong_places(log: SqliteLog, row: Withdrawal, remains: Remains) -> Iterator[str]:
    """Yield what is wrong with the records that a withdrawn one is said to name."""
    kind = KINDS.get(row.kind or "")
    if row.threaded and (row.thread is None or _place(log, row.thread) >= row.position):
        yield "the thread of the row does not stand before it"
    if kind is not None and (kind.root is not None) != row.threaded:
        yield "the thread of the row is not that of the record"
    if row.kind == RUN_END and remains.refs.get("start") != [row.thread]:
        yield "the thread of the row is not the run that it ended"
    for role, ids in remains.refs.items():
        if any(_place(log, target) >= row.position for target in ids):
            yield f"what is kept names a {role} that does not stand before it"


def _place(log: SqliteLog, record_id: RecordId) -> int:
    """Return the position of a record, or one behind all others."""
    entry = log.get(record_id)
    return log.size() if entry is None else entry.position


def withdrawal_notices(log: SqliteLog, blobs: BlobStore, named: Container[BlobId]) -> Iterator[Finding]:
    """Yield withdrawals that were cut short, and those by others that nobody here has confirmed.

    Args:
        log: The log.
        blobs: Its blobs.
        named: The blobs that living records name.
    """
    for _, record, body in _redactions(log):
        target = log.get(body.record)
        if target is not None and target.record is not None:
            message = f"withdrawn elsewhere by {record.by}; spl redact {target.id.hex()[:12]} does so here"
            yield Finding(check=CHECK, message=message, position=target.position, id=target.id.hex())
        if record.by != log.operator or (target is not None and target.record is not None):
            continue
        left = sum(blob not in named and blob in blobs for blob in body.blobs)
        if left:
            message = f"{left} blobs are still there; spl redact {body.record.hex()[:12]} takes them away"
            yield Finding(check=CHECK, message=message, position=body.position, id=body.record.hex())


def _redactions(log: SqliteLog) -> Iterator[tuple[Entry, Record, Redaction]]:
    for entry in log.scan(Selection(kind=REDACTION)):
        try:
            record = None if entry.record is None else read_record(entry.record, entry.id)
        except SplError:  # a damaged entry is a fault of its own
            continue
        if record is not None and isinstance(record.body, Redaction):
            yield entry, record, record.body

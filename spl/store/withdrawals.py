"""What verification says about withdrawals: content that is gone must have been withdrawn by this home."""

from __future__ import annotations

from collections.abc import Container, Iterator

from spl.contracts.verify import Finding
from spl.errors import SplError
from spl.ids import BlobId
from spl.records.envelope import Record, read_record
from spl.records.registry import REDACTION
from spl.records.verdicts import Redaction
from spl.store.blobs import BlobStore
from spl.store.log import Selection
from spl.store.sqlite import SqliteLog

CHECK = "withdrawal"


def withdrawal_faults(log: SqliteLog) -> Iterator[Finding]:
    """Yield the entries whose content is gone although no redaction of this home says so."""
    said = {
        (body.position, body.record, body.leaf)
        for record, body in _redactions(log)
        if record.by == log.operator
    }
    for entry in log.emptied():
        if (entry.position, entry.id, entry.leaf) not in said:
            message = "its content is gone, and no redaction of this home says so"
            yield Finding(check=CHECK, message=message, position=entry.position, id=entry.id.hex())


def withdrawal_notices(log: SqliteLog, blobs: BlobStore, named: Container[BlobId]) -> Iterator[Finding]:
    """Yield withdrawals that were cut short, and those by others that nobody here has confirmed.

    Args:
        log: The log.
        blobs: Its blobs.
        named: The blobs that living records name.
    """
    for record, body in _redactions(log):
        target = log.get(body.record)
        if record.by != log.operator:
            if target is not None and target.record is not None:
                message = f"withdrawn by {record.by}; spl redact {target.id.hex()[:12]} does so here"
                yield Finding(check=CHECK, message=message, position=target.position, id=target.id.hex())
            continue
        left = sum(blob not in named and blob in blobs for blob in body.blobs)
        if left:
            message = f"{left} blobs are still there; spl redact {body.record.hex()[:12]} takes them away"
            yield Finding(check=CHECK, message=message, position=body.position, id=body.record.hex())


def _redactions(log: SqliteLog) -> Iterator[tuple[Record, Redaction]]:
    for entry in log.scan(Selection(kind=REDACTION)):
        try:
            record = None if entry.record is None else read_record(entry.record, entry.id)
        except SplError:  # a damaged entry is a fault of its own
            continue
        if record is not None and isinstance(record.body, Redaction):
            yield record, record.body

"""How a record enters a log: the same steps for every log, before it is kept in the log's own way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from spl.ids import BlobId, Did, RecordId
from spl.records.envelope import Draft, Record, check_encoded, check_record, encode_record, read_record
from spl.records.secrets import withheld_draft
from spl.store import projections, tree
from spl.store.keys import check_signature
from spl.store.log import Entry, Stamp


class Owner(Protocol):
    """The log that a transaction writes to: who stamps, who owns the home, and which blobs there are."""

    stamp: Stamp
    operator: Did
    has_blob: Callable[[BlobId], bool]


class Appending:
    """The appending half of a transaction; a log adds how it reads (`size`, `get`), finds and keeps."""

    _log: Owner

    def size(self) -> int:
        """Return the number of entries, with those appended so far."""
        raise NotImplementedError

    def get(self, record_id: RecordId) -> Entry | None:
        """Return the entry of a record, or None."""
        raise NotImplementedError

    def _has(self, record_id: RecordId) -> bool:
        """Say whether a record is in the log."""
        raise NotImplementedError

    def _keep(self, entry: Entry, record: Record) -> None:
        """Keep an entry that may enter, and apply what it changes in the projections."""
        raise NotImplementedError

    def append(self, draft: Draft) -> Entry:
        """Withhold secrets from a draft, stamp, sign and append it, and return its entry."""
        stamp = self._log.stamp
        at, salt = stamp.now_ms(), stamp.salt()
        data = encode_record(draft, at=at, salt=salt)
        if stamp.secrets.suspects(data):
            data = encode_record(withheld_draft(draft, stamp.secrets), at=at, salt=salt)
        return self._accept(data, stamp.sign(draft.by, data), check_encoded(data))

    def append_signed(self, record: bytes, signature: bytes, *, checked: bool = False) -> Entry:
        """Append bytes that were stamped and signed elsewhere; what is there already returns its entry."""
        found = read_record(record) if checked else check_record(record, foreign=True)
        existing = self.get(found.id)
        if existing is not None:
            return existing
        if not checked:
            check_signature(found.by, record, signature)
        return self._accept(record, signature, found)

    def _accept(self, data: bytes, signature: bytes, record: Record) -> Entry:
        existing = self.get(record.id)
        if existing is not None:
            return existing
        projections.check_references(record, self._has, self._log.has_blob)
        entry = Entry(self.size(), record.id, data, signature, tree.entry_leaf(data, signature))
        self._keep(entry, record)
        return entry

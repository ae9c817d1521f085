"""Verification: every entry read again, in bounded memory, and everything that is wrong reported."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

from spl.codec import digest
from spl.contracts.verify import Finding, VerifyDocument
from spl.errors import DamagedError, SplError, StorageError
from spl.ids import BlobId, Digest, RecordId
from spl.records.envelope import Record, check_record
from spl.store import schema, subtrees, tree
from spl.store.blobs import BlobStore
from spl.store.keys import check_signature
from spl.store.log import Entry, Selection
from spl.store.sqlite import SqliteLog
from spl.store.withdrawals import withdrawal_faults, withdrawal_notices

_PROGRESS_EVERY: Final = 1000


def verify(
    log: SqliteLog,
    blobs: BlobStore,
    *,
    signatures: bool = True,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> VerifyDocument:
    """Return every fault of a log and its blobs.

    Args:
        log: The log.
        blobs: Its blobs.
        signatures: Whether to check them; without, the verification never counts as clean.
        progress: Called with entries done and in all.
    """
    state = _Verification(log, blobs, signatures=signatures)
    size = log.size()
    try:
        for done, entry in enumerate(log.scan(Selection(stop=size))):
            state.entry(entry)
            if done % _PROGRESS_EVERY == 0:
                progress(done, size)
    except sqlite3.DatabaseError as error:
        state.stopped(error)
    progress(size, size)
    return state.document(size)


class _Verification:
    def __init__(self, log: SqliteLog, blobs: BlobStore, *, signatures: bool) -> None:
        self._log, self._blobs, self._signatures = log, blobs, signatures
        self._faults: list[Finding] = []
        self._notices: list[Finding] = []
        self._subtrees: list[Digest] = []
        self._next = 0
        self._complete = True
        self._leaves = 0
        self._named: set[BlobId] = set()

    def _fault(self, check: str, message: str, entry: Entry) -> None:
        self._faults.append(Finding(check=check, message=message, position=entry.position, id=entry.id.hex()))

    def stopped(self, error: sqlite3.DatabaseError) -> None:
        """Note that the entries could not be read to their end."""
        finding = Finding(check="database", message=f"cannot be read on: {error}", position=self._next)
        self._faults.append(finding)

    def entry(self, entry: Entry) -> None:
        """Check one entry; they come in order."""
        if entry.position != self._next:
            self._fault("position", f"expected position {self._next}", entry)
        self._next = entry.position + 1
        completed = tree.extend(self._subtrees, self._leaves, entry.leaf)
        self._leaves += 1
        self._stored(completed)
        if entry.record is None:
            withdrawn = Finding(
                check="withdrawal", message="withdrawn", position=entry.position, id=entry.id.hex()
            )
            self._notices.append(withdrawn)
            return
        if tree.entry_leaf(entry.record, entry.signature) != entry.leaf:
            self._fault("leaf", "the leaf is not the hash of the entry", entry)
        if digest.record_id(entry.record) != entry.id:
            self._fault("id", "the id is not the hash of the record", entry)
        try:
            record = check_record(entry.record, foreign=True)
        except SplError as error:
            self._fault(error.code, error.message, entry)
            return
        if record.opaque:
            self._notices.append(
                Finding(check="schema", message=record.opaque, position=entry.position, id=entry.id.hex())
            )
        self._signature(entry, record)
        self._references(entry, record)

    def _stored(self, completed: list[Digest]) -> None:
        """Compare the stored subtrees that end here."""
        for level in range(subtrees.STORED_LEVEL, len(completed)):
            index = (self._leaves >> level) - 1
            try:
                found = self._log.subtree(level, index)
            except DamagedError as error:
                self._faults.append(Finding(check="tree", message=error.message))
            else:
                if found != completed[level]:
                    message = f"the stored subtree {index} of level {level} is not that of the entries"
                    self._faults.append(Finding(check="tree", message=message))

    def _signature(self, entry: Entry, record: Record) -> None:
        if not self._signatures:
            return
        assert entry.record is not None  # noqa: S101 - the caller has looked
        try:
            check_signature(record.by, entry.record, entry.signature)
        except SplError as error:
            self._fault("signature", error.message, entry)

    def _references(self, entry: Entry, record: Record) -> None:
        targets = [target for ids in record.refs.values() for target in ids]
        for target in [record.thread, *targets] if record.thread else targets:
            assert target is not None  # noqa: S101 - a thread that is there
            found = self._log.get(RecordId(target))
            if found is None or found.position >= entry.position:
                self._fault("reference", f"{target.hex()} does not stand before it", entry)
        for blob in record.blobs:
            self._blob(blob.h, blob.n, entry)
            if blob.r == "tree" and blob.h in self._blobs:
                self._tree_files(blob.h, entry)

    def _blob(self, blob: BlobId, size: int | None, entry: Entry) -> None:
        if blob in self._named:
            return
        self._named.add(blob)
        try:
            found = len(self._blobs.get(blob))
        except SplError as error:
            self._fault("blob", error.message, entry)
        else:
            if size not in (None, found):
                self._fault("blob", f"the blob {blob.hex()} has {found} bytes, not {size}", entry)

    def _tree_files(self, manifest: BlobId, entry: Entry) -> None:
        """Check the files of a fixture, which only its manifest names."""
        try:
            files = digest.decode_tree(self._blobs.get(manifest))
        except SplError as error:
            self._fault("blob", f"the fixture's manifest {manifest.hex()}: {error.message}", entry)
            return
        for file in files:
            if file.blob is not None:
                self._blob(file.blob, None, entry)

    def document(self, size: int) -> VerifyDocument:
        """Check what stands beside the entries, and return all findings."""
        if self._log.subtrees() != self._subtrees:
            self._faults.append(Finding(check="tree", message="the stored tree is not that of the entries"))
        if self._log.stored_subtrees() != sum(size >> level for level in range(subtrees.STORED_LEVEL, 64)):
            self._faults.append(
                Finding(check="tree", message="there are more stored subtrees than entries make")
            )
        self._faults += withdrawal_faults(self._log)
        self._notices += withdrawal_notices(self._log, self._blobs, self._named)
        self._faults += _database_faults(self._log)
        try:
            self._faults += _projection_faults(self._log)
        except StorageError as error:  # a full disk or a read-only medium is not damage
            self._complete = False
            self._notices.append(Finding(check="projection", message=f"not checked: {error.message}"))
        for blob in self._blobs.ids():
            if blob not in self._named:
                self._orphan(blob)
        for row in self._log.open_runs():
            finding = Finding(
                check="run", message="open: it has no end", position=row.position, id=row.id.hex()
            )
            self._notices.append(finding)
        return VerifyDocument(
            ok=not self._faults,
            clean=not self._faults and self._signatures and self._complete,
            size=size,
            root=tree.root(self._subtrees),
            signatures_checked=self._signatures,
            blobs_checked=len(self._named),
            faults=self._faults,
            notices=self._notices,
        )

    def _orphan(self, blob: BlobId) -> None:
        """Note a blob that no record names: left by a crash between the blob and its record."""
        self._notices.append(Finding(check="blob", message="orphaned: no record names it", id=blob.hex()))


def _database_faults(log: SqliteLog) -> Iterator[Finding]:
    try:
        for message in log.integrity():
            yield Finding(check="database", message=message)
    except sqlite3.DatabaseError as error:
        yield Finding(check="database", message=str(error))


def _projection_faults(log: SqliteLog) -> Iterator[Finding]:
    """Derive the projections again in a transaction that is rolled back, and compare.

    Raises:
        StorageError: The home cannot be written.
    """

    def digests() -> dict[str, bytes]:
        return {table: _table_digest(log, table) for table in schema.PROJECTION_TABLES if table != "p_hashes"}

    try:
        before = digests()
        after = log.rebuilt(digests)
    except StorageError:
        raise
    except (SplError, sqlite3.DatabaseError) as error:
        yield Finding(check="projection", message=f"cannot be derived from the entries: {error}")
        return
    for table, rows in before.items():
        if rows != after[table]:
            yield Finding(check="projection", message=f"{table} is not what the entries say")


def _table_digest(log: SqliteLog, table: str) -> bytes:
    hasher = hashlib.sha256()
    for row in log.rows_of(table):
        hasher.update(repr(row).encode())
    return hasher.digest()

"""Checking a range of entries or some blobs, by themselves: what one worker of a verification does.

A worker gets plain values and returns plain values, so that it can be another process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from spl.codec import digest
from spl.contracts.verify import Finding
from spl.errors import SplError
from spl.ids import BlobId, Did, RecordId
from spl.records.definitions import Definition
from spl.records.envelope import Record, check_record
from spl.store import schema, tree
from spl.store.blobs import BlobStore
from spl.store.keys import check_signature

_TREE_ROLE: Final = "tree"
_QUERY: Final = """
SELECT e.position, e.id, e.record, e.signature, e.leaf, k.text, a.text,
  CASE WHEN e.thread IS NULL THEN NULL ELSE ifnull(t.id, x'') END FROM entries e
LEFT JOIN terms k ON k.no = e.kind LEFT JOIN terms a ON a.no = e.author LEFT JOIN entries t ON t.position = e.thread
WHERE e.position >= ? AND e.position < ? ORDER BY e.position
"""


class Job(Struct, frozen=True):
    """What every task of a verification is about.

    Attributes:
        log: The path of the database.
        blobs: The path of the directory of blobs.
        operator: Who owns the home.
        signatures: Whether to check them.
    """

    log: str
    blobs: str
    operator: Did
    signatures: bool


class Entries(Struct, frozen=True):
    """The task of checking the entries from `low` up to but without `high`."""

    low: int
    high: int


class Named(NamedTuple):
    """A blob that a record names: how large it says it is (None when it does not say), and where it stands."""

    blob: BlobId
    size: int | None
    position: int


class Blobs(Struct, frozen=True):
    """The task of checking some blobs."""

    named: list[Named]


Task: TypeAlias = Entries | Blobs


class Report(Struct):
    """What was found.

    Attributes:
        leaves: The leaves of the entries, in order.
        named: The blobs that the entries name.
    """

    faults: list[Finding]
    notices: list[Finding]
    leaves: list[bytes]
    named: list[Named]


class _Row(NamedTuple):
    position: int
    id: RecordId
    record: bytes | None
    signature: bytes
    leaf: bytes
    kind: str | None
    author: str | None
    thread: RecordId | None


class Checker:
    """Checks what it is given, and says what it found.

    Args:
        job: What every task is about.

    Raises:
        DamagedError, StorageError: The database cannot be opened.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._connection = schema.connect(Path(job.log))
        self._blobs = BlobStore(Path(job.blobs), Path(job.blobs))  # nothing is written
        self._position = lru_cache(maxsize=65_536)(self._find)
        self._files = lru_cache(maxsize=64)(self._tree_files)
        self._near: dict[bytes, int] = {}  # of the entries before the one at hand
        self._report = Report([], [], [], [])

    def __call__(self, task: Task) -> Report:
        """Return what is wrong or notable in one task."""
        self._report = Report([], [], [], [])
        match task:
            case Entries(low, high):
                self._entries(low, high)
            case Blobs(named):
                for item in named:
                    self._blob(item)
        return self._report

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _fault(self, check: str, message: str, row: _Row) -> None:
        identified = row.id.hex() if type(row.id) is bytes else None
        self._report.faults.append(
            Finding(check=check, message=message, position=row.position, id=identified)
        )

    def _notice(self, check: str, message: str, row: _Row) -> None:
        self._report.notices.append(
            Finding(check=check, message=message, position=row.position, id=row.id.hex())
        )

    def _entries(self, low: int, high: int) -> None:
        expected = low
        self._near = {}
        try:
            for values in self._connection.execute(_QUERY, (low, high)):
                row = _Row._make(values)
                if row.position != expected:
                    self._fault("position", f"expected position {expected}", row)
                expected = row.position + 1
                self._entry(row)
                self._near[row.id] = row.position
        except sqlite3.DatabaseError as error:
            finding = Finding(check="database", message=f"cannot be read on: {error}", position=expected)
            self._report.faults.append(finding)
            return
        if expected != high:
            finding = Finding(check="position", message="there is no such entry", position=expected)
            self._report.faults.append(finding)

    def _entry(self, row: _Row) -> None:
        if not all(type(value) is bytes for value in (row.id, row.signature, row.leaf)) or not (
            row.record is None or type(row.record) is bytes
        ):
            self._fault("database", "a column has a value of another type", row)
            return
        self._report.leaves.append(row.leaf)
        if row.record is None:
            self._notice("withdrawal", "withdrawn", row)
            return
        if tree.entry_leaf(row.record, row.signature) != row.leaf:
            self._fault("leaf", "the leaf is not the hash of the entry", row)
        try:
            record = check_record(row.record, foreign=True)
        except SplError as error:
            if digest.record_id(row.record) != row.id:
                self._fault("id", "the id is not the hash of the record", row)
            self._fault(error.code, error.message, row)
            return
        if record.id != row.id:
            self._fault("id", "the id is not the hash of the record", row)
        self._signature(row, record)
        self._columns(row, record)
        self._references(row, record)
        self._notable(row, record)

    def _signature(self, row: _Row, record: Record) -> None:
        if not self._job.signatures or row.record is None:
            return
        try:
            check_signature(record.by, row.record, row.signature)
        except SplError as error:
            self._fault("signature", error.message, row)

    def _columns(self, row: _Row, record: Record) -> None:
        """Compare what the row repeats of its record, by which entries are selected."""
        for name, kept, said in (
            ("kind", row.kind, record.kind),
            ("author", row.author, record.by),
            ("thread", row.thread, record.thread),
        ):
            if kept != said:
                self._fault("column", f"the {name} of the row is not that of the record", row)

    def _references(self, row: _Row, record: Record) -> None:
        for target in _targets(record):
            position = self._near.get(target)
            if position is None:
                position = self._position(target)
            if position is None or position >= row.position:
                self._fault("reference", f"{target.hex()} does not stand before it", row)
        for blob in record.blobs:
            self._report.named.append(Named(blob.h, blob.n, row.position))
            if blob.r == _TREE_ROLE:
                try:
                    files = self._files(blob.h)
                except SplError as error:
                    self._fault("blob", f"the fixture's manifest {blob.h.hex()}: {error.message}", row)
                else:
                    self._report.named += [Named(file, None, row.position) for file in files]

    def _notable(self, row: _Row, record: Record) -> None:
        if record.opaque:
            self._notice("schema", record.opaque, row)
        elif isinstance(record.body, Definition) and record.by != self._job.operator:
            self._notice("definition", f"by {record.by}: a candidate here, whatever it says", row)

    def _find(self, record_id: RecordId) -> int | None:
        row = self._connection.execute("SELECT position FROM entries WHERE id = ?", (record_id,)).fetchone()
        return None if row is None else row[0]

    def _tree_files(self, manifest: BlobId) -> list[BlobId]:
        """Return the files of a fixture, which only its manifest names; a missing manifest is a fault of its own."""
        if manifest not in self._blobs:
            return []
        return [file.blob for file in digest.decode_tree(self._blobs.get(manifest)) if file.blob is not None]

    def _blob(self, item: Named) -> None:
        message = None
        try:
            size = sum(map(len, self._blobs.stream(item.blob)))
        except SplError as error:
            message = error.message
        else:
            if item.size not in (None, size):
                message = f"the blob {item.blob.hex()} has {size} bytes, not {item.size}"
        if message is not None:
            query = "SELECT id, record IS NULL FROM entries WHERE position = ?"
            row = self._connection.execute(query, (item.position,)).fetchone()
            if row and row[1]:  # withdrawn since, and its blobs with it
                return
            finding = Finding(
                check="blob", message=message, position=item.position, id=row[0].hex() if row else None
            )
            self._report.faults.append(finding)


def integrity(job: Job) -> list[Finding]:
    """Return what SQLite finds wrong with the whole database, at most ten findings."""
    try:
        connection = schema.connect(Path(job.log))
    except SplError as error:
        return [Finding(check="database", message=error.message)]
    try:
        rows = connection.execute("PRAGMA integrity_check(10)")
        return [Finding(check="database", message=message) for (message,) in rows if message != "ok"]
    except sqlite3.DatabaseError as error:
        return [Finding(check="database", message=str(error))]
    finally:
        connection.close()


def _targets(record: Record) -> Iterator[RecordId]:
    if record.thread is not None:
        yield record.thread
    for ids in record.refs.values():
        yield from ids

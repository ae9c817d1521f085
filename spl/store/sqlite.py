"""The SQLite log: one writer at a time, all or nothing, durable when it returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from spl.errors import SplError, UnconfirmedError
from spl.ids import BlobId, CaseFacet, Did, Digest, Facet, RecordId
from spl.records.envelope import Record, read_record
from spl.store import projections, schema, subtrees, tree
from spl.store.appending import Appending
from spl.store.inspection import Inspected
from spl.store.lock import write_lock
from spl.store.log import DefinitionRow, Entry, NameRow, RunRow, ScoreRow, Stamp, VerdictRow
from spl.store.remains import encode_remains, remains_of
from spl.store.sqlite_view import SqliteView

T = TypeVar("T")

_RefRow: TypeAlias = tuple[int | None, int, int]
_INSERT_REF: Final = "INSERT OR IGNORE INTO p_refs VALUES (?, ?, ?)"
_INSERT_RUN: Final = "INSERT INTO p_runs VALUES (?, ?, ?, ?, ?)"
_INSERT_IMPORT: Final = "INSERT OR IGNORE INTO p_imports VALUES (?, ?, ?)"
_DERIVED_AT_ONCE: Final = 1024


class SqliteLog(Inspected):
    """A log in an SQLite database.

    Args:
        path: The database.
        lock: The file that writers lock.
        stamp: Clock, salts and signatures.
        operator: Who owns the home.
        has_blob: Says whether a blob is there.

    Raises:
        DamagedError, StorageError: The database cannot be opened as a log.
    """

    def __init__(
        self, path: Path, lock: Path, stamp: Stamp, operator: Did, has_blob: Callable[[BlobId], bool]
    ) -> None:
        super().__init__(schema.connect(path))
        self._subtree = subtrees.reader(self._connection)
        self.path = path
        self._lock = lock
        self.stamp = stamp
        self.operator = operator
        self.has_blob = has_blob
        try:
            version = schema.derived_version(self._connection)
        except sqlite3.DatabaseError as error:
            raise schema.storage_error(f"cannot open {path}", error) from error
        if version != schema.DERIVED:
            self.transact(SqliteTransaction.upgrade)

    def transact(self, function: Callable[[SqliteTransaction], T]) -> T:
        """Run `function` under the write lock; what it appended is durable when this returns.

        Raises:
            LockTimeoutError, StorageError: The lock or the disk did not let it; nothing was appended.
            UnconfirmedError: The disk failed at the last step; what was appended is there, or may be.
        """
        with write_lock(self._lock):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                transaction = SqliteTransaction(self._connection, self)
                result = function(transaction)
                transaction.finish()
            except sqlite3.DatabaseError as error:
                self._roll_back()
                raise schema.storage_error("nothing was written", error) from error
            except BaseException:
                self._roll_back()
                raise
            try:
                self._connection.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                raise self._after_failed_commit(transaction, error) from error
            return result

    def _after_failed_commit(self, transaction: SqliteTransaction, error: sqlite3.DatabaseError) -> SplError:
        """Return what became of a transaction whose commit failed.

        Nothing is tried again: a failed sync may have dropped what it was to write. The log is opened anew, which
        rolls back what the journal still holds, and looked at.
        """
        self._roll_back()
        self._connection.close()
        failed = schema.storage_error("nothing was written", error)
        try:
            self._connection = schema.connect(self.path)
            self._subtree = subtrees.reader(self._connection)
            size = self.size()
        except (SplError, sqlite3.DatabaseError):
            cut = schema.storage_error("the log could not be written to its end", error).message
            return UnconfirmedError(f"{cut}; whether the records are in it shows when it can be opened again")
        if transaction.grew and size == transaction.size():
            return UnconfirmedError(
                f"the records are in the log, but the disk did not confirm that they will stay: {error}"
            )
        if not transaction.grew and failed.details["sqlite"].startswith("SQLITE_IOERR"):
            return UnconfirmedError(f"the disk did not confirm the change: {error}")
        return failed

    def subtrees(self) -> list[Digest]:
        """Return the compact range of the whole log."""
        return [Digest(row[0]) for row in self._rows("SELECT node FROM tree ORDER BY level DESC")]

    def subtree(self, level: int, index: int) -> Digest:
        """Return the root of the perfect subtree of 2^level leaves that begins at leaf `index * 2^level`.

        Raises:
            DamagedError: A leaf or a stored subtree is missing.
        """
        return self._subtree(level, index)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Let everything that is read within be of one moment; writers wait until the block ends."""
        self._connection.execute("BEGIN")
        try:
            self._value("SELECT 1 FROM entries")  # the first reading begins it
            yield
        finally:
            self._roll_back()

    def rebuild_projections(self) -> None:
        """Drop everything that is derived, the stored subtrees too, and derive it again from the entries.

        Raises:
            LockTimeoutError, StorageError: The lock or the disk did not let it; nothing changed.
        """
        self.transact(SqliteTransaction.make_derived)

    def has_signed(self) -> bool:
        """Say whether this log has ever signed a checkpoint."""
        return self._value("SELECT 1 FROM meta WHERE name = 'signed'") is not None

    def scrub(self) -> None:
        """Write the database anew, so that no page of it holds what was withdrawn.

        Raises:
            LockTimeoutError, StorageError: The lock or the disk did not let it; what was withdrawn stays withdrawn.
        """
        with write_lock(self._lock):
            try:
                self._connection.execute("PRAGMA secure_delete=ON")
                self._connection.execute("VACUUM")
            except sqlite3.DatabaseError as error:
                raise schema.storage_error("the bytes were not cleared away", error) from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            # The journal rolls it back when the database is next opened.
            self._connection.close()


class _Batch:
    """A range of entries whose projections are derived at once: rows that are written together, and who is near.

    Attributes:
        near: Position and author of the entries before the one at hand, by id.
        runs: The runs that begin in the range, by position.
        imports: The import keys.
    """

    def __init__(self) -> None:
        self.near: dict[bytes, tuple[int, str | None]] = {}
        self.runs: dict[int, tuple[Any, ...]] = {}
        self.imports: list[tuple[Any, ...]] = []


class SqliteTransaction(SqliteView, Appending):
    """What a function handed to `SqliteLog.transact` works with; also the `Lookup` of the projections."""

    def __init__(self, connection: sqlite3.Connection, log: SqliteLog) -> None:
        super().__init__(connection)
        self._log = log
        self._size = log.size()
        self._subtrees = log.subtrees()
        self._first = self._size
        self._batch: _Batch | None = None
        # What one transaction asks again and again: the same actor, definition, cases and terms.
        self._known_position = lru_cache(maxsize=65_536)(super()._position)
        self._known_term = lru_cache(maxsize=1024)(self._intern_term)
        self._known_case = lru_cache(maxsize=65_536)(self._case_facet)
        self._known_hash = lru_cache(maxsize=65_536)(self._intern_hash)

    def size(self) -> int:
        """Return the number of entries, with those appended so far."""
        return self._size

    def _has(self, record_id: RecordId) -> bool:
        return self._known(record_id) is not None

    def _keep(self, entry: Entry, record: Record) -> None:
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                entry.position,
                entry.id,
                self._known_term(record.kind),
                self._known_term(record.by),
                None if record.thread is None else self._known(record.thread),
                entry.record,
                entry.signature,
                entry.leaf,
            ),
        )
        self._connection.executemany(_INSERT_REF, self._ref_rows(record, entry.position))
        self._project(record, entry.position)
        completed = tree.extend(self._subtrees, self._size, entry.leaf)
        self._size += 1
        if len(completed) > subtrees.STORED_LEVEL:
            subtrees.store(self._connection, self._size, completed)

    @property
    def grew(self) -> bool:
        """Whether anything was appended."""
        return self._size > self._first

    def finish(self) -> None:
        """Write what is kept once for a transaction."""
        if not self.grew:
            return
        self._connection.execute("DELETE FROM tree")
        levels = reversed(range(len(self._subtrees)))
        self._connection.executemany(
            "INSERT INTO tree VALUES (?, ?)", zip(levels, self._subtrees, strict=True)
        )

    def note_signing(self) -> None:
        """Note that this log signs a checkpoint: from then on, a missing last one is noticed."""
        self._connection.execute("INSERT OR IGNORE INTO meta VALUES ('signed', '1')")

    def upgrade(self) -> None:
        """Bring what is derived to this version, unless another process just did."""
        if schema.derived_version(self._connection) != schema.DERIVED:
            self.make_derived()

    def make_derived(self) -> None:
        """Make every derived table anew, from the entries."""
        schema.make_derived(self._connection)
        subtrees.derive_anew(self._connection)
        self.derive_anew()

    def derive_anew(self) -> None:
        """Drop every projection and derive it again from the entries, in log order."""
        for cache in (self._known_case, self._known_hash):
            cache.cache_clear()
        for table in schema.PROJECTION_TABLES:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a constant name
        self.derive(0, self._size)

    def derive(self, start: int, stop: int) -> None:
        """Derive the projections of a range of entries; those before are derived already."""
        query = (
            "SELECT e.position, e.id, e.record, a.text FROM entries e LEFT JOIN terms a ON a.no = e.author "
            "WHERE e.position >= ? AND e.position < ? ORDER BY e.position"
        )
        for low in range(start, stop, _DERIVED_AT_ONCE):
            refs: list[_RefRow] = []
            self._batch = _Batch()
            for position, record_id, data, author in self._rows(
                query, (low, min(low + _DERIVED_AT_ONCE, stop))
            ):
                record = self._record(RecordId(record_id)) if data is None else read_record(data, record_id)
                if record is not None:
                    refs += self._ref_rows(record, position)
                    self._project(record, position)
                self._batch.near[record_id] = (position, author)
            self._connection.executemany(_INSERT_REF, refs)
            self._connection.executemany(_INSERT_RUN, self._batch.runs.values())
            self._connection.executemany(_INSERT_IMPORT, self._batch.imports)
            self._batch = None

    def withdraw(self, record_id: RecordId, redaction: int) -> None:
        """Take the content of a record away; its leaf and what `remains` keeps stay."""
        record = self._record(record_id)
        assert record is not None  # noqa: S101 - the caller has looked
        # Freed pages are overwritten; the commit cuts the journal to nothing.
        self._connection.execute("PRAGMA secure_delete=ON")
        row = (self._position(record_id), redaction, encode_remains(remains_of(record)))
        self._connection.execute("INSERT INTO withdrawals VALUES (?, ?, ?)", row)
        self._connection.execute("UPDATE entries SET record = NULL WHERE id = ?", (record_id,))
        if record.kind in projections.CHANGED_BY_WITHDRAWAL:
            self.derive_anew()

    def _ref_rows(self, record: Record, position: int) -> list[_RefRow]:
        return [
            (self._known(target), self._known_term(role), position)
            for role, targets in record.refs.items()
            for target in targets
        ]

    def _project(self, record: Record, position: int) -> None:
        for change in projections.changes(record, position, self._log.operator, self):
            self._apply(change)

    def _apply(self, change: projections.Change) -> None:  # noqa: C901 - one arm for each change
        run = self._connection.execute
        row: tuple[Any, ...]
        match change:
            case NameRow(position=position, name=name, did=did):
                run("INSERT INTO p_names VALUES (?, ?, ?)", (position, name, did))
            case DefinitionRow():
                row = (change.position, self._known(change.actor), change.facet, int(change.incumbent))
                run("INSERT INTO p_definitions VALUES (?, ?, ?, ?)", row)
            case projections.CaseChange():
                self._apply_case(change)
            case projections.CaseKept():
                row = (change.position, self._known(change.suite), change.facet, change.position)
                run("INSERT INTO p_cases VALUES (?, ?, '', ?, ?, 0)", row)
            case projections.CaseGone(case=case):
                run("UPDATE p_cases SET current = 0 WHERE position = ?", (self._known(case),))
            case RunRow():
                case_facet = None if change.case_facet is None else self._known_hash(change.case_facet)
                row = (
                    change.position,
                    self._known(change.actor),
                    self._known_hash(change.facet),
                    case_facet,
                )
                self._begin(row)
            case projections.RunEnded(start=start, position=position):
                self._end(self._known(start), position)
            case projections.ImportKey(actor=actor, definition=definition, key=key):
                row = (self._known(actor), self._known(definition), key)
                if self._batch is None:
                    run(_INSERT_IMPORT, row)
                else:
                    self._batch.imports.append(row)
            case ScoreRow():
                row = (change.position, self._known(change.suite), self._known(change.actor), change.facet)
                run("INSERT INTO p_scores VALUES (?, ?, ?, ?)", row)
            case VerdictRow():
                run("INSERT INTO p_verdicts VALUES (?, ?, ?)", (change.position, change.winner, change.loser))

    def _begin(self, row: tuple[Any, ...]) -> None:
        if self._batch is None:
            self._connection.execute(_INSERT_RUN, (*row, None))
        else:
            self._batch.runs[row[0]] = (*row, None)

    def _end(self, start: int | None, position: int) -> None:
        """End a run that has no end yet."""
        near = None if self._batch is None or start is None else self._batch.runs.get(start)
        if near is None or self._batch is None:
            query = "UPDATE p_runs SET ended = ? WHERE position = ? AND ended IS NULL"
            self._connection.execute(query, (position, start))
        elif near[-1] is None:
            self._batch.runs[near[0]] = (*near[:-1], position)

    def _apply_case(self, change: projections.CaseChange) -> None:
        suite, row = self._known(change.suite), change.row
        current = "FROM p_cases WHERE suite = ? AND key = ? AND current"
        first = self._value(f"SELECT first {current}", (suite, row.key))
        self._connection.execute(
            "UPDATE p_cases SET current = 0 WHERE suite = ? AND key = ? AND current", (suite, row.key)
        )
        self._connection.execute(
            "INSERT INTO p_cases VALUES (?, ?, ?, ?, ?, 1)",
            (row.position, suite, row.key, row.facet, row.position if first is None else first),
        )

    def _known(self, record_id: RecordId) -> int | None:
        if self._batch is not None and (near := self._batch.near.get(record_id)):
            return near[0]
        position = self._known_position(record_id)
        if position is None:  # it may be appended later in this transaction
            self._known_position.cache_clear()
        return position

    def _intern_term(self, text: str) -> int:
        query = "SELECT no FROM terms WHERE text = ?"
        number: int | None = self._value(query, (text,))
        if number is None:
            self._connection.execute("INSERT INTO terms (text) VALUES (?)", (text,))
            number = self._intern_term(text)
        return number

    def _intern_hash(self, value: bytes) -> int:
        self._connection.execute("INSERT OR IGNORE INTO p_hashes (hash) VALUES (?)", (value,))
        return self._hash(value)

    def owner_of(self, actor: RecordId) -> Did | None:
        """Return who added an actor."""
        query = (
            "SELECT t.text FROM entries e JOIN p_names n USING (position) JOIN terms t ON t.no = e.author "
            "WHERE e.id = ? AND n.did IS NOT NULL"
        )
        owner = self._value(query, (actor,))
        return None if owner is None else Did(owner)

    def author_of(self, record: RecordId) -> Did | None:
        """Return the author of a record."""
        if self._batch is not None and (near := self._batch.near.get(record)) and near[1] is not None:
            return Did(near[1])
        query = "SELECT t.text FROM entries e JOIN terms t ON t.no = e.author WHERE e.id = ?"
        author = self._value(query, (record,))
        return None if author is None else Did(author)

    def incumbent(self, actor: RecordId) -> RecordId | None:
        """Return the definition installed for an actor."""
        query = (
            "SELECT e.id FROM p_definitions d JOIN entries e USING (position) "
            "WHERE d.actor = ? AND d.incumbent ORDER BY d.position DESC LIMIT 1"
        )
        found = self._value(query, (self._known(actor),))
        return None if found is None else RecordId(found)

    def case_facet(self, case: RecordId) -> CaseFacet | None:
        """Return the facet of a case, current or not."""
        return self._known_case(case)

    def _case_facet(self, case: RecordId) -> CaseFacet | None:
        facet = self._value("SELECT facet FROM p_cases WHERE position = ?", (self._known(case),))
        return None if facet is None else CaseFacet(facet)

    def facet_of(self, record: RecordId) -> Facet | None:
        """Return the facet that a definition, run start, run end or score stands for."""
        return projections.facet_of(self._record(record), self._record)

    def _record(self, record_id: RecordId) -> Record | None:
        entry = self.get(record_id)
        if entry is None or entry.record is None:
            return self.withdrawn(record_id)
        return read_record(entry.record, record_id)

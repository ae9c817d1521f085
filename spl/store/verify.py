"""Verification: everything that a home holds read again, in bounded memory, and everything that is wrong reported.

The entries are checked in ranges, each by itself, so that the ranges can be spread over processes. Here they come back
in order: their leaves make the tree, and the projections are derived a second time beside the workers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from spl.contracts.verify import Finding, VerifyDocument
from spl.errors import DamagedError, SplError, StorageError
from spl.ids import BlobId, Digest
from spl.store import head, note, proofs, schema, subtrees, tree
from spl.store.blobs import BlobStore
from spl.store.check import Blobs, Checker, Entries, Job, Named, Report, Task, integrity
from spl.store.shadow import Shadow
from spl.store.sqlite import SqliteLog
from spl.store.verified import Verified
from spl.store.withdrawals import withdrawal_faults, withdrawal_notices

RANGE: Final = 1024
MAX_FINDINGS: Final = 10_000
_BLOBS_AT_ONCE: Final = 64


class Spread(Protocol):
    """Carries out tasks, perhaps in several processes, and yields their reports in the order of the tasks."""

    def __call__(self, job: Job, tasks: Iterable[Task]) -> Iterator[Report]:
        """Yield a report for each task."""


def in_this_process(job: Job, tasks: Iterable[Task]) -> Iterator[Report]:
    """Carry out tasks one after the other."""
    checker = Checker(job)
    try:
        yield from map(checker, tasks)
    finally:
        checker.close()


class Home(Struct, frozen=True):
    """What is verified.

    Attributes:
        log: The log.
        blobs: Its blobs.
        head: The file of the last signed checkpoint.
        key: Whose checkpoints they are.
    """

    log: SqliteLog
    blobs: BlobStore
    head: Path
    key: note.VerifierKey


def verify(
    home: Home,
    *,
    signatures: bool = True,
    since: Verified | None = None,
    spread: Spread = in_this_process,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> VerifyDocument:
    """Return every fault of a home; nothing is written to it.

    Args:
        home: The home.
        signatures: Whether to check them; without, the verification never counts as clean.
        since: Check only what is newer, and neither older blobs nor the projections.
        spread: Carries out the tasks.
        progress: Called with entries done and in all.

    Raises:
        DamagedError, StorageError: The database cannot be read at all.
    """
    try:
        state = _Verification(home, signatures=signatures, since=since)
        try:
            state.entries(spread, progress)
            state.blobs(spread)
            state.rest(progress)
            return state.document()
        finally:
            state.close()
    except sqlite3.DatabaseError as error:
        raise schema.storage_error("the log cannot be verified", error) from error


class _Findings:
    """Findings, of which the first are kept and the others counted: a log of faults does not fill the memory."""

    def __init__(self) -> None:
        self.kept: list[Finding] = []
        self.omitted = 0

    def add(self, found: Iterable[Finding]) -> None:
        for finding in found:
            if len(self.kept) < MAX_FINDINGS:
                self.kept.append(finding)
            else:
                self.omitted += 1


class _NamedBlobs(Container[BlobId]):
    """The blobs that records name, on disk in a database that goes with its connection."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute(
            "CREATE TABLE named (blob BLOB, size INTEGER, position INTEGER, PRIMARY KEY (blob, size)) WITHOUT ROWID"
        )
        self._connection.execute("BEGIN")

    def add(self, named: Iterable[Named]) -> None:
        # A size that is not said is -1 here: NULL has no place in a key.
        rows = [(item.blob, -1 if item.size is None else item.size, item.position) for item in named]
        self._connection.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?)", rows)

    def __contains__(self, blob: object) -> bool:
        query = "SELECT 1 FROM named WHERE blob = ? LIMIT 1"
        return self._connection.execute(query, (blob,)).fetchone() is not None

    def __iter__(self) -> Iterator[Named]:
        """Yield each blob with each size that is said of it, and where that first stands."""
        for blob, size, position in self._connection.execute("SELECT * FROM named ORDER BY blob, size DESC"):
            yield Named(BlobId(blob), None if size < 0 else size, position)

    def count(self) -> int:
        count: int = self._connection.execute("SELECT count(DISTINCT blob) FROM named").fetchone()[0]
        return count

    def close(self) -> None:
        self._connection.close()


class _Verification:
    def __init__(self, home: Home, *, signatures: bool, since: Verified | None) -> None:
        self._home, self._log, self._since = home, home.log, since
        self._signatures, self._complete = signatures, True
        self._size = self._log.extent()
        self._withdrawn = self._log.count_withdrawn()
        self._start = 0 if since is None else min(since.size, self._size)
        self._job = Job(str(self._log.path), str(home.blobs.root), self._log.operator, signatures)
        self._faults, self._notices = _Findings(), _Findings()
        self._named = _NamedBlobs()
        self._shadow = Shadow(self._log) if since is None else None
        self._subtrees = self._trusted()
        self._leaves = self._start
        # SQLite checks its file meanwhile, without Python's lock.
        self._thread = ThreadPoolExecutor(1)
        self._integrity = self._thread.submit(integrity, self._job) if since is None else None

    def close(self) -> None:
        """Drop what was made on the way."""
        self._thread.shutdown(cancel_futures=True)
        self._named.close()
        if self._shadow is not None:
            self._shadow.close()

    def _fault(self, check: str, message: str) -> None:
        self._faults.add([Finding(check=check, message=message)])

    def _trusted(self) -> list[Digest]:
        """Return the compact range of what was verified before, once it is known to be the same."""
        if self._since is None:
            return []
        try:
            root = proofs.range_root(0, self._start, self._log.subtree)
            if (self._start, root) != (self._since.size, self._since.root):
                self._fault("tree", f"the first {self._since.size} entries are not those that were verified")
            return _compact_range(self._start, self._log.subtree)
        except DamagedError as error:
            self._fault("tree", error.message)
            return []

    def entries(self, spread: Spread, progress: Callable[[int, int], None]) -> None:
        """Check every entry, and derive the projections."""
        progress(self._start, self._size)
        for _ in self._checked(self._start, spread, progress):
            pass

    def _catch_up(self, progress: Callable[[int, int], None]) -> None:
        """Check what was appended meanwhile: what stands beside the entries is compared with all of them."""
        start, self._size = self._size, max(self._size, self._log.extent())
        named = [item for report in self._checked(start, in_this_process, progress) for item in report.named]
        for report in in_this_process(self._job, _batches(named)):
            self._faults.add(report.faults)
        self._faults.add(self._log.misplaced(self._size))
        if self._log.count_withdrawn() != self._withdrawn and self._shadow is not None:
            self._complete = False  # they were derived from content that is gone by now
            message = "the projections were not checked: a record was withdrawn meanwhile; verify again"
            self._notices.add([Finding(check="projection", message=message)])
            self._shadow.close()
            self._shadow = None

    def _checked(self, start: int, spread: Spread, progress: Callable[[int, int], None]) -> Iterator[Report]:
        """Check the entries from a position on, and yield the report of each range."""
        ranges = [Entries(low, min(low + RANGE, self._size)) for low in range(start, self._size, RANGE)]
        for task, report in zip(ranges, spread(self._job, ranges), strict=True):
            self._faults.add(report.faults)
            self._notices.add(report.notices)
            self._named.add(report.named)
            for leaf in report.leaves:
                completed = tree.extend(self._subtrees, self._leaves, Digest(leaf))
                self._leaves += 1
                if len(completed) > subtrees.STORED_LEVEL:
                    self._stored(completed)
            if self._shadow is not None:
                self._shadow.derive(task.low, task.high)
            progress(task.high, self._size)
            yield report

    def _stored(self, completed: list[Digest]) -> None:
        """Compare the stored subtrees that end here."""
        for level in range(subtrees.STORED_LEVEL, len(completed)):
            index = (self._leaves >> level) - 1
            try:
                same = self._log.subtree(level, index) == completed[level]
            except DamagedError as error:
                self._fault("tree", error.message)
            else:
                if not same:
                    self._fault(
                        "tree", f"the stored subtree {index} of level {level} is not that of the entries"
                    )

    def blobs(self, spread: Spread) -> None:
        """Check every blob that a record names."""
        for report in spread(self._job, _batches(self._named)):
            self._faults.add(report.faults)

    def rest(self, progress: Callable[[int, int], None]) -> None:
        """Check what stands beside the entries, all of it as it is at one moment: writers wait meanwhile."""
        whole = self._shadow is not None
        try:
            if self._integrity is not None:
                self._faults.add(self._integrity.result())
            with self._log.pinned():
                self._catch_up(progress)
                self._beside()
                self._faults.add(withdrawal_faults(self._log))
                if self._shadow is not None:
                    self._projections(self._shadow)
                if whole:
                    self._notices.add(withdrawal_notices(self._log, self._home.blobs, self._named))
                    self._notices.add(self._orphans())
                    self._notices.add(_second_ends(self._log))
                self._notices.add(_open_runs(self._log))
        except sqlite3.DatabaseError as error:
            self._fault("database", f"cannot be read on: {error}")
        except DamagedError as error:
            self._fault("database", error.message)
        except StorageError as error:
            self._complete = False
            self._notices.add([Finding(check="home", message=f"not everything was checked: {error.message}")])

    def _projections(self, shadow: Shadow) -> None:
        prevented = shadow.prevented()
        if prevented is None:
            self._faults.add(shadow.differences())
        else:
            self._complete = False
            self._notices.add([Finding(check="projection", message=prevented)])

    def _beside(self) -> None:
        if altered := ", ".join(self._log.altered()):
            self._fault("schema", f"not as this version makes it: {altered}")
        if self._log.stored_tree() != list(
            zip(range(len(self._subtrees)), self._subtrees[::-1], strict=True)
        ):
            self._fault("tree", "the stored tree is not that of the entries")
        if self._log.stored_subtrees() != sum(
            self._size >> level for level in range(subtrees.STORED_LEVEL, 64)
        ):
            self._fault("tree", "there are more stored subtrees than entries make")
        try:
            last = head.load(self._home.head, self._home.key)
            why = None if last is None else head.gap(self._log, last[0])
        except SplError as error:
            why = error.message
        else:
            if last is None and self._log.has_signed():
                why = f"{self._home.head} is missing, and this log has signed checkpoints"
        if why is not None:
            self._fault("head", why)

    def _orphans(self) -> Iterator[Finding]:
        """Yield the blobs that no record names: left by a crash between the blob and its record."""
        for blob in self._home.blobs.ids():
            if blob not in self._named:
                yield Finding(check="blob", message="orphaned: no record names it", id=blob.hex())

    def document(self) -> VerifyDocument:
        """Return all that was found."""
        faults, notices = self._faults, self._notices
        return VerifyDocument(
            ok=not faults.kept,
            clean=not faults.kept and self._signatures and self._complete,
            size=self._size,
            root=tree.root(self._subtrees),
            signatures_checked=self._signatures,
            blobs_checked=self._named.count(),
            since=None if self._since is None else self._start,
            faults=faults.kept,
            notices=notices.kept,
            faults_omitted=faults.omitted,
            notices_omitted=notices.omitted,
        )


def _compact_range(size: int, subtree: proofs.Subtree) -> list[Digest]:
    """Return the compact range of the first `size` leaves."""
    found, low = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            found.append(subtree(level, low >> level))
            low += 1 << level
    return found


def _batches(named: Iterable[Named]) -> Iterator[Task]:
    batch: list[Named] = []
    for item in named:
        batch.append(item)
        if len(batch) == _BLOBS_AT_ONCE:
            yield Blobs(batch)
            batch = []
    if batch:
        yield Blobs(batch)


def _open_runs(log: SqliteLog) -> Iterator[Finding]:
    for row in log.open_runs():
        yield Finding(check="run", message="open: it has no end", position=row.position, id=row.id.hex())


def _second_ends(log: SqliteLog) -> Iterator[Finding]:
    for position, record_id in log.second_ends():
        message = "a second end of its run, which arrived by import; the first counts"
        yield Finding(check="run", message=message, position=position, id=record_id.hex())

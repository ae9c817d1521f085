"""Fixtures, each copied and committed once, and cloned for each workspace that begins with it."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from spl.errors import SplError
from spl.harness.fixture import Entry
from spl.harness.git import Git
from spl.harness.limit import Limit
from spl.harness.snapshot import Baseline, baseline
from spl.harness.workspace import materialize


class Fixture(Struct, frozen=True):
    """What a workspace begins with.

    Attributes:
        key: Equal for fixtures that hold the same.
        entries: Returns what it holds, parents first; it may raise an SplError.
    """

    key: Hashable
    entries: Callable[[], Iterable[Entry]]


class Prepared(Struct, frozen=True):
    """A fixture that was copied and committed; `stamp` is how the copy looked then."""

    copy: Path
    before: Baseline
    stamp: bytes

    @property
    def intact(self) -> bool:
        """Say whether nobody has changed the copy: an agent runs as the same user, and may have found it."""
        return _stamp(self.copy) == self.stamp


class Baselines:
    """The copies, made when one is first needed.

    Args:
        scratch: Where they are kept; the caller removes it.
        environment: The caller's; Git gets only its PATH.
    """

    def __init__(self, scratch: Path, environment: Mapping[str, str]) -> None:
        self._scratch = scratch
        self._environment = environment
        self._lock = threading.Lock()
        self._locks: dict[Hashable, threading.Lock] = {}
        self._made: dict[Hashable, Prepared | SplError] = {}

    def get(self, fixture: Fixture, limit: Limit) -> Prepared:
        """Return the copy of a fixture, made anew when somebody has changed it.

        One that cannot be made fails each time with the same error.

        Raises:
            SplError: It cannot be made, or the limit was reached.
        """
        with self._lock:
            lock = self._locks.setdefault(fixture.key, threading.Lock())
        with lock:
            known = self._made.get(fixture.key)
            if known is None or (isinstance(known, Prepared) and not known.intact):
                try:
                    self._made[fixture.key] = self._make(fixture, limit)
                except SplError as error:
                    if limit.problem:
                        raise  # the next row has time of its own
                    self._made[fixture.key] = error
            found = self._made[fixture.key]
        if isinstance(found, SplError):
            raise found
        return found

    def _make(self, fixture: Fixture, limit: Limit) -> Prepared:
        copy = Path(tempfile.mkdtemp(dir=self._scratch, prefix="baseline-"))
        materialize(copy, fixture.entries(), limit)
        before = baseline(copy, limit)
        Git(self._environment, self._scratch, limit).commit_baseline(copy)
        return Prepared(copy, before, _stamp(copy))


def _stamp(root: Path) -> bytes:
    """Return a hash of all that `lstat` says of what is below a directory, but for times of access.

    The time of the last change of an entry is nothing that an ordinary user can set back (utimensat(2)).
    """
    seen = hashlib.blake2b()
    for directory, below, files in os.walk(root):
        below.sort()
        for name in (*below, *sorted(files)):
            path = os.path.join(directory, name)  # noqa: PTH118 - thousands of times
            try:
                found = os.lstat(path)
            except OSError:
                return b""
            told = (path, found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
            seen.update(repr(told).encode("utf-8", "surrogateescape"))
    return seen.digest()

"""Fixtures, each copied and committed once, and cloned for each workspace that begins with it."""

from __future__ import annotations

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
    """A fixture that was copied and committed."""

    copy: Path
    before: Baseline


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
        """Return the copy of a fixture; one that cannot be made fails each time with the same error.

        Raises:
            SplError: It cannot be made, or the limit was reached.
        """
        with self._lock:
            lock = self._locks.setdefault(fixture.key, threading.Lock())
        with lock:
            if fixture.key not in self._made:
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
        return Prepared(copy, before)

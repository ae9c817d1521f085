"""Finding what a process left behind, also when it left the process group or the session.

On Linux this process becomes a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): whoever loses its parent becomes a
child of ours, so that one look at our children finds every daemon. To which run an orphan belongs is told by its
session, by the marker in its environment (which forks inherit), or, when it hid both, by there being only one run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MARKER: Final = "SPLICE_RUN_MARKER"
_PR_SET_CHILD_SUBREAPER: Final = 36
_PROC: Final = Path("/proc")
_LINUX: Final = sys.platform == "linux"


class Family:
    """The runs of this process, by the process id of the program that each started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._markers: dict[int, bytes] = {}
        self._spared: set[int] = set()
        self._starting = 0
        self._reaper = False

    def prepare(self) -> None:
        """Become the reaper of orphans; a run is about to start."""
        with self._lock:
            self._starting += 1
            if _LINUX and not self._reaper:
                self._reaper = True
                ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def started(self, pid: int | None, marker: str) -> None:
        """Note the program's process id; None when it could not be started."""
        with self._lock:
            self._starting -= 1
            if pid is not None:
                self._markers[pid] = f"{MARKER}={marker}".encode()

    def forget(self, pid: int) -> None:
        """Note that a run is over."""
        with self._lock:
            self._markers.pop(pid, None)

    def spare(self, pid: int) -> None:
        """Note a child that belongs to no run."""
        with self._lock:
            self._spared.add(pid)

    def orphans(self, pid: int) -> list[int]:
        """Return every living process that the run of `pid` left, children before parents."""
        if not _LINUX:
            return []
        with self._lock:
            markers, starting = dict(self._markers), self._starting
        alone = len(markers) == 1 and not starting
        found: list[int] = []
        for root in _children(os.getpid()):
            if root in markers or root in self._spared:
                continue
            tree = list(_tree(root))
            owner = next((run for run in map(lambda one: _owner(one, markers), tree) if run), None)  # noqa: C417
            if owner == pid or (owner is None and alone and _session(root) not in (None, os.getsid(0))):
                found += tree
        return found

    def strays(self) -> list[int]:
        """Return what runs left without a trace of whose it is, once no run is under way; children before parents."""
        with self._lock:  # no run can start while it is looked at
            if not _LINUX or self._markers or self._starting or not self._reaper:
                return []
            own = os.getsid(0)
            roots = [root for root in _children(os.getpid()) if root not in self._spared]
            return [pid for root in roots if _session(root) not in (None, own) for pid in _tree(root)]


def _owner(pid: int, markers: dict[int, bytes]) -> int | None:
    session = _session(pid)
    if session in markers:
        return session
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((run for run, marker in markers.items() if marker in environment), None)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in (_PROC / str(pid) / "task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    return found


def _tree(root: int) -> Iterator[int]:
    pending, seen = [root], {root}
    ordered = []
    while pending:
        pid = pending.pop()
        ordered.append(pid)
        fresh = [child for child in _children(pid) if child not in seen]
        seen.update(fresh)
        pending += fresh
    yield from reversed(ordered)


def descendants(pid: int) -> list[int]:
    """Return every process below `pid`, itself not among them."""
    return [one for one in _tree(pid) if one != pid] if _LINUX else []


def send(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to each; those that are gone by now do not matter."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def reap(pids: list[int]) -> None:
    """Collect the exit statuses of orphans that have ended, so that no zombie stays."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue

"""The writers' lock: `flock` on a file that is never unlinked.

Who waits stands in the kernel's queue. Asking again and again instead leaves chance to decide, as SQLite's own busy
handler does: of eight writers one got in 228 times, another once. A blocked `flock` has no time limit, so
a thread does the waiting, and whoever started it can leave.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spl.errors import LockTimeoutError
from spl.store.durable import FILE_MODE, storage_errors

WAIT_LIMIT_S = 60.0


@contextmanager
def write_lock(path: Path, *, wait_limit_s: float = WAIT_LIMIT_S) -> Iterator[None]:
    """Hold the lock of a home while the block runs.

    Raises:
        LockTimeoutError: Another process kept it for longer than `wait_limit_s`.
        StorageError: The lock file cannot be opened or locked.
    """
    with storage_errors(f"cannot lock {path.parent}"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    place = _Place(descriptor)
    try:
        with storage_errors(f"cannot lock {path.parent}"):
            locked = place.wait(wait_limit_s)
        if not locked:
            raise LockTimeoutError(
                f"another process has been writing to {path.parent} for more than {wait_limit_s:g} s"
            )
        yield
    finally:
        place.leave()


class _Place:
    """A place in the queue for the lock of an open file, and the lock itself once it is there.

    Args:
        descriptor: The open file; closed once the place has been left and nobody waits with it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = threading.Condition()
        self._waiting = False
        self._left = False
        self._error: OSError | None = None

    def wait(self, limit_s: float) -> bool:
        """Say whether the lock was had within the limit.

        Raises:
            OSError: The system does not lock this file.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._waiting = True
            threading.Thread(target=self._queue, daemon=True).start()
            with self._turn:
                self._turn.wait_for(lambda: not self._waiting, limit_s)
                if self._error is not None:
                    raise self._error from None
                return not self._waiting
        return True

    def leave(self) -> None:
        """Give the lock back, or stop waiting for it."""
        with self._turn:
            self._left = True
            if not self._waiting:
                os.close(self._descriptor)

    def _queue(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as error:
            self._error = error
        with self._turn:
            self._waiting = False
            if self._left:  # the turn came too late; the next in the queue has it
                os.close(self._descriptor)
            self._turn.notify()

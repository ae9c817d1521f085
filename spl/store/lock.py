"""The writers' lock: `flock` on a file that is never unlinked.

Waiting on the lock is a queue; SQLite's own busy handler is not, and can leave one of six writers waiting for seconds.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spl.errors import LockTimeoutError
from spl.store.durable import FILE_MODE, storage_errors

WAIT_LIMIT_S = 60.0
_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.05


@contextmanager
def write_lock(path: Path, *, wait_limit_s: float = WAIT_LIMIT_S) -> Iterator[None]:
    """Hold the lock of a home while the block runs.

    Raises:
        LockTimeoutError: Another process kept it for longer than `wait_limit_s`.
        StorageError: The lock file cannot be opened.
    """
    with storage_errors(f"cannot lock {path.parent}"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        _acquire(descriptor, path, wait_limit_s)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, wait_limit_s: float) -> None:
    give_up = time.monotonic() + wait_limit_s
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise LockTimeoutError(
                    f"another process has been writing to {path.parent} for more than {wait_limit_s:g} s"
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        else:
            return

"""Which runs are being executed: a process that executes some tells them in a file of the home that it holds locked.

The lock ends with the process, however that ends, so a run that no locked file names was left by a crash.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import Final

from spl.errors import InvalidIdError
from spl.ids import RecordId, parse_id
from spl.store.durable import FILE_MODE, storage_errors

_SUFFIX: Final = ".running"
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND


class Running:
    """The runs that this process executes.

    Args:
        tmp: The home's directory for files in the making.

    Raises:
        StorageError: The file cannot be made.
    """

    def __init__(self, tmp: Path) -> None:
        self._path = tmp / f"{secrets.token_hex(16)}{_SUFFIX}"
        with storage_errors(f"cannot make {self._path}"):
            self._descriptor = os.open(self._path, _NEW, FILE_MODE)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if not self._path.exists():  # somebody took it for what a dead process left, before it was locked
                os.link(f"/proc/self/fd/{self._descriptor}", self._path, follow_symlinks=True)

    def note(self, run: RecordId) -> None:
        """Tell that a run is about to begin; it is told before anybody can see its start."""
        with storage_errors(f"cannot write {self._path}"):
            os.write(self._descriptor, f"{run.hex()}\n".encode())

    def close(self) -> None:
        """Tell that none is executed any more."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def running(tmp: Path) -> set[RecordId]:
    """Return the runs that living processes execute; what dead ones left behind is removed.

    Raises:
        StorageError: The directory cannot be read.
    """
    found: set[RecordId] = set()
    with storage_errors(f"cannot read {tmp}"):
        for path in tmp.glob(f"*{_SUFFIX}"):
            found |= _told(path)
    return found


def _told(path: Path) -> set[RecordId]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return set()
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return set(filter(None, map(_parsed, file)))
        path.unlink(missing_ok=True)
        return set()


def _parsed(line: str) -> RecordId | None:
    try:
        return RecordId(parse_id(line.strip()))
    except InvalidIdError:
        return None

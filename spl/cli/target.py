"""The file that a command writes its answer to: checked before any work, and whole or not there at all."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spl.errors import OperationFailedError

STDOUT = "-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Target:
    """Where an answer goes; it may be written once."""

    def __init__(self, path: Path, aside: Path | None) -> None:
        self._path = path
        self._aside = aside

    def write(self, content: bytes) -> None:
        """Write the whole answer; under its name stands the old file or the new one, never a part.

        Raises:
            OperationFailedError: It cannot be written; an old file stays as it is.
        """
        with self.file() as file:
            file.write(content)

    @contextmanager
    def file(self) -> Iterator[BinaryIO]:
        """Yield a file for an answer that comes in pieces; it stands there whole when the block ends, or not at all.

        Raises:
            OperationFailedError: It cannot be written; an old file stays as it is.
        """
        with _told(self._path):
            with (self._aside or self._path).open("wb") as file:
                yield file
                file.flush()
                if self._aside is not None:
                    os.fsync(file.fileno())
            if self._aside is not None:
                self._aside.replace(self._path)


@contextmanager
def target(path: str) -> Iterator[Target]:
    """Yield the file at a path, opened for writing beside it already, so that what is in the way shows at once.

    A symbolic link is followed; a pipe or a device is written straight to. Nothing is left behind when the block ends
    without a write.

    Raises:
        OperationFailedError: The directory is missing, or nothing may be written there.
    """
    final = Path(os.path.realpath(path))
    with _told(Path(path)):
        aside = _opened_aside(path, final)
    try:
        yield Target(final, aside)
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def _opened_aside(path: str, final: Path) -> Path | None:
    """Return a new file beside the final one, with its mode; None where the final one is no regular file."""
    if final.is_dir():
        raise OperationFailedError(f"cannot write {path}: it is a directory")
    if not final.parent.is_dir():
        raise OperationFailedError(
            f"cannot write {path}: there is no directory {final.parent}", hint="make it first"
        )
    mode = final.stat().st_mode if final.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        return None
    if mode is not None:
        os.close(os.open(final, os.O_WRONLY | os.O_CLOEXEC))  # a file that may not be written is not replaced
    aside = final.with_name(f".{secrets.token_hex(8)}.part")
    os.close(os.open(aside, _NEW, 0o666))  # the user's own mask decides who may read it
    if mode is not None:
        aside.chmod(stat.S_IMODE(mode))
    return aside


def write_stdout(content: bytes) -> None:
    """Write an answer to standard output as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperationFailedError(f"cannot write {path}: {error.strerror or error}") from error

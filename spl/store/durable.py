"""Files that survive: made aside, synced, linked to their name, and the directory synced.

Source of the recipe: POSIX promises a name only once its directory is synced; a failed fsync may have dropped the
dirty pages, so it is never retried (https://lwn.net/Articles/752063/).
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spl.errors import StorageError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file size limit is reached",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EMFILE: "too many files are open",
}


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn an `OSError` into a `StorageError` that says what could not be done, and why."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(f"{what}: {reason}", details={"errno": error.errno}) from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a private directory durably.

    One that is there is synced too: whoever made it may have died before it was.
    """
    with suppress(FileExistsError):
        path.mkdir(mode=DIRECTORY_MODE)
    sync_directory(path.parent)


@contextmanager
def new_file(tmp: Path, final: Path) -> Iterator[BinaryIO]:
    """Yield a file that appears under `final`, whole and durable, when the block ends.

    A file that is there already under `final` stays as it is: names are given by content, or made once.

    Raises:
        OSError: The file could not be written; nothing appears.
    """
    aside = tmp / secrets.token_hex(16)
    descriptor = os.open(aside, _NEW, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, final, follow_symlinks=False)
        sync_directory(
            final.parent
        )  # also of a file that is there: whoever made it may have died before this
    finally:
        aside.unlink(missing_ok=True)


def replace_file(tmp: Path, final: Path, data: bytes) -> None:
    """Put a file of this content under `final`, in place of what is there; at any moment the old or the new is there.

    Raises:
        OSError: The file could not be written; the old one stays.
    """
    aside = tmp / secrets.token_hex(16)
    descriptor = os.open(aside, _NEW, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(final)
        sync_directory(final.parent)
    finally:
        aside.unlink(missing_ok=True)

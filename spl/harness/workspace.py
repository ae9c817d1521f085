"""Workspaces: fresh directories, filled from a fixture or from a list of entries, that nothing leads out of."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spl.errors import OperationFailedError
from spl.harness.fixture import Entry
from spl.harness.limit import Limit
from spl.harness.paths import trim

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSAFE: Final = re.compile("[^A-Za-z0-9_-]")


def safe_name(text: str) -> str:
    """Return a file name for a task id: letters, digits, `-` and `_`; `task` when nothing is left."""
    return _UNSAFE.sub("-", trim(text)).strip("-") or "task"


def new_directory(root: Path, name: str) -> Path:
    """Make a directory `NAME-RANDOM` that only we may enter, and return its path.

    Raises:
        OSError: It cannot be made.
    """
    while True:
        path = root / f"{name[:180]}-{secrets.token_hex(5)}"
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path


def refuse_inside(work_root: Path, fixture: Path) -> None:
    """Do nothing unless the work root lies in the fixture, where each copy would hold the copies before it.

    Raises:
        OperationFailedError: It does.
    """
    if Path(os.path.realpath(work_root)).is_relative_to(fixture):
        raise OperationFailedError(f"the work root {work_root} lies inside the fixture {fixture}")


def materialize(root: Path, entries: Iterable[Entry], limit: Limit) -> None:
    """Make every entry below `root`, a directory of ours that nobody else has written to.

    Modes of directories are set last, so that one that forbids writing can be filled.

    Raises:
        OperationFailedError: A path leads elsewhere, an entry cannot be made, or the limit was reached.
    """
    modes: list[tuple[Path, int]] = []
    try:
        for entry in entries:
            limit.check()
            target = _target(root, entry.path)
            if entry.chunks is None:
                target.mkdir(mode=0o700, parents=True, exist_ok=True)
                modes.append((target, entry.mode))
            else:
                if not target.parent.is_dir():
                    target.parent.mkdir(parents=True, exist_ok=True)
                _write(target, entry, limit)
        for path, mode in reversed(modes):
            path.chmod(mode & 0o777)
    except OSError as error:
        raise OperationFailedError(f"{error.filename or root}: {error.strerror}") from error


def _target(root: Path, path: str) -> Path:
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise OperationFailedError(f"{path!r} is not a path within a workspace")
    return root / path


def _write(target: Path, entry: Entry, limit: Limit) -> None:
    descriptor = os.open(target, _NEW, entry.mode & 0o777)
    try:
        for piece in entry.chunks or ():
            limit.check()
            view = memoryview(piece)
            while view:
                view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise OperationFailedError(f"write {entry.path}: {error.strerror}") from error
    finally:
        os.close(descriptor)

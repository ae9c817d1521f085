"""Workspaces: fresh directories, filled from a fixture or from a list of entries, that nothing leads out of."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from spl.errors import OperationFailedError
from spl.harness.fixture import MAX_BYTES, MAX_DEPTH, MAX_FILES
from spl.harness.limit import Limit
from spl.harness.paths import trim

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE: Final = 1 << 20
_UNSAFE: Final = re.compile("[^A-Za-z0-9_-]")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f]")
_GIT: Final = ".git"


class Entry(NamedTuple):
    """One file or directory to make.

    Attributes:
        path: Relative, with `/`; parents come first or are made.
        mode: Permission bits.
        chunks: The content of a file, in pieces; None for a directory.
    """

    path: str
    mode: int
    chunks: Iterable[bytes] | None


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


class _Budget:
    """What a tree may still hold."""

    def __init__(self) -> None:
        self.entries = MAX_FILES
        self.bytes = MAX_BYTES

    def take(self, path: str, *, entries: int = 0, size: int = 0) -> None:
        self.entries -= entries
        self.bytes -= size
        if self.entries < 0 or self.bytes < 0:
            raise OperationFailedError(
                f"the fixture has more than {MAX_FILES} files or {MAX_BYTES} bytes (at {path!r})"
            )


def tree_entries(root: Path, *, git: bool = False) -> Iterator[Entry]:
    """Yield what a directory holds, parents first, by a walk on descriptors that follows no link.

    Args:
        root: The directory.
        git: Take `.git` directories too, as in a baseline of our own; otherwise they are left out, and a `.git`
            file, which would point into another repository, is refused.

    Raises:
        OperationFailedError: An entry is neither a regular file nor a directory, its name has control characters, or
            the tree is too large or too deep.
        OSError: Something cannot be read.
    """
    descriptor = os.open(root, _DIRECTORY)
    try:
        yield from _walk(descriptor, "", 0, _Budget(), git=git)
    finally:
        os.close(descriptor)


def _walk(directory: int, prefix: str, depth: int, budget: _Budget, *, git: bool) -> Iterator[Entry]:
    if depth > MAX_DEPTH:
        raise OperationFailedError(f"the fixture is nested more than {MAX_DEPTH} deep at {prefix!r}")
    for name in sorted(os.listdir(directory)):
        path = prefix + name
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        is_directory = stat.S_ISDIR(found.st_mode)
        if name == _GIT and not git and is_directory:
            continue
        if not is_directory and not stat.S_ISREG(found.st_mode):
            raise OperationFailedError(
                f'unsupported fixture entry "{path}": only regular files and directories are supported'
            )
        if _CONTROL.search(name) or (name == _GIT and not git):
            raise OperationFailedError(
                f"unsupported fixture entry {path!r}: such a name cannot be taken over"
            )
        budget.take(path, entries=1)
        if is_directory:
            yield Entry(path, stat.S_IMODE(found.st_mode), None)
            inner = os.open(name, _DIRECTORY, dir_fd=directory)
            try:
                yield from _walk(inner, f"{path}/", depth + 1, budget, git=git)
            finally:
                os.close(inner)
        else:
            yield Entry(path, stat.S_IMODE(found.st_mode), _content(directory, name, path, budget))


def _content(directory: int, name: str, path: str, budget: _Budget) -> Iterator[bytes]:
    descriptor = os.open(name, _FILE, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OperationFailedError(f'unsupported fixture entry "{path}": it changed while it was read')
        while piece := os.read(descriptor, _PIECE):
            budget.take(path, size=len(piece))
            yield piece
    finally:
        os.close(descriptor)

"""Fixtures: found within the suite's directory, and read without following anything that points elsewhere."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from spl.codec.digest import EMPTY_DIRECTORY_MODE
from spl.errors import OperationFailedError, SuiteLoadError
from spl.harness.paths import trim

MAX_FILES: Final = 200_000
MAX_DEPTH: Final = 64
MAX_BYTES: Final = 4 << 30
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE: Final = 1 << 20
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


class FixtureFile(NamedTuple):
    """One file of a fixture: relative path, mode (644, 755, or 40000 for an empty directory), content."""

    path: str
    mode: int
    data: bytes | None


def fixture_directory(suite_path: str, fixture: str) -> Path:
    """Return the real path of a task's fixture.

    Raises:
        SuiteLoadError: It is absolute, missing, not a directory, or outside the suite's directory.
    """
    name = trim(fixture)
    if name.startswith("/"):
        raise SuiteLoadError("workspace fixture must be relative to suite path")
    base = Path(os.path.realpath(Path(suite_path).parent))
    try:
        real = (base / name).resolve(strict=True)
    except OSError as error:
        raise SuiteLoadError(f"workspace fixture: {base / name}: {error.strerror}") from error
    if not real.is_relative_to(base):
        raise SuiteLoadError("workspace fixture must stay within suite directory")
    if not real.is_dir():
        raise SuiteLoadError(f"workspace fixture must be a directory: {real}")
    return real


def read_fixture(root: Path) -> list[FixtureFile]:
    """Return the files of a fixture, sorted by path; directories only when they are empty, `.git` left out.

    Raises:
        SuiteLoadError: An entry is neither a regular file nor a directory, has a name that a record cannot hold, or
            the fixture is too large.
    """
    try:
        descriptor = os.open(root, _DIRECTORY)
    except OSError as error:
        raise SuiteLoadError(f"workspace fixture: {root}: {error.strerror}") from error
    files: dict[str, FixtureFile] = {}
    try:
        for entry in _walk(descriptor, "", 0, _Budget(), git=False):
            files.pop(entry.path.rpartition("/")[0], None)  # the directory that holds it is not empty
            files[entry.path] = _fixture_file(entry)
    except OperationFailedError as error:
        raise SuiteLoadError(error.message) from error
    finally:
        os.close(descriptor)
    return sorted(files.values(), key=lambda file: file.path.encode())


def _fixture_file(entry: Entry) -> FixtureFile:
    try:
        entry.path.encode()
    except UnicodeEncodeError as error:
        raise SuiteLoadError(f"a fixture's file name is not UTF-8: {os.fsencode(entry.path)!r}") from error
    if entry.chunks is None:
        return FixtureFile(entry.path, EMPTY_DIRECTORY_MODE, None)
    return FixtureFile(entry.path, 755 if entry.mode & stat.S_IXUSR else 644, b"".join(entry.chunks))


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

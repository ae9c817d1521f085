"""Fixtures: found within the suite's directory, and read without following anything that points elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from spl.codec.digest import EMPTY_DIRECTORY_MODE
from spl.errors import SuiteLoadError
from spl.harness.paths import trim

MAX_FILES: Final = 200_000
MAX_DEPTH: Final = 64
MAX_BYTES: Final = 4 << 30
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GIT: Final = ".git"


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
    budget = [MAX_FILES, MAX_BYTES]
    try:
        return sorted(_walk(descriptor, "", 0, budget), key=lambda file: file.path.encode())
    finally:
        os.close(descriptor)


def _walk(directory: int, prefix: str, depth: int, budget: list[int]) -> Iterator[FixtureFile]:
    if depth > MAX_DEPTH:
        raise SuiteLoadError(f"the fixture is nested more than {MAX_DEPTH} deep at {prefix!r}")
    for name in sorted(os.listdir(directory)):
        path = prefix + name
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            if name == _GIT:
                continue
            yield from _walk_directory(directory, name, path, depth, budget)
        elif stat.S_ISREG(found.st_mode):
            _check_name(path, name)
            mode = 755 if found.st_mode & stat.S_IXUSR else 644
            yield FixtureFile(path, mode, _read(directory, name, path, budget))
        else:
            raise SuiteLoadError(
                f'unsupported fixture entry "{path}": only regular files and directories are supported'
            )


def _walk_directory(
    directory: int, name: str, path: str, depth: int, budget: list[int]
) -> Iterator[FixtureFile]:
    inner = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        empty = True
        for file in _walk(inner, f"{path}/", depth + 1, budget):
            empty = False
            yield file
        if empty:
            _check_name(path, name)
            yield FixtureFile(path, EMPTY_DIRECTORY_MODE, None)
    finally:
        os.close(inner)


def _check_name(path: str, name: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise SuiteLoadError(f"a fixture's file name is not UTF-8: {os.fsencode(path)!r}") from error
    if name == _GIT or any(ord(character) < 32 or ord(character) == 127 for character in path):  # noqa: PLR2004 - ASCII controls
        raise SuiteLoadError(f"unsupported fixture entry {path!r}: such a name cannot be taken over")


def _read(directory: int, name: str, path: str, budget: list[int]) -> bytes:
    descriptor = os.open(name, _FILE, dir_fd=directory)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SuiteLoadError(f'unsupported fixture entry "{path}": it changed while it was read')
        data = file.read(budget[1] + 1)
    budget[0] -= 1
    budget[1] -= len(data)
    if min(budget) < 0:
        raise SuiteLoadError(
            f"the fixture has more than {MAX_FILES} files or {MAX_BYTES} bytes (at {path!r})"
        )
    return data

"""The workspace: files by relative path, never outside, whatever links say and whoever swaps them meanwhile.

A path is walked from the root's descriptor, one name at a time, and no name is followed as a link by the system: a
link is read and walked like the rest, so that it can lead anywhere inside and nowhere else.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

MAX_LINKS: Final = 40
MAX_FILE_BYTES: Final = 4_194_304
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GIT: Final = ".git"


class RefusedError(Exception):
    """A path or a file cannot be used; the message is for the model."""


class Place(NamedTuple):
    """Where a path leads: the open directory, the last name in it (empty for the root itself), and the whole path."""

    directory: int
    name: str
    path: str


class Workspace:
    """One directory.

    Args:
        root: It; links in the path to it are followed once.

    Raises:
        OSError: It is not a directory that can be read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        self._descriptor = os.open(self.root, _DIRECTORY)

    def close(self) -> None:
        """Give the root's descriptor back."""
        os.close(self._descriptor)

    @contextmanager
    def place(self, path: str, *, make: bool = False) -> Iterator[Place]:
        """Walk to a path and hold its directory open.

        Args:
            path: Relative to the root, or absolute below it.
            make: Make directories that are missing.

        Raises:
            RefusedError: It leads outside, or through something that is not a directory.
        """
        walk = _Walk(self.root, self._descriptor, path, make=make)
        try:
            yield walk.place()
        except OSError as error:
            raise RefusedError(f"{path}: {error.strerror or error}") from error
        finally:
            walk.close()

    def read(self, path: str) -> bytes:
        """Return a file's content.

        Raises:
            RefusedError: It is not a regular file of at most 4 MiB inside the workspace.
        """
        with self.place(path) as place:
            return read_at(place, path)

    def write(self, path: str, data: bytes) -> str:
        """Replace a file as a whole or make it, and return its path; nobody sees a part of it.

        Raises:
            RefusedError: It lies outside, in a `.git`, or is something other than a regular file.
        """
        if len(data) > MAX_FILE_BYTES:
            raise RefusedError(f"{path}: more than {MAX_FILE_BYTES} bytes")
        with self.place(path, make=True) as place:
            if not place.name:
                raise RefusedError(f"{path}: is a directory")
            if _GIT in place.path.split("/"):
                raise RefusedError(f"{path}: what Git keeps is not written")
            _replace(place, _mode(place, path), data)
            return place.path

    def is_directory(self, path: str) -> bool:
        """Say whether a path leads to a directory.

        Raises:
            RefusedError: It leads nowhere, or outside.
        """
        with self.place(path) as place:
            state = os.stat(place.name or ".", dir_fd=place.directory, follow_symlinks=False)
            return stat.S_ISDIR(state.st_mode)

    def entries(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield names and states below a directory, in order, directories before what they hold; no link is followed.

        Raises:
            RefusedError: It is not a directory inside the workspace.
        """
        with self.place(path) as place:
            top = os.open(place.name or ".", _DIRECTORY, dir_fd=place.directory)
            yield from _entries(top, "" if not place.path else f"{place.path}/")


def read_at(place: Place, path: str) -> bytes:
    """Return the content of the file at a place.

    Raises:
        RefusedError: It is not a regular file of at most 4 MiB.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for its other end.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(place.name or ".", flags, dir_fd=place.directory)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            raise RefusedError(f"{path}: is a directory")
        if not stat.S_ISREG(state.st_mode):
            raise RefusedError(f"{path}: is not a regular file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise RefusedError(f"{path}: has more than {MAX_FILE_BYTES} bytes")
    return data


class _Walk:
    """From the root to a path; the stack holds the names and descriptors of the directories on the way."""

    def __init__(self, root: Path, descriptor: int, path: str, *, make: bool) -> None:
        if "\0" in path:
            raise RefusedError("a path holds no NUL")
        self._root, self._path, self._make = root, path, make
        self._stack: list[tuple[str, int]] = []
        self._base = descriptor
        self._links = 0
        self._pending = self._names(path)

    def place(self) -> Place:
        """Walk, and return where the path leads."""
        while self._pending:
            name = self._pending.pop()
            if name == "..":
                self._leave()
                continue
            kind = self._kind(name)
            if stat.S_ISLNK(kind):
                self._follow(name)
            elif not self._pending:
                return Place(self._top, name, "/".join([*(part for part, _ in self._stack), name]))
            else:
                self._enter(name, there=bool(kind))
        return Place(self._top, "", "/".join(part for part, _ in self._stack))

    def close(self) -> None:
        """Give the descriptors back."""
        while self._stack:
            os.close(self._stack.pop()[1])

    @property
    def _top(self) -> int:
        return self._stack[-1][1] if self._stack else self._base

    def _outside(self) -> RefusedError:
        return RefusedError(f"{self._path}: is outside the workspace")

    def _names(self, path: str) -> list[str]:
        """Return the names of a path, the first one last; an absolute one begins at the root."""
        if path.startswith("/"):
            if path != str(self._root) and not path.startswith(f"{self._root}/"):
                raise self._outside()
            path = path[len(str(self._root)) :]
            self.close()
        return [name for name in reversed(path.split("/")) if name not in ("", ".")]

    def _leave(self) -> None:
        if not self._stack:
            raise self._outside()
        os.close(self._stack.pop()[1])

    def _kind(self, name: str) -> int:
        """Return the mode of what a name stands for here, 0 when there is nothing."""
        try:
            return os.stat(name, dir_fd=self._top, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise RefusedError(f"{self._path}: {error.strerror}") from error

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise RefusedError(f"{self._path}: {os.strerror(errno.ELOOP)}")
        try:
            target = os.readlink(name, dir_fd=self._top)
        except OSError as error:
            raise RefusedError(f"{self._path}: {error.strerror}") from error
        self._pending += self._names(target)

    def _enter(self, name: str, *, there: bool) -> None:
        try:
            if not there and self._make:
                if name == _GIT:
                    raise RefusedError(f"{self._path}: what Git keeps is not written")
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=self._top)
            self._stack.append((name, os.open(name, _DIRECTORY, dir_fd=self._top)))
        except OSError as error:
            raise RefusedError(f"{self._path}: {error.strerror}") from error


def _mode(place: Place, path: str) -> int | None:
    """Return the permissions of the regular file at a place, or None when there is none."""
    try:
        state = os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(state.st_mode):
        raise RefusedError(f"{path}: is not a regular file")
    return stat.S_IMODE(state.st_mode)


def _replace(place: Place, mode: int | None, data: bytes) -> None:
    """Write beside the file, then take its name in one step."""
    beside = f".spl-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, 0o666, dir_fd=place.directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(descriptor, mode)
        os.replace(beside, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=place.directory)
        raise


def _entries(descriptor: int, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(descriptor) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            try:
                state = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue  # it went away meanwhile
            yield f"{prefix}{name}", state
            if stat.S_ISDIR(state.st_mode) and name != _GIT:
                try:
                    below = os.open(name, _DIRECTORY, dir_fd=descriptor)
                except OSError:
                    continue
                yield from _entries(below, f"{prefix}{name}/")
    finally:
        os.close(descriptor)

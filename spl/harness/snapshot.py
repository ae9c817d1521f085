"""What changed in a workspace, seen by our own eyes: nothing that an agent does to its Git hides it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from spl.harness.limit import Limit

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE: Final = 1 << 20
_MAX_DEPTH: Final = 256
_GIT: Final = ".git"


class Seen(Struct, frozen=True):
    """One name as `lstat` shows it.

    Attributes:
        kind: `file`, `program` (the owner may execute it), `link` or `other`, as far as Git tells them apart.
        size: In bytes.
        stamp: What no ordinary user can set back: device, inode, modification and change time.
    """

    kind: str
    size: int
    stamp: tuple[int, int, int, int]


class Baseline(Struct, frozen=True):
    """A fixture as it was: what each name was, its hash, and the ignore rules that it came with."""

    files: Mapping[str, tuple[str, int, bytes]]
    rules: Mapping[str, GitIgnoreSpec]


def scan(root: Path, limit: Limit) -> dict[str, Seen]:
    """Return every name below a directory that is no directory; names that are not UTF-8 have surrogates.

    The workspace's own `.git` is left out, and so is what lies in the `.git` directory of a nested repository.

    Raises:
        OSError: The workspace is gone or cannot be read.
        OperationFailedError: The limit was reached.
    """
    root.chmod(root.lstat().st_mode & 0o777 | 0o700)  # an agent may have locked it
    descriptor = os.open(root, _DIRECTORY)
    try:
        return dict(_walk(descriptor, "", 0, limit))
    finally:
        os.close(descriptor)


def _walk(directory: int, prefix: str, depth: int, limit: Limit) -> Iterator[tuple[str, Seen]]:
    limit.check()
    for name in os.listdir(directory):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        path = prefix + name
        if not stat.S_ISDIR(found.st_mode):
            if path != _GIT:
                yield path, _seen(found)
        elif name != _GIT:
            if depth >= _MAX_DEPTH:
                yield path, Seen("other", 0, (0, 0, 0, 0))
            else:
                yield from _walk_into(directory, name, path, depth, limit)


def _walk_into(directory: int, name: str, path: str, depth: int, limit: Limit) -> Iterator[tuple[str, Seen]]:
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=directory)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=directory)
        inner = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        yield from _walk(inner, f"{path}/", depth + 1, limit)
    finally:
        os.close(inner)


def _seen(found: os.stat_result) -> Seen:
    kind = "other"
    if stat.S_ISREG(found.st_mode):
        kind = "program" if found.st_mode & stat.S_IXUSR else "file"
    elif stat.S_ISLNK(found.st_mode):
        kind = "link"
    return Seen(kind, found.st_size, (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns))


def baseline(root: Path, limit: Limit) -> Baseline:
    """Return the snapshot of a fixture's copy.

    Raises:
        OSError: It cannot be read.
        OperationFailedError: The limit was reached.
    """
    files = {
        path: (seen.kind, seen.size, _digest(root, path, limit) or b"")
        for path, seen in scan(root, limit).items()
    }
    return Baseline(files, ignore_rules(root, files))


def ignore_rules(root: Path, paths: Iterable[str]) -> dict[str, GitIgnoreSpec]:
    """Return the rules of the `.gitignore` files among some paths, by their directory."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only where a workspace is made

    rules = {}
    for path in paths:
        directory, _, name = path.rpartition("/")
        if name == ".gitignore":
            lines = (root / path).read_bytes().decode("utf-8", "replace").splitlines()
            rules[directory] = GitIgnoreSpec.from_lines(lines)
    return rules


def changed(
    root: Path, before: Baseline, now: Mapping[str, Seen], named: Collection[str], limit: Limit
) -> list[str]:
    """Return the names that are new, gone or different, sorted by code point.

    A name that the fixture's own ignore rules cover counts only when it is in `named`.

    Raises:
        OperationFailedError: The limit was reached.
    """
    different = set(before.files.keys() ^ now.keys())
    for path in before.files.keys() & now.keys():
        kind, size, digest = before.files[path]
        seen = now[path]
        if (kind, size) != (seen.kind, seen.size) or _digest(root, path, limit) != digest:
            different.add(path)
    wanted = set(named)
    return sorted(
        shown for path in different if (shown := printable(path)) in wanted or not ignored(path, before.rules)
    )


def changed_since(before: Mapping[str, Seen], now: Mapping[str, Seen]) -> list[str]:
    """Return the names that were made, removed or touched between two scans, sorted by code point."""
    paths = before.keys() | now.keys()
    return sorted(printable(path) for path in paths if before.get(path) != now.get(path))


def printable(path: str) -> str:
    """Return a file's name as text: each byte that is not UTF-8 becomes U+FFFD."""
    return os.fsencode(path).decode("utf-8", "spl-each-byte")


def ignored(path: str, rules: Mapping[str, GitIgnoreSpec]) -> bool:
    """Say whether Git's ignore rules cover a path; the file nearest to it decides, and a directory covers all in it.

    Source: gitignore(5).
    """
    if not rules:
        return False
    parts = path.split("/")
    return any(
        _covered("/".join(parts[:count]) + ("/" if count < len(parts) else ""), rules)
        for count in range(1, len(parts) + 1)
    )


def _covered(path: str, rules: Mapping[str, GitIgnoreSpec]) -> bool:
    parts = path.rstrip("/").split("/")
    for count in range(len(parts) - 1, -1, -1):
        directory = "/".join(parts[:count])
        if directory in rules:
            verdict = rules[directory].check_file(path[len(directory) + 1 if directory else 0 :]).include
            if verdict is not None:
                return verdict
    return False


def _digest(root: Path, path: str, limit: Limit) -> bytes | None:
    """Return the hash of a file or of a link's target; None for what cannot be read."""
    full = root / path
    hasher = hashlib.sha256()
    try:
        if full.is_symlink():
            return hashlib.sha256(os.fsencode(full.readlink())).digest()
        descriptor = os.open(full, _FILE)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        while piece := file.read(_PIECE):
            limit.check()
            hasher.update(piece)
    return hasher.digest()

"""The layout of a home on disk: made once, checked at each opening."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from spl.errors import StorageError
from spl.store import schema
from spl.store.durable import (
    DIRECTORY_MODE,
    FILE_MODE,
    make_directory,
    new_file,
    storage_errors,
    sync_directory,
)
from spl.store.lock import write_lock

FORMAT: Final = "spl-home 1"
MOUNTS: Final = Path("/proc/self/mounts")
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "ceph", "lustre", "fuse.glusterfs"}
)
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


class Layout(NamedTuple):
    """The paths of a home."""

    root: Path

    @property
    def format(self) -> Path:
        """The file that says what this directory is."""
        return self.root / "format"

    @property
    def log(self) -> Path:
        """The database of the log."""
        return self.root / "log.db"

    @property
    def journal(self) -> Path:
        """SQLite's journal: empty between commits."""
        return self.root / "log.db-journal"

    @property
    def blobs(self) -> Path:
        """The directory of blobs."""
        return self.root / "blobs"

    @property
    def tmp(self) -> Path:
        """Files in the making."""
        return self.root / "tmp"

    @property
    def lock(self) -> Path:
        """The writers' lock."""
        return self.root / "lock"

    @property
    def head(self) -> Path:
        """The last signed checkpoint, outside the database on purpose."""
        return self.root / "head.json"

    @property
    def verified(self) -> Path:
        """What the last verification found."""
        return self.root / "verified.json"

    @property
    def keys(self) -> Path:
        """Private keys."""
        return self.root / "keys"


def exists(root: Path) -> bool:
    """Say whether there is a home at a path."""
    return (root / "format").is_file()


def check(root: Path) -> Layout:
    """Return the layout of a home that can be trusted.

    Raises:
        StorageError: It is not a home, of another format, holds a link, is somebody else's, or lies on a network file
            system.
    """
    layout = Layout(root)
    with storage_errors(f"cannot open the home {root}"):
        text = layout.format.read_text("utf-8", errors="replace").strip() if exists(root) else ""
        if text != FORMAT:
            raise StorageError(f"{root} is not a home of this version of spl", hint="spl init makes one")
        for path in (
            root,
            layout.blobs,
            layout.keys,
            layout.tmp,
            layout.log,
            layout.format,
            *(optional := (layout.journal, layout.lock, layout.head, layout.verified)),
        ):
            _check_path(path, root, optional=path in optional)
        _refuse_network(root)
    return layout


def _check_path(path: Path, root: Path, *, optional: bool) -> None:
    """Refuse a part of a home that leads elsewhere, is somebody else's, or that anybody may change."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        if optional:
            return
        raise StorageError(f"{path} is missing", hint="put it back from a copy of the home") from None
    if stat.S_ISLNK(found.st_mode):
        if path is not root:
            raise StorageError(f"{path} is a symbolic link; a home holds its own files")
        found = path.stat()
    directory = path in (root, root / "blobs", root / "keys", root / "tmp")
    if not (stat.S_ISDIR if directory else stat.S_ISREG)(found.st_mode):
        raise StorageError(f"{path} is not a {'directory' if directory else 'file'}")
    if found.st_uid != os.geteuid():
        raise StorageError(f"{path} belongs to another user")
    if found.st_mode & stat.S_IWOTH:
        raise StorageError(f"{path} can be changed by anybody", hint=f"chmod o-w {path}")
    if path == Layout(root).keys and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StorageError(f"{path} is open to others", hint=f"chmod 700 {path}")


def make(root: Path, furnish: Callable[[Layout], object]) -> Layout:
    """Return the layout of a home, made durably where there was none.

    The file `format` is made last: what has one is whole.

    Args:
        root: The directory.
        furnish: Makes durably what else belongs into a new home; what an attempt before it has made is there already.

    Raises:
        StorageError: It cannot be made there, or something else stands there.
    """
    if exists(root):
        return check(root)
    layout = Layout(root)
    with storage_errors(f"cannot make a home at {root}"):
        root.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        _refuse_network(root)
        others = {path.name for path in root.iterdir()} - {
            "format",
            "log.db",
            "log.db-journal",
            "blobs",
            "tmp",
            "lock",
            "keys",
        }
        if others:
            raise StorageError(f"{root} is not empty and not a home", hint="name another directory")
        sync_directory(root.parent)
        with write_lock(layout.lock):
            if exists(root):
                return check(root)
            _refuse_to_replace(layout)
            for path in (layout.tmp, layout.blobs, layout.keys):
                make_directory(path)
            for path in (layout.journal, layout.log):  # of a first attempt that a crash cut short
                path.unlink(missing_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, FILE_MODE))
            sync_directory(root)  # SQLite's own sync of the names may fail without a word
            try:
                schema.create(layout.log)
            except sqlite3.Error as error:
                raise StorageError(f"cannot make the log at {layout.log}: {error}") from error
            furnish(layout)
            with new_file(layout.tmp, layout.format) as file:
                file.write(FORMAT.encode() + b"\n")
    return layout


def _refuse_to_replace(layout: Layout) -> None:
    """Return when what stands in a directory is at most what a first attempt left behind, which has no records.

    Raises:
        StorageError: It holds a log with records, or one that cannot be read: a home whose file `format` was lost.
    """
    if layout.format.is_symlink() or layout.format.exists():
        raise StorageError(f"{layout.format} is not a file")
    if not layout.log.exists() or layout.log.stat().st_size == 0:
        return
    try:
        records = schema.count_entries(layout.log)
    except sqlite3.Error as error:
        raise StorageError(f"{layout.log} is there and cannot be read: {error}") from error
    if records:
        raise StorageError(
            f"{layout.log} holds {records} records, and the file {layout.format} is missing",
            hint=f"it must hold the line {FORMAT!r}",
        )


def _refuse_network(root: Path) -> None:
    """Return when a directory does not lie on a network file system, as far as the system tells.

    Raises:
        StorageError: It does; locks and syncs cannot be relied on there.
    """
    try:
        mounts = MOUNTS.read_text("utf-8", errors="replace")
    except OSError:
        return
    kind = file_system(root.resolve(), mounts)
    if kind in _NETWORK:
        raise StorageError(
            f"{root} is on a network file system ({kind}), where locks and syncs cannot be relied on",
            hint="keep the home on a disk of this machine",
        )


def file_system(path: Path, mounts: str) -> str:
    """Return the kind of file system that a path lies on; empty when no mount holds it.

    Args:
        path: Absolute, without links.
        mounts: The text of `/proc/self/mounts`: device, mount point, kind and more, a line each, the later over the
            earlier; blanks in names as octal escapes (proc(5), fstab(5)).
    """
    best, kind = 0, ""
    for line in mounts.splitlines():
        fields = line.split()
        place = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[1]))
        if path.is_relative_to(place) and len(place.parts) >= best:
            best, kind = len(place.parts), fields[2]
    return kind

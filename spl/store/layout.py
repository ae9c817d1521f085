"""The layout of a home on disk: made once, checked at each opening."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Final, NamedTuple

from spl.errors import StorageError
from spl.store import schema
from spl.store.durable import DIRECTORY_MODE, make_directory, new_file, storage_errors, sync_directory
from spl.store.lock import write_lock

FORMAT: Final = "spl-home 1"
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "ceph", "lustre"}
)


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
    def keys(self) -> Path:
        """Private keys."""
        return self.root / "keys"


def exists(root: Path) -> bool:
    """Say whether there is a home at a path."""
    return (root / "format").is_file()


def check(root: Path) -> Layout:
    """Return the layout of a home that can be trusted.

    Raises:
        StorageError: It is not a home, of another format, a link, somebody else's, or open to others.
    """
    layout = Layout(root)
    with storage_errors(f"cannot open the home {root}"):
        text = layout.format.read_text("utf-8", errors="replace").strip() if exists(root) else ""
        if text != FORMAT:
            raise StorageError(f"{root} is not a home of this version of spl", hint="spl init makes one")
        for path in (root, layout.log, layout.blobs, layout.keys, layout.tmp):
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode) and path is not root:
                raise StorageError(f"{path} is a symbolic link; a home holds its own files")
            if path.stat().st_uid != os.geteuid():
                raise StorageError(f"{path} belongs to another user")
    return layout


def make(root: Path) -> Layout:
    """Return the layout of a home, made durably where there was none.

    Raises:
        StorageError: It cannot be made there, or something else stands there.
    """
    if exists(root):
        return check(root)
    layout = Layout(root)
    with storage_errors(f"cannot make a home at {root}"):
        root.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        if _is_network(root):
            raise StorageError(
                f"{root} is on a network file system, where locks and syncs cannot be relied on"
            )
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
            for path in (layout.tmp, layout.blobs, layout.keys):
                make_directory(path)
            layout.log.unlink(missing_ok=True)  # of a first attempt that a crash cut short
            try:
                os.close(os.open(layout.log, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
                schema.create(layout.log)
            except sqlite3.Error as error:
                raise StorageError(f"cannot make the log at {layout.log}: {error}") from error
            sync_directory(root)
            with new_file(layout.tmp, layout.format) as file:
                file.write(FORMAT.encode() + b"\n")
    return layout


def _is_network(path: Path) -> bool:
    """Say whether the file system is one over a network, as far as the system tells."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", errors="replace")
    except OSError:
        return False
    real = str(path.resolve())
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split()
        mount = fields[1].replace("\\040", " ")
        if (real == mount or real.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind in _NETWORK

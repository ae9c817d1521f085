"""Removing a tree that somebody else filled: any modes, any depth, any names."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> list[str]:
    """Remove a directory with all it holds, and return the names that could not be removed, at most ten.

    Directories below are moved up into the root one level at a time, so that neither depth nor length of a path
    matters and no descriptor but two is open. Nothing is followed.
    """
    try:
        if not stat.S_ISDIR(root.lstat().st_mode):
            root.unlink()
            return []
    except FileNotFoundError:
        return []
    except OSError:
        return [str(root)]
    try:
        root.chmod(0o700)
        descriptor = os.open(root, _DIRECTORY)
    except OSError:
        return [str(root)]
    left: list[str] = []
    try:
        _empty(descriptor, left)
    finally:
        os.close(descriptor)
    try:
        root.rmdir()
    except OSError:
        left.append(str(root))
    return left[:10]


def _empty(top: int, left: list[str]) -> None:
    serial, refused = 0, set[str]()
    while names := [name for name in os.listdir(top) if name not in refused]:
        for name in names:
            try:
                serial = _remove(top, name, serial)
            except OSError:
                refused.add(name)
                left.append(name)


def _remove(top: int, name: str, serial: int) -> int:
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return serial
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        for child in os.listdir(inner):  # noqa: PTH208 - a descriptor
            if stat.S_ISDIR(os.stat(child, dir_fd=inner, follow_symlinks=False).st_mode):
                os.chmod(child, 0o700, dir_fd=inner)  # moving a directory needs the right to write in it
                serial = _free(top, serial)
                os.rename(child, f".removing-{serial}", src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return serial


def _free(top: int, serial: int) -> int:
    while True:
        serial += 1
        try:
            os.stat(f".removing-{serial}", dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return serial

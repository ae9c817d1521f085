"""What the last verification of a home found, kept in a file beside the log.

It is a note of this machine to itself: whoever can write to the home can write it too, so that a quick verification
trusts it no further than that the tree over the earlier entries must be the one that was verified.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from spl.codec import jsontext
from spl.ids import Digest
from spl.store.durable import replace_file, storage_errors

FORMAT: Final = "spl-verified 1"
_MAX_BYTES: Final = 1 << 16


class Verified(Struct, frozen=True, kw_only=True):
    """How far a verification read, when, and how much was wrong.

    Attributes:
        at: Milliseconds since 1970 UTC.
        size: Entries.
        root: The root of the tree over them.
        faults: How many faults there were; it was clean when there was none.
    """

    at: int
    size: int
    root: Digest
    faults: int


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    at: int
    size: int
    root: str
    faults: int


def load(path: Path) -> Verified | None:
    """Return what was kept; None when there is nothing that can be used, as if nothing had been verified.

    Raises:
        StorageError: It cannot be read.
    """
    with storage_errors(f"cannot read {path}"):
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return None
    try:
        found = msgspec.json.decode(data, type=_File)
        root = bytes.fromhex(found.root)
    except (msgspec.DecodeError, ValueError):
        return None
    if found.format != FORMAT or len(root) != len(Digest(bytes(32))) or min(found.size, found.faults) < 0:
        return None
    return Verified(at=found.at, size=found.size, root=Digest(root), faults=found.faults)


def save(path: Path, tmp: Path, verified: Verified) -> None:
    """Put a result in place of the last one, durably.

    Args:
        path: The file.
        tmp: The directory for files in the making, on the same file system.
        verified: The result.

    Raises:
        StorageError: It could not be written; the last one stays.
    """
    file = _File(FORMAT, verified.at, verified.size, verified.root.hex(), verified.faults)
    with storage_errors(f"cannot write {path}"):
        replace_file(tmp, path, jsontext.format_json(file).encode() + b"\n")

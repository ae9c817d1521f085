"""The last signed checkpoint, kept in a file outside the database.

Whoever restores the database from an old backup does not restore this file with it: so a log that lost what it once
vouched for is noticed before it vouches for something else. Source of the idea: Sunlight compares and sets the last
checkpoint in a store of its own before it publishes one (https://filippo.io/a-different-CT-log).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from spl.errors import DamagedError, InputError
from spl.ids import Did, public_key
from spl.store import note, proofs, tree
from spl.store.durable import replace_file, storage_errors
from spl.store.sqlite import SqliteLog

FORMAT: Final = "spl-head 1"
ORIGIN: Final = "spl/"
_MAX_BYTES: Final = 1 << 20  # many times what a checkpoint takes; what is longer is cut off, and no JSON then


def verifier_key(kernel: Did) -> note.VerifierKey:
    """Return the key of a home's checkpoints: the kernel's own, whose name is also the origin of its log.

    Raises:
        InvalidIdError: The DID names no key.
    """
    return note.VerifierKey(ORIGIN + kernel.removeprefix("did:key:"), public_key(kernel))


def load(path: Path, key: note.VerifierKey) -> tuple[note.Checkpoint, str] | None:
    """Return the checkpoint that was signed last, and its note; None when there is no file.

    Args:
        path: The file.
        key: The home's own key, which must have signed it.

    Raises:
        DamagedError: The file is not one that `save` wrote, or somebody else signed its note.
        StorageError: It cannot be read.
    """
    with storage_errors(f"cannot read {path}"):
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return None
    try:
        value = json.loads(data)
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise _damaged(path, f"its format is not {FORMAT}")
        text = str(value.get("note"))
        return note.parse_checkpoint(note.open_note(text.encode(), [key])), text
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"{error}") from error
    except InputError as error:
        raise _damaged(path, error.message) from error


def save(path: Path, tmp: Path, text: str) -> None:
    """Put a signed checkpoint in place of the last one, durably.

    Args:
        path: The file.
        tmp: The directory for files in the making, on the same file system.
        text: The note.

    Raises:
        StorageError: It could not be written; the last one stays.
    """
    with storage_errors(f"cannot write {path}"):
        replace_file(tmp, path, json.dumps({"format": FORMAT, "note": text}).encode() + b"\n")


def gap(log: SqliteLog, last: note.Checkpoint) -> str | None:
    """Return why a log does not extend a checkpoint, or None when it is proved that it does.

    Raises:
        DamagedError: The stored tree is not whole.
    """
    size = log.size()
    if last.size > size:
        return f"the log has {size} entries, and a checkpoint of {last.size} was signed"
    path = proofs.consistency(last.size, size, log.subtree)
    if not proofs.extends(last.size, last.root, size, tree.root(log.subtrees()), path):
        return (
            f"the first {last.size} entries of the log are not those of the checkpoint that was signed last"
        )
    return None


def _damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(
        f"{path} is damaged: {why}",
        hint="put it back from a copy; without one, once spl verify finds nothing else, sign anew with"
        " spl checkpoint --accept-split-view",
    )

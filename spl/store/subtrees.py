"""The roots of large perfect subtrees, kept beside the entries so that no proof has to hash the whole log.

A proof needs roots of perfect subtrees of every size. Those of at least 256 leaves are stored as their last leaf
enters (at most two rows for 256 entries); smaller ones are hashed from their leaves when they are asked for. So a
proof in a log of n entries reads at most 512 leaves and O(log n) rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from spl.errors import DamagedError
from spl.ids import Digest
from spl.store import proofs, tree

STORED_LEVEL: Final = 8
_CHUNK: Final = 1 << 12


def store(connection: sqlite3.Connection, size: int, completed: Sequence[Digest]) -> None:
    """Store those of the subtrees that an entry completed which are large enough.

    Args:
        connection: Within a write transaction.
        size: The size of the log with that entry.
        completed: As `tree.extend` returned them.
    """
    for level in range(STORED_LEVEL, len(completed)):
        row = (level, (size >> level) - 1, completed[level])
        connection.execute("INSERT INTO subtrees VALUES (?, ?, ?)", row)


def derive_anew(connection: sqlite3.Connection) -> None:
    """Drop the stored subtrees and hash them again from the leaves, within a write transaction."""
    connection.execute("DELETE FROM subtrees")
    subtrees: list[Digest] = []
    for size, leaf in enumerate(leaves(connection)):
        store(connection, size + 1, tree.extend(subtrees, size, leaf))


def leaves(connection: sqlite3.Connection) -> Iterator[Digest]:
    """Yield every leaf, in log order and bounded memory."""
    low = -1
    while rows := connection.execute(
        f"SELECT position, leaf FROM entries WHERE position > ? ORDER BY position LIMIT {_CHUNK}",  # noqa: S608
        (low,),
    ).fetchall():
        for _, leaf in rows:
            yield Digest(leaf)
        low = rows[-1][0]


def reader(connection: sqlite3.Connection) -> proofs.Subtree:
    """Return the function from level and index to the root of a perfect subtree of the log.

    What it returns raises:
        DamagedError: A leaf or a stored subtree is missing.
    """

    @lru_cache(maxsize=1024)
    def subtree(level: int, index: int) -> Digest:
        if level < STORED_LEVEL:
            return _hashed(connection, index << level, (index + 1) << level)
        query = "SELECT node FROM subtrees WHERE level = ? AND number = ?"
        row = connection.execute(query, (level, index)).fetchone()
        if row is None:
            raise DamagedError(f"the stored subtree {index} of level {level} is missing")
        return Digest(row[0])

    return subtree


def _hashed(connection: sqlite3.Connection, low: int, high: int) -> Digest:
    """Return the root of a perfect subtree, from its leaves."""
    query = "SELECT leaf FROM entries WHERE position >= ? AND position < ? ORDER BY position"
    nodes = [row[0] for row in connection.execute(query, (low, high))]
    if len(nodes) != high - low:
        raise DamagedError(f"entries are missing between the positions {low} and {high}")
    while len(nodes) > 1:
        nodes = [tree.node_hash(nodes[i], nodes[i + 1]) for i in range(0, len(nodes), 2)]
    return Digest(nodes[0])

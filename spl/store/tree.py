"""The Merkle tree over the log, by RFC 6962, section 2.1: SHA-256, leaf `00 ‖ entry`, node `01 ‖ left ‖ right`.

A **compact range** is the list of the roots of the perfect subtrees that a log of a given size consists of, largest
first: one for each bit of the size. It is all that is needed to append a leaf or to compute the root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from spl.codec import canonical
from spl.ids import Digest

EMPTY_ROOT = Digest(hashlib.sha256(b"").digest())


def leaf_hash(entry: bytes) -> Digest:
    """Return the hash of a leaf that holds these bytes."""
    return Digest(hashlib.sha256(b"\x00" + entry).digest())


def encode_entry(record: bytes, signature: bytes) -> bytes:
    """Return the bytes of a log entry: the canonical CBOR array of record and signature."""
    return b"\x82" + canonical.byte_string(record) + canonical.byte_string(signature)


def entry_leaf(record: bytes, signature: bytes) -> Digest:
    """Return the leaf of a log entry."""
    return leaf_hash(encode_entry(record, signature))


def node_hash(left: bytes, right: bytes) -> Digest:
    """Return the hash of an inner node."""
    return Digest(hashlib.sha256(b"\x01" + left + right).digest())


def extend(subtrees: list[Digest], size: int, leaf: Digest) -> list[Digest]:
    """Append a leaf to the compact range of a log, in place, and return the perfect subtrees that it completes.

    Args:
        subtrees: The compact range of the first `size` leaves.
        size: How many leaves it covers.
        leaf: The leaf at position `size`.

    Returns:
        The roots by level: the leaf itself, then that of the two last leaves, of the four last, as far as they go.
    """
    completed = [leaf]
    while size & 1:
        completed.append(node_hash(subtrees.pop(), completed[-1]))
        size >>= 1
    subtrees.append(completed[-1])
    return completed


def root(subtrees: Sequence[Digest]) -> Digest:
    """Return the root of the tree that a compact range stands for."""
    if not subtrees:
        return EMPTY_ROOT
    node = subtrees[-1]
    for left in reversed(subtrees[:-1]):
        node = node_hash(left, node)
    return node

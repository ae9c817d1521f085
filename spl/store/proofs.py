"""Proofs over the Merkle tree: that an entry is in a log, and that a log has only grown.

Making them needs the roots of perfect subtrees, which the caller hands in as a function: a log may keep them, or hash
them from the leaves. Checking them needs nothing but the proof. The two halves are written from different texts, so
that a mistake in one is not repeated in the other: making follows the recursive definitions of RFC 6962, sections
2.1.1 and 2.1.2; checking follows the iterative algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spl.ids import Digest
from spl.store.tree import EMPTY_ROOT, node_hash

Subtree = Callable[[int, int], Digest]
"""Returns the root of the perfect subtree of 2^level leaves that begins at leaf `index * 2^level`."""


def range_root(low: int, high: int, subtree: Subtree) -> Digest:
    """Return the root of the leaves from `low` up to but without `high`.

    Args:
        low: The first leaf; a multiple of the smallest power of two that is not below `high - low`.
        high: The leaf behind the last; the range may be empty only at 0.
        subtree: The roots of perfect subtrees.
    """
    count = high - low
    if count == 0:
        return EMPTY_ROOT
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return subtree(level, low >> level)
    middle = low + _split(count)
    return node_hash(range_root(low, middle, subtree), range_root(middle, high, subtree))


def inclusion(position: int, size: int, subtree: Subtree) -> list[Digest]:
    """Return the audit path of a leaf, from its sibling up (RFC 6962, section 2.1.1).

    Raises:
        ValueError: The tree of that size has no such leaf.
    """
    if not 0 <= position < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {position}")
    path: list[Digest] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if position < middle:
            path.append(range_root(middle, high, subtree))
            high = middle
        else:
            path.append(range_root(low, middle, subtree))
            low = middle
    return path[::-1]


def consistency(old: int, new: int, subtree: Subtree) -> list[Digest]:
    """Return the proof that the tree of `new` leaves extends the one of `old` (RFC 6962, section 2.1.2).

    It is empty when the sizes are equal, and when the old tree is empty: everything extends nothing.

    Raises:
        ValueError: The new tree is smaller.
    """
    if not 0 <= old <= new:
        raise ValueError(f"a tree of {new} leaves cannot extend one of {old}")
    if old in (0, new):
        return []
    path: list[Digest] = []
    low, high = 0, new
    while old != high:
        middle = low + _split(high - low)
        if old <= middle:
            path.append(range_root(middle, high, subtree))
            high = middle
        else:
            path.append(range_root(low, middle, subtree))
            low = middle
    if low > 0:  # otherwise the old tree is this very subtree, and the checker has its root
        path.append(range_root(low, high, subtree))
    return path[::-1]


def includes(leaf: Digest, position: int, size: int, path: Sequence[Digest], root: Digest) -> bool:
    """Say whether the path proves that the tree of this size and root holds the leaf (RFC 9162, 2.1.3.2)."""
    if not 0 <= position < size:
        return False
    first, last = position, size - 1
    node = leaf
    for sibling in path:
        if last == 0:
            return False
        if first & 1 or first == last:
            node = node_hash(sibling, node)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        first, last = first >> 1, last >> 1
    return last == 0 and node == root


def extends(old: int, old_root: Digest, new: int, new_root: Digest, path: Sequence[Digest]) -> bool:
    """Say whether the path proves that the new tree begins with all of the old one (RFC 9162, 2.1.4.2)."""
    if not 0 <= old <= new:
        return False
    if old == new:
        return not path and old_root == new_root
    if old == 0:
        return not path and old_root == EMPTY_ROOT
    steps = [old_root, *path] if old & (old - 1) == 0 else list(path)
    return _replayed(old, new, steps) == (old_root, new_root)


def _replayed(old: int, new: int, steps: Sequence[Digest]) -> tuple[Digest, Digest] | None:
    """Return the two roots that a consistency proof leads to, or None when its length is not that of the sizes."""
    if not steps:
        return None
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    old_node = new_node = steps[0]
    for step in steps[1:]:
        if last == 0:
            return None
        if first & 1 or first == last:
            old_node, new_node = node_hash(step, old_node), node_hash(step, new_node)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            new_node = node_hash(new_node, step)
        first, last = first >> 1, last >> 1
    return (old_node, new_node) if last == 0 else None


def _split(count: int) -> int:
    """Return the largest power of two below `count`, which is at least 2."""
    return 1 << ((count - 1).bit_length() - 1)

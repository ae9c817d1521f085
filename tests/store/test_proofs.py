"""Merkle proofs: the published vectors, the law of both kinds, and that nothing else is accepted."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.ids import Digest
from spl.store import proofs, tree

# RFC 6962's reference test inputs, and the roots of their trees.
INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOT_8 = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
LEAVES = [tree.leaf_hash(bytes.fromhex(text)) for text in INPUTS]


def leaves_of(count: int) -> list[Digest]:
    return [tree.leaf_hash(number.to_bytes(4)) for number in range(count)]


def subtree_of(leaves: list[Digest]) -> proofs.Subtree:
    def subtree(level: int, index: int) -> Digest:
        if level == 0:
            return leaves[index]
        return tree.node_hash(subtree(level - 1, 2 * index), subtree(level - 1, 2 * index + 1))

    return subtree


def root_of(leaves: list[Digest]) -> Digest:
    subtrees: list[Digest] = []
    for size, leaf in enumerate(leaves):
        tree.extend(subtrees, size, leaf)
    return tree.root(subtrees)


def test_the_published_leaves_have_the_published_roots() -> None:
    subtree = subtree_of(LEAVES)
    assert root_of([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert root_of(LEAVES).hex() == ROOT_8
    assert [root_of(LEAVES[:size]).hex()[:8] for size in (1, 2, 3)] == ["6e340b9c", "fac54203", "aeb6bcfe"]
    assert all(proofs.range_root(0, size, subtree) == root_of(LEAVES[:size]) for size in range(9))


@pytest.mark.parametrize(
    ("position", "size", "path"),
    [
        (0, 1, []),
        (0, 8, ["96a296d224f2", "5f083f0a1a33", "6b47aaf29ee3"]),
        (5, 8, ["bc1a0643b12e", "ca854ea128ed", "d37ee418976d"]),
        (2, 3, ["fac54203e7cc"]),
        (1, 5, ["6e340b9cffb3", "5f083f0a1a33", "bc1a0643b12e"]),
    ],
)
def test_audit_paths_are_the_published_ones(position: int, size: int, path: list[str]) -> None:
    made = proofs.inclusion(position, size, subtree_of(LEAVES))
    assert [node.hex()[:12] for node in made] == path


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (1, 1, []),
        (1, 8, ["96a296d224f2", "5f083f0a1a33", "6b47aaf29ee3"]),
        (6, 8, ["0ebc5d3437fb", "ca854ea128ed", "d37ee418976d"]),
        (2, 5, ["5f083f0a1a33", "bc1a0643b12e"]),
    ],
)
def test_consistency_proofs_are_the_published_ones(old: int, new: int, path: list[str]) -> None:
    made = proofs.consistency(old, new, subtree_of(LEAVES))
    assert [node.hex()[:12] for node in made] == path


def test_every_leaf_of_every_small_tree_is_proved_and_at_no_other_place() -> None:
    leaves = leaves_of(24)
    subtree = subtree_of(leaves)
    for size in range(1, 25):
        root = root_of(leaves[:size])
        for position in range(size):
            path = proofs.inclusion(position, size, subtree)
            accepted = [
                (leaf, place)
                for leaf in range(size)
                for place in range(size)
                if proofs.includes(leaves[leaf], place, size, path, root)
            ]
            assert accepted == [(position, position)]


def test_every_growth_of_a_small_tree_is_proved_and_no_other_history() -> None:
    leaves = leaves_of(24)
    forged = [*leaves[:3], tree.leaf_hash(b"forged"), *leaves[4:]]
    subtree = subtree_of(leaves)
    for new in range(25):
        for old in range(new + 1):
            path = proofs.consistency(old, new, subtree)
            roots = root_of(leaves[:old]), root_of(leaves[:new])
            assert proofs.extends(old, roots[0], new, roots[1], path)
            if old > 3:
                assert not proofs.extends(old, root_of(forged[:old]), new, roots[1], path)
            if old:
                assert not proofs.extends(old - 1, roots[0], new, roots[1], path)


@given(st.integers(1, 200), st.data())
def test_a_proof_that_was_touched_proves_nothing(size: int, data: st.DataObject) -> None:
    leaves = leaves_of(size)
    position = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(1, size))
    subtree, root = subtree_of(leaves), root_of(leaves)

    def included(path: list[Digest]) -> bool:
        return proofs.includes(leaves[position], position, size, path, root)

    def extended(path: list[Digest]) -> bool:
        return proofs.extends(old, root_of(leaves[:old]), size, root, path)

    stranger = Digest(hashlib.sha256(b"stranger").digest())
    for path, holds in (
        (proofs.inclusion(position, size, subtree), included),
        (proofs.consistency(old, size, subtree), extended),
    ):
        assert holds(path)
        assert not holds([*path, stranger])
        if path:
            touched = data.draw(st.integers(0, len(path) - 1))
            assert not holds([*path[:touched], stranger, *path[touched + 1 :]])
            assert not holds(path[:touched] + path[touched + 1 :])


def test_sizes_and_positions_that_cannot_be_are_refused() -> None:
    subtree, root = subtree_of(LEAVES), root_of(LEAVES)
    assert not proofs.includes(LEAVES[0], 8, 8, [], root)
    assert not proofs.includes(LEAVES[0], -1, 8, [], root)
    assert not proofs.extends(9, root, 8, root, [])
    assert not proofs.extends(0, root, 8, root, []), "the empty tree has one root"
    assert not proofs.extends(3, root_of(LEAVES[:3]), 8, root, [])
    with pytest.raises(ValueError, match="no leaf 8"):
        proofs.inclusion(8, 8, subtree)
    with pytest.raises(ValueError, match="cannot extend"):
        proofs.consistency(9, 8, subtree)

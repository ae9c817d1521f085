"""Which blobs a record names, directly or through the manifest of a fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from spl.codec import digest
from spl.errors import SplError
from spl.ids import ID_BYTES, BlobId
from spl.kernel.content import Blobs
from spl.records.definitions import Body
from spl.records.envelope import Record
from spl.records.evals import Case
from spl.records.runs import RunEnd
from spl.records.verdicts import Redaction
from spl.records.wire import to_map

TREE: Final = "tree"


def named_blobs(record: Record, blobs: Blobs) -> Iterator[BlobId]:
    """Yield the blobs of a home that a record names, each once: its own first, then the files of its fixtures."""
    seen: set[BlobId] = set()
    for blob in (
        *named_ids(record),
        *(file for tree in named_trees(record) for file in tree_files(blobs, tree)),
    ):
        if blob not in seen and blob in blobs:
            seen.add(blob)
            yield blob


def named_ids(record: Record) -> Iterator[BlobId]:
    """Yield what may be the id of a blob: those of the envelope, and whatever in the body has the length of one.

    A body names blobs where a long text, a pinned file or a tree stands, also in kinds of other namespaces.
    """
    yield from (ref.h for ref in record.blobs)
    if isinstance(record.body, Redaction):  # it lists what is gone
        return
    yield from map(BlobId, _ids(to_map(record.body) if isinstance(record.body, Body) else record.body))


def named_trees(record: Record) -> Iterator[BlobId]:
    """Yield the manifests of fixtures that a record names."""
    yield from (ref.h for ref in record.blobs if ref.r == TREE)
    match record.body:
        case Case(tree=tree) if tree is not None:
            yield BlobId(tree)
        case RunEnd(trees=trees) if trees is not None:
            yield from (tree for tree in (trees.before, trees.after) if tree is not None)


def tree_files(blobs: Blobs, manifest: BlobId) -> Iterator[BlobId]:
    """Yield the files of a fixture; a manifest that cannot be read names none, and verify says so."""
    try:
        files = digest.decode_tree(blobs.get(manifest))
    except SplError:
        return
    for file in files:
        if file.blob is not None:
            yield file.blob


def _ids(value: Any) -> Iterator[bytes]:  # noqa: ANN401 - a record's body
    if isinstance(value, bytes):
        if len(value) == ID_BYTES:
            yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _ids(item)

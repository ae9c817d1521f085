"""Every hash that names something: BLAKE3, in derive-key mode with one context for each purpose.

The contexts are constants of the format; `b3sum --derive-key CONTEXT FILE` prints the same digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import blake3

from spl.codec import canonical
from spl.errors import EncodingError
from spl.ids import BlobId, CaseFacet, Digest, Facet, RecordId

RECORD_CONTEXT: Final = "spl 2026-12-01 record id v1"
FACET_CONTEXT: Final = "spl 2026-12-01 actor facet v1"
CASE_CONTEXT: Final = "spl 2026-12-01 case facet v1"
REVISION_CONTEXT: Final = "spl 2026-12-01 suite revision v1"
COVERAGE_CONTEXT: Final = "spl 2026-12-01 coverage v1"

# Deriving the context key costs far more than hashing a record; a copy of a fresh hasher shares it.
_HASHERS: Final = {
    context: blake3.blake3(derive_key_context=context)
    for context in (RECORD_CONTEXT, FACET_CONTEXT, CASE_CONTEXT, REVISION_CONTEXT, COVERAGE_CONTEXT)
}


def _derived(context: str, data: bytes) -> bytes:
    hasher = _HASHERS[context].copy()
    hasher.update(data)
    return hasher.digest()


def record_id(record: bytes) -> RecordId:
    """Return the id of a record's bytes; the signature is not part of it."""
    return RecordId(_derived(RECORD_CONTEXT, record))


def facet(behaviour: object) -> Facet:
    """Return the facet of a behaviour map, over its canonical CBOR.

    Raises:
        EncodingError: The map lies outside the encoding profile.
    """
    return Facet(_derived(FACET_CONTEXT, canonical.encode(behaviour)))


def case_facet(identity: object) -> CaseFacet:
    """Return the facet of a case's `{key, goal, tree?, expect}`, over its canonical CBOR.

    Raises:
        EncodingError: The map lies outside the encoding profile.
    """
    return CaseFacet(_derived(CASE_CONTEXT, canonical.encode(identity)))


def suite_revision(facets: Iterable[CaseFacet]) -> Digest:
    """Return the hash of a suite's current cases, whatever the order in which they come."""
    return Digest(_derived(REVISION_CONTEXT, b"".join(sorted(facets))))


def coverage(facets: Iterable[CaseFacet]) -> Digest:
    """Return the hash of the cases that a figure covers, whatever the order in which they come."""
    return Digest(_derived(COVERAGE_CONTEXT, b"".join(sorted(facets))))


def blob_id(data: bytes) -> BlobId:
    """Return the id of a blob: plain BLAKE3, as `b3sum` prints it."""
    return BlobId(blake3.blake3(data).digest())


def blob_id_of(pieces: Iterable[bytes]) -> BlobId:
    """Return the id of the blob that consists of some pieces, in bounded memory."""
    hasher = blake3.blake3()
    for piece in pieces:
        hasher.update(piece)
    return BlobId(hasher.digest())


class BlobHasher:
    """Computes a blob's id from content that comes in pieces."""

    def __init__(self) -> None:
        self._hasher = blake3.blake3()

    def update(self, data: bytes) -> None:
        """Take the next piece."""
        self._hasher.update(data)

    def id(self) -> BlobId:
        """Return the id of all pieces so far."""
        return BlobId(self._hasher.digest())


class TreeFile(NamedTuple):
    """One line of a fixture tree's manifest.

    Attributes:
        path: Relative path with `/`.
        mode: 644, or 755 when the owner may execute, as written in decimal; 40000 for an empty directory.
        blob: The content; None for an empty directory.
    """

    path: str
    mode: int
    blob: BlobId | None


EMPTY_DIRECTORY_MODE: Final = 40000


def encode_tree(files: Iterable[TreeFile]) -> bytes:
    """Return the manifest of a fixture tree: the canonical CBOR array, sorted by path bytes.

    Raises:
        EncodingError: A path is not UTF-8, or stands twice.
    """
    try:
        ordered = sorted(files, key=lambda file: file.path.encode())
    except UnicodeEncodeError as error:
        raise EncodingError(f"a fixture's file name is not UTF-8: {error.object!r}") from error
    for left, right in pairwise(ordered):
        if left.path == right.path:
            raise EncodingError(f"a fixture tree names {left.path!r} twice")
    return canonical.encode(
        [[f.path, f.mode] if f.blob is None else [f.path, f.mode, f.blob] for f in ordered]
    )


def decode_tree(data: bytes) -> list[TreeFile]:
    """Return the lines of a manifest that `encode_tree` wrote.

    Raises:
        EncodingError: The bytes are not such a manifest.
    """
    lines = canonical.decode(data)
    files = [_tree_file(line) for line in lines] if type(lines) is list else []
    if encode_tree(files) != data:
        raise EncodingError("not the manifest of a fixture tree")
    return files


def _tree_file(line: canonical.Value) -> TreeFile:
    match line:
        case [str(path), int(mode)] if mode == EMPTY_DIRECTORY_MODE:
            return TreeFile(path, mode, None)
        case [str(path), (644 | 755) as mode, bytes(blob)] if len(blob) == 32:  # noqa: PLR2004 - an id
            return TreeFile(path, mode, BlobId(blob))
    raise EncodingError("not the manifest of a fixture tree")

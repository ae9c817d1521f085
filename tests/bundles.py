"""Bundles taken apart and made up, for tests of what an import lets in."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from spl.codec.sequence import Flat, ItemReader, encode_item
from spl.ids import BlobId, Did, Digest, did_key
from spl.kernel.bundle_import import import_bundle
from spl.kernel.export import export
from spl.kernel.home import Kernel, open_home
from spl.records.envelope import Draft, encode_record
from spl.store import bundle, note, proofs, tree
from spl.store.head import verifier_key
from spl.store.keys import signed_bytes


def home_at(path: Path) -> Kernel:
    return open_home(path, create=True)


def exported(kernel: Kernel, *ids: str) -> bytes:
    parts: list[bytes] = []
    export(kernel, ids, parts.append, path="test")
    return b"".join(parts)


def imported(kernel: Kernel, data: bytes, **options: Any) -> Any:
    return import_bundle(kernel, io.BytesIO(data), **options)


def items(data: bytes) -> list[list[Flat]]:
    """Return the items of a bundle."""
    reader = ItemReader(io.BytesIO(data).read, max_values=8, max_bytes=1 << 24)
    found = []
    while (item := reader.item()) is not None:
        found.append(item)
    return found


def joined(parts: Iterable[list[Flat]]) -> bytes:
    return b"".join(encode_item(*part) for part in parts)


class Stranger:
    """Somebody with a key of their own, who can sign any record and any checkpoint."""

    def __init__(self, seed: int = 1) -> None:
        self.key = SigningKey(bytes([seed]) * 32)
        self.did: Did = did_key(self.key.verify_key.encode())
        self.count = 0

    def record(self, draft: Draft) -> tuple[bytes, bytes]:
        """Return a record by this stranger and its signature."""
        self.count += 1
        data = encode_record(draft, at=1_790_000_000_000, salt=self.count.to_bytes(16))
        return data, self.signature(data)

    def signature(self, data: bytes) -> bytes:
        return self.key.sign(signed_bytes(data)).signature

    def bundle(
        self,
        records: Sequence[tuple[bytes, bytes]],
        blobs: Sequence[bytes] = (),
        *,
        named: Sequence[tuple[BlobId, bytes]] | None = None,
    ) -> bytes:
        """Return a bundle whose checkpoint and proofs are right, whatever it holds.

        Args:
            records: Records with their signatures.
            blobs: Contents, under their own ids.
            named: Ids and contents, where an id is to be wrong.
        """
        from spl.codec import digest

        leaves = [tree.entry_leaf(*record) for record in records]

        def subtree(level: int, index: int) -> Digest:
            if level == 0:
                return leaves[index]
            return tree.node_hash(subtree(level - 1, 2 * index), subtree(level - 1, 2 * index + 1))

        key = verifier_key(self.did)
        root = proofs.range_root(0, len(leaves), subtree)
        text = note.format_checkpoint(note.Checkpoint(key.name, len(leaves), root))
        signed = note.sign_note(text, key, lambda data: self.key.sign(data).signature)
        contents = named if named is not None else sorted((digest.blob_id(blob), blob) for blob in blobs)
        parts = [bundle.encode_head(bundle.Head(signed, len(records), len(contents)))]
        for position, (record, signature) in enumerate(records):
            path = proofs.inclusion(position, len(leaves), subtree)
            parts.append(bundle.encode_record(bundle.Bundled(position, record, signature, path)))
        for blob, content in contents:
            parts += bundle.encode_blob(blob, [content])
        return b"".join(parts)

"""The bundle: records with everything they refer to, their blobs, and the proof that a log held them.

A CBOR sequence (docs/format.md): a head, the records in the order of their log, then the blobs in the order of their
ids, in parts of 1 MiB. Nothing in it is compressed, so that no small file can stand for a large one; whoever wants it
smaller compresses the file. This module knows the form; what a bundle may say is the kernel's to check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from msgspec import Struct

from spl.codec.sequence import Flat, ItemReader, encode_item
from spl.errors import BundleError, EncodingError
from spl.ids import ID_BYTES, BlobId, Digest
from spl.store.blobs import MAX_BLOB_BYTES, PIECE_BYTES
from spl.store.note import MAX_PATH

FORMAT: Final = "spl-bundle 1"
MAX_RECORDS: Final = 1_000_000
MAX_BLOBS: Final = 1_000_000
_RECORD, _BLOB, _PART = "record", "blob", "part"
_MAX_VALUES: Final = 5
_BUFFER_BYTES: Final = 1 << 20


class Head(Struct, frozen=True):
    """The first item: the signed checkpoint that the proofs lead to, and how much follows."""

    note: str
    records: int
    blobs: int


class Bundled(Struct, frozen=True):
    """A record of a bundle.

    Attributes:
        position: Its place in the log that it comes from.
        record: Its bytes.
        signature: Empty, or the author's 64 bytes.
        path: Its audit path in the checkpoint's tree, from the leaf's sibling up.
    """

    position: int
    record: bytes
    signature: bytes
    path: list[Digest]


def encode_head(head: Head) -> bytes:
    """Return the first item."""
    return encode_item(FORMAT, head.note, head.records, head.blobs)


def encode_record(item: Bundled) -> bytes:
    """Return the item of a record."""
    return encode_item(_RECORD, item.position, item.record, item.signature, b"".join(item.path))


def encode_blob(blob: BlobId, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the items of a blob: its id, then parts of 1 MiB until a shorter one, which may be empty."""
    yield encode_item(_BLOB, blob)
    waiting = b""
    for piece in pieces:
        waiting += piece
        while len(waiting) >= PIECE_BYTES:
            yield encode_item(_PART, waiting[:PIECE_BYTES])
            waiting = waiting[PIECE_BYTES:]
    yield encode_item(_PART, waiting)


class BundleReader:
    """Reads a bundle in bounded memory, as often as wanted; what is malformed is named by its item and offset.

    Args:
        file: A file that can be sought in.

    Raises:
        BundleError: It is not a bundle, or of another version, or holds more than any bundle may.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._source = _Source(file, 0)
        self._items = self._reader()
        self.number = 0
        item = self._next()
        match item:
            case [text, str(note), int(records), int(blobs)] if text == FORMAT:
                self.head = Head(note, records, blobs)
            case [str(text), *_] if text.startswith(FORMAT.partition(" ")[0]):
                raise self.error(f"a {text!r}; this version of spl reads {FORMAT!r}")
            case _:
                raise BundleError("not a bundle of spl", hint="spl export writes bundles")
        if self.head.records > MAX_RECORDS or self.head.blobs > MAX_BLOBS:
            raise self.error(f"more than {MAX_RECORDS} records or {MAX_BLOBS} blobs")
        self._records_at = self._source.position
        self._blobs_at: int | None = None

    def error(self, message: str) -> BundleError:
        """Return the fault of the item that was read last."""
        return BundleError(f"item {self.number}: {message}", details={"item": self.number})

    def records(self) -> Iterator[Bundled]:
        """Yield the records, from the first.

        Raises:
            BundleError: An item is malformed, or the bundle ends early.
        """
        self._start(self._records_at, 0)
        for _ in range(self.head.records):
            match self._next():
                case [kind, int(position), bytes(record), bytes(signature), bytes(path)] if kind == _RECORD:
                    yield Bundled(position, record, signature, self._path(path))
                case None:
                    raise self.error(f"ends early: {self.head.records} records were announced")
                case _:
                    raise self.error("not a record")
        self._blobs_at = self._source.position

    def blobs(self) -> Iterator[tuple[BlobId, Iterator[bytes]]]:
        """Yield the blobs, each with its content in pieces; the records have been read before.

        Content that was not taken is passed over.

        Raises:
            BundleError: An item is malformed, too much, behind the end, or the bundle ends early.
        """
        assert self._blobs_at is not None  # noqa: S101 - the caller has read the records
        self._start(self._blobs_at, self.head.records)
        for _ in range(self.head.blobs):
            match self._next():
                case [kind, bytes(blob)] if kind == _BLOB and len(blob) == ID_BYTES:
                    pieces = self._parts()
                    yield BlobId(blob), pieces
                    for _piece in pieces:
                        pass
                case None:
                    raise self.error(f"ends early: {self.head.blobs} blobs were announced")
                case _:
                    raise self.error("not a blob")
        if self._next() is not None:
            raise self.error("more than was announced")

    def digest(self) -> bytes:
        """Return the hash of what was read since the records or blobs were begun."""
        return self._source.digest()

    def _parts(self) -> Iterator[bytes]:
        size = 0
        while True:
            match self._next(counted=False):
                case [kind, bytes(part)] if kind == _PART and len(part) <= PIECE_BYTES:
                    size += len(part)
                    if size > MAX_BLOB_BYTES:
                        raise self.error(f"a blob of more than {MAX_BLOB_BYTES} bytes")
                    yield part
                    if len(part) < PIECE_BYTES:
                        return
                case None:
                    raise self.error("ends early, within a blob")
                case _:
                    raise self.error("not a part of a blob")

    def _path(self, data: bytes) -> list[Digest]:
        if len(data) % ID_BYTES or len(data) > MAX_PATH * ID_BYTES:
            raise self.error("its proof is not made of at most 64 hashes")
        return [Digest(data[at : at + ID_BYTES]) for at in range(0, len(data), ID_BYTES)]

    def _start(self, offset: int, number: int) -> None:
        self._source = _Source(self._file, offset)
        self._items = self._reader()
        self.number = number

    def _reader(self) -> ItemReader:
        return ItemReader(
            self._source.read, max_values=_MAX_VALUES, max_bytes=PIECE_BYTES, offset=self._source.position
        )

    def _next(self, *, counted: bool = True) -> list[Flat] | None:
        start = self._source.position
        try:
            item = self._items.item()
        except EncodingError as error:
            if self.number == 0 and start == 0:
                raise BundleError("not a bundle of spl", hint="spl export writes bundles") from error
            what = f"item {self.number + counted}, which begins at offset {start}: {error.message}"
            raise BundleError(what, details={"item": self.number + counted, "offset": start}) from error
        self.number += counted
        return item


class _Source:
    """Buffered reading from an offset, hashing what is read."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self._file.seek(offset)
        self._buffer = b""
        self._at = 0
        self._hasher = hashlib.blake2b()
        self.position = offset

    def read(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._buffer):
            self._buffer = self._buffer[self._at :] + self._file.read(max(_BUFFER_BYTES, count))
            self._at, end = 0, count
        data = self._buffer[self._at : end]
        self._at += len(data)
        self.position += len(data)
        self._hasher.update(data)
        return data

    def digest(self) -> bytes:
        return self._hasher.digest()

"""Blobs: large content, named by the plain BLAKE3 of its bytes.

On disk a blob is one byte of form (00 as it is, 01 zlib) and the content. It is written and synced before the record
that names it, so that a record never names a blob that a crash could take away.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from spl.codec import digest
from spl.errors import DamagedError, InputError, StorageError
from spl.ids import BlobId
from spl.store.durable import make_directory, new_file, storage_errors, sync_directory

PLAIN, ZLIB = b"\x00", b"\x01"
_WORTH_COMPRESSING = 512
_LEVEL = 6
_NAME = re.compile("[0-9a-f]{64}")
_READ_BYTES = 65_536
PIECE_BYTES = 1 << 20
MAX_BLOB_BYTES = 1 << 30


class BlobStore:
    """The blobs of a home.

    Args:
        root: The directory of blobs.
        tmp: The directory for files in the making, on the same file system.
    """

    def __init__(self, root: Path, tmp: Path) -> None:
        self.root = root
        self._tmp = tmp
        self._durable: set[Path] = set()  # directories whose own name has been synced; they are never removed

    def put(self, data: bytes) -> BlobId:
        """Store content durably and return its id; content that is there already is left alone.

        Raises:
            StorageError: It could not be written.
        """
        blob = digest.blob_id(data)
        path = self._path(blob)
        with storage_errors(f"cannot store the blob {blob.hex()[:12]}"):
            self._make_parent(path)
            if path.is_file():
                sync_directory(path.parent)  # whoever made it may have died, or not have come to this yet
                return blob
            with new_file(self._tmp, path) as file:
                packed = zlib.compress(data, _LEVEL) if len(data) >= _WORTH_COMPRESSING else data
                if len(packed) < len(data):
                    file.write(ZLIB + packed)
                else:
                    file.write(PLAIN + data)
        return blob

    def put_stream(self, blob: BlobId, pieces: Iterable[bytes]) -> None:
        """Store content that comes in pieces under the id that it must have, in bounded memory.

        Raises:
            InputError: The content has another id, or is too long; nothing was stored.
            StorageError: It could not be written.
        """
        waiting = iter(pieces)
        first = next(waiting, b"")
        path = self._path(blob)
        with storage_errors(f"cannot store the blob {blob.hex()[:12]}"):
            self._make_parent(path)
            with new_file(self._tmp, path) as file:
                packer = zlib.compressobj(_LEVEL) if len(zlib.compress(first, 1)) < len(first) else None
                file.write(ZLIB if packer else PLAIN)
                hasher, size = digest.BlobHasher(), 0
                for piece in chain([first], waiting):
                    hasher.update(piece)
                    size += len(piece)
                    file.write(packer.compress(piece) if packer else piece)
                    if size > MAX_BLOB_BYTES:
                        raise InputError(f"the blob {blob.hex()} has more than {MAX_BLOB_BYTES} bytes")
                if packer:
                    file.write(packer.flush())
                if hasher.id() != blob:
                    raise InputError(f"the content of the blob {blob.hex()} has the id {hasher.id().hex()}")

    def get(self, blob: BlobId) -> bytes:
        """Return content, verified against its id.

        Raises:
            DamagedError: The blob is missing, altered, or longer than any blob is.
            StorageError: It could not be read.
        """
        return b"".join(self.stream(blob))

    def stream(self, blob: BlobId) -> Iterator[bytes]:
        """Yield content in pieces of at most 1 MiB; what was yielded is known to be right once it ends.

        A small file cannot make this yield without end: content beyond the longest blob is a fault.

        Raises:
            DamagedError: The blob is missing, altered, or longer than any blob is.
            StorageError: It could not be read.
        """
        path = self._path(blob)
        try:
            parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(path.name, flags, dir_fd=parent)
            finally:
                os.close(parent)
        except FileNotFoundError:
            raise DamagedError(f"the blob {blob.hex()} is missing") from None
        except OSError as error:
            raise StorageError(f"cannot read the blob {blob.hex()}: {error.strerror}") from error
        hasher, size = digest.BlobHasher(), 0
        try:
            with os.fdopen(descriptor, "rb") as file:
                for piece in _pieces(file):
                    hasher.update(piece)
                    size += len(piece)
                    if size > MAX_BLOB_BYTES:
                        raise DamagedError(f"the blob {blob.hex()} has more than {MAX_BLOB_BYTES} bytes")
                    yield piece
        except (zlib.error, EOFError):
            raise DamagedError(f"the blob {blob.hex()} was altered") from None
        except OSError as error:
            raise StorageError(f"cannot read the blob {blob.hex()}: {error.strerror}") from error
        if hasher.id() != blob:
            raise DamagedError(f"the blob {blob.hex()} was altered")

    def __contains__(self, blob: BlobId) -> bool:
        """Say whether the blob is there; its content is not read. Raises StorageError when that cannot be seen."""
        with storage_errors(f"cannot look for the blob {blob.hex()}"):
            return self._path(blob).is_file()

    def ids(self) -> Iterator[BlobId]:
        """Yield the id of every blob on disk, in order of the ids. Raises StorageError when a directory is closed."""
        for directory in self._listed(self.root):
            for path in self._listed(directory) if directory.is_dir() and not directory.is_symlink() else ():
                if _NAME.fullmatch(path.name):
                    yield BlobId(bytes.fromhex(path.name))

    def _listed(self, directory: Path) -> list[Path]:
        with storage_errors(f"cannot list {directory}"):
            return sorted(directory.iterdir())

    def remove(self, blob: BlobId) -> None:
        """Unlink a blob; only a withdrawal does."""
        self._path(blob).unlink(missing_ok=True)

    def _make_parent(self, path: Path) -> None:
        if path.parent not in self._durable:
            make_directory(path.parent)
            if path.parent.is_symlink():
                raise StorageError(f"{path.parent} is a symbolic link; a home holds its own files")
            self._durable.add(path.parent)

    def _path(self, blob: BlobId) -> Path:
        name = blob.hex()
        return self.root / name[:2] / name


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a blob's file, at most 1 MiB at a time. Raises EOFError when its end is missing."""
    form = file.read(1)
    if form == PLAIN:
        while piece := file.read(PIECE_BYTES):
            yield piece
        return
    if form != ZLIB:
        raise EOFError
    unpacker = zlib.decompressobj()
    while not unpacker.eof:
        packed = unpacker.unconsumed_tail or file.read(_READ_BYTES)
        piece = unpacker.decompress(packed, PIECE_BYTES)
        if piece:
            yield piece
        elif not packed and not unpacker.eof:
            raise EOFError
    if unpacker.unused_data or file.read(1):
        raise EOFError


class MemoryBlobs:
    """Blobs that live as long as the process."""

    def __init__(self) -> None:
        self._blobs: dict[BlobId, bytes] = {}

    def put(self, data: bytes) -> BlobId:
        """Store content and return its id."""
        blob = digest.blob_id(data)
        self._blobs[blob] = data
        return blob

    def get(self, blob: BlobId) -> bytes:
        """Return content. Raises DamagedError when it is missing."""
        if blob not in self._blobs:
            raise DamagedError(f"the blob {blob.hex()} is missing")
        return self._blobs[blob]

    def stream(self, blob: BlobId) -> Iterator[bytes]:
        """Yield content. Raises DamagedError when it is missing."""
        yield self.get(blob)

    def __contains__(self, blob: BlobId) -> bool:
        """Say whether the blob is there."""
        return blob in self._blobs

    def remove(self, blob: BlobId) -> None:
        """Forget a blob; only a withdrawal does."""
        self._blobs.pop(blob, None)

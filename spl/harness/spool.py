"""Captured output: a little in memory, more in a file, and never more than the cap."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from spl.contracts.harness import SpooledText

CAPTURE_LIMIT: Final = 8_388_608
_IN_MEMORY: Final = 2048
_PIECE: Final = 65_536


class Spool(SpooledText):
    """One captured stream. What exceeds the cap, or finds the disk full, is counted and dropped.

    Args:
        directory: Where its file is made when it grows; the caller removes it.
        limit: Bytes that are kept.
    """

    def __init__(self, directory: Path, limit: int = CAPTURE_LIMIT) -> None:
        self.size = 0
        self.dropped = 0
        self._directory = directory
        self._limit = limit
        self._start = bytearray()
        self._path: Path | None = None
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        kept = data[: self._limit - self.size]
        self.dropped += len(data) - len(kept)
        if not kept:
            return
        if self._file is None and self.size + len(kept) <= _IN_MEMORY:
            self._start += kept
            self.size += len(kept)
            return
        try:
            self._to_file().write(kept)
        except OSError:
            self._limit = self.size
            self.dropped += len(kept)
        else:
            self.size += len(kept)

    def finish(self) -> None:
        """Close the file; reading opens it again, so that finished spools hold no descriptors."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes that were kept, in pieces of bounded size."""
        if self._start:
            yield bytes(self._start)
        if self._path is not None:
            with self._path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece

    def read(self) -> bytes:
        """Return all bytes that were kept, without holding them twice."""
        return bytes(self._start) if self._path is None else bytes(self._start) + self._path.read_bytes()

    def head(self, most: int) -> bytes:
        """Return the first bytes, at most `most`."""
        found = bytearray()
        for piece in self.chunks():
            found += piece
            if len(found) >= most:
                break
        return bytes(found[:most])

    def __bool__(self) -> bool:
        return self.size > 0

    def _to_file(self) -> BinaryIO:
        if self._file is None:
            descriptor, name = tempfile.mkstemp(dir=self._directory, prefix="spool-")
            self._path = Path(name)
            self._file = os.fdopen(descriptor, "wb", buffering=0)
        return self._file

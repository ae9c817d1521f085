"""JSON lines that are kept for a blob: in the order of their arrival, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spl.codec import jsontext

MAX_BYTES: Final = 2_097_152


class JsonLines:
    """Objects as JSON, one a line. What exceeds the limit is counted, and the last line says how much that was."""

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._dropped = 0

    def add(self, item: Mapping[str, object]) -> None:
        """Take an object; its values are text, numbers, booleans, or lists and maps of them."""
        if self._dropped:
            self._dropped += 1
            return
        line = jsontext.format_json(dict(item)).encode() + b"\n"
        if len(self._kept) + len(line) > self._limit:
            self._dropped = 1
        else:
            self._kept += line

    def content(self) -> bytes:
        """Return all lines, and `{"dropped": N}` behind them when N were too many."""
        end = jsontext.format_json({"dropped": self._dropped}).encode() + b"\n" if self._dropped else b""
        return bytes(self._kept) + end

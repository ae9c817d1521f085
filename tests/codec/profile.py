"""An independent reading of the encoding profile, from its text alone and the standard library: for comparison."""

from __future__ import annotations

from typing import Any


class NotCanonicalError(ValueError):
    """The bytes are not in the profile."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise NotCanonicalError("short")
        self.at += count
        return self.data[self.at - count : self.at]

    def head(self) -> tuple[int, int]:
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        if info <= 23:
            return major, info
        sizes = {24: 1, 25: 2, 26: 4, 27: 8}
        if major == 7 or info not in sizes:
            raise NotCanonicalError("simple, float, reserved or indefinite")
        value = int.from_bytes(self.take(sizes[info]), "big")
        smallest = {24: 24, 25: 256, 26: 65536, 27: 2**32}[info]
        if value < smallest:
            raise NotCanonicalError("not the shortest")
        return major, value

    def item(self, depth: int) -> Any:
        major, value = self.head()
        if major <= 1:
            number = value if major == 0 else -1 - value
            if abs(number) >= 2**53:
                raise NotCanonicalError("integer")
            return number
        if major == 2:
            return self.take(value)
        if major == 3:
            return self.text(value)
        if major == 6:
            raise NotCanonicalError("tag")
        if major == 7:
            if value not in (20, 21, 22):
                raise NotCanonicalError("simple")
            return {20: False, 21: True, 22: None}[value]
        if depth > 32:
            raise NotCanonicalError("deep")
        if major == 4:
            return [self.item(depth + 1) for _ in range(value)]
        return self.map(value, depth)

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            raise NotCanonicalError("utf-8") from error

    def map(self, size: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        last: bytes | None = None
        for _ in range(size):
            start = self.at
            major, length = self.head()
            if major != 3 or not 1 <= length <= 256:
                raise NotCanonicalError("key")
            key = self.text(length)
            encoded = self.data[start : self.at]
            if last is not None and encoded <= last:
                raise NotCanonicalError("order")
            last = encoded
            found[key] = self.item(depth + 1)
        return found


def read(data: bytes) -> Any:
    """Return the value of canonical bytes, or raise NotCanonicalError."""
    reader = _Reader(data)
    value = reader.item(1)
    if reader.at != len(data):
        raise NotCanonicalError("trailing")
    return value

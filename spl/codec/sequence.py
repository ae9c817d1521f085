"""CBOR sequences (RFC 8742) of flat arrays: read item by item in bounded memory, each item only as `encode` writes it.

cbor2 would read a stream too, but it trusts lengths and takes every form of a value; this reader looks at each head
before it asks for what the head announces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from spl.codec import canonical
from spl.errors import EncodingError

Flat: TypeAlias = "int | bytes | str"

_UINT, _BYTES, _TEXT, _ARRAY = 0, 2, 3, 4
_SHORT_HEAD: Final = 24
_MAX_WIDTH: Final = 8


def encode_item(*values: Flat) -> bytes:
    """Return one item of a sequence: the canonical array of unsigned integers, byte strings and texts.

    Raises:
        EncodingError: A value lies outside the profile.
    """
    return canonical.encode(list(values))


class ItemReader:
    """Reads the items of a sequence.

    Args:
        read: Returns up to so many bytes, fewer only at the end.
        max_values: How many values an item may have.
        max_bytes: How long a string may be.
        offset: Where in the file reading begins, for messages.
    """

    def __init__(
        self, read: Callable[[int], bytes], *, max_values: int, max_bytes: int, offset: int = 0
    ) -> None:
        self._read = read
        self._max_values = max_values
        self._max_bytes = max_bytes
        self.offset = offset

    def item(self) -> list[Flat] | None:
        """Return the next item, or None at the end.

        Raises:
            EncodingError: The bytes are not the canonical encoding of a flat array within the limits.
        """
        first = self._read(1)
        if not first:
            return None
        start = self.offset
        self.offset += 1
        count = self._argument(first[0], _ARRAY, start)
        if count > self._max_values:
            raise EncodingError(f"an item of {count} values at offset {start}")
        return [self._value() for _ in range(count)]

    def _value(self) -> Flat:
        start = self.offset
        head = self._take(1)[0]
        major = head >> 5
        if major not in (_UINT, _BYTES, _TEXT):
            raise EncodingError(f"not an unsigned integer, byte string or text at offset {start}")
        argument = self._argument(head, major, start)
        if major == _UINT:
            if argument > canonical.MAX_INTEGER:
                raise EncodingError(f"an integer beyond 2^53 - 1 at offset {start}")
            return argument
        if argument > self._max_bytes:
            raise EncodingError(f"a string of {argument} bytes at offset {start}; at most {self._max_bytes}")
        data = self._take(argument)
        if major == _BYTES:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise EncodingError(f"not UTF-8 at offset {start}") from error

    def _argument(self, head: int, major: int, start: int) -> int:
        """Return the argument of a head, which must be the shortest."""
        short = head & 31
        if head >> 5 != major:
            raise EncodingError(f"not an array at offset {start}")
        if short < _SHORT_HEAD:
            return short
        width = 1 << (short - _SHORT_HEAD)
        if width > _MAX_WIDTH:
            raise EncodingError(f"a reserved or indefinite length at offset {start}")
        argument = int.from_bytes(self._take(width))
        if argument < (_SHORT_HEAD if width == 1 else 1 << (4 * width)):
            raise EncodingError(f"the head is not the shortest at offset {start}")
        return argument

    def _take(self, count: int) -> bytes:
        data = self._read(count)
        self.offset += len(data)
        if len(data) != count:
            raise EncodingError(f"ends early at offset {self.offset}")
        return data

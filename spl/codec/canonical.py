"""Deterministic CBOR in the profile of records: RFC 8949, section 4.2.1, and a strict subset of DAG-CBOR.

The profile: major types 0 to 5 and false, true, null; shortest heads; integers within ±(2^53 - 1); map keys
are text of 1 to 256 bytes in bytewise order of their encoded form; strict UTF-8; nesting at most 32. Reject,
never repair: `decode` accepts exactly what `encode` writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

import cbor2

from spl.errors import EncodingError

Value: TypeAlias = "int | bytes | str | bool | list[Value] | dict[str, Value] | None"

MAX_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 32
MAX_KEY_BYTES: Final = 256


def encode(value: object) -> bytes:
    """Return the one encoding of a value.

    The value is checked before cbor2 sees it: its encoder takes subclasses and overruns the C stack on values
    nested thousands deep.

    Args:
        value: Integers, bytes, text, booleans, None, and lists and dicts of them, of exactly these types.

    Raises:
        EncodingError: The value lies outside the profile; the message holds its path.
    """
    return cbor2.dumps(_ordered(value, "$", 1))


def byte_string(data: bytes) -> bytes:
    """Return what `encode` returns for bytes, without the way through the encoder."""
    size = len(data)  # RFC 8949, section 3: its length stands in the first byte, or behind it in 1, 2, 4 or 8
    if size < 24:  # noqa: PLR2004 - as above
        return b"%c%b" % (0x40 | size, data)
    if size < 1 << 8:
        return b"X%c%b" % (size, data)
    if size < 1 << 16:
        return b"Y%b%b" % (size.to_bytes(2), data)
    return (b"Z" + size.to_bytes(4) if size < 1 << 32 else b"[" + size.to_bytes(8)) + data


def decode(data: bytes) -> Value:
    """Return the value whose encoding `data` is.

    Raises:
        EncodingError: `data` is not what `encode` would have written; the message holds the byte offset.
    """
    value = _reencoded(data)
    if value is not None:
        return value
    end = _scan_item(data, 0, 1)
    if end != len(data):
        raise EncodingError(f"not canonical CBOR: trailing bytes at offset {end}")
    return decode_trusted(data)


def _reencoded(data: bytes) -> dict[str, Value] | None:
    """Return the map that `data` encodes when that can be said quickly, which is six times faster than the scan.

    A value that lies within the profile, with the keys of its maps in order, has one encoding, and the encoder writes
    it: so bytes that it writes again are canonical. For everything else the scan decides, and says what is wrong.
    """
    try:
        value = decode_trusted(data)
    except EncodingError:
        return None
    if type(value) is dict and _within(value, 1) and cbor2.dumps(value) == data:
        return value
    return None


def _within(value: object, depth: int) -> bool:
    """Say whether a map or list surely lies within the profile, with ordered keys; a rare form may be passed over."""
    if depth > MAX_DEPTH:
        return False
    if type(value) is dict:
        if not _are_ordered(tuple(value)):
            return False
        items: Iterable[object] = value.values()
    elif type(value) is list:
        items = value
    else:
        return False
    for item in items:
        kind = type(item)
        if kind is str or kind is bytes or kind is bool or item is None:
            continue
        if kind is int:
            if not -MAX_INTEGER <= item <= MAX_INTEGER:  # type: ignore[operator]
                return False
        elif not _within(item, depth + 1):
            return False
    return True


@lru_cache(maxsize=4096)  # the maps of records have few forms
def _are_ordered(keys: tuple[object, ...]) -> bool:
    """Say whether keys are short ASCII text in the order of their encoded form: by length, then bytewise."""
    texts = [key for key in keys if isinstance(key, str) and key.isascii() and 1 <= len(key) <= MAX_KEY_BYTES]
    return len(texts) == len(keys) and all((len(a), a) < (len(b), b) for a, b in pairwise(texts))


def decode_trusted(data: bytes) -> Value:
    """Return the value of bytes that `encode` wrote or `decode` accepted before, without the strict scan.

    Raises:
        EncodingError: The bytes are not CBOR at all.
    """
    try:
        value: Value = cbor2.loads(
            data,
            max_depth=MAX_DEPTH,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
        )
    except (cbor2.CBORDecodeError, ValueError, EOFError) as error:
        raise EncodingError(f"not CBOR: {error}") from error
    return value


def _ordered(value: object, path: str, depth: int) -> object:
    """Return `value` with every map in canonical key order, once it is known to lie within the profile."""
    kind = type(value)
    if kind is str:
        _utf8(value, path)  # type: ignore[arg-type]
        return value
    if kind is bytes or kind is bool or value is None:
        return value
    if kind is int:
        if -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]
            return value
        raise EncodingError(f"{path}: the integer lies outside ±(2^53 - 1)")
    if kind is dict:
        return _ordered_map(value, path, depth)  # type: ignore[arg-type]
    if kind is list:
        _check_depth(path, depth)
        return [_ordered(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]  # type: ignore[var-annotated, arg-type]
    raise EncodingError(f"{path}: {kind.__name__} has no place in a record")


def _ordered_map(value: dict[object, object], path: str, depth: int) -> dict[object, object]:
    _check_depth(path, depth)
    keys = []
    for key in value:
        if type(key) is not str:
            raise EncodingError(f"{path}: a map key must be text, not {type(key).__name__}")
        raw = _utf8(key, path)
        if not 1 <= len(raw) <= MAX_KEY_BYTES:
            raise EncodingError(f"{path}: a map key must have 1 to {MAX_KEY_BYTES} bytes")
        # With shortest heads, the order of the encoded keys is by length first, then bytewise.
        keys.append((len(raw), raw, key))
    keys.sort()
    return {key: _ordered(value[key], f"{path}.{key}", depth + 1) for _, _, key in keys}


def _check_depth(path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise EncodingError(f"{path[:80]}: nested more than {MAX_DEPTH} deep")


def _utf8(text: str, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise EncodingError(f"{path}: the text holds a lone surrogate") from error


_UINT, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _SIMPLE = 0, 1, 2, 3, 4, 5, 7
_SIMPLE_VALUES = (20, 21, 22)  # false, true, null
_SHORT_HEAD = 24


def _scan_item(data: bytes, at: int, depth: int) -> int:
    """Return the offset behind the item at `at`, once it is known to be canonical."""
    major, argument, after = _scan_head(data, at)
    if major in (_UINT, _NEGATIVE):
        if argument > MAX_INTEGER - major:
            raise EncodingError(f"not canonical CBOR: integer out of range at offset {at}")
        return after
    if major in (_BYTES, _TEXT):
        return _scan_string(data, at, after, argument, text=major == _TEXT)
    if major == _SIMPLE:
        if argument not in _SIMPLE_VALUES or after != at + 1:
            raise EncodingError(f"not canonical CBOR: float or simple value at offset {at}")
        return after
    if major not in (_ARRAY, _MAP):
        raise EncodingError(f"not canonical CBOR: tag at offset {at}")
    if depth > MAX_DEPTH:
        raise EncodingError(f"not canonical CBOR: nested more than {MAX_DEPTH} deep at offset {at}")
    if major == _MAP:
        return _scan_map(data, after, argument, depth)
    for _ in range(argument):
        after = _scan_item(data, after, depth + 1)
    return after


def _scan_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return major type, argument and the offset behind the head, which must be the shortest."""
    if at >= len(data):
        raise EncodingError(f"not canonical CBOR: ends early at offset {at}")
    major, short = divmod(data[at], 32)
    after = at + 1
    if short < _SHORT_HEAD:
        return major, short, after
    width = 1 << (short - _SHORT_HEAD)
    if width > 8:  # noqa: PLR2004 - 28 to 31 are reserved or indefinite
        raise EncodingError(f"not canonical CBOR: reserved or indefinite length at offset {at}")
    if major == _SIMPLE:
        raise EncodingError(f"not canonical CBOR: float or simple value at offset {at}")
    if after + width > len(data):
        raise EncodingError(f"not canonical CBOR: ends early at offset {at}")
    argument = int.from_bytes(data[after : after + width])
    if argument < (_SHORT_HEAD if width == 1 else 1 << (4 * width)):
        raise EncodingError(f"not canonical CBOR: head is not the shortest at offset {at}")
    return major, argument, after + width


def _scan_string(data: bytes, at: int, start: int, size: int, *, text: bool) -> int:
    end = start + size
    if end > len(data):
        raise EncodingError(f"not canonical CBOR: ends early at offset {at}")
    if text:
        try:
            data[start:end].decode()
        except UnicodeDecodeError as error:
            raise EncodingError(f"not canonical CBOR: not UTF-8 at offset {at}") from error
    return end


def _scan_map(data: bytes, after: int, size: int, depth: int) -> int:
    previous = b""
    for _ in range(size):
        at = after
        major, length, start = _scan_head(data, at)
        if major != _TEXT or not 1 <= length <= MAX_KEY_BYTES:
            raise EncodingError(
                f"not canonical CBOR: map key is not text of 1 to {MAX_KEY_BYTES} bytes at offset {at}"
            )
        after = _scan_string(data, at, start, length, text=True)
        key = data[at:after]
        if key <= previous:
            raise EncodingError(f"not canonical CBOR: map keys out of order at offset {at}")
        previous = key
        after = _scan_item(data, after, depth + 1)
    return after

"""JSON text in and out: strict reading, one writer.

Reading refuses what the standard library lets through (duplicate keys, NaN, lone surrogates, unbounded nesting)
and keeps numbers as they were written, so that 0.7, 0.70 and 7e-1 become the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec

from spl.codec.canonical import MAX_INTEGER
from spl.errors import EncodingError

_MAX_EXPONENT: Final = 400


class Number(str):
    """A number with a fraction or an exponent, as its literal text."""

    __slots__ = ()


def parse(text: str | bytes, *, what: str = "JSON") -> object:
    """Return the value of one strict JSON text.

    Args:
        text: UTF-8 bytes without a byte order mark, or text.
        what: What is being read, for messages.

    Returns:
        Dicts, lists, text, integers, booleans, None, and `Number` where a fraction or exponent was written.

    Raises:
        EncodingError: The text is not strict JSON; the message says where.
    """
    try:
        source = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise EncodingError(f"{what}: not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(
            source,
            object_pairs_hook=_object,
            parse_float=Number,
            parse_int=_integer,
            parse_constant=_constant,
        )
        if "\\u" in source:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise EncodingError(f"{what}: {error.msg} at line {error.lineno} column {error.colno}") from error
    except RecursionError as error:
        raise EncodingError(f"{what}: nested too deeply") from error
    except UnicodeEncodeError as error:
        raise EncodingError(f"{what}: holds a lone surrogate") from error
    except _Refused as error:
        raise EncodingError(f"{what}: {error}") from error
    return value


class _Refused(Exception):  # noqa: N818 - carried from a hook of json to `parse`
    pass


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return found


def _integer(literal: str) -> int | Number:
    # Python refuses to convert very long digits; a number beyond the profile is kept as text for the message.
    return int(literal) if len(literal) <= 20 else Number(literal)  # noqa: PLR2004 - digits of 2^63


def _constant(name: str) -> object:
    raise _Refused(f"{name} is not a JSON number")


def format_canonical(value: object) -> str:
    """Return a parsed value as JSON with sorted keys, no blanks, ASCII, and numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{format_canonical(value[key])}" for key in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(format_canonical, value)) + "]"
    return json.dumps(value)


def to_record_value(value: object, path: str = "$") -> object:
    """Return a parsed JSON value as a record holds it: fractions become `{"dec": [mantissa, exponent]}`.

    Trailing zeros leave the mantissa, so one number has one form; a decimal that is an integer stays a `dec` only
    when it was written with a fraction or an exponent that leaves one.

    Raises:
        EncodingError: A number does not fit the profile, or a null stands where a value belongs.
    """
    problems: list[tuple[str, str]] = []
    converted = record_value(value, problems, path)
    if problems:
        where, message = problems[0]
        raise EncodingError(f"{where}: {message}")
    return converted


def record_value(value: object, problems: list[tuple[str, str]], path: str = "$") -> object:
    """Return what `to_record_value` returns, for a caller that names every problem at once.

    What has no place in a record stands as it was parsed, and `problems` gains its path and what is wrong with it.
    """
    if isinstance(value, Number):
        try:
            return {"dec": list(decimal_parts(value))}
        except EncodingError as error:
            problems.append((path, error.message))
            return str(value)
    if isinstance(value, Mapping):
        return {key: record_value(item, problems, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [record_value(item, problems, f"{path}[{i}]") for i, item in enumerate(value)]
    if value is None:
        problems.append((path, "null has no place here; leave the field out"))
    return value


def decimal_parts(literal: str) -> tuple[int, int]:
    """Return mantissa and exponent (of ten) of a decimal literal, without trailing zeros in the mantissa.

    Raises:
        EncodingError: It is infinite, not a number, or beyond the integers of a record.
    """
    try:
        number = Decimal(literal)
    except InvalidOperation as error:
        raise EncodingError(f"{literal!r} is not a decimal number") from error
    if not number.is_finite():
        raise EncodingError(f"{literal!r} is not a finite number")
    if not number:
        return 0, 0
    sign, digits, exponent = number.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    exponent = int(exponent) + len(digits) - len(significant)
    # Twenty digits are beyond every integer of the profile; longer ones are not worth converting.
    mantissa = int(significant[:20])
    if mantissa > MAX_INTEGER or abs(exponent) > _MAX_EXPONENT:
        raise EncodingError(f"{literal} has more digits than a record keeps")
    return -mantissa if sign else mantissa, exponent


def format_json(document: object, *, indent: int = 0) -> str:
    """Return a document as JSON text: keys in the order of the Struct, bytes as hexadecimal digits.

    Args:
        document: A contract Struct, or plain values.
        indent: Blanks for each level; 0 writes one line.
    """
    plain = msgspec.to_builtins(document, builtin_types=(bytes,), enc_hook=_encode_unknown)
    return json.dumps(_printable(plain), ensure_ascii=False, indent=indent or None)


def _encode_unknown(value: object) -> object:
    if isinstance(value, Number):
        return str(value)
    raise EncodingError(f"{type(value).__name__} has no place in a document")


def _printable(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    return value

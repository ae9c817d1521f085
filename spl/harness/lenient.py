"""Text and JSON objects as the published implementation reads them.

Every byte that is not UTF-8 becomes one U+FFFD, where Python's own `replace` makes one for a whole truncated
sequence, and so does every lone surrogate that an escape made. Keys match without regard to case, under simple folding.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, Final

EACH_BYTE: Final = "spl-each-byte"
MAX_VALUES: Final = 100_000
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Simple Unicode folding has two letters beyond ASCII that fold into it: long s and the Kelvin sign.
_FOLDED: Final = str.maketrans({"\u017f": "s", "\u212a": "k"})


class Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys, in order."""


def members(value: object) -> dict[str, Any]:
    """Return the members of an object, the last of repeated keys, or none where the value is no object."""
    return dict(value) if isinstance(value, Pairs) else {}


def items(value: object) -> list[Any]:
    """Return the items of a list, or none where the value is no list."""
    return value if type(value) is list else []


def text(value: object) -> str:
    """Return text in which each lone surrogate is U+FFFD, or nothing where the value is no text."""
    return without_surrogates(value) if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """Return a number of things, or None where the value is no integer from 0."""
    return value if type(value) is int and value >= 0 else None


def amount(value: object) -> float | None:
    """Return an amount of money, or None where the value is no finite number from 0."""
    if type(value) not in (int, float):
        return None
    number = float(value)  # type: ignore[arg-type]
    return number if 0 <= number < float("inf") else None


def without_surrogates(source: str) -> str:
    """Return text in which each lone surrogate is U+FFFD."""
    return _SURROGATE.sub("\ufffd", source)


def folded(key: str) -> str:
    """Return a key as it is compared when there is no exact match."""
    return key.translate(_FOLDED).lower()


def is_too_complex(line: bytes | bytearray) -> bool:
    """Say whether a JSON text has more than 100,000 values, which would take many times its own size in memory."""
    if len(line) <= MAX_VALUES or _values(line) <= MAX_VALUES:
        return False
    return _values(_STRING.sub(b"", line)) > MAX_VALUES


def _values(line: bytes | bytearray) -> int:
    return sum(map(line.count, (b",", b"[", b"{")))


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(EACH_BYTE, _replace)

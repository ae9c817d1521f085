"""Durations as the published command line writes them: `90s`, `5m`, `1h2m3.5s`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_MAX_NS: Final = 2**63 - 1
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Return a duration in seconds; 0 means no limit.

    Raises:
        ValueError: It is not a duration; the message says why.
    """
    body = text[1:] if text[:1] in {"+", "-"} else text
    sign = -1 if text.startswith("-") else 1
    if body == "0":
        return 0.0
    total = Fraction(0)
    at = 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None or not (part[1] or part[2]):
            raise ValueError(f'invalid duration "{text}"')
        number = Fraction(int(part[1] or "0"))
        if part[2]:
            number += Fraction(int(part[2]), 10 ** len(part[2]))
        total += number * _UNITS[part[3]]
        at = part.end()
    if not body or int(total) > _MAX_NS:
        raise ValueError(f'invalid duration "{text}"')
    return sign * float(total) / 1e9

"""Moments as people write them and as records hold them: milliseconds since 1970 UTC."""

from __future__ import annotations

from datetime import datetime


def parse_instant(text: str) -> int:
    """Return the milliseconds since 1970 UTC of an ISO 8601 time with its zone, such as 2026-01-02T03:04:05Z.

    Raises:
        ValueError: It is not one.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone")
    return round(moment.timestamp() * 1000)

"""Time and chance, handed to the kernel as values so that a test can fix them."""

from __future__ import annotations

import os
import time
from typing import Protocol

from spl.records.envelope import SALT_BYTES


class Clock(Protocol):
    """Where a home gets its time and its salts from."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 UTC."""

    def salt(self) -> bytes:
        """Return 16 random bytes."""


class SystemClock:
    """The machine's clock and random source."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 UTC."""
        return time.time_ns() // 1_000_000

    def salt(self) -> bytes:
        """Return 16 random bytes."""
        return os.urandom(SALT_BYTES)

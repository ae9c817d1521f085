"""Progress of work that takes a while: one line on standard error, redrawn, where somebody looks."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

from spl.cli.context import current

_CLEAR = "\r\x1b[2K"
_TICK_S = 1.0


def shown() -> bool:
    """Say whether progress is shown: on a terminal, unless `--progress` says always or never."""
    wish = current().progress
    return sys.stderr.isatty() if wish == "auto" else wish == "always"


class Progress:
    """Counts what has ended of a known number of attempts.

    Args:
        noun: What is counted.
        jobs: How many run side by side.
        planned: How many there are; `plan` says so later.
        good: What is said of those that ended well; the others failed.
    """

    def __init__(self, noun: str, jobs: int, planned: int = 0, good: str = "passed") -> None:
        self._noun, self._jobs, self._planned, self._good = noun, jobs, planned, good
        self._done = self._passed = 0
        self._cost = 0.0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._shown = shown()
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._draw()
            self._clock.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._shown:
            self._clock.join()
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def plan(self, planned: int) -> None:
        """Say how many there are."""
        with self._lock:
            self._planned = planned

    def count(self, *, passed: bool, cost_usd: float | None = None) -> None:
        """Count one that has ended; an unknown cost adds nothing to the cost so far."""
        with self._lock:
            self._done += 1
            self._passed += passed
            self._cost += cost_usd or 0
        if self._shown:
            self._draw()

    def line(self) -> str:
        """Return what is shown: how many are done, running, passed and failed, time, and cost so far."""
        running = min(self._jobs, self._planned - self._done)
        parts = [
            f"{self._done}/{self._planned} {self._noun}",
            f"{running} running",
            f"{self._passed} {self._good}",
        ]
        parts.append(f"{self._done - self._passed} failed")
        spent = time.monotonic() - self._started
        parts.append(f"{spent:.0f} s")
        if 0 < self._done < self._planned:
            parts.append(f"about {spent / self._done * (self._planned - self._done):.0f} s left")
        if self._cost:
            parts.append(f"${self._cost:.4f} so far")
        return ", ".join(parts)

    def _tick(self) -> None:
        while not self._ended.wait(_TICK_S):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            sys.stderr.write(_CLEAR + self.line())
            sys.stderr.flush()

"""Progress of a bench on a terminal: one line on standard error, redrawn."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from spl.contracts.harness import BenchTask

_CLEAR = "\r\x1b[2K"


class Progress:
    """Counts rows as they end; silent where standard error is not a terminal.

    Args:
        rows: How many rows there are.
        jobs: How many run side by side.
    """

    def __init__(self, rows: int, jobs: int) -> None:
        self._rows, self._jobs = rows, jobs
        self._done = self._passed = 0
        self._cost = 0.0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def row_done(self, row: BenchTask) -> None:
        """Count a row that has ended."""
        with self._lock:
            self._done += 1
            self._passed += row.report.ok
            self._cost += row.agent.cost_usd
            self._draw()

    def line(self) -> str:
        """Return what is shown: rows done, running, passed, failed, time left, cost so far."""
        running = min(self._jobs, self._rows - self._done)
        parts = [f"{self._done}/{self._rows} rows", f"{running} running", f"{self._passed} passed"]
        parts.append(f"{self._done - self._passed} failed")
        if 0 < self._done < self._rows:
            spent = time.monotonic() - self._started
            parts.append(f"about {spent / self._done * (self._rows - self._done):.0f} s left")
        if self._cost:
            parts.append(f"${self._cost:.4f} so far")
        return ", ".join(parts)

    def _draw(self) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR + self.line())
            sys.stderr.flush()

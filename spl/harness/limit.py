"""How long work may go on: a moment at which it ends, and an event that ends it at once."""

from __future__ import annotations

import threading
import time
from typing import Final

from spl.errors import OperationFailedError

TIMED_OUT: Final = "context deadline exceeded"
CANCELLED: Final = "context canceled"


class Limit:
    """One bound shared by everything that a row does: copying, the agent, its checks.

    Args:
        timeout_s: Seconds from now; None for no bound.
        cancel: Set by whoever interrupts.
    """

    def __init__(self, timeout_s: float | None = None, cancel: threading.Event | None = None) -> None:
        self.deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.cancel = cancel or threading.Event()

    def within(self, timeout_s: float) -> Limit:
        """Return the limit that ends after `timeout_s` at the latest, and no later than this one."""
        inner = Limit(timeout_s, self.cancel)
        if self.deadline is not None and inner.deadline is not None:
            inner.deadline = min(inner.deadline, self.deadline)
        return inner

    @property
    def timed_out(self) -> bool:
        """Say whether the time is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    @property
    def problem(self) -> str:
        """Return why work must stop, in the published words, or nothing while it may go on."""
        if self.cancel.is_set():
            return CANCELLED
        return TIMED_OUT if self.timed_out else ""

    def remaining_s(self, most: float) -> float:
        """Return the seconds that are left, at most `most`, never negative."""
        if self.deadline is None:
            return most
        return max(0.0, min(most, self.deadline - time.monotonic()))

    def check(self) -> None:
        """Do nothing while work may go on.

        Raises:
            OperationFailedError: The limit was reached; the message is `problem`.
        """
        if self.problem:
            raise OperationFailedError(self.problem)

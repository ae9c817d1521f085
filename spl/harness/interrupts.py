"""SIGINT, SIGTERM and SIGHUP, turned into an event that every bound looks at."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts(cancel: threading.Event) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP (a closed terminal) into the event, where signals can be had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:  # nohup(1)
        del before[signal.SIGHUP]

    def interrupted(_number: int, _frame: Any) -> None:  # noqa: ANN401 - the interface of signal
        cancel.set()

    for number in before:
        signal.signal(number, interrupted)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

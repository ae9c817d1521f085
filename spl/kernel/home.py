"""A home: one directory that holds the log, its blobs and its keys, opened for use by the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from spl.ids import Did
from spl.kernel.clock import Clock
from spl.kernel.content import Blobs
from spl.store.log import Log, Transaction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kernel:
    """What every use case gets: the log, the blobs, and who speaks.

    Attributes:
        log: The records.
        blobs: Their large content.
        clock: Time and chance.
        kernel: The identity that signs what was executed or concluded.
        operator: The identity that signs what a person says or imports.
    """

    log: Log
    blobs: Blobs
    clock: Clock
    kernel: Did
    operator: Did

    def transact(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` in one write transaction of the log."""
        return self.log.transact(function)

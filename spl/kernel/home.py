"""A home: one directory that holds the log, its blobs and its keys, opened for use by the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from spl.errors import StorageError
from spl.ids import Did
from spl.kernel.clock import Clock, SystemClock
from spl.kernel.content import Blobs
from spl.records.secrets import Secrets
from spl.store import layout
from spl.store.blobs import BlobStore
from spl.store.keys import KeyStore
from spl.store.log import Log, Transaction
from spl.store.sqlite import SqliteLog

T = TypeVar("T")

KERNEL_KEY = "kernel"
OPERATOR_KEY = "operator"


class Keys(Protocol):
    """What the kernel needs of a key store."""

    def create_actor(self) -> Did:
        """Make a key and return its DID."""

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with each key that cannot be used."""


class Stamp:
    """Clock, keys and what may not enter, as a log wants them."""

    def __init__(
        self, clock: Clock, sign: Callable[[Did, bytes], bytes], secrets: Secrets | None = None
    ) -> None:
        self.now_ms = clock.now_ms
        self.salt = clock.salt
        self.sign = sign
        self.secrets = Secrets() if secrets is None else secrets


@dataclass(frozen=True, slots=True)
class Kernel:
    """What every use case gets: the log, the blobs, the keys, and who speaks.

    Attributes:
        log: The records.
        blobs: Their large content.
        keys: Makes keys for actors.
        clock: Time and chance.
        kernel: The identity that signs what was executed or concluded.
        operator: The identity that signs what a person says or imports.
        path: The directory; None for a home in memory.
        secrets: What may not enter the log.
    """

    log: Log
    blobs: Blobs
    keys: Keys
    clock: Clock
    kernel: Did
    operator: Did
    path: Path | None = None
    secrets: Secrets = field(default_factory=Secrets)

    def transact(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` in one write transaction of the log."""
        return self.log.transact(function)


def open_home(
    path: Path, *, create: bool, clock: Clock | None = None, secrets: Secrets | None = None
) -> Kernel:
    """Return the kernel of the home at a path.

    Args:
        path: The directory.
        create: Make the home when it is not there.
        clock: Time and chance; the machine's when absent.
        secrets: What may not enter the log; known shapes of secrets alone when absent.

    Raises:
        StorageError: It is not there, cannot be made, or is not a home that can be trusted.
        DamagedError, KeyAccessError: The log or the keys cannot be read.
    """
    if not create and not layout.exists(path):
        raise StorageError(f"there is no home at {path}", hint="spl init makes one")
    places = layout.make(path, _make_keys) if create else layout.check(path)
    clock = clock or SystemClock()
    secrets = Secrets() if secrets is None else secrets
    keys = KeyStore(places.keys, places.tmp)
    kernel, operator = keys.did(KERNEL_KEY), keys.did(OPERATOR_KEY)
    blobs = BlobStore(places.blobs, places.tmp)
    log = SqliteLog(places.log, places.lock, Stamp(clock, keys.sign, secrets), operator, blobs.__contains__)
    return Kernel(log, blobs, keys, clock, kernel, operator, path, secrets)


def _make_keys(places: layout.Layout) -> None:
    keys = KeyStore(places.keys, places.tmp)
    for name in (KERNEL_KEY, OPERATOR_KEY):
        keys.create(name)

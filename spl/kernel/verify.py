"""Verification of a home, for the kernel's callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from spl.contracts.verify import VerifyDocument
from spl.errors import OperationFailedError
from spl.kernel.home import Kernel
from spl.store import head
from spl.store.blobs import BlobStore
from spl.store.check import Checker, Job, Report, Task
from spl.store.layout import Layout
from spl.store.sqlite import SqliteLog
from spl.store.verify import Home, in_this_process, verify

WORTH_SPREADING: Final = 20_000  # entries; below that, starting processes takes longer than they save


def verify_home(
    kernel: Kernel,
    *,
    signatures: bool = True,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> VerifyDocument:
    """Return every fault of the home.

    Args:
        kernel: The open home.
        signatures: Whether to check them; without, the verification never counts as clean.
        workers: How many processes; as many as there are cores when absent, and none for a small log.
        progress: Called with entries done and in all.

    Raises:
        OperationFailedError: The home has no files.
    """
    home = _on_disk(kernel)
    if workers is None:
        workers = _cores() if home.log.size() >= WORTH_SPREADING else 0
    count = workers

    def spread(job: Job, tasks: Iterable[Task]) -> Iterator[Report]:
        if count < 2:  # noqa: PLR2004 - one process more would only wait
            return in_this_process(job, tasks)
        from spl.kernel import workers as pool  # noqa: PLC0415 - a small log needs no processes

        return pool.spread(Checker, job, tasks, workers=count)

    return verify(home, signatures=signatures, spread=spread, progress=progress)


def rebuild_projections(kernel: Kernel) -> None:
    """Derive the projections from the entries again.

    Raises:
        OperationFailedError: The home has no files.
        StorageError, LockTimeoutError: The disk or the lock did not let it; nothing changed.
    """
    _on_disk(kernel).log.rebuild_projections()


def _cores() -> int:
    from spl.kernel.workers import cores  # noqa: PLC0415 - as above

    return cores()


def _on_disk(kernel: Kernel) -> Home:
    if (
        kernel.path is None
        or not isinstance(kernel.log, SqliteLog)
        or not isinstance(kernel.blobs, BlobStore)
    ):
        raise OperationFailedError("a home in memory has no files to verify")
    return Home(kernel.log, kernel.blobs, Layout(kernel.path).head, head.verifier_key(kernel.kernel))

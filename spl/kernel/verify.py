"""Verification of a home, for the kernel's callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from spl.contracts.verify import Finding, VerifyDocument
from spl.errors import OperationFailedError, StorageError
from spl.kernel.home import Kernel
from spl.kernel.refold import counted, refold
from spl.store import head, verified
from spl.store.blobs import BlobStore
from spl.store.check import Checker, Job, Report, Task
from spl.store.layout import Layout
from spl.store.sqlite import SqliteLog
from spl.store.verified import Verified
from spl.store.verify import Home, in_this_process, verify

WORTH_SPREADING: Final = 20_000  # entries; below that, starting processes takes longer than they save


class Depth(Struct, frozen=True, kw_only=True):
    """How much is looked at.

    Attributes:
        signatures: Check them; without, the verification never counts as clean.
        quick: Only what is newer than the last clean verification; everything when there was none.
        scores: Fold every score again.
    """

    signatures: bool = True
    quick: bool = False
    scores: bool = False


def verify_home(
    kernel: Kernel,
    depth: Depth | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> VerifyDocument:
    """Return every fault of the home, and keep the result beside the log where it says whether that is clean.

    Args:
        kernel: The open home.
        depth: How much is looked at.
        workers: How many processes; as many as there are cores when absent, and none for a small log.
        progress: Called with entries done and in all.

    Raises:
        OperationFailedError: The home has no files.
    """
    depth = depth or Depth()
    home = _on_disk(kernel)

    def spread(job: Job, tasks: Iterable[Task]) -> Iterator[Report]:
        small = workers is None and home.log.extent() < WORTH_SPREADING
        count = 0 if small else _cores() if workers is None else workers
        if count < 2:  # noqa: PLR2004 - one process more would only wait
            return in_this_process(job, tasks)
        from spl.kernel import workers as pool  # noqa: PLC0415 - a small log needs no processes

        return pool.spread(Checker, job, tasks, workers=count)

    since = _last_clean(kernel) if depth.quick else None
    document = verify(home, signatures=depth.signatures, since=since, spread=spread, progress=progress)
    if depth.scores:
        document = _with_scores(kernel, document)
    return _kept(kernel, document)


def _last_clean(kernel: Kernel) -> Verified | None:
    found = None if kernel.path is None else verified.load(Layout(kernel.path).verified)
    return found if found is not None and not found.faults else None


def _with_scores(kernel: Kernel, document: VerifyDocument) -> VerifyDocument:
    part, faults, notices = counted(refold(kernel))
    return msgspec.structs.replace(
        document,
        ok=document.ok and not faults,
        clean=document.clean and not faults,
        scores=part,
        faults=[*document.faults, *faults],
        notices=[*document.notices, *notices],
    )


def _kept(kernel: Kernel, document: VerifyDocument) -> VerifyDocument:
    """Keep a result that says whether the home is clean; a home that cannot be written is verified all the same."""
    if kernel.path is None or (document.ok and not document.clean):
        return document
    places = Layout(kernel.path)
    faults = len(document.faults) + document.faults_omitted
    result = Verified(at=kernel.clock.now_ms(), size=document.size, root=document.root, faults=faults)
    try:
        verified.save(places.verified, places.tmp, result)
    except StorageError as error:
        notice = Finding(check="home", message=f"that it was verified is not kept: {error.message}")
        return msgspec.structs.replace(document, notices=[*document.notices, notice])
    return document


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

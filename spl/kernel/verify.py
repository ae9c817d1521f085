"""Verification of a home, for the kernel's callers."""

from __future__ import annotations

from collections.abc import Callable

from spl.contracts.verify import VerifyDocument
from spl.errors import OperationFailedError
from spl.kernel.home import Kernel
from spl.store.blobs import BlobStore
from spl.store.sqlite import SqliteLog
from spl.store.verify import verify


def verify_home(
    kernel: Kernel,
    *,
    signatures: bool = True,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> VerifyDocument:
    """Return every fault of the home.

    Raises:
        OperationFailedError: The home has no files.
    """
    log, blobs = _on_disk(kernel)
    return verify(log, blobs, signatures=signatures, progress=progress)


def rebuild_projections(kernel: Kernel) -> None:
    """Derive the projections from the entries again.

    Raises:
        OperationFailedError: The home has no files.
        StorageError, LockTimeoutError: The disk or the lock did not let it; nothing changed.
    """
    _on_disk(kernel)[0].rebuild_projections()


def _on_disk(kernel: Kernel) -> tuple[SqliteLog, BlobStore]:
    if not isinstance(kernel.log, SqliteLog) or not isinstance(kernel.blobs, BlobStore):
        raise OperationFailedError("a home in memory has no files to verify")
    return kernel.log, kernel.blobs

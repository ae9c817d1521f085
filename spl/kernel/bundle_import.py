"""Import: the whole bundle is checked first, then its records enter in one transaction, or none does."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from spl.contracts.exchange import ImportDocument
from spl.errors import BundleError
from spl.kernel.bundle_check import PROGRESS_EVERY, CheckedBundle
from spl.kernel.home import Kernel
from spl.records.envelope import read_record
from spl.records.registry import DEFINITION, SCORE, VERDICT
from spl.store import note
from spl.store.blobs import BlobStore
from spl.store.bundle import BundleReader
from spl.store.durable import storage_errors
from spl.store.layout import Layout
from spl.store.log import Transaction

Progress = Callable[[int, int], None]
_OURS_ALONE = (DEFINITION, SCORE, VERDICT)


def import_bundle(
    kernel: Kernel,
    file: BinaryIO,
    *,
    key: str | None = None,
    progress: Progress = lambda _done, _of: None,
) -> ImportDocument:
    """Append what this home does not hold of a bundle's records, in the order of their log, all or nothing.

    The home becomes the union of both sets of records. Definitions, scores and verdicts by others are kept and take no
    effect; a record that was withdrawn here stays withdrawn, and nothing here is withdrawn because others did so.

    Args:
        kernel: The open home.
        file: The bundle; what cannot be sought in is copied aside first.
        key: The verifier key that must have signed its checkpoint; any when absent.
        progress: Called with records done and in all; each is looked at twice.

    Raises:
        BundleError: The first item that is faulty or missing; nothing was appended.
        InputError: The key is not one.
        StorageError, LockTimeoutError: The disk or the lock did not let it; nothing was appended.
    """
    verifier = None if key is None else note.parse_vkey(key)
    with _sought(kernel, file) as source:
        reader = BundleReader(source)
        count = reader.head.records
        checked = CheckedBundle(kernel, reader, verifier, lambda done: progress(done, 2 * count))
        stored = _store(kernel, reader, checked)
        counts, effects = kernel.transact(
            lambda tx: _append(kernel, tx, reader, checked, lambda done: progress(count + done, 2 * count))
        )
        progress(2 * count, 2 * count)
    return ImportDocument(
        origin=checked.checkpoint.origin,
        kernel=checked.kernel_there,
        checkpoint_size=checked.checkpoint.size,
        root=checked.checkpoint.root,
        records=reader.head.records,
        appended=counts["appended"],
        already_there=reader.head.records - counts["appended"],
        withdrawn_here=counts["withdrawn"],
        opaque=counts["opaque"],
        blobs=stored,
        without_effect=dict(effects),
        withdrawn_there=checked.withdrawn_there,
        suspicious=checked.suspicious,
        size=counts["size"],
    )


@contextmanager
def _sought(kernel: Kernel, file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a file that can be sought in: this one, or a copy of it that goes with the block."""
    if file.seekable():
        yield file
        return
    directory = None if kernel.path is None else Layout(kernel.path).tmp
    with storage_errors("cannot copy the bundle aside"), tempfile.TemporaryFile(dir=directory) as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        yield copy


def _store(kernel: Kernel, reader: BundleReader, checked: CheckedBundle) -> int:
    """Store the blobs that are wanted and not here, and return how many; each is verified again as it is written."""
    stored = 0
    for blob, pieces in reader.blobs():
        if blob in checked.wanted and blob not in kernel.blobs:
            if isinstance(kernel.blobs, BlobStore):
                kernel.blobs.put_stream(blob, pieces)
            else:
                kernel.blobs.put(b"".join(pieces))
            stored += 1
    return stored


def _append(
    kernel: Kernel,
    tx: Transaction,
    reader: BundleReader,
    checked: CheckedBundle,
    progress: Callable[[int], None],
) -> tuple[Counter[str], Counter[str]]:
    """Append the records, and return what happened to them, and what takes no effect, by kind."""
    counts, effects = Counter[str](), Counter[str]()
    before = tx.size()
    for number, item in enumerate(reader.records()):
        if number % PROGRESS_EVERY == 0:
            progress(number)
        entry = tx.append_signed(item.record, item.signature, checked=True)
        if entry.position < before:
            counts["withdrawn"] += entry.record is None
            continue
        counts["appended"] += 1
        record = read_record(item.record, entry.id)
        counts["opaque"] += record.opaque is not None
        if record.kind in _OURS_ALONE and record.by not in (kernel.operator, kernel.kernel):
            effects[record.kind] += 1
    if reader.digest() != checked.digest:
        raise BundleError("the bundle changed while it was imported")
    counts["size"] = tx.size()
    return counts, effects

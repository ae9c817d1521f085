"""Export: records with everything they refer to, as a bundle that proves itself, or as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Final

from spl.codec import digest, jsontext
from spl.contracts.exchange import ExportDocument
from spl.errors import DamagedError, InputError, OperationFailedError, WithdrawnError
from spl.ids import BlobId, RecordId
from spl.kernel.content import Blobs
from spl.kernel.grades import decode_grades
from spl.kernel.home import Kernel
from spl.kernel.names import record_of, resolve_id
from spl.kernel.naming import named_ids, named_trees
from spl.kernel.proof import checkpoint
from spl.kernel.records import check_intact, record_document
from spl.records.envelope import Record, read_record
from spl.records.registry import RUN_START, SCORE
from spl.store import bundle, proofs
from spl.store.blobs import BlobStore
from spl.store.log import Entry, Selection, View

BUNDLE, JSONL = "bundle", "jsonl"
_CHUNK: Final = 500

Write = Callable[[bytes], object]


def export(kernel: Kernel, texts: Sequence[str], write: Write, *, path: str) -> ExportDocument:
    """Write a bundle: the records, what they refer to, their blobs, a signed checkpoint and proofs of inclusion.

    Whoever names the root of a thread means the thread; a run brings its end, and a score the cases and runs in its
    table of grades. The same log gives the same bytes.

    Args:
        kernel: The open home.
        texts: Ids or prefixes; everything when empty.
        write: Takes the next bytes.
        path: What to call the file in the document.

    Raises:
        UnknownIdError, AmbiguousIdError: None, or several, are meant.
        WithdrawnError: A record that was asked for, or something that it refers to, was withdrawn.
        InputError: There is nothing to export, or more than a bundle may hold.
        DamagedError: A record is not what its id says, or as `checkpoint`.
        SplitViewError, StorageError, LockTimeoutError, OperationFailedError: As `checkpoint`.
    """
    if not isinstance(kernel.blobs, BlobStore):
        raise OperationFailedError("a home in memory has nothing that proves what it exports")
    ids = [resolve_id(kernel.log, text) for text in texts]
    signed = checkpoint(kernel)
    positions, excluded = _positions(kernel, ids, signed.size)
    blobs = sorted(_blobs(kernel, positions))
    if not positions:
        raise InputError("there is nothing to export")
    if len(positions) > bundle.MAX_RECORDS or len(blobs) > bundle.MAX_BLOBS:
        raise InputError(
            f"{len(positions)} records and {len(blobs)} blobs; a bundle holds at most {bundle.MAX_RECORDS} of each",
            hint="name the records that are wanted",
        )
    out = _Counted(write)
    out.write(bundle.encode_head(bundle.Head(signed.note, len(positions), len(blobs))))
    for entry in _entries(kernel.log, positions):
        check_intact(entry)
        path_up = proofs.inclusion(entry.position, signed.size, kernel.log.subtree)
        if entry.record is None or not proofs.includes(
            entry.leaf, entry.position, signed.size, path_up, signed.root
        ):
            raise DamagedError("the stored tree is not that of the entries")
        out.write(
            bundle.encode_record(bundle.Bundled(entry.position, entry.record, entry.signature, path_up))
        )
    for blob in blobs:
        for item in bundle.encode_blob(blob, kernel.blobs.stream(blob)):
            out.write(item)
    return ExportDocument(
        path=path,
        format=BUNDLE,
        records=len(positions),
        blobs=len(blobs),
        bytes=out.count,
        excluded=excluded,
        origin=signed.origin,
        size=signed.size,
        root=signed.root,
        key=signed.key,
    )


def export_lines(kernel: Kernel, texts: Sequence[str], write: Write, *, path: str) -> ExportDocument:
    """Write records as JSON lines, in log order, each as `spl show --json` prints it, for other tools to read.

    Args:
        kernel: The open home.
        texts: As `export`; everything, with what was withdrawn, when empty.
        write: Takes the next bytes.
        path: What to call the file in the document.

    Raises:
        UnknownIdError, AmbiguousIdError, WithdrawnError, DamagedError: As `export`.
    """
    ids = [resolve_id(kernel.log, text) for text in texts]
    size = kernel.log.size()
    positions = _positions(kernel, ids, size)[0] if ids else range(size)
    out = _Counted(write)
    for entry in _entries(kernel.log, positions):
        check_intact(entry)
        line = jsontext.format_json(record_document(kernel.log, entry))
        out.write(line.encode("utf-8", "replace") + b"\n")
    return ExportDocument(
        path=path, format=JSONL, records=len(positions), blobs=0, bytes=out.count, excluded={}
    )


class _Counted:
    def __init__(self, write: Write) -> None:
        self._write = write
        self.count = 0

    def write(self, data: bytes) -> None:
        self._write(data)
        self.count += len(data)


def _entries(view: View, positions: Sequence[int]) -> Iterator[Entry]:
    for start in range(0, len(positions), _CHUNK):
        yield from view.at(positions[start : start + _CHUNK])


def _positions(kernel: Kernel, ids: Sequence[RecordId], size: int) -> tuple[list[int], dict[str, int]]:
    """Return the positions to export, ascending, and what was left out, by reason."""
    if ids:
        return sorted(_closure(kernel, ids)), {}
    chosen = bytearray(b"\1") * size  # one byte for each entry: ids would take a hundred
    excluded = {"withdrawn": 0, "refers_to_withdrawn": 0}
    for entry in kernel.log.scan(Selection(stop=size)):
        if entry.record is None:
            chosen[entry.position] = 0
            excluded["withdrawn"] += 1
        elif excluded["withdrawn"]:
            record = read_record(entry.record, entry.id)
            if not all(chosen[_place(kernel.log, target)] for target in _targets(record)):
                chosen[entry.position] = 0
                excluded["refers_to_withdrawn"] += 1
    return list(compress(range(size), chosen)), {why: count for why, count in excluded.items() if count}


def _place(view: View, record_id: RecordId) -> int:
    entry = view.get(record_id)
    if entry is None:
        raise DamagedError(f"the record {record_id.hex()} is missing")
    return entry.position


def _targets(record: Record) -> Iterator[RecordId]:
    """Yield the records that a record names."""
    if record.thread is not None:
        yield record.thread
    for ids in record.refs.values():
        yield from ids


def _closure(kernel: Kernel, ids: Iterable[RecordId]) -> set[int]:
    """Return the positions of records, of their threads where they are roots, and of all that these refer to."""
    view = kernel.log
    waiting: list[RecordId] = []
    for named in ids:
        record = record_of(view, named)
        waiting.append(named)
        if record.thread is None:
            waiting += (e.id for e in view.scan(Selection(thread=named)) if e.record is not None)
    found: set[int] = set()
    while waiting:
        entry = view.get(waiting.pop())
        if entry is None:
            raise DamagedError("a record that another one refers to is missing")
        if entry.position in found:
            continue
        if entry.record is None:
            raise WithdrawnError(
                f"what was asked for refers to {entry.id.hex()}, which was withdrawn",
                hint="without ids, spl export leaves out what refers to withdrawn records",
            )
        found.add(entry.position)
        record = read_record(entry.record, entry.id)
        waiting += _targets(record)
        if record.kind == RUN_START:
            waiting += (e.id for e in view.scan(Selection(thread=entry.id)) if e.record is not None)
        if record.kind == SCORE and record.opaque is None:
            waiting += _graded(kernel, record)
    return found


def _graded(kernel: Kernel, record: Record) -> Iterator[RecordId]:
    """Yield the cases and runs in the table of grades of a score, as far as they are here and were not withdrawn."""
    for grade in decode_grades(kernel, record):
        for target in (grade.case, grade.run):
            entry = kernel.log.get(target)
            if entry is not None and entry.record is not None:
                yield target


def _blobs(kernel: Kernel, positions: Sequence[int]) -> set[BlobId]:
    """Return the blobs that the records at some positions name. Raises DamagedError when one is missing."""
    found: set[BlobId] = set()
    trees: set[BlobId] = set()
    for entry in _entries(kernel.log, positions):
        assert entry.record is not None  # noqa: S101 - withdrawn ones were left out
        record = read_record(entry.record, entry.id)
        for ref in record.blobs:
            if ref.h not in kernel.blobs:
                raise DamagedError(f"the blob {ref.h.hex()}, which {entry.id.hex()} names, is missing")
        found.update(blob for blob in named_ids(record) if blob not in found and blob in kernel.blobs)
        for tree in named_trees(record):
            if tree not in trees:
                trees.add(tree)
                found.update(_tree_files(kernel.blobs, tree))
    return found


def _tree_files(blobs: Blobs, manifest: BlobId) -> Iterator[BlobId]:
    """Yield the files of a fixture, all of which must be there."""
    for file in digest.decode_tree(blobs.get(manifest)):
        if file.blob is not None:
            if file.blob not in blobs:
                raise DamagedError(
                    f"the blob {file.blob.hex()}, which the fixture {manifest.hex()} names, is missing"
                )
            yield file.blob

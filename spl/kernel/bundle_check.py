"""What a bundle must be before anything of it is let in: every record, reference, blob and proof is looked at.

One pass in bounded memory: of each record its id and kind are kept, of definitions the facet, of blobs the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from spl.codec import digest
from spl.errors import BundleError, InvalidIdError, SignatureError, SplError
from spl.ids import BlobId, Did, Facet, RecordId
from spl.kernel.home import Kernel
from spl.kernel.names import found_of
from spl.kernel.naming import named_ids, named_trees
from spl.records.definitions import Definition
from spl.records.envelope import Record, check_record
from spl.records.registry import DEFINITION, KINDS
from spl.records.runs import RunStart
from spl.records.verdicts import Redaction
from spl.store import head, note, proofs, tree
from spl.store.bundle import Bundled, BundleReader
from spl.store.keys import check_signature
from spl.store.remains import Remains

MAX_MANIFEST_BYTES: Final = 32 << 20
PROGRESS_EVERY: Final = 1000
_MAX_SUSPICIOUS: Final = 100


class _Wanted(NamedTuple):
    """A blob that something names: its size where that is stated, and who names it."""

    size: int | None
    by: str


class CheckedBundle:
    """Checks a bundle and keeps what an import needs to know of it.

    Args:
        kernel: The home that it is meant for.
        reader: The bundle.
        key: The verifier key that must have signed its checkpoint; the one that it names when absent.
        progress: Called with records done.

    Attributes:
        checkpoint: The head of the log that it comes from.
        kernel_there: Who signed that.
        digest: The hash of the part with the records, as it was checked.
        wanted: The blobs that records name which were not withdrawn here.
        withdrawn_there: Records of this home that the bundle's redactions withdraw.
        suspicious: Records that hold what looks like a secret, at most 100.

    Raises:
        BundleError: The first item that is faulty, by its number and, where it has them, position and id.
    """

    def __init__(
        self,
        kernel: Kernel,
        reader: BundleReader,
        key: note.VerifierKey | None,
        progress: Callable[[int], None],
    ) -> None:
        self._kernel, self._reader = kernel, reader
        self.checkpoint, self.kernel_there = _opened(reader, key)
        self.wanted: set[BlobId] = set()
        self.withdrawn_there: list[RecordId] = []
        self.suspicious: list[RecordId] = []
        self._kinds: dict[RecordId, str] = {}
        self._facets: dict[RecordId, Facet] = {}
        self._named: dict[BlobId, _Wanted] = {}
        self._mentioned: set[BlobId] = set()
        self._trees: dict[BlobId, bool] = {}  # and whether its files are wanted
        self._home = lru_cache(maxsize=65_536)(self._in_home)
        last = -1
        for number, item in enumerate(reader.records()):
            if number % PROGRESS_EVERY == 0:
                progress(number)
            self._check(item, last)
            last = item.position
        self.digest = reader.digest()
        self._check_blobs()

    def _check(self, item: Bundled, last: int) -> None:
        where = f"the record at position {item.position}"
        rid = digest.record_id(item.record)
        try:
            if item.position <= last:
                raise BundleError("does not stand behind the one before it")
            record = check_record(item.record, foreign=True)
            check_signature(record.by, item.record, item.signature)
            self._check_proof(item)
            if rid in self._kinds:
                raise BundleError("stands twice")
            self._check_references(record)
            self._name(record, item)
        except SplError as error:
            details = {
                "item": self._reader.number,
                "position": item.position,
                "id": rid.hex(),
                "code": error.code,
            }
            message = f"item {self._reader.number}, {where}, {rid.hex()}: {error.message}"
            raise BundleError(message, details=details) from error
        self._keep(record, item)

    def _check_proof(self, item: Bundled) -> None:
        leaf = tree.entry_leaf(item.record, item.signature)
        at = self.checkpoint
        if not proofs.includes(leaf, item.position, at.size, item.path, at.root):
            raise BundleError("is not proved to be in the log of the checkpoint")

    def _check_references(self, record: Record) -> None:
        """Refuse what names something that is neither before it nor here, or something of the wrong kind."""
        known = KINDS.get(record.kind) if record.opaque is None else None
        if record.thread is not None:
            kind = self._kind(record.thread)
            if kind is None:
                raise BundleError(f"its thread begins with {record.thread.hex()}, which is missing")
            if known is not None and kind != known.root:
                raise BundleError(f"its thread begins with a {kind}, not a {known.root}")
        allowed = {role.name: role.kinds for role in known.roles} if known is not None else {}
        for role, ids in record.refs.items():
            for target in ids:
                kind = self._kind(target)
                if kind is None:
                    raise BundleError(f"{role} names {target.hex()}, which is missing")
                if allowed.get(role) and kind not in allowed[role]:
                    raise BundleError(f"{role} names a {kind}")
        definition = record.ref("definition")
        if isinstance(record.body, RunStart) and definition is not None:
            facet = self._facets.get(definition) or self._home(definition)[1]
            if facet is not None and facet != record.body.facet:
                raise BundleError("its facet is not that of its definition")

    def _kind(self, target: RecordId) -> str | None:
        return self._kinds.get(target) or self._home(target)[0]

    def _in_home(self, target: RecordId) -> tuple[str | None, Facet | None]:
        """Return kind and, of a definition, facet of a record of this home."""
        if self._kernel.log.get(target) is None:
            return None, None
        record = found_of(self._kernel.log, target)
        facet = None
        if isinstance(record.body, Definition):
            facet = digest.facet(record.body.behaviour)
        elif isinstance(record.body, Remains) and record.kind == DEFINITION and record.body.facet:
            facet = Facet(record.body.facet)
        return record.kind, facet

    def _name(self, record: Record, item: Bundled) -> None:
        """Note the blobs that a record names, which is refused where others say that one has another size."""
        by = f"the record at position {item.position}, {record.id.hex()}"
        for ref in record.blobs:
            other = self._named.setdefault(ref.h, _Wanted(ref.n, by))
            if other.size != ref.n:
                raise BundleError(
                    f"it says that the blob {ref.h.hex()} has {ref.n} bytes, and {other.by} says {other.size}"
                )

    def _keep(self, record: Record, item: Bundled) -> None:
        kind = KINDS.get(record.kind)
        self._kinds[record.id] = record.kind if kind is None else kind.name  # one string for all of a kind
        if isinstance(record.body, Definition):
            self._facets[record.id] = digest.facet(record.body.behaviour)
        stays_away = self._kernel.log.withdrawn(record.id) is not None
        names = list(named_ids(record))
        self._mentioned.update(names)
        if not stays_away:
            self.wanted.update(names)
        for manifest in named_trees(record):
            self._trees[manifest] = self._trees.get(manifest, False) or not stays_away
        if isinstance(record.body, Redaction):
            self._note_redaction(record.body)
        if len(self.suspicious) < _MAX_SUSPICIOUS and self._kernel.secrets.spans(item.record):
            self.suspicious.append(record.id)

    def _note_redaction(self, body: Redaction) -> None:
        entry = self._kernel.log.get(body.record)
        if entry is not None and entry.record is not None:
            self.withdrawn_there.append(entry.id)

    def _check_blobs(self) -> None:
        there: set[BlobId] = set()
        last = b""
        for blob, pieces in self._reader.blobs():
            if blob <= last:
                raise self._blob_error(blob, "does not stand behind the one before it")
            last = blob
            size, content = self._content(blob, pieces)
            stated = self._named.get(blob)
            if stated is not None and stated.size not in (None, size):
                raise self._blob_error(blob, f"it has {size} bytes, and {stated.by} says {stated.size}")
            if blob in self._trees:
                self._expand(blob, content)
            there.add(blob)
        for blob, wanted in list(self._named.items()):  # a fixture of this home adds its files
            if blob not in there:
                self._check_blob_here(blob, wanted)
        for blob, wanted in self._named.items():
            if blob not in there and blob not in self._kernel.blobs:
                raise _missing(blob, wanted)
        extra = next(
            (blob for blob in there if blob not in self._named and blob not in self._mentioned), None
        )
        if extra is not None:
            raise BundleError(f"no record names the blob {extra.hex()}", details={"blob": extra.hex()})

    def _check_blob_here(self, blob: BlobId, wanted: _Wanted) -> None:
        """Check a blob that the bundle leaves out against what the bundle says of it, as this home holds it."""
        if blob not in self._kernel.blobs:
            raise _missing(blob, wanted)
        size, content = self._content(blob, self._kernel.blobs.stream(blob))
        if wanted.size not in (None, size):
            raise BundleError(
                f"the blob {blob.hex()} of this home has {size} bytes, and {wanted.by} says {wanted.size}",
                details={"blob": blob.hex()},
            )
        if blob in self._trees:
            self._expand(blob, content)

    def _content(self, blob: BlobId, pieces: Iterable[bytes]) -> tuple[int, bytes]:
        """Return the size of a blob, and its content where it is the manifest of a fixture."""
        hasher, size, content = digest.BlobHasher(), 0, bytearray()
        for piece in pieces:
            hasher.update(piece)
            size += len(piece)
            if blob in self._trees and size <= MAX_MANIFEST_BYTES:
                content += piece
        if hasher.id() != blob:
            raise self._blob_error(blob, f"its content has the id {hasher.id().hex()}")
        return size, bytes(content)

    def _expand(self, manifest: BlobId, content: bytes) -> None:
        """Note the files of a fixture."""
        try:
            files = digest.decode_tree(content)
        except SplError as error:
            raise self._blob_error(manifest, error.message) from error
        for file in files:
            if file.blob is not None:
                self._named.setdefault(file.blob, _Wanted(None, f"the fixture {manifest.hex()}"))
                if self._trees[manifest]:
                    self.wanted.add(file.blob)

    def _blob_error(self, blob: BlobId, message: str) -> BundleError:
        number = self._reader.number
        return BundleError(
            f"item {number}, the blob {blob.hex()}: {message}", details={"item": number, "blob": blob.hex()}
        )


def _missing(blob: BlobId, wanted: _Wanted) -> BundleError:
    message = f"the blob {blob.hex()}, which {wanted.by} names, is missing"
    return BundleError(message, details={"blob": blob.hex()})


def _opened(reader: BundleReader, key: note.VerifierKey | None) -> tuple[note.Checkpoint, Did]:
    """Return the checkpoint of a bundle and who signed it.

    The origin of a log names the key that signs its checkpoints, so nothing else is needed to check one; whether it is
    the log that the reader means, only the reader can know.
    """
    text = reader.head.note
    origin = text.partition("\n")[0]
    try:
        found = Did("did:key:" + origin.removeprefix(head.ORIGIN))
        verifier = head.verifier_key(found) if key is None else key
        if verifier.name != origin:
            raise SignatureError(f"the checkpoint is of {origin}, and the key of {verifier.name}")
        checkpoint = note.parse_checkpoint(note.open_note(text.encode(), [verifier]))
    except (SplError, InvalidIdError) as error:
        raise BundleError(
            f"item 0, the checkpoint: {error.message}",
            hint=None
            if key is None
            else "nothing was imported; --key must be the key of the log that was exported",
            details={"item": 0, "code": error.code},
        ) from error
    return checkpoint, found

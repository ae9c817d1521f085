"""The protocol of a log: small enough that another database can stand behind it.

A log is the total order in which a home has accepted records; positions are contiguous from 0. Whoever appends does
so inside `Log.transact`: the function that is handed in sees the head and the projections as of that moment, and what
it appends becomes part of the log all together or not at all.

**Projections** answer the questions that use cases ask without reading the whole log. They are derived from the
entries alone (`spl.store.projections`), updated in the same transaction, and can be dropped and rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from spl.ids import CaseFacet, Did, Digest, Facet, RecordId
from spl.records.envelope import Draft, Record
from spl.records.secrets import Secrets

T = TypeVar("T")


class Entry(Struct, frozen=True):
    """One accepted record.

    Attributes:
        position: Its place in the log, from 0.
        id: The record's id.
        record: The record's bytes; None once it has been withdrawn.
        signature: Empty, or the author's 64 bytes.
        leaf: SHA-256 of 00 and the canonical CBOR array `[record, signature]`, the leaf of the Merkle tree.
    """

    position: int
    id: RecordId
    record: bytes | None
    signature: bytes
    leaf: Digest


class Selection(Struct, frozen=True, kw_only=True):
    """Which entries a scan yields; everything that is given must hold.

    Attributes:
        start: The first position.
        stop: The position behind the last; the head when absent.
        kind: A record kind.
        thread: The root of a thread; the root itself is part of it.
        by: An author.
        newest_first: Descending positions.
    """

    start: int = 0
    stop: int | None = None
    kind: str | None = None
    thread: RecordId | None = None
    by: Did | None = None
    newest_first: bool = False


class NameRow(Struct, frozen=True):
    """An actor or suite by its name, in log order."""

    id: RecordId
    position: int
    name: str
    did: Did | None = None


class DefinitionRow(Struct, frozen=True):
    """A definition of an actor, in log order.

    Attributes:
        incumbent: Whether it took effect as an install: it is by the actor's owner, says `installed`, and its
            `succeeds` was the incumbent of its position (absent for the first). The last such row is the incumbent now.
    """

    id: RecordId
    position: int
    facet: Facet
    actor: RecordId
    incumbent: bool


class CaseRow(Struct, frozen=True):
    """A current case of a suite: the latest of its key, not retired; in order of the key's first appearance."""

    id: RecordId
    position: int
    key: str
    facet: CaseFacet


class RunRow(Struct, frozen=True):
    """A run, in order of its start.

    Attributes:
        case_facet: The facet of the case that it attempted; None for a goal of its own.
        end_position: The position of its first end; None while it is open.
    """

    id: RecordId
    position: int
    actor: RecordId
    facet: Facet
    case_facet: CaseFacet | None
    end_position: int | None


class ScoreRow(Struct, frozen=True):
    """A score, in log order."""

    id: RecordId
    position: int
    suite: RecordId
    actor: RecordId
    facet: Facet


class VerdictRow(Struct, frozen=True):
    """A pair verdict, in log order, with the facets that its two sides resolve to (None where they do not)."""

    id: RecordId
    position: int
    winner: Facet | None
    loser: Facet | None


class View(Protocol):
    """What can be read of a log, at one moment. Every list is in log order."""

    def size(self) -> int:
        """Return the number of entries, which is the position of the next."""

    def get(self, record_id: RecordId) -> Entry | None:
        """Return the entry of a record, or None."""

    def withdrawn(self, record_id: RecordId) -> Record | None:
        """Return what is kept of a withdrawn record, or None when it is not one."""

    def at(self, positions: Sequence[int]) -> list[Entry]:
        """Return the entries at some positions, in the order asked for. Raises DamagedError where there is none."""

    def resolve(self, prefix: str, limit: int = 16) -> list[RecordId]:
        """Return up to `limit` ids that begin with hexadecimal digits, in order of the ids."""

    def scan(self, selection: Selection) -> Iterator[Entry]:
        """Yield entries in bounded memory; the head is pinned when the scan begins."""

    def referrers(self, record_id: RecordId, role: str) -> list[RecordId]:
        """Return the records whose refs name this record under a role."""

    def actors(self, text: str | None = None) -> list[NameRow]:
        """Return the actors, or those whose name or DID is exactly `text`."""

    def suites(self, text: str | None = None) -> list[NameRow]:
        """Return the suites, or those whose name is exactly `text`."""

    def definitions(
        self, *, actor: RecordId | None = None, facet: Facet | None = None
    ) -> list[DefinitionRow]:
        """Return the definitions of an actor, or with a facet (one of the two at least), or both."""

    def facets(self, prefix: str, limit: int = 16) -> list[Facet]:
        """Return up to `limit` facets of definitions that begin with hexadecimal digits."""

    def cases(self, suite: RecordId) -> list[CaseRow]:
        """Return a suite's current cases."""

    def runs(
        self,
        *,
        actor: RecordId | None = None,
        facet: Facet | None = None,
        case_facets: Sequence[CaseFacet] | None = None,
        run: RecordId | None = None,
        last: int | None = None,
    ) -> Iterator[RunRow]:
        """Yield the runs that match, by position of their start; the cost follows the answer, not the log.

        `run` is the id of one run's start; `last` is how many are wanted at the most, of those that began last.
        """

    def open_runs(self) -> list[RunRow]:
        """Return the runs that have no end."""

    def imported(self, actor: RecordId, definition: RecordId, keys: Sequence[str]) -> set[str]:
        """Return those of the import keys that runs of this actor and definition already carry."""

    def scores(
        self, *, actor: RecordId | None = None, suite: RecordId | None = None, facet: Facet | None = None
    ) -> list[ScoreRow]:
        """Return the scores that match."""

    def verdicts(
        self, *, facet: Facet | None = None, verdict: RecordId | None = None
    ) -> Iterator[VerdictRow]:
        """Yield the verdicts, or those that a facet won or lost, or the one with an id."""


class Transaction(View, Protocol):
    """A view that also sees what was appended within the transaction."""

    def append(self, draft: Draft) -> Entry:
        """Stamp, sign and append a draft, and return its entry; its id may be referred to at once.

        Secrets in its body are replaced before; blobs are the caller's to filter.

        Raises:
            DanglingReferenceError: It refers to a record or blob that the home does not hold.
            EncodingError, SchemaError: It is not a record.
        """

    def append_signed(self, record: bytes, signature: bytes, *, checked: bool = False) -> Entry:
        """Append bytes that were stamped and signed elsewhere; a record that is there already returns its entry.

        Args:
            record: The bytes.
            signature: Its author's.
            checked: Whether the caller has found that the bytes are a record and the signature is right.

        Raises:
            DanglingReferenceError, EncodingError, SchemaError, SignatureError: It may not enter.
        """

    def withdraw(self, record_id: RecordId, redaction: int) -> None:
        """Take the content of a record away; its leaf stays, and what hides nothing is kept.

        Args:
            record_id: A record that is there and was not withdrawn.
            redaction: The position of the `core.redaction.v1` that says so.
        """


class Log(View, Protocol):
    """A log that can grow."""

    def transact(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` under the write lock and return what it returns.

        What it appended is durable when this returns. When it raises, nothing was appended.

        Raises:
            LockTimeoutError: Another process held the lock for too long.
            StorageError: Disk full, input/output error, read-only medium.
        """

    def scrub(self) -> None:
        """Write what the log stands in anew, so that nothing of it holds what was withdrawn.

        Raises:
            LockTimeoutError, StorageError: It could not; what was withdrawn stays withdrawn.
        """

    def subtrees(self) -> list[Digest]:
        """Return the compact range of the whole log: the roots of its perfect subtrees, largest first."""

    def subtree(self, level: int, index: int) -> Digest:
        """Return the root of the perfect subtree of 2^level leaves that begins at leaf `index * 2^level`.

        Raises:
            DamagedError: What it is made of is missing.
        """

    def close(self) -> None:
        """Release what the log holds open."""


class Stamp(Protocol):
    """What a log needs to turn drafts into entries: the kernel hands it clock, keys, and what may not enter."""

    secrets: Secrets

    def now_ms(self) -> int:
        """Return the time of the record about to be appended, milliseconds since 1970 UTC."""

    def salt(self) -> bytes:
        """Return 16 random bytes."""

    def sign(self, by: Did, record: bytes) -> bytes:
        """Return the author's signature over a record's bytes; empty when the DID names no key.

        Raises:
            KeyAccessError: The author's key is not in this home.
        """

"""What each record means to the projections, as a pure function that every log shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from spl.codec import digest
from spl.errors import DanglingReferenceError
from spl.ids import BlobId, CaseFacet, Did, Facet, RecordId
from spl.records.definitions import Actor, Definition, State
from spl.records.envelope import Record
from spl.records.evals import Case, Retire, Score, Suite, case_facet
from spl.records.registry import (
    ACTOR,
    CASE,
    DEFINITION,
    RETIRE,
    RUN_END,
    RUN_START,
    SCORE,
    SUITE,
    VERDICT,
)
from spl.records.runs import Imported, RunStart
from spl.records.verdicts import PairVerdict
from spl.store.log import CaseRow, DefinitionRow, NameRow, RunRow, ScoreRow, VerdictRow
from spl.store.remains import Remains

CHANGED_BY_WITHDRAWAL = (ACTOR, SUITE, CASE, RUN_START)
"""The kinds of which projections hold content, or which leave a list when they are withdrawn; of all others the
remains mean what the record meant."""


class CaseChange(Struct, frozen=True):
    """A case becomes the current one of its key."""

    suite: RecordId
    row: CaseRow


class CaseKept(Struct, frozen=True):
    """A case was withdrawn: it is not current, and its runs keep its facet."""

    suite: RecordId
    case: RecordId
    position: int
    facet: CaseFacet


class CaseGone(Struct, frozen=True):
    """A case is current no longer."""

    case: RecordId


class RunEnded(Struct, frozen=True):
    """A run has its first end."""

    start: RecordId
    position: int


class ImportKey(Struct, frozen=True):
    """A run carries the key of the line that it was imported from."""

    actor: RecordId
    definition: RecordId
    key: str


Change: TypeAlias = (
    NameRow
    | DefinitionRow
    | CaseChange
    | CaseKept
    | CaseGone
    | RunRow
    | RunEnded
    | ImportKey
    | ScoreRow
    | VerdictRow
)


class Lookup(Protocol):
    """What a projection asks of the state before the record."""

    def owner_of(self, actor: RecordId) -> Did | None:
        """Return who added an actor."""

    def author_of(self, record: RecordId) -> Did | None:
        """Return the author of a record."""

    def incumbent(self, actor: RecordId) -> RecordId | None:
        """Return the definition installed for an actor."""

    def case_facet(self, case: RecordId) -> CaseFacet | None:
        """Return the facet of a case, current or not."""

    def facet_of(self, record: RecordId) -> Facet | None:
        """Return the facet that a definition, run start, run end or score stands for."""


def changes(record: Record, position: int, operator: Did, lookup: Lookup) -> list[Change]:
    """Return what a record changes in the projections; opaque and foreign kinds change nothing.

    Args:
        record: The record, as it enters the log.
        position: Where it enters.
        operator: Who owns this home: an install takes effect only when it is by the actor's owner, in this home.
        lookup: The state before.
    """
    body, rid = record.body, record.id
    if isinstance(body, Remains):
        return _withdrawn(record, body, position, operator, lookup)
    if isinstance(body, Actor):
        return [NameRow(id=rid, position=position, name=body.name, did=body.did)]
    if isinstance(body, Suite):
        return [NameRow(id=rid, position=position, name=body.name)]
    if isinstance(body, Case) and record.thread:
        row = CaseRow(id=rid, position=position, key=body.key, facet=case_facet(body))
        return [CaseChange(suite=record.thread, row=row)]
    if isinstance(body, Retire):
        case = record.ref("case")
        return [CaseGone(case=case)] if case else []
    if isinstance(body, Definition) and record.thread:
        facet = digest.facet(body.behaviour)
        return [_definition(record, (body.state, facet), position, operator, lookup)]
    if isinstance(body, RunStart):
        return _run(record, body.facet, body.imported, position, lookup)
    if record.kind == RUN_END:  # one that cannot be read ends its run all the same
        return _ended(record, position, lookup)
    return _conclusion(record, position, lookup)


def _withdrawn(record: Record, body: Remains, position: int, operator: Did, lookup: Lookup) -> list[Change]:
    """Return what a withdrawn record still means: its place, never its content."""
    rid, thread = record.id, record.thread
    if record.kind in (ACTOR, SUITE):
        return [NameRow(id=rid, position=position, name=f"withdrawn-{rid.hex()[:12]}", did=body.did)]
    if record.kind == DEFINITION and thread and body.facet:
        return [_definition(record, (body.state, Facet(body.facet)), position, operator, lookup)]
    if record.kind == CASE and thread and body.facet:
        kept = CaseKept(suite=thread, case=rid, position=position, facet=CaseFacet(body.facet))
        replaced = record.ref("replaces")
        return [kept, *([CaseGone(case=replaced)] if replaced else [])]
    if record.kind == RETIRE and (case := record.ref("case")):
        return [CaseGone(case=case)]
    if record.kind == RUN_START and body.facet:
        return _run(record, Facet(body.facet), None, position, lookup)
    if record.kind == RUN_END:
        return _ended(record, position, lookup)
    return _conclusion(record, position, lookup)


def _definition(
    record: Record, behaves: tuple[State | None, Facet], position: int, operator: Did, lookup: Lookup
) -> DefinitionRow:
    assert record.thread is not None  # noqa: S101 - the caller has looked
    state, facet = behaves
    effective = (
        state == "installed"
        and record.by == operator == lookup.owner_of(record.thread)
        and record.ref("succeeds") == lookup.incumbent(record.thread)
    )
    return DefinitionRow(
        id=record.id,
        position=position,
        facet=facet,
        actor=record.thread,
        incumbent=effective,
    )


def _ended(record: Record, position: int, lookup: Lookup) -> list[Change]:
    """Return the end of a run; only who began it can end it, so that nobody ends the runs of others by a bundle."""
    if record.thread is None or lookup.author_of(record.thread) != record.by:
        return []
    return [RunEnded(start=record.thread, position=position)]


def _run(
    record: Record, facet: Facet, imported: Imported | None, position: int, lookup: Lookup
) -> list[Change]:
    actor, definition, case = record.ref("actor"), record.ref("definition"), record.ref("case")
    if actor is None or definition is None:
        return []
    found: list[Change] = [
        RunRow(
            id=record.id,
            position=position,
            actor=actor,
            facet=facet,
            case_facet=lookup.case_facet(case) if case else None,
            end_position=None,
        )
    ]
    if imported is not None:
        found.append(ImportKey(actor=actor, definition=definition, key=imported.key))
    return found


def _conclusion(record: Record, position: int, lookup: Lookup) -> list[Change]:
    body = record.body
    if isinstance(body, Score) or (isinstance(body, Remains) and record.kind == SCORE and body.facet):
        suite, actor = record.ref("suite"), record.ref("actor")
        if suite and actor:
            facet = Facet(body.facet or b"")
            return [ScoreRow(id=record.id, position=position, suite=suite, actor=actor, facet=facet)]
    if isinstance(body, PairVerdict) or (isinstance(body, Remains) and record.kind == VERDICT):
        winner, loser = record.ref("winner"), record.ref("loser")
        if winner and loser:
            row = VerdictRow(
                id=record.id, position=position, winner=lookup.facet_of(winner), loser=lookup.facet_of(loser)
            )
            return [row]
    return []


def check_references(
    record: Record, has_record: Callable[[RecordId], bool], has_blob: Callable[[BlobId], bool]
) -> None:
    """Return when everything that a record names is there.

    Raises:
        DanglingReferenceError: The first record or blob that is not.
    """
    if record.thread is not None and not has_record(record.thread):
        raise DanglingReferenceError(f"the root of the thread, {record.thread.hex()}, is not in this home")
    for role, ids in record.refs.items():
        for target in ids:
            if not has_record(target):
                raise DanglingReferenceError(f"{role} names {target.hex()}, which is not in this home")
    for blob in record.blobs:
        if not has_blob(blob.h):
            raise DanglingReferenceError(f"{blob.r} names the blob {blob.h.hex()}, which is not in this home")


def case_facet_of(record: Record | None) -> CaseFacet | None:
    """Return the facet of a record that is a case, withdrawn or not, else None."""
    if record is None or record.kind != CASE:
        return None
    if isinstance(record.body, Remains):
        return CaseFacet(record.body.facet) if record.body.facet else None
    return case_facet(record.body) if isinstance(record.body, Case) else None


def facet_of(record: Record | None, lookup: Callable[[RecordId], Record | None]) -> Facet | None:
    """Return the facet that a record stands for: a definition, a run's start or end, or a score."""
    if record is None:
        return None
    match record.body:
        case Definition(behaviour=behaviour):
            return digest.facet(behaviour)
        case RunStart(facet=facet) | Score(facet=facet):
            return facet
        case Remains(facet=kept) if kept is not None and record.kind != CASE:
            return Facet(kept)
    start = record.ref("start")
    return facet_of(lookup(start), lookup) if start is not None else None

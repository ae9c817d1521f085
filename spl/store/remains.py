"""What is kept of a withdrawn record, so that what others concluded from it still stands.

Its content is gone; its kind, author, thread and references stay, and of its body only hashes and states: enough for
a withdrawn end to keep its run ended, a withdrawn install to keep its place in the line of installs, and for every
fold to count what it left out. None of it can be checked against the leaf any more.
"""

from __future__ import annotations

from typing import Final

import msgspec

from spl.codec import canonical, digest
from spl.errors import DamagedError
from spl.ids import Bytes32, Did, RecordId
from spl.records.definitions import Actor, Body, Definition, State
from spl.records.envelope import Record
from spl.records.evals import Case, Score, case_facet
from spl.records.runs import RunStart
from spl.records.wire import from_map, to_map

WITHDRAWN: Final = "withdrawn"


class Remains(Body, frozen=True):
    """What stands in place of a withdrawn record's body.

    Attributes:
        at: The record's time.
        refs: Its references.
        facet: Of a definition, run start or score its facet; of a case the case facet.
        state: Of a definition.
        did: Of an actor.
    """

    at: int
    refs: dict[str, list[RecordId]] = {}  # noqa: RUF012 - msgspec copies a default for each instance
    facet: Bytes32 | None = None
    state: State | None = None
    did: Did | None = None


def remains_of(record: Record) -> Remains:
    """Return what is kept of a record when it is withdrawn."""
    kept = Remains(at=record.at, refs=record.refs)
    match record.body:
        case Actor(did=did):
            return msgspec.structs.replace(kept, did=did)
        case Definition(behaviour=behaviour, state=state):
            return msgspec.structs.replace(kept, facet=digest.facet(behaviour), state=state)
        case RunStart(facet=facet) | Score(facet=facet):
            return msgspec.structs.replace(kept, facet=facet)
        case Case():
            return msgspec.structs.replace(kept, facet=case_facet(record.body))
    return kept


def withdrawn_record(
    record_id: RecordId, kind: str, by: Did, thread: RecordId | None, remains: Remains
) -> Record:
    """Return a withdrawn record, with what is kept in place of its body."""
    return Record(
        id=record_id, kind=kind, by=by, at=remains.at, body=remains, thread=thread, refs=remains.refs
    )


def encode_remains(remains: Remains) -> bytes:
    """Return the bytes by which a log keeps what is kept."""
    return canonical.encode(to_map(remains))


def decode_remains(data: bytes) -> Remains:
    """Return what a log has kept.

    Raises:
        DamagedError: It is not readable.
    """
    try:
        return from_map(canonical.decode_trusted(data), Remains)
    except msgspec.ValidationError as error:
        raise DamagedError(f"what is kept of a withdrawn record is not readable: {error}") from error

"""Actors: who does the work."""

from __future__ import annotations

from spl.contracts.actors import ActorDocument, ActorList, ActorPart
from spl.errors import ConflictError, InputError
from spl.ids import Did, parse_did
from spl.kernel.home import Kernel
from spl.kernel.names import found_of, incumbent_of, resolve_actor
from spl.records.definitions import Actor
from spl.records.envelope import Draft
from spl.store.log import NameRow, Transaction, View


def add_actor(kernel: Kernel, name: str, *, did: str | None = None, note: str | None = None) -> ActorDocument:
    """Append an actor; adding the same one again returns it with `appended: false`.

    Args:
        kernel: The open home.
        name: Its name, unique in the home.
        did: Its DID; a key is made when absent.
        note: A remark.

    Raises:
        InputError, InvalidIdError: The name is blank, or the DID is none.
        ConflictError: The name or DID belongs to another actor.
    """
    if not name.strip():
        raise InputError("an actor needs a name")
    wanted = parse_did(did) if did is not None else None
    existing = [*kernel.log.actors(name), *(kernel.log.actors(wanted) if wanted else ())]
    if existing:
        return _existing(kernel.log, existing[0], name, wanted)
    subject = wanted or kernel.keys.create_actor()

    def append(tx: Transaction) -> ActorDocument:
        taken = [*tx.actors(name), *tx.actors(subject)]
        if taken:
            return _existing(tx, taken[0], name, wanted)
        entry = tx.append(Draft(body=Actor(did=subject, name=name, note=note), by=kernel.operator))
        row = NameRow(id=entry.id, position=entry.position, name=name, did=subject)
        return ActorDocument(id=entry.id, actor=_part(tx, row), appended=True)

    return kernel.transact(append)


def _existing(view: View, row: NameRow, name: str, did: Did | None) -> ActorDocument:
    if row.name != name or (did is not None and row.did != did):
        raise ConflictError(
            f"the actor {row.id.hex()[:12]} has the name {row.name!r} and the DID {row.did}",
            hint="choose another name, or use that actor",
        )
    return ActorDocument(id=row.id, actor=_part(view, row))


def list_actors(kernel: Kernel) -> ActorList:
    """Return every actor, in log order."""
    return ActorList(actors=[_part(kernel.log, row) for row in kernel.log.actors()])


def show_actor(kernel: Kernel, text: str) -> ActorDocument:
    """Return one actor by name, DID, id or prefix.

    Raises:
        UnknownNameError, AmbiguousNameError: None, or several, are meant.
    """
    row = resolve_actor(kernel.log, text)
    return ActorDocument(id=row.id, actor=_part(kernel.log, row))


def _part(view: View, row: NameRow) -> ActorPart:
    record = found_of(view, row.id)
    body = record.body
    incumbent = incumbent_of(view, row.id)
    assert row.did is not None  # noqa: S101 - an actor's row carries its DID
    return ActorPart(
        id=row.id,
        name=row.name,
        did=row.did,
        owner=record.by,
        definitions=len(view.definitions(actor=row.id)),
        incumbent=incumbent.id if incumbent else None,
        incumbent_facet=incumbent.facet if incumbent else None,
        note=body.note if isinstance(body, Actor) else None,
    )

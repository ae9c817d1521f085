"""From what a person writes (id, prefix, facet, DID, name) to the record that is meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from spl.errors import (
    AmbiguousIdError,
    AmbiguousNameError,
    InputError,
    UnknownIdError,
    UnknownNameError,
    WithdrawnError,
)
from spl.ids import MIN_PREFIX_DIGITS, Facet, RecordId, is_prefix
from spl.records.envelope import Record, read_record
from spl.records.registry import ACTOR, DEFINITION, SUITE
from spl.store.log import DefinitionRow, NameRow, View

INCUMBENT = "incumbent"
LATEST = "latest"
_LISTED = 5  # of several that have one name


def record_of(view: View, record_id: RecordId) -> Record:
    """Return a record that the log must hold.

    Raises:
        UnknownIdError: It does not.
        WithdrawnError: The record was withdrawn.
    """
    entry = view.get(record_id)
    if entry is None:
        raise UnknownIdError(f"no record has the id {record_id.hex()}")
    if entry.record is None:
        raise WithdrawnError(f"the record {record_id.hex()} was withdrawn")
    return read_record(entry.record, record_id)


def found_of(view: View, record_id: RecordId) -> Record:
    """Return a record that the log must hold; of one that was withdrawn, what is kept of it.

    Raises:
        UnknownIdError: The log does not hold it.
    """
    return view.withdrawn(record_id) or record_of(view, record_id)


def resolve_id(view: View, text: str) -> RecordId:
    """Return the id that a full id or a unique prefix of at least 8 digits names.

    Raises:
        UnknownIdError, AmbiguousIdError: No record begins so, or several; the candidates are in the details.
    """
    if not is_prefix(text):
        raise UnknownIdError(
            f"{text!r} is not an id", hint=f"an id is {MIN_PREFIX_DIGITS} to 64 lowercase hexadecimal digits"
        )
    found = view.resolve(text)
    if len(found) != 1:
        raise _prefix_error(text, found)
    return found[0]


def resolve_record(view: View, text: str) -> Record:
    """Return the record that an id or prefix names.

    Raises:
        UnknownIdError, AmbiguousIdError: As `resolve_id`; also when it was withdrawn.
    """
    return record_of(view, resolve_id(view, text))


def resolve_actor(view: View, text: str) -> NameRow:
    """Return the actor with this name, DID, id or id prefix.

    Raises:
        UnknownNameError, AmbiguousNameError, AmbiguousIdError, InputError: Nothing, or several things, are meant.
    """
    return _resolve_named(view, text, view.actors(text), ACTOR)


def resolve_suite(view: View, text: str) -> NameRow:
    """Return the suite with this name, id or id prefix.

    Raises:
        UnknownNameError, AmbiguousNameError, AmbiguousIdError, InputError: Nothing, or several things, are meant.
    """
    return _resolve_named(view, text, view.suites(text), SUITE)


def incumbent_of(view: View, actor: RecordId) -> DefinitionRow | None:
    """Return the definition that is installed for an actor now, or None."""
    rows = [row for row in view.definitions(actor=actor) if row.incumbent]
    return rows[-1] if rows else None


def resolve_definition(view: View, text: str, actor: RecordId | None = None) -> DefinitionRow:
    """Return the definition that an id, a facet, a prefix of either, `incumbent` or `latest` names.

    Of a facet that several records share, the first of the actor is meant: they are one definition.

    Args:
        view: Where to look.
        text: What the caller wrote.
        actor: Whose definition it must be; needed for `incumbent`, `latest` and a facet that actors share.

    Raises:
        UnknownIdError, AmbiguousIdError, InputError: Nothing, or several things, are meant.
    """
    if text in (INCUMBENT, LATEST):
        return _resolve_word(view, text, actor)
    if not is_prefix(text):
        raise UnknownIdError(f"{text!r} is neither a definition's id nor its facet")
    ids = view.resolve(text)
    facets = view.facets(text)
    if len(ids) == 1 and not facets:
        record = record_of(view, ids[0])
        if record.kind != DEFINITION or record.thread is None:
            raise InputError(f"{text} is a {record.kind}, not a definition")
        _check_owner(record.thread, actor, text)
        rows = view.definitions(actor=record.thread)
        return next(row for row in rows if row.id == ids[0])
    if len(facets) == 1 and not ids:
        return _resolve_facet(view, facets[0], actor)
    raise _prefix_error(text, [*ids, *facets])


def _resolve_word(view: View, text: str, actor: RecordId | None) -> DefinitionRow:
    if actor is None:
        raise InputError(f"{text!r} needs an actor", hint="add --actor")
    if text == INCUMBENT:
        found = incumbent_of(view, actor)
        if found is None:
            raise UnknownIdError("the actor has no installed definition", hint="spl definition install")
        return found
    rows = view.definitions(actor=actor)
    if not rows:
        raise UnknownIdError("the actor has no definition", hint="spl definition propose")
    return rows[-1]


def _resolve_facet(view: View, facet: Facet, actor: RecordId | None) -> DefinitionRow:
    every = view.definitions(facet=facet, actor=actor)
    rows = [row for row in every if view.withdrawn(row.id) is None] or every
    if not rows:
        raise UnknownIdError(f"the actor has no definition with the facet {facet.hex()}")
    owners = {row.actor for row in rows}
    if len(owners) > 1:
        raise AmbiguousIdError(
            f"{len(owners)} actors have a definition with the facet {facet.hex()[:12]}",
            hint="add --actor",
            details={"candidates": [row.id.hex() for row in rows]},
        )
    return rows[0]


def _check_owner(owner: RecordId, actor: RecordId | None, text: str) -> None:
    if actor is not None and owner != actor:
        raise InputError(f"{text} is a definition of another actor ({owner.hex()[:12]})")


def _resolve_named(view: View, text: str, rows: Sequence[NameRow], kind: str) -> NameRow:
    noun = "actor" if kind == ACTOR else "suite"
    if len(rows) > 1:
        listed = ", ".join(row.id.hex()[:12] for row in rows[:_LISTED])
        raise AmbiguousNameError(
            f"{len(rows)} {noun}s have the name {text!r}",
            hint=f"give the id instead: {listed}{', …' if len(rows) > _LISTED else ''}",
            details={"candidates": [row.id.hex() for row in rows]},
        )
    if rows:
        return rows[0]
    every = view.actors() if kind == ACTOR else view.suites()
    if is_prefix(text):
        ids = view.resolve(text)
        if len(ids) > 1:
            raise _prefix_error(text, ids)
        named = [row for row in every if ids and row.id == ids[0]]
        if named:
            return named[0]
        if ids:
            raise InputError(f"{text} is a {record_of(view, ids[0]).kind}, not an {noun}")
    raise _name_error(text, noun, [row.name for row in every])


def _name_error(text: str, noun: str, names: list[str]) -> UnknownNameError:
    close = difflib.get_close_matches(text, dict.fromkeys(names), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"spl {noun} list shows every {noun}"
    return UnknownNameError(f"no {noun} is called {text!r}", hint=hint, details={"candidates": close})


def _prefix_error(text: str, found: Sequence[bytes]) -> InputError:
    if not found:
        return UnknownIdError(f"no record begins with {text}")
    return AmbiguousIdError(
        f"{len(found)} records begin with {text}", details={"candidates": [item.hex() for item in found]}
    )

"""Documents about actors and their definitions."""

from __future__ import annotations

from typing import Any

from spl.contracts.document import Document, Part
from spl.ids import Did, Facet, RecordId
from spl.records.definitions import State, Trust


class ActorPart(Part, frozen=True):
    """An actor in a list.

    Attributes:
        definitions: How many definitions it has.
        incumbent: The definition installed now.
        incumbent_facet: Its facet.
    """

    id: RecordId
    name: str
    did: Did
    owner: Did
    definitions: int
    incumbent: RecordId | None = None
    incumbent_facet: Facet | None = None
    note: str | None = None


class ActorDocument(Document, frozen=True, tag="spl.actor.v1"):
    """One actor; `appended` says whether this command added it."""

    id: RecordId
    actor: ActorPart
    appended: bool = False


class ActorList(Document, frozen=True, tag="spl.actors.v1"):
    """Every actor, in log order."""

    actors: list[ActorPart]


class DefinitionPart(Part, frozen=True):
    """A definition in a list.

    Attributes:
        incumbent: Whether it is the one installed now.
        installed: Whether it took effect as an install, now or before.
    """

    id: RecordId
    facet: Facet
    position: int
    at: int
    state: State
    origin: str
    trust: Trust
    adapter: str
    incumbent: bool
    installed: bool
    model: str | None = None
    succeeds: RecordId | None = None
    note: str | None = None


class DefinitionDocument(Document, frozen=True, tag="spl.definition.v1"):
    """One definition with its behaviour; `appended` says whether this command added it.

    Attributes:
        behaviour: The map whose hash is the facet; numbers with a fraction stand as `{"dec": [mantissa, exponent]}`.
    """

    id: RecordId
    facet: Facet
    actor: RecordId
    definition: DefinitionPart
    behaviour: dict[str, Any]
    appended: bool = False


class DefinitionList(Document, frozen=True, tag="spl.definitions.v1"):
    """The definitions of an actor, in log order."""

    actor: RecordId
    actor_name: str
    definitions: list[DefinitionPart]


class FacetDocument(Document, frozen=True, tag="spl.facet.v1"):
    """The facet that a behaviour file has; nothing is written."""

    facet: Facet
    behaviour: dict[str, Any]

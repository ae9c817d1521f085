"""Under which definition an actor works: its incumbent, another that is known, or a trial that installs nothing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from spl.errors import InputError, RefusedError
from spl.ids import Facet, RecordId
from spl.kernel.define import Source, record_candidate, source_of
from spl.kernel.home import Kernel
from spl.kernel.names import incumbent_of, record_of, resolve_actor, resolve_definition
from spl.records.definitions import Behaviour, CommandBehaviour, Definition, PipelineBehaviour
from spl.records.wire import from_map
from spl.store.log import DefinitionRow, View


class Choice(Struct, frozen=True, kw_only=True):
    """What the caller asks for; nothing means the incumbent.

    Attributes:
        definition: A definition that the home knows: id, facet, prefix, or a word.
        trial: A candidate to be tried: its id, facet or prefix, or a behaviour from a file.
    """

    definition: str | None = None
    trial: Source | str | None = None


class Under(Struct, frozen=True, kw_only=True):
    """Who works, and under which definition.

    Attributes:
        trial: Whether the definition is a candidate, or was asked for as a trial.
    """

    actor: RecordId
    definition: RecordId
    facet: Facet
    behaviour: CommandBehaviour | PipelineBehaviour
    trial: bool

    @property
    def adapter(self) -> Literal["command", "pipeline"]:
        """Return the adapter's name."""
        return "command" if isinstance(self.behaviour, CommandBehaviour) else "pipeline"

    @property
    def timeout_ms(self) -> int | None:
        """Return the time limit that the definition itself sets."""
        if isinstance(self.behaviour, CommandBehaviour):
            return self.behaviour.timeout_ms
        return self.behaviour.limits.time_ms if self.behaviour.limits else None


def choose(kernel: Kernel, actor: str, choice: Choice) -> Under:
    """Return what is to be run; a trial passes the define door, and its candidate is recorded when it is new.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor is not one.
        UnknownIdError, AmbiguousIdError, InputError: The definition is not one, or its work is run elsewhere.
        RefusedError: The definition is somebody else's.
        DoorClosedError: The define door stays closed for the trial.
    """
    owner = resolve_actor(kernel.log, actor).id
    if choice.trial is not None:
        if choice.definition is not None:
            raise InputError("a run is made under a definition or under a trial, not under both")
        return _under(kernel.log, _tried(kernel, owner, choice.trial), trial=True)
    if choice.definition is not None:
        row = resolve_definition(kernel.log, choice.definition, owner)
        author = record_of(kernel.log, row.id).by
        if author != kernel.operator:
            raise RefusedError(
                f"the definition {row.id.hex()[:12]} is by {author}: what others define is not run as yours",
                hint="look at it with spl definition show; --trial with its id tries it",
            )
    else:
        found = incumbent_of(kernel.log, owner)
        if found is None:
            raise InputError(
                "the actor has no installed definition",
                hint="install one with spl definition install, or name one with --definition or --trial",
            )
        row = found
    installed = any(same.incumbent for same in kernel.log.definitions(actor=owner, facet=row.facet))
    return _under(kernel.log, row, trial=not installed)


def _tried(kernel: Kernel, actor: RecordId, trial: Source | str) -> DefinitionRow:
    if isinstance(trial, str):
        source = source_of(record_of(kernel.log, resolve_definition(kernel.log, trial, actor).id))
    else:
        source = trial
    if source.behaviour.get("adapter") == "external" and not source.problems:
        raise _elsewhere("the behaviour", source.behaviour.get("system"))
    return kernel.transact(lambda tx: record_candidate(kernel, tx, actor, source, trial=True)[0])


def _under(view: View, row: DefinitionRow, *, trial: bool) -> Under:
    body = record_of(view, row.id).body
    assert isinstance(body, Definition)  # noqa: S101 - the row was derived from it
    behaviour: Behaviour = from_map(body.behaviour, Behaviour)  # type: ignore[arg-type]
    if not isinstance(behaviour, CommandBehaviour | PipelineBehaviour):
        raise _elsewhere(f"the definition {row.id.hex()[:12]}", behaviour.system)
    return Under(actor=row.actor, definition=row.id, facet=row.facet, behaviour=behaviour, trial=trial)


def _elsewhere(what: str, system: object) -> InputError:
    return InputError(
        f"{what} describes work that is run elsewhere ({system})", hint="import its runs with spl run import"
    )

"""Definitions: read from a file, checked, proposed as candidates, installed by compare-and-set."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from spl.codec import canonical, digest, jsontext
from spl.contracts.actors import DefinitionDocument, DefinitionList, DefinitionPart, FacetDocument
from spl.errors import ConflictError, DoorClosedError, EncodingError, schema_error
from spl.ids import BlobId, RecordId, is_prefix, parse_id
from spl.kernel.content import TEXT, put_blob
from spl.kernel.home import Kernel
from spl.kernel.names import found_of, incumbent_of, record_of, resolve_actor, resolve_definition
from spl.records.behaviour import behaviour_problems
from spl.records.definitions import MAX_LONG_TEXT_BYTES, Definition, State, Trust
from spl.records.envelope import MAX_RECORD_BYTES, BlobRef, Draft, Record
from spl.records.problems import Problem
from spl.records.secrets import Secrets, texts_of
from spl.store.log import DefinitionRow, Transaction, View
from spl.store.remains import WITHDRAWN, Remains

PIN_TYPE = "application/octet-stream"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A behaviour as a person gave it, with what must be stored beside it.

    Attributes:
        behaviour: The map, as records hold it.
        contents: Content of blobs that it names: long instructions and pinned files.
        origin: Where it came from.
        trust: How far it is trusted.
        note: A remark.
        problems: Path and message of all that keeps the map from being a behaviour; the define door names them.
    """

    behaviour: dict[str, Any]
    contents: dict[BlobId, bytes] = {}
    origin: str = "local"
    trust: Trust = "untrusted"
    note: str | None = None
    problems: Sequence[Problem] = ()


def parse_source(data: bytes, name: str, pins: Mapping[str, bytes] | None = None) -> Source:
    """Return what a definition file says, with the problems that the define door will name.

    Args:
        data: The file's bytes: TOML when its name ends so, else JSON.
        name: Its name, for messages.
        pins: Files that the behaviour is made of, by relative name.

    Raises:
        EncodingError: It is neither TOML nor JSON.
        SchemaError: It is not a map.
    """
    if name.endswith(".toml"):
        try:
            parsed: object = tomllib.loads(data.decode(), parse_float=jsontext.Number)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise EncodingError(f"{name}: {error}") from error
        except RecursionError as error:
            raise EncodingError(f"{name}: nested too deeply") from error
    else:
        parsed = jsontext.parse(data, what=name)
    if not isinstance(parsed, dict):
        raise schema_error(name, [("$", "a definition is a map")])
    problems: list[Problem] = []
    try:
        behaviour = jsontext.record_value(parsed, problems)
    except RecursionError as error:
        raise EncodingError(f"{name}: nested too deeply") from error
    assert isinstance(behaviour, dict)  # noqa: S101 - a map stays a map
    contents: dict[BlobId, bytes] = {}
    _name_files(behaviour, pins or {}, contents)
    _move_long_texts(behaviour, contents)
    named = {path for path, _ in problems}
    problems += [found for found in behaviour_problems(behaviour) if found[0] not in named]
    if not problems:
        problems += _unencodable(behaviour)
    return Source(behaviour=behaviour, contents=contents, problems=problems)


def parse_behaviour(data: bytes, name: str, pins: Mapping[str, bytes] | None = None) -> Source:
    """Return the behaviour of a definition file, without a problem; arguments as of `parse_source`.

    Raises:
        EncodingError: It is neither TOML nor JSON.
        SchemaError: It is not a behaviour; every problem is named at once.
    """
    source = parse_source(data, name, pins)
    if source.problems:
        raise schema_error(name, source.problems)
    return source


def _unencodable(behaviour: dict[str, Any]) -> Iterator[Problem]:
    try:
        size = len(canonical.encode(behaviour))
    except EncodingError as error:
        yield "$", error.message
        return
    if size > MAX_RECORD_BYTES:
        yield "$", f"has {size} bytes; a record has at most {MAX_RECORD_BYTES}: pin long content as files"


def _name_files(behaviour: dict[str, Any], pins: Mapping[str, bytes], contents: dict[BlobId, bytes]) -> None:
    """Write pinned files into `files`; an id that stands there as digits becomes bytes."""
    files = dict(behaviour.get("files") or {}) if isinstance(behaviour.get("files"), dict) else {}
    for key, value in files.items():
        if isinstance(value, str) and len(value) == 64 and is_prefix(value):  # noqa: PLR2004 - digits of an id
            files[key] = parse_id(value)
    for key, data in pins.items():
        blob = digest.blob_id(data)
        contents[blob] = data
        files[key] = blob
    if files:
        behaviour["files"] = files


def _move_long_texts(behaviour: dict[str, Any], contents: dict[BlobId, bytes]) -> None:
    stages = behaviour.get("stages")
    for holder in (behaviour, *(stages if isinstance(stages, list) else ())):
        text = holder.get("instructions") if isinstance(holder, dict) else None
        if isinstance(text, str) and len(raw := text.encode("utf-8", "replace")) > MAX_LONG_TEXT_BYTES:
            blob = digest.blob_id(raw)
            contents[blob] = raw
            holder["instructions"] = blob


def facet_of(source: Source) -> FacetDocument:
    """Return the facet that a behaviour has; nothing is written.

    Raises:
        SchemaError: It is not a behaviour; every problem is named at once.
    """
    if source.problems:
        raise schema_error("the definition", source.problems)
    return FacetDocument(facet=digest.facet(source.behaviour), behaviour=source.behaviour)


def source_of(record: Record) -> Source:
    """Return the behaviour of a definition that the home holds, as a candidate would bring it."""
    body = record.body
    assert isinstance(body, Definition)  # noqa: S101 - the caller has resolved a definition
    return Source(behaviour=body.behaviour, origin=body.origin, trust=body.trust, note=body.note)


def propose(kernel: Kernel, actor: str, source: Source) -> DefinitionDocument:
    """Append a candidate; a behaviour that the actor has already is returned with `appended: false`.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor is not one.
        DoorClosedError: The define door stays closed.
    """
    owner = resolve_actor(kernel.log, actor).id

    def append(tx: Transaction) -> DefinitionDocument:
        row, appended = record_candidate(kernel, tx, owner, source)
        return definition_document(tx, row, appended=appended)

    return kernel.transact(append)


def record_candidate(
    kernel: Kernel, tx: Transaction, actor: RecordId, source: Source, *, trial: bool = False
) -> tuple[DefinitionRow, bool]:
    """Return the actor's definition with this behaviour, appended as a candidate when it has none, and whether it was.

    Raises:
        DoorClosedError: The define door stays closed.
    """
    _pass_door(door_reasons(kernel, tx, actor, source, trial=trial))
    rows = tx.definitions(actor=actor, facet=digest.facet(source.behaviour))
    same = [row for row in rows if tx.withdrawn(row.id) is None]
    if same:
        return same[0], False
    return _append(kernel, tx, actor, source, "candidate"), True


def install(kernel: Kernel, actor: str, source: Source, *, expect: str | None = None) -> DefinitionDocument:
    """Replace an actor's incumbent by compare-and-set; the incumbent's own behaviour changes nothing.

    Args:
        kernel: The open home.
        actor: Whose definition it is.
        source: The behaviour.
        expect: The incumbent that the caller saw (an id or prefix); any when absent.

    Raises:
        ConflictError: The incumbent is no longer the one expected.
        DoorClosedError: The define door stays closed.
    """
    owner = resolve_actor(kernel.log, actor).id
    seen = None if expect is None else resolve_definition(kernel.log, expect, owner).id

    def append(tx: Transaction) -> DefinitionDocument:
        incumbent = incumbent_of(tx, owner)
        reasons, conflict = door_reasons(kernel, tx, owner, source), _conflict(seen, incumbent)
        _pass_door([*reasons, conflict.message] if reasons and conflict else reasons)
        if conflict is not None:
            raise conflict
        here = incumbent is not None and tx.withdrawn(incumbent.id) is None
        if incumbent is not None and here and incumbent.facet == digest.facet(source.behaviour):
            return definition_document(tx, incumbent)
        refs = {} if incumbent is None else {"succeeds": (incumbent.id,)}
        row = _append(kernel, tx, owner, source, "installed", refs)
        return definition_document(tx, row, appended=True)

    return kernel.transact(append)


def door_reasons(
    kernel: Kernel, view: View, actor: RecordId, source: Source, *, trial: bool = False
) -> list[str]:
    """Return every reason why the define door stays closed for a behaviour; none when it is open.

    Args:
        kernel: The open home.
        view: Where the actor stands.
        actor: Whose definition it would be.
        source: The behaviour.
        trial: Whether it is to be tried, for which it must differ from the incumbent.
    """
    found = source.problems or behaviour_problems(source.behaviour)
    reasons = [f"{path}: {message}" for path, message in found]
    reasons += _secrets(kernel.secrets, source)
    owner = found_of(view, actor).by
    if owner != kernel.operator:
        reasons.append(f"the actor belongs to {owner}, not to this home's operator")
    reasons += _missing_files(kernel, source)
    incumbent = incumbent_of(view, actor)
    if trial and not reasons and incumbent is not None and incumbent.facet == digest.facet(source.behaviour):
        reasons.append("this behaviour is installed already, so there is nothing to try: run it as it is")
    return reasons


def _pass_door(reasons: Sequence[str]) -> None:
    if reasons:
        raise DoorClosedError(
            "the define door stays closed: " + "; ".join(reasons), details={"reasons": list(reasons)}
        )


def _conflict(seen: RecordId | None, incumbent: DefinitionRow | None) -> ConflictError | None:
    """Return why a compare-and-set fails, if it does."""
    if seen is None or (incumbent is not None and incumbent.id == seen):
        return None
    now = "nothing is" if incumbent is None else f"{incumbent.id.hex()[:12]} is"
    return ConflictError(
        f"expected {seen.hex()[:12]} to be installed, but {now}",
        hint="look at spl definition list, then expect what it shows",
        details={"incumbent": incumbent.id.hex() if incumbent else None},
    )


def _files(source: Source) -> dict[str, Any]:
    """Return the pinned files by name, also of a map that is no behaviour."""
    files = source.behaviour.get("files")
    return files if isinstance(files, dict) else {}


def _missing_files(kernel: Kernel, source: Source) -> Iterator[str]:
    for name, blob in _files(source).items():
        if blob not in source.contents and (not isinstance(blob, bytes) or BlobId(blob) not in kernel.blobs):
            yield f"the pinned file {name} is not in this home; add it with --pin"


def _secrets(secrets: Secrets, source: Source) -> Iterator[str]:
    """Yield why a behaviour may not enter: to withhold a secret from it would change its facet."""
    names = {blob: name for name, blob in _files(source).items() if isinstance(blob, bytes)}
    for path, text in texts_of(source.behaviour):
        where = secrets.withhold(path)[0]
        yield from (f"{where}: holds a secret ({rule})" for rule in secrets.find(text))
    for blob, data in source.contents.items():
        what = f"the pinned file {names[blob]}" if blob in names else "the instructions"
        yield from (
            f"{what}: holds a secret ({rule})" for rule in {span.rule for span in secrets.spans(data)}
        )


def _store(kernel: Kernel, source: Source) -> tuple[BlobRef, ...]:
    files = set(_files(source).values())
    return tuple(
        put_blob(
            kernel.blobs,
            data,
            "file" if blob in files else "instructions",
            PIN_TYPE if blob in files else TEXT,
        )
        for blob, data in source.contents.items()
    )


def _append(
    kernel: Kernel,
    tx: Transaction,
    actor: RecordId,
    source: Source,
    state: State,
    refs: Mapping[str, tuple[RecordId, ...]] | None = None,
) -> DefinitionRow:
    """Store what a behaviour is made of and append its definition; the door has been passed."""
    body = Definition(
        behaviour=source.behaviour, state=state, origin=source.origin, trust=source.trust, note=source.note
    )
    draft = Draft(body=body, by=kernel.operator, thread=actor, refs=refs or {}, blobs=_store(kernel, source))
    entry = tx.append(draft)
    return next(row for row in tx.definitions(actor=actor) if row.id == entry.id)


def list_definitions(kernel: Kernel, actor: str) -> DefinitionList:
    """Return an actor's definitions, in log order.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor is not one.
    """
    view, row = kernel.log, resolve_actor(kernel.log, actor)
    rows = view.definitions(actor=row.id)
    last = incumbent_of(view, row.id)
    parts = [_part(found_of(view, found.id), found, last.id if last else None) for found in rows]
    return DefinitionList(actor=row.id, actor_name=row.name, definitions=parts)


def show_definition(kernel: Kernel, text: str, actor: str | None = None) -> DefinitionDocument:
    """Return one definition by id, facet, prefix, `incumbent` or `latest`.

    Raises:
        UnknownIdError, AmbiguousIdError, InputError: None, or several, are meant.
    """
    owner = None if actor is None else resolve_actor(kernel.log, actor).id
    return definition_document(kernel.log, resolve_definition(kernel.log, text, owner))


def definition_document(view: View, row: DefinitionRow, *, appended: bool = False) -> DefinitionDocument:
    """Return the document of one definition."""
    record = record_of(view, row.id)
    incumbent = incumbent_of(view, row.actor)
    assert isinstance(record.body, Definition)  # noqa: S101 - the row was derived from it
    return DefinitionDocument(
        id=row.id,
        facet=row.facet,
        actor=row.actor,
        definition=_part(record, row, incumbent.id if incumbent else None),
        behaviour=record.body.behaviour,
        appended=appended,
    )


def _part(record: Record, row: DefinitionRow, incumbent: RecordId | None) -> DefinitionPart:
    body = record.body
    if isinstance(body, Remains):
        return DefinitionPart(
            id=row.id,
            facet=row.facet,
            position=row.position,
            at=record.at,
            state=body.state or "candidate",
            origin=WITHDRAWN,
            trust="untrusted",
            adapter=WITHDRAWN,
            incumbent=row.id == incumbent,
            installed=row.incumbent,
            succeeds=record.ref("succeeds"),
        )
    assert isinstance(body, Definition)  # noqa: S101 - the row was derived from it
    return DefinitionPart(
        id=row.id,
        facet=row.facet,
        position=row.position,
        at=record.at,
        state=body.state,
        origin=body.origin,
        trust=body.trust,
        adapter=str(body.behaviour.get("adapter")),
        incumbent=row.id == incumbent,
        installed=row.incumbent,
        model=body.behaviour.get("model"),
        succeeds=record.ref("succeeds"),
        note=body.note,
    )

"""Definitions: read from a file, checked, proposed as candidates, installed by compare-and-set."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from spl.codec import digest, jsontext
from spl.contracts.actors import DefinitionDocument, DefinitionList, DefinitionPart, FacetDocument
from spl.errors import ConflictError, DoorClosedError, EncodingError, schema_error
from spl.ids import BlobId, RecordId, is_prefix, parse_id
from spl.kernel.content import TEXT, put_blob
from spl.kernel.home import Kernel
from spl.kernel.names import found_of, incumbent_of, record_of, resolve_actor, resolve_definition
from spl.records.behaviour import behaviour_problems
from spl.records.definitions import MAX_LONG_TEXT_BYTES, Definition, State, Trust
from spl.records.envelope import BlobRef, Draft, Record
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
    """

    behaviour: dict[str, Any]
    contents: dict[BlobId, bytes] = {}
    origin: str = "local"
    trust: Trust = "untrusted"
    note: str | None = None


def parse_behaviour(data: bytes, name: str, pins: Mapping[str, bytes] | None = None) -> Source:
    """Return the behaviour of a definition file; every problem is named at once.

    Args:
        data: The file's bytes: TOML when its name ends so, else JSON.
        name: Its name, for messages.
        pins: Files that the behaviour is made of, by relative name.

    Raises:
        EncodingError: It is neither TOML nor JSON, or a value lies outside the encoding profile.
        SchemaError: It is not a behaviour.
    """
    if name.endswith(".toml"):
        try:
            parsed: object = tomllib.loads(data.decode(), parse_float=jsontext.Number)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise EncodingError(f"{name}: {error}") from error
    else:
        parsed = jsontext.parse(data, what=name)
    if not isinstance(parsed, dict):
        raise schema_error(name, [("$", "a definition is a map")])
    try:
        behaviour = jsontext.to_record_value(parsed)
    except EncodingError as error:
        raise EncodingError(f"{name}: {error.message}") from error
    assert isinstance(behaviour, dict)  # noqa: S101 - a map stays a map
    contents: dict[BlobId, bytes] = {}
    _name_files(behaviour, pins or {}, contents)
    _move_long_texts(behaviour, contents)
    found = list(behaviour_problems(behaviour))
    if found:
        raise schema_error(name, found)
    digest.facet(behaviour)  # refuses what cannot be encoded
    return Source(behaviour=behaviour, contents=contents)


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
    """Return the facet that a behaviour has; nothing is written."""
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
    check_door(kernel, tx, actor, source, trial=trial)
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
        check_door(kernel, tx, owner, source)
        incumbent = incumbent_of(tx, owner)
        if seen is not None and (incumbent is None or incumbent.id != seen):
            now = "nothing is" if incumbent is None else f"{incumbent.id.hex()[:12]} is"
            raise ConflictError(
                f"expected {seen.hex()[:12]} to be installed, but {now}",
                hint="look at spl definition list, then expect what it shows",
                details={"incumbent": incumbent.id.hex() if incumbent else None},
            )
        here = incumbent is not None and tx.withdrawn(incumbent.id) is None
        if incumbent is not None and here and incumbent.facet == digest.facet(source.behaviour):
            return definition_document(tx, incumbent)
        refs = {} if incumbent is None else {"succeeds": (incumbent.id,)}
        row = _append(kernel, tx, owner, source, "installed", refs)
        return definition_document(tx, row, appended=True)

    return kernel.transact(append)


def check_door(kernel: Kernel, view: View, actor: RecordId, source: Source, *, trial: bool = False) -> None:
    """Return when the define door is open for a behaviour.

    Args:
        kernel: The open home.
        view: Where the actor stands.
        actor: Whose definition it would be.
        source: The behaviour.
        trial: Whether it is to be tried, for which it must differ from the incumbent.

    Raises:
        DoorClosedError: It is not; every reason is named.
    """
    behaviour = source.behaviour
    reasons = [f"{path}: {message}" for path, message in behaviour_problems(behaviour)]
    reasons += _secrets(kernel.secrets, source)
    owner = found_of(view, actor).by
    if owner != kernel.operator:
        reasons.append(f"the actor belongs to {owner}, not to this home's operator")
    reasons += _missing_files(kernel, source)
    incumbent = incumbent_of(view, actor)
    if trial and not reasons and incumbent is not None and incumbent.facet == digest.facet(behaviour):
        reasons.append("this behaviour is installed already, so there is nothing to try: run it as it is")
    if reasons:
        raise DoorClosedError(
            "the define door stays closed: " + "; ".join(reasons), details={"reasons": reasons}
        )


def _missing_files(kernel: Kernel, source: Source) -> Iterator[str]:
    files: Any = source.behaviour.get("files")
    for name, blob in files.items() if isinstance(files, dict) else ():
        if blob not in source.contents and (not isinstance(blob, bytes) or BlobId(blob) not in kernel.blobs):
            yield f"the pinned file {name} is not in this home; add it with --pin"


def _secrets(secrets: Secrets, source: Source) -> Iterator[str]:
    """Yield why a behaviour may not enter: to withhold a secret from it would change its facet."""
    names = {blob: name for name, blob in (source.behaviour.get("files") or {}).items()}
    for path, text in texts_of(source.behaviour):
        where = secrets.withhold(path)[0]
        yield from (f"{where}: holds a secret ({rule})" for rule in secrets.find(text))
    for blob, data in source.contents.items():
        what = f"the pinned file {names[blob]}" if blob in names else "the instructions"
        yield from (
            f"{what}: holds a secret ({rule})" for rule in {span.rule for span in secrets.spans(data)}
        )


def _store(kernel: Kernel, source: Source) -> tuple[BlobRef, ...]:
    files = set((source.behaviour.get("files") or {}).values())
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

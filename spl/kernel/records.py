"""Records as they are: listed, shown, and put in from outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from spl.codec import digest, jsontext
from spl.contracts.records import Appended, EntryList, EntryPart, HomeDocument, LastVerify, RecordDocument
from spl.errors import DamagedError, InputError, ReservedKindError, SchemaError, schema_error
from spl.ids import Digest, RecordId, parse_did
from spl.kernel.home import Kernel
from spl.kernel.names import resolve_id
from spl.records.definitions import Actor, Body, Definition
from spl.records.envelope import Draft, read_record
from spl.records.evals import Case, Score, Suite
from spl.records.registry import KINDS, REDACTION
from spl.records.runs import RunEnd
from spl.records.verdicts import Redaction
from spl.records.wire import to_map
from spl.store import head, note, tree, verified
from spl.store.layout import Layout
from spl.store.log import Entry, Selection, View
from spl.store.remains import WITHDRAWN


def list_entries(kernel: Kernel, selection: Selection, *, limit: int | None = None) -> EntryList:
    """Return the entries that match, as parts of a listing.

    Args:
        kernel: The open home.
        selection: Which entries.
        limit: How many at the most.
    """
    found = scan_entries(kernel, selection)
    entries = list(found if limit is None else islice(found, limit + 1))
    more = limit is not None and len(entries) > limit
    return EntryList(size=kernel.log.size(), entries=entries[:limit], more=more)


def scan_entries(kernel: Kernel, selection: Selection) -> Iterator[EntryPart]:
    """Yield the entries that match, in bounded memory."""
    return map(entry_part, kernel.log.scan(selection))


def show_record(kernel: Kernel, text: str) -> RecordDocument:
    """Return one record in full, by id or unique prefix.

    Raises:
        UnknownIdError, AmbiguousIdError: None, or several, are meant.
    """
    return record_document(kernel.log, get_entry(kernel, text))


def record_document(view: View, entry: Entry) -> RecordDocument:
    """Return the record of an entry in full."""
    part = entry_part(entry)
    if entry.record is None:
        return _withdrawn(view, entry, part)
    record = read_record(entry.record, entry.id)
    body = to_map(record.body) if isinstance(record.body, Body) else record.body
    facet = digest.facet(record.body.behaviour) if isinstance(record.body, Definition) else None
    return RecordDocument(
        id=entry.id,
        entry=part,
        leaf=entry.leaf,
        body=body,
        refs=record.refs,
        blobs=[to_map(blob) for blob in record.blobs],
        facet=None if facet is None else Digest(facet),
        withheld=record.withheld,
    )


def _withdrawn(view: View, entry: Entry, part: EntryPart) -> RecordDocument:
    """Return what is left of a withdrawn record, with who withdrew it and why."""
    kept = view.withdrawn(entry.id)
    refs = {} if kept is None else kept.refs
    for own in view.scan(Selection(kind=REDACTION, start=entry.position)):
        record = None if own.record is None else read_record(own.record, own.id)
        if record is not None and isinstance(record.body, Redaction) and record.body.record == entry.id:
            return RecordDocument(
                id=entry.id,
                entry=part,
                leaf=entry.leaf,
                body={},
                refs=refs,
                redaction=own.id,
                redacted_at=record.at,
                reason=record.body.reason,
            )
    return RecordDocument(id=entry.id, entry=part, leaf=entry.leaf, body={}, refs=refs)


def get_entry(kernel: Kernel, text: str) -> Entry:
    """Return the entry of a record, by id or unique prefix.

    Raises:
        UnknownIdError, AmbiguousIdError: None, or several, are meant.
        DamagedError: The bytes are not those that the id and the tree stand for.
    """
    entry = kernel.log.get(resolve_id(kernel.log, text))
    assert entry is not None  # noqa: S101 - it was just resolved
    check_intact(entry)
    return entry


def check_intact(entry: Entry) -> None:
    """Return when the bytes of an entry are those that its id and its leaf stand for, or were withdrawn.

    Who hands a record out vouches for it, so looks; folds and listings leave that to `spl verify`.

    Raises:
        DamagedError: They are not.
    """
    if entry.record is None:
        return
    if (
        digest.record_id(entry.record) != entry.id
        or tree.entry_leaf(entry.record, entry.signature) != entry.leaf
    ):
        raise DamagedError(
            f"the record {entry.id.hex()} at position {entry.position} was altered: its bytes are not those of its id"
            " and leaf"
        )


def put_record(kernel: Kernel, data: bytes, name: str) -> Appended:
    """Append a record of another namespace from JSON: `{"kind", "body", "thread"?, "refs"?, "by"?}`.

    Fractions become decimals, ids in `refs` and `thread` are full hexadecimal ids. Kinds of `core.` have commands of
    their own and are refused.

    Args:
        kernel: The open home.
        data: The JSON text.
        name: What to call it in messages.

    Raises:
        EncodingError, SchemaError: It is not such a document.
        ReservedKindError: The kind stands in `core.`.
        DanglingReferenceError: It refers to what this home does not hold.
    """
    value = jsontext.parse(data, what=name)
    if not isinstance(value, dict):
        raise schema_error(name, [("$", "a record is an object")])
    unknown = sorted(set(value) - {"kind", "body", "thread", "refs", "by", "at"})
    missing = [key for key in ("kind", "body") if key not in value]
    if unknown or missing:
        raise schema_error(
            name,
            [(f"$.{key}", "unknown field") for key in unknown]
            + [(f"$.{key}", "is missing") for key in missing],
        )
    kind, body = value["kind"], jsontext.to_record_value(value["body"], "$.body")
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise schema_error(name, [("$", "kind is text, and body an object")])
    if kind in KINDS or kind.startswith("core."):
        raise ReservedKindError(f"{kind} is reserved for the kernel", hint="its own command writes it")
    draft = Draft(
        kind=kind,
        body=body,
        by=kernel.operator if value.get("by") is None else parse_did(str(value["by"])),
        thread=None if value.get("thread") is None else _id(kernel, value["thread"]),
        refs=_refs(kernel, value.get("refs")),
        at=value.get("at") if isinstance(value.get("at"), int) else None,
    )
    entry = kernel.transact(lambda tx: tx.append(draft))
    return Appended(id=entry.id, position=entry.position, appended=True, kind=kind)


def _refs(kernel: Kernel, value: object) -> dict[str, tuple[RecordId, ...]]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(ids, list) for ids in value.values()):
        raise SchemaError("$.refs: is a map of roles to lists of ids")
    return {role: tuple(_id(kernel, text) for text in ids) for role, ids in value.items()}


def _id(kernel: Kernel, text: object) -> RecordId:
    if not isinstance(text, str):
        raise InputError(f"not an id: {text!r}")
    return resolve_id(kernel.log, text)


def status(kernel: Kernel, *, created: bool = False) -> HomeDocument:
    """Return where the home is, how much it holds, and who it speaks as."""
    size = kernel.log.size()
    last = entry_part(kernel.log.at([size - 1])[0]) if size else None
    return HomeDocument(
        path=str(kernel.path),
        size=size,
        kernel=kernel.kernel,
        operator=kernel.operator,
        created=created,
        root=tree.root(kernel.log.subtrees()),
        last=last,
        actors=len(kernel.log.actors()),
        suites=len(kernel.log.suites()),
        open_runs=len(kernel.log.open_runs()),
        last_verify=_last_verify(kernel),
        key=note.format_vkey(head.verifier_key(kernel.kernel)) if kernel.path is not None else None,
    )


def _last_verify(kernel: Kernel) -> LastVerify | None:
    """Return what the last verification found; None when there was none, or its note cannot be used."""
    found = None if kernel.path is None else verified.load(Layout(kernel.path).verified)
    if found is None or found.size > kernel.log.size():
        return None
    return LastVerify(at=found.at, size=found.size, faults=found.faults, clean=not found.faults)


def entry_part(entry: Entry) -> EntryPart:
    """Return an entry as a part of a listing."""
    if entry.record is None:
        return EntryPart(position=entry.position, id=entry.id, signature=WITHDRAWN)
    record = read_record(entry.record, entry.id)
    return EntryPart(
        position=entry.position,
        id=entry.id,
        kind=record.kind,
        by=record.by,
        at=record.at,
        signature="signed" if entry.signature else "unsigned",
        size=len(entry.record),
        thread=record.thread,
        opaque=record.opaque,
        summary=_summary(record.body),
    )


def _summary(body: Body | dict[str, Any]) -> str | None:
    """Return a few words about a record, for a listing."""
    match body:
        case Actor(name=name) | Suite(name=name):
            return name
        case Case(key=key):
            return key
        case Definition(state=state, behaviour=behaviour):
            return f"{state} {digest.facet(behaviour).hex()[:12]}"
        case RunEnd(status=ended):
            return ended
        case Score(structure=structure, substance=substance):
            return f"structure {structure.passed}/{structure.of}, substance {substance.passed}/{substance.of}"
    return None

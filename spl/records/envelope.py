"""The envelope: what every record has, and the way between bytes and typed records.

A `Draft` says what is to be recorded; stamped with a time and a salt it becomes bytes (`encode_record`). Bytes from
this home's log become a `Record` again by `read_record`; bytes from outside pass `check_record` first, which accepts
exactly what `encode_record` writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from spl.codec import canonical, digest
from spl.errors import (
    DamagedError,
    EncodingError,
    InvalidIdError,
    ReservedKindError,
    SchemaError,
    schema_error,
)
from spl.ids import BlobId, Did, RecordId, parse_did
from spl.records.definitions import MAX_LONG_TEXT_BYTES, Body, Definition
from spl.records.problems import has_null, problems
from spl.records.registry import KIND_OF_BODY, KINDS, Kind
from spl.records.runs import MAX_LIST_BYTES, RunEnd
from spl.records.wire import from_map, to_map

MAX_RECORD_BYTES: Final = 61_440
_NULL: Final = b"\xf6"  # without this byte there is no null (RFC 8949, section 3.3)
SALT_BYTES: Final = 16
MAX_REFS: Final = 256
_KIND: Final = re.compile(r"[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*){1,5}\.v[1-9][0-9]{0,3}")
_MAX_KIND_BYTES: Final = 96
_ROLE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CORE: Final = "core."


class BlobRef(Struct, frozen=True, forbid_unknown_fields=True):
    """A blob that a record names: id, size in bytes, media type, role."""

    h: BlobId
    n: Annotated[int, Meta(ge=0)]
    t: str
    r: str


class Envelope(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The closed set of a record's keys, as they are encoded."""

    v: Literal[1]
    kind: str
    by: Did
    at: int
    body: dict[str, Any]
    thread: RecordId | None = None
    refs: dict[str, list[RecordId]] | None = None
    blobs: list[BlobRef] | None = None
    salt: Annotated[bytes, Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)] | None = None
    withheld: Annotated[int, Meta(ge=1)] | None = None


class Draft(Struct, frozen=True, kw_only=True):
    """What is to be recorded, before it is stamped.

    Attributes:
        body: A Struct of a `core.` kind, or a plain map for another namespace.
        by: The author, who vouches for it and signs.
        kind: Needed only with a plain map.
        at: The author's claim of the time, milliseconds since 1970 UTC; the clock's when absent.
        withheld: How many secrets were replaced before.
    """

    body: Body | dict[str, Any]
    by: Did
    kind: str = ""
    thread: RecordId | None = None
    refs: Mapping[str, tuple[RecordId, ...]] = {}
    blobs: tuple[BlobRef, ...] = ()
    at: int | None = None
    withheld: int = 0


class Record(Struct, frozen=True, kw_only=True):
    """A record as the kernel and the folds see it.

    Attributes:
        body: The Struct of its kind; the plain map where the kind is foreign or opaque.
        opaque: Why this version cannot read it; None when it can. Folds count opaque records and grade nothing by
            them.
    """

    id: RecordId
    kind: str
    by: Did
    at: int
    body: Body | dict[str, Any]
    thread: RecordId | None = None
    refs: dict[str, list[RecordId]] = {}
    blobs: list[BlobRef] = []
    withheld: int = 0
    opaque: str | None = None

    def ref(self, role: str) -> RecordId | None:
        """Return the only id of a role, or None when the record has no such role."""
        ids = self.refs.get(role)
        return ids[0] if ids else None

    def blob(self, role: str) -> BlobRef | None:
        """Return the first blob of a role, or None."""
        return next((blob for blob in self.blobs if blob.r == role), None)


def encode_record(draft: Draft, *, at: int, salt: bytes) -> bytes:
    """Return the bytes of a draft.

    Args:
        draft: What is to be recorded.
        at: The time when the draft names none, milliseconds since 1970 UTC.
        salt: 16 random bytes; left out of kinds that are not salted.

    Raises:
        EncodingError: A value lies outside the profile, or the record has more than 61,440 bytes.
        ReservedKindError: A plain map claims a kind of `core.`.
    """
    kind, body = _kind_and_body(draft)
    known = KINDS.get(kind)
    record: dict[str, object] = {
        "v": 1,
        "kind": kind,
        "by": draft.by,
        "at": at if draft.at is None else draft.at,
        "body": body,
    }
    if draft.thread is not None:
        record["thread"] = draft.thread
    if draft.refs:
        record["refs"] = {role: list(ids) for role, ids in draft.refs.items()}
    if draft.blobs:
        record["blobs"] = [to_map(blob) for blob in draft.blobs]
    if known is not None and known.salted:
        record["salt"] = salt
    if draft.withheld:
        record["withheld"] = draft.withheld
    data = canonical.encode(record)
    if len(data) > MAX_RECORD_BYTES:
        raise EncodingError(
            f"the {kind} record has {len(data)} bytes; at most {MAX_RECORD_BYTES} are allowed",
            hint="put long content into blobs",
        )
    return data


def _kind_and_body(draft: Draft) -> tuple[str, dict[str, Any]]:
    if isinstance(draft.body, Body):
        return KIND_OF_BODY[type(draft.body)], to_map(draft.body)
    if draft.kind.startswith(_CORE):
        raise ReservedKindError(f"{draft.kind} is reserved: a plain map cannot have a kind of core.")
    return draft.kind, draft.body


def read_record(data: bytes, record_id: RecordId | None = None) -> Record:
    """Return the record whose bytes this home accepted before; what this version cannot read is marked opaque.

    Args:
        data: The record's bytes.
        record_id: Its id when the caller has it, else it is computed.

    Raises:
        DamagedError: The bytes are not a record at all any more.
    """
    try:
        return _record(canonical.decode_trusted(data), data, record_id)
    except (EncodingError, SchemaError) as error:
        name = "a record" if record_id is None else f"the record {record_id.hex()}"
        raise DamagedError(f"{name} cannot be read: {error.message}") from error


def check_record(data: bytes, *, foreign: bool = False) -> Record:
    """Return the record of bytes that came from outside, once they are known to be what the encoder writes.

    Args:
        data: The record's bytes.
        foreign: Accept kinds and fields of `core.` that this version does not know, marked opaque (on import).

    Raises:
        EncodingError: Not canonical, or larger than 61,440 bytes.
        SchemaError: The envelope or body has another shape; every problem is named.
        ReservedKindError: The kind stands in `core.` and is not known here.
    """
    if len(data) > MAX_RECORD_BYTES:
        raise EncodingError(f"a record has at most {MAX_RECORD_BYTES} bytes, not {len(data)}")
    return _checked(canonical.decode(data), data, foreign=foreign)


def check_encoded(data: bytes) -> Record:
    """Return the record of bytes that `encode_record` just wrote, once its shape is known to be right.

    Raises:
        SchemaError, ReservedKindError: As `check_record`.
    """
    return _checked(canonical.decode_trusted(data), data, foreign=False)


def _checked(value: canonical.Value, data: bytes, *, foreign: bool) -> Record:
    # Then what msgspec converts has no problem of shape, and need not be walked.
    whole = _NULL not in data or not has_null(value)
    try:
        record = _record(value, data, None)
    except SchemaError:
        raise schema_error("record", list(problems(value, Envelope))) from None
    if not whole and (found := list(problems(value, Envelope))):
        raise schema_error("record", found)
    if record.opaque and record.kind not in KINDS and not foreign:
        raise ReservedKindError(f"{record.kind}: {record.opaque}", hint="spl kinds lists the kinds of core.")
    found = list(_envelope_problems(record, value))
    if not (record.opaque and foreign):
        found += _kind_problems(record, value, whole=whole)
        if record.opaque is None and record.kind in KINDS:
            found += _rule_problems(record, KINDS[record.kind], len(data))
    if found:
        raise schema_error(f"{record.kind} record", found)
    return record


def _record(value: object, data: bytes, record_id: RecordId | None) -> Record:
    try:
        envelope = from_map(value, Envelope)
    except msgspec.ValidationError as error:
        raise SchemaError(f"record: {error}") from error
    body: Body | dict[str, Any] = envelope.body
    opaque = None
    kind = KINDS.get(envelope.kind)
    if kind is not None:
        try:
            body = from_map(envelope.body, kind.body)
        except msgspec.ValidationError as error:
            opaque = f"not readable by this version: {error}"
    elif envelope.kind.startswith(_CORE):
        opaque = "a kind that this version does not know"
    return Record(
        id=digest.record_id(data) if record_id is None else record_id,
        kind=envelope.kind,
        by=envelope.by,
        at=envelope.at,
        body=body,
        thread=envelope.thread,
        refs=envelope.refs or {},
        blobs=envelope.blobs or [],
        withheld=envelope.withheld or 0,
        opaque=opaque,
    )


def _envelope_problems(record: Record, value: canonical.Value) -> Iterator[tuple[str, str]]:
    assert isinstance(value, dict)  # noqa: S101 - `problems` has seen it
    if len(record.kind) > _MAX_KIND_BYTES or not _KIND.fullmatch(record.kind):
        yield "$.kind", f"{record.kind!r} is not a kind such as acme.note.v1"
    try:
        parse_did(record.by)
    except InvalidIdError as error:
        yield "$.by", error.message
    if sum(map(len, record.refs.values())) > MAX_REFS:
        yield "$.refs", f"more than {MAX_REFS} ids"
    for role, ids in record.refs.items():
        if not _ROLE.fullmatch(role):
            yield f"$.refs.{role}", "a role is lowercase ASCII letters, digits and _"
        if not ids or len(set(ids)) != len(ids):
            yield f"$.refs.{role}", "needs at least one id, and none twice"
    for optional in ("refs", "blobs"):
        if optional in value and not value[optional]:
            yield f"$.{optional}", "is empty; leave it out"


def _kind_problems(record: Record, value: canonical.Value, *, whole: bool) -> list[tuple[str, str]]:
    kind = KINDS.get(record.kind)
    if kind is None:
        return []
    assert isinstance(value, dict)  # noqa: S101 - `problems` has seen it
    found = list(_place_problems(record, kind, value))
    if record.opaque or not whole:
        found += problems(value["body"], kind.body, "$.body")
    return found


def _place_problems(
    record: Record, kind: Kind, value: dict[str, canonical.Value]
) -> Iterator[tuple[str, str]]:
    if kind.salted != ("salt" in value):
        yield "$.salt", "is missing" if kind.salted else "has no place in this kind"
    if (kind.root is None) != (record.thread is None):
        yield "$.thread", "is missing" if kind.root else "has no place in a root"
    roles = {role.name: role for role in kind.roles}
    for name in record.refs:
        if name not in roles:
            yield f"$.refs.{name}", "is not a role of this kind"
        elif len(record.refs[name]) != 1:
            yield f"$.refs.{name}", "holds exactly one id"
    for role in kind.roles:
        if role.required and role.name not in record.refs:
            yield f"$.refs.{role.name}", "is missing"


def _long_text_problems(record: Record, field: str) -> Iterator[tuple[str, str]]:
    text = getattr(record.body, field)
    if isinstance(text, str) and len(text.encode()) > MAX_LONG_TEXT_BYTES:
        yield f"$.body.{field}", f"text of more than {MAX_LONG_TEXT_BYTES} bytes belongs in a blob"
    if isinstance(text, bytes):
        blob = next((blob for blob in record.blobs if blob.h == text), None)
        if blob is None:
            yield f"$.body.{field}", "its blob is not named in $.blobs"
        elif blob.n <= MAX_LONG_TEXT_BYTES:
            yield f"$.body.{field}", f"text of at most {MAX_LONG_TEXT_BYTES} bytes stands in the body"


def _rule_problems(record: Record, kind: Kind, size: int) -> Iterator[tuple[str, str]]:
    for field in kind.long_texts:
        yield from _long_text_problems(record, field)
    body = record.body
    if isinstance(body, Definition):
        from spl.records.behaviour import behaviour_problems  # noqa: PLC0415 - only definitions need it

        yield from (
            ("$.body.behaviour" + path[1:], text) for path, text in behaviour_problems(body.behaviour)
        )
    elif isinstance(body, RunEnd):
        for field in ("results", "changed_files", "usage"):
            items = getattr(body, field)
            if (
                size > MAX_LIST_BYTES
                and items
                and len(canonical.encode(to_map(body)[field])) > MAX_LIST_BYTES
            ):
                yield f"$.body.{field}", f"a list of more than {MAX_LIST_BYTES} bytes belongs in a blob"
        pairs = [(result.kind, result.id) for result in body.results or ()]
        if len(set(pairs)) != len(pairs):
            yield "$.body.results", "a check stands twice"

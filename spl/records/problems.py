"""Every problem of a document at once, each with its JSON path.

msgspec stops at the first problem. This walk follows the same types, so that there is one source of what is allowed.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Any, NewType, Union, get_args, get_origin

import msgspec

from spl.records.wire import from_map

Problem = tuple[str, str]


def problems(value: object, kind: object, path: str = "$") -> Iterator[Problem]:
    """Yield (path, message) for everything in `value` that the type does not allow, nulls included.

    Args:
        value: Plain maps, lists and scalars.
        kind: A Struct, or any other type that msgspec converts to.
        path: The path of `value` itself.
    """
    if has_null(value) or next(_conversion(value, kind, path), None):
        yield from _walk(value, kind, path)


def has_null(value: object) -> bool:
    """Say whether a null stands anywhere: msgspec would read it as an absent field."""
    if value is None:
        return True
    if type(value) is dict:
        items: Iterable[object] = value.values()
    elif type(value) is list:
        items = value
    else:
        return False
    for item in items:
        kind = type(item)
        if item is None or ((kind is dict or kind is list) and has_null(item)):
            return True
    return False


def _walk(value: object, kind: object, path: str) -> Iterator[Problem]:
    bare = _bare(kind, value)
    if value is None and bare is not Any:
        yield path, "null has no place here; leave the field out"
    elif isinstance(value, dict) and _is_struct(bare):
        yield from _struct_problems(value, bare, path)
    elif isinstance(value, dict) and get_origin(bare) is dict:
        key_type, item_type = get_args(bare)
        for key, item in value.items():
            yield from _conversion(key, key_type, f"{path}.{key}")
            yield from _walk(item, item_type, f"{path}.{key}")
    elif isinstance(value, list) and get_origin(bare) is list:
        found = [
            problem
            for index, item in enumerate(value)
            for problem in _walk(item, get_args(bare)[0], f"{path}[{index}]")
        ]
        yield from found or _conversion(value, kind, path)
    else:
        yield from _conversion(value, kind, path)


def _struct_problems(value: dict[str, object], struct: Any, path: str) -> Iterator[Problem]:  # noqa: ANN401 - a Struct class
    fields = {field.encode_name: field for field in _fields(struct)}
    found: list[Problem] = [
        (f"{path}.{name}", "unknown field")
        for name in value
        if name not in fields and name != struct.__struct_config__.tag_field
    ]
    for name, field in fields.items():
        if name in value:
            found += _walk(value[name], field.type, f"{path}.{name}")
        elif field.required:
            found.append((f"{path}.{name}", "is missing"))
    # What only the whole can say (its __post_init__) is asked once its parts are right.
    yield from found or _conversion(value, struct, path)


def _bare(kind: Any, value: object) -> Any:  # noqa: ANN401 - types of every form
    """Return the type without its wrappers; of a union, the alternative that the value means to be."""
    while True:
        if isinstance(kind, NewType):
            kind = kind.__supertype__
        elif get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        else:
            break
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    options = [_bare(option, value) for option in get_args(kind)]
    if isinstance(value, dict):
        structs = [option for option in options if _is_struct(option)]
        tagged = [s for s in structs if value.get(s.__struct_config__.tag_field) == s.__struct_config__.tag]
        maps = [option for option in options if get_origin(option) is dict]
        return next(iter(tagged or structs[: len(structs) == 1] or maps), kind)
    if isinstance(value, list):
        return next((option for option in options if get_origin(option) is list), kind)
    return kind


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


def _conversion(value: object, kind: Any, path: str) -> Iterator[Problem]:  # noqa: ANN401 - as `_bare`
    try:
        from_map(value, kind)
    except msgspec.ValidationError as error:
        message, _, inner = str(error).partition(" - at `$")
        yield path + inner.rstrip("`"), message[:1].lower() + message[1:]

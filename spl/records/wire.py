"""Between Structs and the plain maps that the codec encodes."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_map(struct: msgspec.Struct) -> dict[str, Any]:
    """Return a Struct as the map that is encoded; fields that are absent stay absent."""
    plain: dict[str, Any] = msgspec.to_builtins(struct, builtin_types=(bytes,))
    return plain


def from_map(value: object, kind: type[T]) -> T:
    """Return the typed form of a decoded map.

    Raises:
        msgspec.ValidationError: The value does not have the shape of `kind`; the message names the first problem.
    """
    return msgspec.convert(value, kind, builtin_types=(bytes,))

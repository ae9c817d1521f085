"""The JSON Schemas of every kind and every document, generated from the Structs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from spl.contracts.document import Document
from spl.records.registry import KINDS

_MODULES: Final = (
    "actors",
    "comparison",
    "exchange",
    "proof",
    "records",
    "reference",
    "report",
    "runs",
    "scores",
    "suites",
    "verdicts",
    "verify",
)
_ID_BYTES: Final = 32


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas by name: kinds first, then contracts, each in order of their names.

    Ids are bytes in the Structs and print as hexadecimal digits; the schemas describe what is printed.
    """
    found: dict[str, type] = {name: kind.body for name, kind in sorted(KINDS.items())}
    found.update(sorted(_documents()))
    return {name: _schema(name, struct) for name, struct in found.items()}


def _documents() -> Iterator[tuple[str, type[Document]]]:
    for module in _MODULES:
        importlib.import_module(f"spl.contracts.{module}")
    for document in Document.__subclasses__():
        yield str(document.__struct_config__.tag), document


def _schema(name: str, struct: type) -> dict[str, Any]:
    schema: dict[str, Any] = _hex(msgspec.json.schema(struct))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **schema}


def _hex(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [_hex(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("contentEncoding") == "base64":
        rest = {key: item for key, item in value.items() if key in ("description", "title")}
        return {"type": "string", "pattern": f"^[0-9a-f]{{{2 * _ID_BYTES}}}$", **rest}
    return {key: _hex(item) for key, item in value.items()}

"""The documents of the reference commands."""

from __future__ import annotations

from typing import Any

from spl.contracts.document import Document, Part


class KindPart(Part, frozen=True):
    """A kind of record: who writes it, the kind of its thread's root, and the roles of its refs."""

    kind: str
    author: str
    about: str
    root: str | None = None
    roles: list[str] = []


class KindList(Document, frozen=True, tag="spl.kinds.v1"):
    """Every kind of `core.`."""

    kinds: list[KindPart]


class ErrorPart(Part, frozen=True):
    """An error: its code, its exit status, what it means, and what to do."""

    code: str
    exit_status: int
    about: str
    hint: str | None = None


class ErrorList(Document, frozen=True, tag="spl.errors.v1"):
    """Every error, by exit status."""

    errors: list[ErrorPart]


class SchemaList(Document, frozen=True, tag="spl.schemas.v1"):
    """The names of the schemas, and the directory that they were written into."""

    schemas: list[str]
    written_to: str | None = None


class VersionDocument(Document, frozen=True, tag="spl.version.v1"):
    """The version of this program."""

    version: str


class ErrorDocument(Document, frozen=True, tag="spl.error.v1"):
    """A failure, as it is printed with `--json`."""

    code: str
    message: str
    exit_status: int
    hint: str | None = None
    details: dict[str, Any] = {}

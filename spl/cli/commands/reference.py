"""`spl kinds`, `errors`, `schema`: what there is to know about records, errors and documents."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single, suggestion
from spl.cli.output import emit, write
from spl.cli.render.text import table
from spl.cli.sanitize import visible

if TYPE_CHECKING:
    from spl.contracts.reference import ErrorList, KindList, SchemaList


def kinds() -> None:
    """List the kinds of records.

    Example: spl kinds
    """
    from spl.contracts.reference import KindList, KindPart  # noqa: PLC0415 - imported when called
    from spl.records.registry import KINDS  # noqa: PLC0415

    parts = [
        KindPart(
            kind=kind.name,
            author=kind.author,
            about=kind.about,
            root=kind.root,
            roles=[role.name for role in kind.roles],
        )
        for kind in KINDS.values()
    ]
    emit(KindList(kinds=parts), _render_kinds)


def errors() -> None:
    """List the errors and their exit statuses.

    Example: spl errors --json
    """
    from spl.contracts.reference import ErrorList, ErrorPart  # noqa: PLC0415 - imported when called
    from spl.errors import all_errors  # noqa: PLC0415

    parts = [
        ErrorPart(
            code=error.code,
            exit_status=error.exit_status,
            about=(inspect.getdoc(error) or "").partition("\n")[0],
            hint=error.default_hint,
        )
        for error in all_errors()
    ]
    emit(ErrorList(errors=sorted(parts, key=lambda part: part.exit_status)), _render_errors)


def schema(
    name: str | None = typer.Argument(None, help="A kind or a contract; the names are listed without one."),
    write_to: str | None = typer.Option(None, "--write", help="Write every schema into this directory."),
) -> None:
    """Print the JSON Schema of a kind or a document.

    Example: spl schema core.run.end.v1
    """
    import json  # noqa: PLC0415 - imported when called

    from spl.contracts.reference import SchemaList  # noqa: PLC0415
    from spl.contracts.schemas import schemas  # noqa: PLC0415
    from spl.errors import UnknownNameError  # noqa: PLC0415

    found = schemas()
    if write_to is not None:
        directory = Path(write_to)
        directory.mkdir(parents=True, exist_ok=True)
        for key, value in found.items():
            (directory / f"{key}.json").write_text(json.dumps(value, indent=2) + "\n", "utf-8")
        emit(SchemaList(schemas=list(found), written_to=write_to), _render_schemas)
    elif name is None:
        emit(SchemaList(schemas=list(found)), _render_schemas)
    elif name in found:
        write(json.dumps(found[name], indent=2))
    else:
        hint = suggestion(name, found, "spl schema lists the names")
        raise UnknownNameError(f"there is no schema {name!r}", hint=hint)


def _render_schemas(document: SchemaList) -> str:
    if document.written_to is not None:
        return f"{len(document.schemas)} schemas in {visible(document.written_to)}"
    return "\n".join(document.schemas)


def _render_kinds(document: KindList) -> str:
    rows = [(part.kind, part.author, ", ".join(part.roles) or "-", part.about) for part in document.kinds]
    return table(("kind", "author", "refs", "about"), rows)


def _render_errors(document: ErrorList) -> str:
    return table(("status", "code", "about"), [(p.exit_status, p.code, p.about) for p in document.errors])


kinds_app = single(kinds)
errors_app = single(errors)
schema_app = single(schema)

"""`spl definition`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import COMMON, group
from spl.cli.context import kernel, read_file
from spl.cli.output import emit
from spl.cli.render.text import fields, outline, short, table, when

if TYPE_CHECKING:
    from spl.contracts.actors import DefinitionDocument, DefinitionList, FacetDocument
    from spl.kernel.define import Source

app = group("Definitions: what an actor is told to be.\n\nExample: spl definition install my-agent v1.toml")

_ACTOR = typer.Argument(help="The actor: name, DID, id or id prefix.")
_FILE = typer.Argument(help="A TOML or JSON file that holds the behaviour at its top level.")
_PIN = typer.Option(
    [], "--pin", help="A program or prompt file that the behaviour is made of; may be repeated."
)
_ORIGIN = typer.Option("local", help="Where it came from.")
_NOTE = typer.Option(None, help="A remark, shown in the history; the file's name when absent.")


def read_source(file: str, pins: list[str], *, origin: str, trust: str, note: str | None) -> Source:
    """Return the behaviour of a file with the files that are pinned to it.

    Raises:
        UsageError: The trust is not one, or two pinned files have the same name.
        FileInputError, EncodingError, SchemaError: A file cannot be read, or does not hold a map.
    """
    import msgspec  # noqa: PLC0415 - imported when called

    from spl.errors import UsageError  # noqa: PLC0415
    from spl.kernel.define import parse_source  # noqa: PLC0415

    if trust not in ("untrusted", "reviewed", "trusted"):
        raise UsageError(f"--trust is untrusted, reviewed or trusted, not {trust!r}")
    pinned = {Path(pin).name: read_file(pin) for pin in pins}
    if len(pinned) != len(pins):
        raise UsageError("two pinned files have the same name; a definition knows its files by their names")
    source = parse_source(read_file(file), file, pinned)
    called = note or (
        None if "system" in source.behaviour else Path(file).name
    )  # a system has a name of its own
    return msgspec.structs.replace(source, origin=origin, trust=trust, note=called)


@app.command("propose", epilog=COMMON)
def propose(
    actor: str = _ACTOR,
    file: str = _FILE,
    origin: str = _ORIGIN,
    trust: str = typer.Option("untrusted", help="untrusted, reviewed or trusted."),
    note: str | None = _NOTE,
    pin: list[str] = _PIN,
) -> None:
    """Record a candidate; nothing is installed.

    Example: spl definition propose my-agent v2.toml
    """
    from spl.kernel.define import propose as propose_definition  # noqa: PLC0415 - imported when called

    source = read_source(file, pin, origin=origin, trust=trust, note=note)
    emit(propose_definition(kernel(create=True), actor, source), _render)


@app.command("install", epilog=COMMON)
def install(
    actor: str = _ACTOR,
    file: str = _FILE,
    origin: str = _ORIGIN,
    trust: str = typer.Option("reviewed", help="untrusted, reviewed or trusted."),
    expect: str | None = typer.Option(None, help="Refuse unless this definition is the incumbent."),
    note: str | None = _NOTE,
    pin: list[str] = _PIN,
) -> None:
    """Install a definition in place of the incumbent.

    Example: spl definition install my-agent v1.toml
    """
    from spl.kernel.define import install as install_definition  # noqa: PLC0415 - imported when called

    source = read_source(file, pin, origin=origin, trust=trust, note=note)
    emit(install_definition(kernel(create=True), actor, source, expect=expect), _render)


@app.command("list", epilog=COMMON)
def list_(actor: str = _ACTOR) -> None:
    """List an actor's definitions in log order.

    Example: spl definition list my-agent
    """
    from spl.kernel.define import list_definitions  # noqa: PLC0415 - imported when called

    emit(list_definitions(kernel(), actor), _render_list)


@app.command("show", epilog=COMMON)
def show(
    definition: str = typer.Argument(help="Id, facet, a prefix of either, or: incumbent, latest."),
    actor: str | None = typer.Option(None, help="Whose; needed for incumbent and latest."),
) -> None:
    """Show one definition with its behaviour.

    Example: spl definition show incumbent --actor my-agent
    """
    from spl.kernel.define import show_definition  # noqa: PLC0415 - imported when called

    emit(show_definition(kernel(), definition, actor), _render)


@app.command("facet", epilog=COMMON)
def facet(file: str = _FILE, pin: list[str] = _PIN) -> None:
    """Print the facet that a file has; nothing is written.

    Example: spl definition facet v2.toml
    """
    from spl.kernel.define import facet_of  # noqa: PLC0415 - imported when called

    emit(facet_of(read_source(file, pin, origin="local", trust="untrusted", note=None)), _render_facet)


def _render(document: DefinitionDocument) -> str:
    part = document.definition
    state = "installed now" if part.incumbent else "installed before" if part.installed else "candidate"
    return fields(
        [
            ("definition", short(document.id)),
            ("facet", document.facet.hex()),
            ("state", state + (" (added)" if document.appended else "")),
            ("adapter", part.adapter),
            ("origin", f"{part.origin}, {part.trust}"),
            ("succeeds", short(part.succeeds) if part.succeeds else None),
            ("at", when(part.at)),
            ("note", part.note),
            ("behaviour", outline(document.behaviour)),
        ]
    )


def _render_list(document: DefinitionList) -> str:
    rows = [
        (
            "*" if part.incumbent else "",
            short(part.id),
            short(part.facet),
            "installed" if part.installed else "candidate",
            part.adapter,
            part.model or "-",
            part.origin,
            part.trust,
            when(part.at),
        )
        for part in document.definitions
    ]
    headers = ("", "definition", "facet", "state", "adapter", "model", "origin", "trust", "at")
    return table(headers, rows) or f"{document.actor_name} has no definition yet; spl definition install"


def _render_facet(document: FacetDocument) -> str:
    return document.facet.hex()

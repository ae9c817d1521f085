"""`spl actor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import COMMON, group
from spl.cli.context import kernel
from spl.cli.output import emit
from spl.cli.render.text import fields, short, table

if TYPE_CHECKING:
    from spl.contracts.actors import ActorDocument, ActorList

app = group("Actors: who does the work.\n\nExample: spl actor add my-agent")


@app.command("add", epilog=COMMON)
def add(
    name: str = typer.Argument(help="The actor's name, unique in the home."),
    did: str | None = typer.Option(None, help="Its DID; without one, a key is made."),
    note: str | None = typer.Option(None, help="A remark."),
) -> None:
    """Add an actor; adding the same one again changes nothing.

    Example: spl actor add my-agent
    """
    from spl.kernel.actors import add_actor  # noqa: PLC0415 - imported when called

    emit(add_actor(kernel(create=True), name, did=did, note=note), _render)


@app.command("list", epilog=COMMON)
def list_() -> None:
    """List the actors.

    Example: spl actor list
    """
    from spl.kernel.actors import list_actors  # noqa: PLC0415 - imported when called

    emit(list_actors(kernel()), _render_list)


@app.command("show", epilog=COMMON)
def show(actor: str = typer.Argument(help="Name, DID, id or id prefix.")) -> None:
    """Show one actor.

    Example: spl actor show my-agent
    """
    from spl.kernel.actors import show_actor  # noqa: PLC0415 - imported when called

    emit(show_actor(kernel(), actor), _render)


def _render(document: ActorDocument) -> str:
    actor = document.actor
    return fields(
        [
            ("actor", actor.name + ("" if not document.appended else " (added)")),
            ("id", short(actor.id)),
            ("did", actor.did),
            ("owner", actor.owner),
            ("definitions", actor.definitions),
            (
                "incumbent",
                f"{short(actor.incumbent)} facet {short(actor.incumbent_facet)}" if actor.incumbent else "-",
            ),
            ("note", actor.note),
        ]
    )


def _render_list(document: ActorList) -> str:
    rows = [(a.name, short(a.id), a.definitions, short(a.incumbent_facet), a.did) for a in document.actors]
    return table(("actor", "id", "definitions", "incumbent facet", "did"), rows) or (
        "no actors yet; spl actor add NAME"
    )

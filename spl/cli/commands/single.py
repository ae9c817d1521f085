"""What the commands are made of: applications of one command, and groups that suggest names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer import _click as click  # typer carries its own click
from typer.core import TyperGroup

from spl.errors import UsageError

COMMON = "Also: --json prints one JSON document; --home DIR says where the home is."


def suggestion(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint that names what `word` may have been meant for, or `otherwise`."""
    close = difflib.get_close_matches(word, list(known), n=3)
    return f"did you mean {' or '.join(close)}?" if close else otherwise


class SuggestingGroup(TyperGroup):
    """A group that refuses a mistyped command with the names that are close to it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names.

        Raises:
            UsageError: There is none.
        """
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-") and not ctx.resilient_parsing:
            path = ctx.command_path
            raise UsageError(
                f"there is no command {' '.join([path, args[0]])!r}",
                hint=suggestion(args[0], names, f"{path} --help lists the commands"),
            )
        return super().resolve_command(ctx, args)


def single(function: Callable[..., Any]) -> typer.Typer:
    """Return an application whose only command is `function`."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(epilog=COMMON)(function)
    return app


def group(about: str, cls: type[TyperGroup] = SuggestingGroup) -> typer.Typer:
    """Return an application of several commands."""
    return typer.Typer(
        cls=cls,
        help=about,
        epilog=COMMON,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        add_completion=False,
    )

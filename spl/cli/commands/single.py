"""A Typer application that is one command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

COMMON = "Also: --json prints one JSON document; --home DIR says where the home is."


def single(function: Callable[..., Any]) -> typer.Typer:
    """Return an application whose only command is `function`."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(epilog=COMMON)(function)
    return app


def group(about: str) -> typer.Typer:
    """Return an application of several commands."""
    return typer.Typer(
        help=about,
        epilog=COMMON,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        add_completion=False,
    )

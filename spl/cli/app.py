"""The root of the command line: commands are imported when they are called, not before."""

from __future__ import annotations

import difflib
import os
import sys
from importlib import import_module
from typing import Final

import typer
from typer import _click as click  # typer carries its own click
from typer.core import TyperGroup

from spl.cli.context import take_common_options
from spl.cli.output import emit_error
from spl.errors import (
    InternalFaultError,
    InterruptedByUserError,
    OperationFailedError,
    SplError,
    UsageError,
)

COMMON: Final = (
    "Options of every command: --json prints one JSON document; --home DIR says where the home is."
)

# name: (module under spl.cli.commands, attribute, help)
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "init": ("home", "init_app", "Make the home: log, blobs, keys."),
    "status": ("home", "status_app", "Say where the home is and what it holds."),
    "actor": ("actor", "app", "Actors: who does the work."),
    "definition": ("definition", "app", "Definitions: what an actor is told to be."),
    "suite": ("suite", "app", "Suites of cases."),
    "run": ("run", "app", "Runs: import, list, show, close."),
    "eval": ("evals", "app", "Scores and histories of an actor's definitions."),
    "judge": ("judge", "judge_app", "Record that one record is preferred over another."),
    "verdict": ("judge", "app", "List or retract preferences."),
    "log": ("records", "log_app", "List records in the order of the log."),
    "show": ("records", "show_app", "Show one record in full."),
    "put": ("records", "put_app", "Append a record of a namespace of your own."),
    "get": ("records", "get_app", "Print a record's bytes."),
    "verify": ("records", "verify_app", "Check everything that the home holds."),
    "kinds": ("reference", "kinds_app", "List the kinds of records."),
    "errors": ("reference", "errors_app", "List the errors and their exit statuses."),
    "schema": ("reference", "schema_app", "Print JSON Schemas of kinds and documents."),
}


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the interface
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; a mistyped name is refused with suggestions."""
        if cmd_name not in COMMANDS:
            close = difflib.get_close_matches(cmd_name, COMMANDS, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else "spl --help lists the commands"
            raise UsageError(f"there is no command {cmd_name!r}", hint=hint)
        module, attribute, _ = COMMANDS[cmd_name]
        command = typer.main.get_command(getattr(import_module(f"spl.cli.commands.{module}"), attribute))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, _, about) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    name="spl",
    help="Evidence about agents: is this one better than the one before, on which axis, and how do we know?",
    epilog=COMMON,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version.", is_eager=True),
) -> None:
    pass


def run(words: list[str] | None = None) -> None:
    """Run the command line and exit with the documented status."""
    words = sys.argv[1:] if words is None else words
    try:
        status = _invoke(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone; what remains unwritten must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


def _invoke(words: list[str]) -> int:
    try:
        rest = take_common_options(words)
        command = typer.main.get_command(app)
        result = command.main(rest, prog_name="spl", standalone_mode=False)
    except SplError as error:
        return _failed(error)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return UsageError.exit_status
    except click.ClickException as error:
        return _failed(UsageError(error.format_message()))
    except (KeyboardInterrupt, typer.Abort):
        return _failed(InterruptedByUserError("interrupted"))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _failed(OperationFailedError(f"{error.filename or 'input/output'}: {error.strerror}"))
    except Exception as error:
        from spl import environment  # noqa: PLC0415 - only an internal fault asks

        if environment.debugging():
            raise
        return _failed(InternalFaultError(f"{type(error).__name__}: {error}"))
    return result if isinstance(result, int) else 0


def _failed(error: SplError) -> int:
    sys.stdout.flush()
    emit_error(error)
    return error.exit_status

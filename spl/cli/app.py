"""The root of the command line: commands are imported when they are called, not before."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final, TextIO

import typer
from typer import _click as click  # typer carries its own click

from spl.cli.commands.single import SuggestingGroup
from spl.cli.context import current, take_common_options
from spl.cli.failures import failure
from spl.cli.output import emit_error, write_json
from spl.errors import InternalFaultError, InterruptedByUserError, OperationFailedError, UsageError

COMMON: Final = (
    "Options of every command: --json prints one JSON document; --home DIR says where the home is; a terminal shows "
    "progress, and --progress always or never decides otherwise."
)

# name: (module under spl.cli.commands, attribute, help)
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "init": ("home", "init_app", "Make the home: log, blobs, keys."),
    "status": ("home", "status_app", "Say where the home is and what it holds."),
    "actor": ("actor", "app", "Actors: who does the work."),
    "definition": ("definition", "app", "Definitions: what an actor is told to be."),
    "suite": ("suite", "app", "Suites of cases."),
    "run": ("run", "app", "Runs: execute cases and goals, import, list, show, close."),
    "eval": ("evals", "app", "Evaluate agents: check suites, bench; scores, histories, comparisons."),
    "exec": ("exec", "exec_app", "Run the built-in agent in the current directory."),
    "judge": ("judge", "judge_app", "Record that one record is preferred over another."),
    "verdict": ("judge", "app", "List or retract preferences."),
    "log": ("records", "log_app", "List records in the order of the log."),
    "show": ("records", "show_app", "Show one record in full."),
    "put": ("records", "put_app", "Append a record of a namespace of your own."),
    "get": ("records", "get_app", "Print a record's bytes."),
    "verify": ("verify", "verify_app", "Check everything that the home holds."),
    "checkpoint": ("proof", "checkpoint_app", "Sign the head of the log."),
    "prove": ("proof", "prove_app", "Prove that a record is in the log, or that the log has only grown."),
    "verify-proof": ("proof", "verify_proof_app", "Check a proof, without a home."),
    "export": ("exchange", "export_app", "Write records for another home, or for other tools."),
    "import": ("exchange", "import_app", "Append the records of a bundle, all or none."),
    "redact": ("redact", "redact_app", "Withdraw the content of a record."),
    "kinds": ("reference", "kinds_app", "List the kinds of records."),
    "errors": ("reference", "errors_app", "List the errors and their exit statuses."),
    "schema": ("reference", "schema_app", "Print JSON Schemas of kinds and documents."),
}


# `eval validate`, `run` and `bench` have published flag rules of their own: they take the raw words.
EVAL_COMMANDS: Final = ("score", "history", "compare", "regressions", "report")


class LazyGroup(SuggestingGroup):
    """A group that knows its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the interface
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command, or None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
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


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print the version."),
    no_trust: bool = typer.Option(  # noqa: ARG001 - there is nothing that it could change
        False, "--no-trust", help="Accepted; nothing in a workspace configures the built-in agent."
    ),
) -> None:
    if version:
        from spl import __version__  # noqa: PLC0415 - without --json the answer comes before all imports

        if current().json:
            write_json({"contract": "spl.version.v1", "version": __version__})
        else:
            sys.stdout.write(f"spl {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise UsageError("spl needs a command", hint="spl --help lists the commands")


def run(words: list[str] | None = None) -> None:
    """Run the command line and exit with the documented status."""
    words = sys.argv[1:] if words is None else words
    _make_streams_safe()
    try:
        status = _invoke(words)
        sys.stdout.flush()
    except BrokenPipeError:
        status = OperationFailedError.exit_status
        sys.stdout = _abandoned(sys.stdout)
    except OSError as error:
        status = OperationFailedError.exit_status
        sys.stdout = _abandoned(sys.stdout)
        try:
            sys.stderr.write(f"spl: cannot write the answer: {error.strerror}\n")
            sys.stderr.flush()
        except OSError:  # nobody can be told: the status says it alone
            sys.stderr = _abandoned(sys.stderr)
    sys.exit(status)


def eval_words(words: list[str]) -> list[str] | None:
    """Return the raw words for `eval validate`, `run` and `bench`, or None when another command is meant.

    They own every word behind `eval`. A `--json` that stands before it becomes one of theirs; `--home` stays in the
    context.
    """
    rest = take_common_options(words, leading=True)
    if rest[:1] != ["eval"]:
        return None
    behind = rest[1:]
    if behind and behind[0] in EVAL_COMMANDS:
        return None
    at = 1 if behind and not behind[0].startswith("-") else 0  # --agent-command takes all words behind it
    return [*behind[:at], *(["--json"] if current().json else []), *behind[at:]]


def _invoke(words: list[str]) -> int:
    try:
        raw = eval_words(words)
        if raw is not None:
            from spl.cli.commands.eval_words import main  # noqa: PLC0415 - only these words need the harness

            return main(raw)
        rest = take_common_options(words)
        command = typer.main.get_command(app)
        result = command.main(rest, prog_name="spl", standalone_mode=False)
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - no traceback reaches a user
        return _failed(error)
    if result == InterruptedByUserError.exit_status:  # typer turns a KeyboardInterrupt into this
        return _failed(KeyboardInterrupt())
    return result if isinstance(result, int) else 0


def _failed(error: BaseException) -> int:
    documented = failure(error)
    if isinstance(documented, InternalFaultError):
        from spl import environment  # noqa: PLC0415 - only an internal fault asks

        if environment.debugging():
            raise error
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not current().json:
        sys.stderr.write(error.format_message() + "\n")
        return documented.exit_status
    sys.stdout.flush()
    emit_error(documented)
    return documented.exit_status


def _make_streams_safe() -> None:
    """Never fail over a character that the terminal's encoding lacks, or a stream that was closed before the start."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - open until exit
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - as above
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _abandoned(stream: TextIO) -> TextIO:
    """Return a stream in place of one whose unwritten remains are dropped, so that they do not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return open(os.devnull, "w")  # noqa: PTH123 - open until exit

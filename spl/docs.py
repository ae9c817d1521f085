"""The reference pages, generated from the program itself: `python -m spl.docs` writes them into `docs/`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import typer
from typer import _click as click
from typer.core import TyperGroup

from spl.cli.app import app
from spl.cli.commands.eval_options import HELP as EVAL_HELP
from spl.errors import SplError, all_errors

WIDTH: Final = 100

_CLI_HEAD: Final = """\
# The command line

<!-- Written by `make docs`; tests compare it with the program. -->

Every command takes `--json` (standard output is then exactly one JSON document, failures included) and
`--home DIR` (else `SPL_HOME`, else the user's data directory), before or behind the command's name. Where a record is
wanted, its full id or a unique prefix of at least 8 digits will do; where a definition is wanted, its facet too; where
an actor or suite is wanted, its name too. Exit statuses: [errors.md](errors.md). Words: [glossary.md](glossary.md).
"""

_ERRORS_HEAD: Final = """\
# Errors and exit statuses

<!-- Written by `make docs`; tests compare it with the program. -->

A failure is told on standard error, with a hint where there is something to do. With `--json` it is a document on
standard output: `{"contract": "spl.error.v1", "code", "message", "hint"?, "exit_status", "details"?}`.

| status | meaning |
| --- | --- |
| 0 | done |
| 1 | the operation failed: input/output, permission, lock, disk full |
| 2 | usage or input: a bad flag, a malformed file, an unknown id or name |
| 3 | the answer is no: a report is not ok, a gate found a regression |
| 4 | refused: nothing to grade, not comparable, the define door stays closed, a conflict |
| 5 | inconclusive, with `--gate-inconclusive` |
| 6 | the log is damaged |
| 70 | internal fault; please report (`SPL_DEBUG=1` shows where) |
| 130 | interrupted |

## Codes

| code | status | meaning | what to do |
| --- | --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Return the text of each generated page by its file name."""
    return {"cli.md": cli_page(), "errors.md": errors_page()}


def cli_page() -> str:
    """Return the reference of every command: its own `--help`, at a fixed width."""
    parts = [_CLI_HEAD]
    for path, text in helps():
        parts.append(f"## {path}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def errors_page() -> str:
    """Return the table of exit statuses and of every error class."""
    errors = sorted(all_errors(), key=lambda error: error.exit_status)
    return _ERRORS_HEAD + "".join(map(_error_row, errors))


def helps() -> Iterator[tuple[str, str]]:
    """Yield each command's path and help, groups before their commands."""
    yield from _helps("spl", typer.main.get_command(app), None)


def _helps(path: str, command: click.Command, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = command.make_context(
        path.rpartition(" ")[2],
        [],
        parent,
        resilient_parsing=True,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
    )
    # `eval` prints the help of the published commands, which own their words.
    yield path, EVAL_HELP.rstrip() if path == "spl eval" else command.get_help(context).rstrip()
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _helps(f"{path} {name}", child, context)


def _error_row(error: type[SplError]) -> str:
    about = " ".join((inspect.getdoc(error) or "").split("\n\n")[0].split())
    cells = (f"`{error.code}`", str(error.exit_status), about, error.default_hint or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def main(write: Callable[[str], object] = sys.stdout.write) -> None:
    """Write the pages into `docs/` of the current directory."""
    for name, text in pages().items():
        Path("docs", name).write_text(text, "utf-8")
        write(f"docs/{name}\n")


if __name__ == "__main__":
    main()

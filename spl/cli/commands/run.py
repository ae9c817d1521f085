"""`spl run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spl.cli.commands.run_cases import goal, suite
from spl.cli.commands.single import COMMON, group
from spl.cli.context import kernel, read_file
from spl.cli.output import emit, write_content
from spl.cli.render.runs import render_run, run_table
from spl.cli.render.text import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spl.contracts.runs import RunImport, RunList, RunsClosed
    from spl.kernel.define import Source

app = group(
    "Runs: execute cases and goals, import, list, show, close.\n\n"
    "Example: spl run suite smoke --actor my-agent --jobs 4"
)
app.command("goal", epilog=COMMON)(goal)
app.command("suite", epilog=COMMON)(suite)


@app.command("import", epilog=COMMON)
def import_(
    file: str = typer.Argument(help="JSON lines, one run each; - is standard input."),
    actor: str = typer.Option(help="Who did the work: name, DID, id or id prefix."),
    suite: str | None = typer.Option(None, help="The suite of the cases; the only one when absent."),
    definition: str | None = typer.Option(
        None, help="What the runs were made with; the incumbent when absent."
    ),
    definition_from: str | None = typer.Option(None, help="The field of a line that names its definition."),
    definitions: str | None = typer.Option(
        None, help="A JSON file of behaviours by the value of that field."
    ),
    create_cases: bool = typer.Option(False, "--create-cases", help="Make the cases that the suite lacks."),
    source: str | None = typer.Option(
        None, help="What the source is called; the file's base name when absent."
    ),
) -> None:
    """Append runs that were executed elsewhere, all or nothing; the same file again appends nothing.

    Example: spl run import results.jsonl --actor my-agent --suite smoke --definition incumbent
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel.run_import import Batch, import_runs  # noqa: PLC0415

    if (definition_from is None) != (definitions is None):
        raise UsageError("--definition-from and --definitions go together")
    if definition is not None and definition_from is not None:
        raise UsageError("--definition and --definition-from exclude each other")
    batch = Batch(
        source=source or ("stdin" if file == "-" else Path(file).name),
        suite=suite,
        definition=definition,
        definition_from=definition_from,
        definitions={} if definitions is None else _definitions(definitions),
        create_cases=create_cases,
    )
    emit(import_runs(kernel(create=True), actor, _lines(file), batch), _render_import)


def _lines(file: str) -> Iterator[bytes]:
    yield from read_file(file).splitlines()


def _definitions(file: str) -> dict[str, Source]:
    """Return the behaviours of a file: a JSON object of behaviour maps by name."""
    import json  # noqa: PLC0415 - imported when called

    import msgspec  # noqa: PLC0415

    from spl.codec.jsontext import parse  # noqa: PLC0415
    from spl.errors import schema_error  # noqa: PLC0415
    from spl.kernel.define import parse_behaviour  # noqa: PLC0415

    found = parse(read_file(file), what=file)
    if not isinstance(found, dict):
        raise schema_error(file, [("$", "is an object of behaviours by name")])
    return {
        name: msgspec.structs.replace(
            parse_behaviour(json.dumps(behaviour).encode(), f"{file}: {name}"), origin=Path(file).name
        )
        for name, behaviour in found.items()
    }


@app.command("list", epilog=COMMON)
def list_(
    actor: str | None = typer.Option(None, help="Only this actor's runs."),
    suite: str | None = typer.Option(None, help="Only runs of this suite's current cases."),
    definition: str | None = typer.Option(None, help="Only runs under this definition's facet."),
    limit: int = typer.Option(50, min=1, help="How many at the most, those that began last."),
) -> None:
    """List runs in log order.

    Example: spl run list --actor my-agent --limit 10
    """
    from spl.kernel.runs import list_runs  # noqa: PLC0415 - imported when called

    found = list_runs(kernel(), actor=actor, suite=suite, definition=definition, limit=limit)
    emit(found, _render_list)


@app.command("show", epilog=COMMON)
def show(
    run: str = typer.Argument(help="The id or prefix of a run's start or end."),
    evidence: str | None = typer.Option(
        None, help="Print what is kept of the run under a role: stdout, stderr, diff, trace, usage or checks."
    ),
) -> None:
    """Show one run in full, or print one piece of its evidence as it is.

    Example: spl run show 3f2a9c1b --evidence stdout
    """
    from spl.kernel.runs import run_evidence, show_run  # noqa: PLC0415 - imported when called

    if evidence is not None:
        write_content(run_evidence(kernel(), run, evidence))
        return
    emit(show_run(kernel(), run), render_run)


@app.command("close", epilog=COMMON)
def close(
    runs: list[str] = typer.Argument(None, help="Open runs; all of them when none is named."),
    cause: str = typer.Option("closed by the operator: it was left open", help="Why they are ended."),
) -> None:
    """End runs that a crash left open, as cancelled.

    Example: spl run close
    """
    from spl.kernel.runs import close_runs  # noqa: PLC0415 - imported when called

    emit(close_runs(kernel(), runs or [], cause), _render_closed)


def _render_import(document: RunImport) -> str:
    return fields(
        [
            ("source", document.source),
            ("lines", document.lines),
            ("appended", f"{document.appended} runs"),
            ("already there", document.already_there or None),
            ("cases created", document.cases_created or None),
            ("definitions", document.definitions),
            ("records", document.size),
        ]
    )


def _render_list(document: RunList) -> str:
    text = run_table(document.runs) or "no runs"
    return ("… earlier ones; raise --limit\n" if document.more else "") + text


def _render_closed(document: RunsClosed) -> str:
    closed = run_table(document.closed) or "no run was left open"
    return closed + (f"\n{len(document.running)} runs are being executed" if document.running else "")

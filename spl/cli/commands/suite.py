"""`spl suite`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import COMMON, group
from spl.cli.context import kernel, read_file
from spl.cli.output import emit
from spl.cli.render.text import fields, outline, short, table

if TYPE_CHECKING:
    from spl.contracts.suites import CaseDocument, SuiteDocument, SuiteList

app = group("Suites of cases.\n\nExample: spl suite import suite.json")

_SUITE = typer.Argument(help="The suite: name, id or id prefix.")


@app.command("create", epilog=COMMON)
def create(
    name: str = typer.Argument(help="The suite's name, unique in the home."),
    description: str | None = typer.Option(None, help="What it is about."),
) -> None:
    """Create an empty suite; creating the same one again changes nothing.

    Example: spl suite create smoke
    """
    from spl.kernel.suites import create_suite  # noqa: PLC0415 - imported when called

    emit(create_suite(kernel(create=True), name, description), _render)


@app.command("import", epilog=COMMON)
def import_(
    file: str = typer.Argument(help="A suite file; its fixtures lie beside it."),
    name: str | None = typer.Option(None, help="The suite's name in the home; its id when absent."),
) -> None:
    """Take over a suite file with its fixtures; only what changed is appended.

    Example: spl suite import suite.json
    """
    from spl.harness.suite import load_suite  # noqa: PLC0415 - imported when called
    from spl.kernel.suite_import import import_suite_file  # noqa: PLC0415

    emit(import_suite_file(kernel(create=True), load_suite(file), name), _render)


@app.command("add", epilog=COMMON)
def add(
    suite: str = _SUITE,
    file: str = typer.Argument(
        help="JSON: one case (key, name, goal, expect, …) or an array; - is standard input."
    ),
) -> None:
    """Add cases, each in place of the one of its key.

    Example: spl suite add smoke cases.json
    """
    from spl.kernel.suite_import import parse_cases  # noqa: PLC0415 - imported when called
    from spl.kernel.suites import add_cases  # noqa: PLC0415

    cases = parse_cases(read_file(file), file)
    emit(add_cases(kernel(create=True), suite, cases), _render)


@app.command("list", epilog=COMMON)
def list_() -> None:
    """List the suites.

    Example: spl suite list
    """
    from spl.kernel.suites import list_suites  # noqa: PLC0415 - imported when called

    emit(list_suites(kernel()), _render_list)


@app.command("show", epilog=COMMON)
def show(
    suite: str = _SUITE, case: str | None = typer.Option(None, help="One case in full, by its key.")
) -> None:
    """Show a suite's current cases.

    Example: spl suite show smoke
    """
    from spl.kernel.suites import show_case, show_suite  # noqa: PLC0415 - imported when called

    if case is not None:
        emit(show_case(kernel(), suite, case), _render_case)
    else:
        emit(show_suite(kernel(), suite), _render)


@app.command("retire", epilog=COMMON)
def retire(
    suite: str = _SUITE,
    key: str = typer.Argument(help="The case's key."),
    reason: str = typer.Option(help="Why it leaves."),
) -> None:
    """Take a case out of its suite; its runs stay in the log.

    Example: spl suite retire smoke add-flag --reason old
    """
    from spl.kernel.suites import retire_case  # noqa: PLC0415 - imported when called

    emit(retire_case(kernel(create=True), suite, key, reason), _render)


def _render(document: SuiteDocument) -> str:
    suite = document.suite
    changed = [
        f"{len(keys)} {word}"
        for word, keys in (
            ("added", document.added),
            ("replaced", document.replaced),
            ("retired", document.retired),
        )
        if keys
    ]
    if document.unchanged:
        changed.append(f"{document.unchanged} unchanged")
    head = fields(
        [
            ("suite", suite.name),
            ("id", short(suite.id)),
            ("about", suite.description),
            ("cases", suite.cases),
            ("revision", short(suite.revision)),
            ("changed", ", ".join(changed) or None),
        ]
    )
    rows = [
        (case.key, case.name, ", ".join(case.expects), short(case.facet)) for case in document.cases[:_MOST]
    ]
    more = f"… {len(document.cases) - _MOST} more; --json has them all" if len(document.cases) > _MOST else ""
    return "\n".join(filter(None, [head, table(("case", "name", "expects", "facet"), rows), more]))


_MOST = 50


def _render_list(document: SuiteList) -> str:
    rows = [(suite.name, short(suite.id), suite.cases, short(suite.revision)) for suite in document.suites]
    return table(("suite", "id", "cases", "revision"), rows) or "no suites yet; spl suite import FILE"


def _render_case(document: CaseDocument) -> str:
    case = document.case
    return fields(
        [
            ("case", case.key),
            ("name", case.name),
            ("id", short(case.id)),
            ("facet", case.facet.hex()),
            ("tags", ", ".join(case.tags) or None),
            ("fixture", case.fixture),
            ("goal", document.goal),
            ("expect", outline(document.expect)),
        ]
    )

"""`spl eval report`: what is known of an actor, as a page or in a format that other tools read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import typer

from spl.cli.context import current, kernel
from spl.cli.output import emit, write
from spl.cli.target import STDOUT, target, write_stdout
from spl.errors import UsageError

if TYPE_CHECKING:
    from spl.contracts.report import ReportDocument

Format: TypeAlias = Literal["html", "markdown", "csv", "junit", "json"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_SUFFIXES: Final[dict[str, Format]] = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".xml": "junit",
    ".json": "json",
}


def report(
    actor: str = typer.Argument(help="Whose: name, DID, id or id prefix."),
    output: str = typer.Option(
        STDOUT, "--output", "-o", metavar="FILE", help="The file; - is standard output."
    ),
    suite: str | None = typer.Option(None, help="Only on this suite."),
    format_: str | None = typer.Option(
        None,
        "--format",
        metavar="FORMAT",
        help="html, markdown, csv, junit or json; by FILE's suffix when absent, markdown on standard output.",
    ),
) -> None:
    """Write what is known of an actor: figures, comparisons, cases, costs, verdicts, and the ids behind them.

    An HTML page stands alone: it opens from disk, without network and scripts. Markdown suits a pull request, CSV has
    one row for each suite, definition and axis, JUnit XML one test case for each case and axis.

    Example: spl eval report my-agent -o report.html
    """
    chosen = _format(output, format_)
    with nullcontext() if output == STDOUT else target(output) as file:
        from spl.kernel.report import actor_report  # noqa: PLC0415 - what is in the way of writing comes first

        document = actor_report(kernel(), actor, suite)
        content = _renderer(chosen)(document).encode("utf-8", "replace")
        if file is None:
            write_stdout(content)
            return
        file.write(content)
    if current().json:
        emit(document, lambda _: "")
    else:
        write(_summary(document, output, len(content)))


def _format(output: str, wanted: str | None) -> Format:
    """Return the format that is meant.

    Raises:
        UsageError: There is no such format, FILE's suffix does not tell one, or `--json` contradicts it.
    """
    known = f"--format is one of {', '.join(FORMATS)}"
    if output == STDOUT and current().json:
        if wanted not in (None, "json"):
            raise UsageError(f"--json and --format {wanted} both want standard output", hint="add -o FILE")
        return "json"
    if wanted is not None:
        for name in FORMATS:
            if name == wanted:
                return name
        raise UsageError(f"there is no format {wanted!r}", hint=known)
    if output == STDOUT:
        return "markdown"
    suffix = PurePath(output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(f"the name {output!r} does not say which format is wanted", hint=known)
    return _SUFFIXES[suffix]


def _renderer(chosen: Format) -> Callable[[ReportDocument], str]:
    if chosen == "html":
        from spl.cli.render.report.page import render_page  # noqa: PLC0415 - charts and templates, only for pages

        return render_page
    if chosen == "markdown":
        from spl.cli.render.report.markdown import render_markdown  # noqa: PLC0415 - as above

        return render_markdown
    if chosen == "csv":
        from spl.cli.render.report.csvtable import render_csv  # noqa: PLC0415 - as above

        return render_csv
    if chosen == "junit":
        from spl.cli.render.report.junit import render_junit  # noqa: PLC0415 - as above

        return render_junit
    from spl.codec.jsontext import format_json  # noqa: PLC0415 - as above

    return lambda document: format_json(document) + "\n"


def _summary(document: ReportDocument, output: str, size: int) -> str:
    from spl.cli.sanitize import visible  # noqa: PLC0415 - only words need it

    definitions = len({line.line.facet for suite in document.suites for line in suite.lines})
    suites = len(document.suites)
    return f"{visible(output)}: {suites} suites, {definitions} definitions with scores, {size:,} bytes"

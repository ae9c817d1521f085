"""`spl run goal` and `spl run suite`: they execute agents, and record what happened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spl.cli.context import kernel
from spl.cli.output import emit
from spl.cli.progress import Progress
from spl.cli.render.money import cost
from spl.cli.render.runs import render_run, run_table
from spl.cli.render.text import fields, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spl.contracts.runs import RunsMade
    from spl.harness.built_in import BuiltIn
    from spl.kernel.execute import Done, How
    from spl.kernel.trial import Choice

_SHOWN = 40
_NANO = 1_000_000_000

ACTOR = typer.Option(help="Who works: name, DID, id or id prefix.")
DEFINITION = typer.Option(None, help="A definition that the home knows; the incumbent when absent.")
TRIAL = typer.Option(None, help="A candidate to try, as a file or an id; nothing is installed.")
PIN = typer.Option([], "--pin", help="With --trial FILE: a file that the behaviour is made of; repeatable.")
TIMEOUT = typer.Option(None, help="The agent's time limit, such as 90s or 5m; goes before the definition's.")


def goal(
    text: str = typer.Argument(help="What is to be done."),
    actor: str = ACTOR,
    workspace: str | None = typer.Option(
        None, help="Where to work, and where what was made stays; a fresh empty directory when absent."
    ),
    definition: str | None = DEFINITION,
    trial: str | None = TRIAL,
    pin: list[str] = PIN,
    timeout: str | None = TIMEOUT,
) -> None:
    """Let an actor work on a goal, and record the run. This executes the definition's program.

    The exit status is 0 when the run completed, and 3 when it did not.

    Example: spl run goal "make the tests pass" --actor my-agent --workspace .
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel.run_cases import run_goal  # noqa: PLC0415

    if workspace == "":
        raise UsageError("--workspace is empty", hint="name a directory, or leave it out for a fresh one")
    place = None if workspace is None else Path(workspace)
    home = kernel(create=True)
    made = run_goal(home, text, actor, choice(definition, trial, pin), how(1, timeout), place)
    emit(made, render_run)
    if made.run.status != "completed":
        raise typer.Exit(3)


def suite(
    name: str = typer.Argument(metavar="SUITE", help="The suite: name, id or id prefix."),
    actor: str = ACTOR,
    case: list[str] = typer.Option([], "--case", help="Only this case, by its key; repeatable."),
    definition: str | None = DEFINITION,
    trial: str | None = TRIAL,
    pin: list[str] = PIN,
    attempts: int = typer.Option(1, min=1, max=10_000, help="Attempts at each case."),
    jobs: int = typer.Option(1, min=1, max=1_000, help="Attempts side by side."),
    timeout: str | None = TIMEOUT,
    resume: bool = typer.Option(
        False, "--resume", help="Leave out attempts that the log holds, unless cancelled or blocked."
    ),
) -> None:
    """Run the cases of a suite, each in a fresh workspace, and record every run. This executes programs.

    The exit status is 0 when every run was executed, whatever came of it, and 3 when one was blocked.

    Example: spl run suite smoke --actor my-agent --jobs 4
    """
    from spl.kernel.run_cases import Wanted, run_suite  # noqa: PLC0415 - imported when called

    home = kernel(create=True)
    wanted = Wanted(cases=case, attempts=attempts, resume=resume)
    with Progress("runs", jobs, good="completed") as progress:
        made = run_suite(
            home, name, actor, choice(definition, trial, pin), wanted, how(jobs, timeout, progress)
        )
    emit(made, _render_made)
    if made.counts.get("blocked"):
        raise typer.Exit(3)


def choice(definition: str | None, trial: str | None, pins: list[str]) -> Choice:
    """Return under which definition is run; a trial that names a file is read.

    Raises:
        UsageError: The options exclude each other.
        FileInputError, EncodingError, SchemaError: The file cannot be read, or does not hold a map.
    """
    from spl.cli.commands.definition import read_source  # noqa: PLC0415 - imported when called
    from spl.errors import UsageError  # noqa: PLC0415
    from spl.kernel.trial import Choice  # noqa: PLC0415

    if trial is not None and definition is not None:
        raise UsageError("--definition and --trial exclude each other")
    is_file = trial is not None and (Path(trial).suffix in (".toml", ".json") or Path(trial).is_file())
    if pins and not is_file:
        raise UsageError("--pin goes with --trial FILE; an installed definition has its files already")
    if trial is None or not is_file:
        return Choice(definition=definition, trial=trial)
    return Choice(trial=read_source(trial, pins, origin="local", trust="untrusted", note=None))


def how(jobs: int, timeout: str | None, progress: Progress | None = None) -> How:
    """Return how attempts are made.

    Raises:
        UsageError: The timeout is not a duration.
    """
    from spl.environment import variables  # noqa: PLC0415 - imported when called
    from spl.errors import UsageError  # noqa: PLC0415
    from spl.harness.durations import parse_duration  # noqa: PLC0415
    from spl.kernel.execute import How  # noqa: PLC0415

    try:
        seconds = 0.0 if timeout is None else parse_duration(timeout)
    except ValueError as error:
        raise UsageError(f"--timeout is a duration such as 90s or 5m: {error}") from error
    if seconds < 0:
        raise UsageError("--timeout is not negative")

    def counted(done: Done) -> None:
        spent = sum(usage.cost_nusd or 0 for usage in done.end.usage or ())
        if progress is not None:
            progress.count(passed=done.end.status == "completed", cost_usd=spent / _NANO)

    return How(
        environment=variables(),
        built_in=built_in(),
        jobs=jobs,
        timeout_ms=max(1, round(seconds * 1000)) if seconds else None,
        on_planned=None if progress is None else progress.plan,
        on_done=counted,
    )


def built_in() -> BuiltIn:
    """Return what the built-in agent is handed; its configuration is read when it is started.

    Raises:
        UsageError: There is no place where a configuration could be.
    """
    from spl.environment import config_variables  # noqa: PLC0415 - imported when called
    from spl.harness.built_in import BuiltIn  # noqa: PLC0415

    return BuiltIn(variables=config_variables(), key_variables=_key_variables)


def _key_variables(models: Sequence[str]) -> Sequence[str]:
    """Return the variables that hold the keys for models; only the built-in agent asks.

    Raises:
        MissingExtraError: The built-in agent is not installed.
        FileInputError, InputError: The configuration cannot be used.
    """
    from spl.agent.run import require_extra  # noqa: PLC0415 - as above
    from spl.agent.settings import key_variables  # noqa: PLC0415
    from spl.environment import settings  # noqa: PLC0415

    require_extra()
    configured = settings()
    return key_variables(configured, [name for model in models if (name := model or configured.model)])


def _render_made(document: RunsMade) -> str:
    ended = [f"{count} {status}" for status, count in document.counts.items()]
    many = len(document.runs) > _SHOWN
    rows = [run for run in document.runs if not many or run.status != "completed"]
    summary = fields(
        [
            ("suite", document.suite_name),
            ("definition", short(document.definition) + (" (trial)" if document.trial else "")),
            ("facet", document.facet.hex()),
            ("runs", ", ".join(ended) or "none"),
            ("skipped", f"{document.skipped} are in the log already" if document.skipped else None),
            ("cost", cost(document.cost)),
        ]
    )
    left_out = f"the {len(document.runs) - len(rows)} runs that completed are in spl run list" if many else ""
    return "\n".join(part for part in (run_table(rows), left_out, summary) if part)

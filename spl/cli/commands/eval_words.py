"""`spl eval validate`, `run` and `bench`: they own every word behind `eval`, and keep their published streams."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spl.cli.commands.eval_options import HELP, EvalOptions, HelpWanted, WordsError, parse_words
from spl.cli.sanitize import visible
from spl.errors import SplError, SuiteLoadError

if TYPE_CHECKING:
    from spl.contracts.harness import EvalDocument
    from spl.harness.suite import Suite

_FAILED = 1
_USAGE = 2
_NOT_OK = 3
_PREFIX = "[splice] "
_COMMAND = "external_command"
_BUILT_IN = "splice_pipeline"


class OutputError(Exception):
    """A report file or a CSV cannot be written; the message says which and why."""


def main(words: list[str]) -> int:
    """Run `spl eval` with the words behind it and return the exit status.

    Standard output carries the answer, or nothing when standard error says what is wrong. Files are checked for
    writability before anything runs, and written before the answer is.
    """
    try:
        options = parse_words(words)
    except HelpWanted:
        sys.stdout.write(HELP)
        return 0
    except WordsError as error:
        return _refuse(str(error), _USAGE)
    try:
        return _run(options)
    except (OutputError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        return _refuse(str(error), _FAILED)
    except SuiteLoadError as error:
        if options.format == "github":
            _emit_annotations(error, options.suite)
            return _USAGE
        return _refuse(error.message, _USAGE)
    except SplError as error:
        return _refuse(f"{error.message}; {error.hint}" if error.hint else error.message, error.exit_status)


def _run(options: EvalOptions) -> int:
    from spl.harness.suite import load_suite  # noqa: PLC0415 - mistakes in the words come first

    suite = load_suite(options.suite)
    if options.mode == "validate":
        from spl.harness.report import validate_document  # noqa: PLC0415 - as above

        return _emit(validate_document(suite), options)
    _check_outputs(options)
    with tempfile.TemporaryDirectory(prefix="spl-spools-", ignore_cleanup_errors=True) as spools:
        execute = _score if options.mode == "run" else _recorded if options.actor else _bench
        return _emit(execute(suite, options, Path(spools)), options)


def _score(suite: Suite, options: EvalOptions, spools: Path) -> EvalDocument:
    from spl.environment import variables  # noqa: PLC0415 - as above
    from spl.harness.checks import score_workspace  # noqa: PLC0415
    from spl.harness.report import run_document  # noqa: PLC0415
    from spl.harness.request import ScoreRequest  # noqa: PLC0415

    report = score_workspace(
        ScoreRequest(
            suite=suite,
            task_id=options.task,
            workspace=options.workspace,
            environment=variables(),
            spools=spools,
            clean_env=options.clean_env,
        )
    )
    return run_document(suite, report)


def _bench(suite: Suite, options: EvalOptions, spools: Path) -> EvalDocument:
    from spl.cli.commands.run_cases import built_in  # noqa: PLC0415 - as above
    from spl.cli.progress import Progress  # noqa: PLC0415
    from spl.environment import variables  # noqa: PLC0415
    from spl.harness.bench import run_bench  # noqa: PLC0415
    from spl.harness.report import bench_document  # noqa: PLC0415
    from spl.harness.request import BenchRequest  # noqa: PLC0415

    facets = _built_in_facets(options.models) if options.agent_command is None else {}
    agent = built_in() if options.agent_command is None else options.agent_command
    tasks = 1 if options.task else len(suite.tasks)
    with Progress("rows", options.jobs, tasks * max(1, len(options.models))) as progress:
        outcome = run_bench(
            BenchRequest(
                suite=suite,
                agent=agent,
                environment=variables(),
                spools=spools,
                task_id=options.task,
                models=options.models,
                work_root=options.work_root,
                keep_workspaces=options.keep_workspaces,
                timeout_s=options.timeout_s,
                clean_env=options.clean_env,
                jobs=options.jobs,
                retries=options.retries,
                fail_fast=options.fail_fast,
                on_row=lambda row: progress.count(passed=row.report.ok, cost_usd=row.agent.cost_usd),
            )
        )
    return bench_document(
        suite,
        outcome.rows,
        runner_kind=_BUILT_IN if facets else _COMMAND,
        models=options.models,
        work_root=outcome.work_root if options.keep_workspaces else "",
        facets=facets,
    )


def _built_in_facets(models: list[str]) -> dict[str, str]:
    """Return the facet of the built-in definition with each model, when it can be asked for all of them.

    Raises:
        MissingExtraError: The built-in agent is not installed.
        UsageError: No model is named.
        FileInputError, InputError: The configuration is not one, or does not know a model's provider.
    """
    from spl.agent.defaults import default_behaviour  # noqa: PLC0415 - as above
    from spl.agent.run import require_extra  # noqa: PLC0415
    from spl.agent.settings import route  # noqa: PLC0415
    from spl.codec import digest  # noqa: PLC0415
    from spl.environment import settings  # noqa: PLC0415
    from spl.errors import UsageError  # noqa: PLC0415
    from spl.records.wire import to_map  # noqa: PLC0415

    require_extra()
    configured = settings()
    named = models or ([configured.model] if configured.model else [])
    if not named:
        raise UsageError(
            "no agent and no model is named",
            hint="name an agent with --agent-command, or a model of the built-in agent with --model",
        )
    for model in named:
        route(configured, model)
    return {model: digest.facet(to_map(default_behaviour(model))).hex() for model in named}


def _recorded(suite: Suite, options: EvalOptions, spools: Path) -> EvalDocument:
    """Run the definition of an actor, and record its runs in the home."""
    import msgspec  # noqa: PLC0415 - as above

    from spl.cli.commands.run_cases import choice, how  # noqa: PLC0415
    from spl.cli.context import kernel  # noqa: PLC0415
    from spl.cli.progress import Progress  # noqa: PLC0415
    from spl.harness.report import bench_document  # noqa: PLC0415
    from spl.kernel.run_cases import record_bench  # noqa: PLC0415

    wish = choice(options.definition or None, options.trial or None, [])
    with Progress("rows", options.jobs) as progress:
        manner = msgspec.structs.replace(
            how(options.jobs, None, progress),
            timeout_ms=round(options.timeout_s * 1000) or None,
            retries=options.retries,
            work_root=Path(os.path.abspath(options.work_root)) if options.work_root else None,  # noqa: PTH100
            keep_workspaces=options.keep_workspaces,
            fail_fast=options.fail_fast,
            scratch=spools,
        )
        made = record_bench(kernel(create=True), suite, options.actor, wish, manner, options.task)
    model = made.under.behaviour.model
    return bench_document(
        suite,
        made.rows,
        runner_kind=_COMMAND if made.under.adapter == "command" else _BUILT_IN,
        models=[model] if model else [],
        work_root=str(manner.work_root or "") if options.keep_workspaces else "",
        facets={model or "": made.under.facet.hex()},
    )


# --- output ----------------------------------------------------------------------------------------------


def _emit(document: EvalDocument, options: EvalOptions) -> int:
    """Write report file, CSV and answer; a file that fails does not take the answer with it."""
    from spl.harness.document import csv_lines, write_json  # noqa: PLC0415 - as above
    from spl.harness.report import REPORT_NAME, with_report_path  # noqa: PLC0415

    failed: list[str] = []
    if options.report_dir:
        named = with_report_path(document, options.report_dir)
        if _save(
            Path(options.report_dir) / REPORT_NAME,
            lambda file: write_json(named, file.write),
            "report",
            failed,
        ):
            document = named
    if options.csv_output:
        _save(
            Path(options.csv_output),
            lambda file: file.writelines(_encoded(line) for line in csv_lines(document)),
            "CSV",
            failed,
        )
    out = sys.stdout.buffer
    if options.json:
        write_json(document, out.write)
    else:
        out.writelines(_text(document, options))
    out.flush()
    for message in failed:
        _refuse(message, _FAILED)
    return _FAILED if failed else 0 if document.ok else _NOT_OK


def _text(document: EvalDocument, options: EvalOptions) -> Iterator[bytes]:
    from spl.harness.document import failure_lines, text_lines  # noqa: PLC0415 - as above

    terminal = sys.stdout.isatty()
    for lines in (text_lines(document), failure_lines(document, verbose=options.verbose)):
        for line in lines:
            yield _encoded((visible(line, lines=True) if terminal else line) + "\n")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _check_outputs(options: EvalOptions) -> None:
    """Refuse files that cannot be written, before any work is spent; files that are there stay as they are."""
    from spl.harness.report import REPORT_NAME  # noqa: PLC0415 - as above

    if options.report_dir:
        _check_writable(Path(options.report_dir) / REPORT_NAME, "report")
    if options.csv_output:
        _check_writable(Path(options.csv_output), "CSV")


def _check_writable(path: Path, what: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            return  # a pipe or a device: opening it might wait
        existed = os.path.lexists(path)
        with path.open("ab"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise OutputError(_why(what, error)) from error


def _save(path: Path, write: Callable[[BinaryIO], None], what: str, failed: list[str]) -> bool:
    try:
        with path.open("wb") as file:
            write(file)
    except OSError as error:
        failed.append(_why(what, error))
        return False
    return True


def _why(what: str, error: OSError) -> str:
    return f"failed to write eval {what}: {error.filename or ''}: {error.strerror}"


def _refuse(message: str, status: int) -> int:
    sys.stderr.buffer.write(_encoded(f"{_PREFIX}{message}\n"))
    sys.stderr.buffer.flush()
    return status


def _emit_annotations(error: SuiteLoadError, path: str) -> None:
    """Print each problem as a workflow annotation at the suite file."""
    for problem in error.details.get("problems", [error.message]):
        text = problem.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        name = path.replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
        sys.stdout.write(f"::error file={name}::{text}\n")

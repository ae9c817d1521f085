"""Scoring one workspace: commands, changed files, context, trace, and how their statuses combine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from spl.contracts.harness import CheckResult, ScoreReport, Status
from spl.errors import OperationFailedError
from spl.harness import process
from spl.harness.git import Git
from spl.harness.interrupts import interrupts
from spl.harness.limit import Limit
from spl.harness.paths import trim
from spl.harness.report import score_report, selection_error
from spl.harness.request import ScoreRequest
from spl.harness.snapshot import Seen, changed_since, scan
from spl.harness.suite import Command, Suite, Task

COMMAND_TIMEOUT_S: Final = 600.0
Changes = Callable[[], tuple[list[str], Mapping[str, Seen]]]


class Bench(Struct, frozen=True, kw_only=True):
    """Where and how a workspace's checks run.

    Attributes:
        workspace: Its absolute path.
        environment: Of the verification commands.
        spools: Where long output is kept.
        limit: When all must have ended.
        changes: Returns the changed names, and the scan that they were taken from.
    """

    workspace: Path
    environment: Mapping[str, str]
    spools: Path
    limit: Limit
    changes: Changes


def select_task(suite: Suite, task_id: str) -> Task | str:
    """Return the task of an id, matched exactly first and trimmed then, or why there is none."""
    if not task_id:
        if len(suite.tasks) == 1:
            return suite.tasks[0]
        return f"taskId is required when suite has {len(suite.tasks)} tasks"
    for wanted in (lambda task: task.id == task_id, lambda task: trim(task.id) == trim(task_id)):
        found = next(filter(wanted, suite.tasks), None)
        if found is not None:
            return found
    return f'task "{task_id}" not found'


def score_workspace(request: ScoreRequest) -> ScoreReport:
    """Return the score of one Git worktree that an agent has already changed."""
    suite = request.suite
    task = select_task(suite, request.task_id)
    if isinstance(task, str):
        return selection_error(suite.id, request.task_id, task)
    workspace = Path(os.path.abspath(trim(request.workspace)))  # noqa: PTH100 - links stay as they are
    workspace_or_target = Path(os.path.realpath(workspace))
    cancel = threading.Event()
    limit = Limit(cancel=cancel)

    def changes() -> tuple[list[str], Mapping[str, Seen]]:
        names = Git(request.environment, request.spools, limit).changed_files(workspace)
        return names, scan(workspace_or_target, limit)

    environment = (
        process.allowlisted(request.environment, workspace, request.spools)
        if request.clean_env
        else process.inherited(request.environment, workspace)
    )
    bench = Bench(
        workspace=workspace, environment=environment, spools=request.spools, limit=limit, changes=changes
    )
    with interrupts(cancel):
        return score_task(suite.id, task, bench, [])


def _workspace_problem(workspace: Path) -> str:
    try:
        workspace.stat()
    except OSError as error:
        return f"stat {workspace}: {(error.strerror or '').lower()}"
    return "" if workspace.is_dir() else "workspace path must be a directory"


def score_task(suite_id: str, task: Task, bench: Bench, events: Sequence[str]) -> ScoreReport:
    """Return the score of a workspace in which an agent succeeded.

    Context and changes are taken before the verification commands run, so that what these build does not count; what
    they change stands in the report by itself.
    """
    problem = _workspace_problem(bench.workspace)
    if problem:
        return blocked_report(suite_id, task, f"workspace setup failed: {problem}", events)
    context = _context_result(task, bench.workspace)
    try:
        changes, before = bench.changes()
    except (OSError, OperationFailedError) as error:
        return blocked_report(suite_id, task, f"changed files collection failed: {_text(error)}", events)
    commands = [_command_result(command, bench) for command in task.verification_commands]
    if bench.limit.problem:
        return blocked_report(suite_id, task, bench.limit.problem, events)
    try:
        by_checks = changed_since(before, scan(Path(os.path.realpath(bench.workspace)), bench.limit))
    except (OSError, OperationFailedError):
        by_checks = []  # the checks removed the workspace, or time is over; their results stand
    results = [*commands, *_changes_results(task, changes), *context, *_trace_result(task, events)]
    return score_report(suite_id, task.id, results, changes, changed_by_checks=by_checks)


def blocked_report(suite_id: str, task: Task, reason: str, events: Sequence[str] = ()) -> ScoreReport:
    """Return the report of a run that was stopped: every result is blocked for the same reason."""
    message = f"run blocked: {reason}"
    results = [
        CheckResult(
            id=one.id, name=one.name, kind="command", status="blocked", command=one.command, message=message
        )
        for one in task.verification_commands
    ]
    changes = _changes_results(task, [])
    context = _context_result(task, None)
    trace = _trace_result(task, events)
    results += [
        CheckResult(
            id=one.id,
            name=one.name,
            kind=one.kind,
            status="blocked",
            message=message,
            expected_files=one.expected_files,
            expected_events=one.expected_events,
            actual_events=one.actual_events,
        )
        for one in (*changes, *context, *trace)
    ]
    return score_report(suite_id, task.id, results, [])


def _command_result(command: Command, bench: Bench) -> CheckResult:
    outcome = process.run(
        command.command,
        directory=bench.workspace,
        environment=bench.environment,
        spools=bench.spools,
        limit=bench.limit.within(COMMAND_TIMEOUT_S),
    )
    status: Status = "error" if outcome.not_started else "fail" if outcome.exit_code else "pass"
    return CheckResult(
        id=command.id,
        name=command.name,
        kind="command",
        status=status,
        command=command.command,
        exit_code=outcome.exit_code,
        stdout=outcome.stdout or "",
        stderr=outcome.stderr or "",
        truncated=outcome.truncated,
        message=outcome.not_started,
    )


def _changes_results(task: Task, actual: list[str]) -> list[CheckResult]:
    expected, found = task.expected_changed_files, set(actual)
    missing = [path for path in expected if path not in found]
    unexpected = [path for path in actual if path not in set(expected)]
    results = [
        CheckResult(
            id="changed_files",
            name="Expected changed files",
            kind="changed_files",
            status="fail" if missing or unexpected else "pass",
            expected_files=expected,
            actual_files=actual,
            missing_files=missing,
            unexpected_files=unexpected,
        )
    ]
    if task.forbidden_changed_files:
        touched = [path for path in task.forbidden_changed_files if path in found]
        results.append(
            CheckResult(
                id="forbidden_changed_files",
                name="Forbidden changed files",
                kind="changed_files",
                status="fail" if touched else "pass",
                expected_files=task.forbidden_changed_files,
                actual_files=actual,
                unexpected_files=touched,
            )
        )
    return results


def _context_result(task: Task, workspace: Path | None) -> list[CheckResult]:
    checks = task.context_checks
    if not checks.required_files and not checks.forbidden_files:
        return []
    missing: list[str] = []
    present: list[str] = []
    if workspace is not None:
        try:
            missing = [path for path in checks.required_files if not _exists(workspace, path)]
            present = [path for path in checks.forbidden_files if _exists(workspace, path)]
        except OperationFailedError as error:
            return [_context(task, "error", message=error.message)]
    return [_context(task, "fail" if missing or present else "pass", missing=missing, present=present)]


def _context(
    task: Task, status: Status, *, missing: Sequence[str] = (), present: Sequence[str] = (), message: str = ""
) -> CheckResult:
    return CheckResult(
        id="context_checks",
        name="Context quality checks",
        kind="context",
        status=status,
        message=message,
        expected_files=task.context_checks.required_files,
        missing_files=list(missing),
        unexpected_files=list(present),
    )


def _exists(workspace: Path, path: str) -> bool:
    """Say whether there is something of that name, links followed; below a regular file there is nothing."""
    try:
        (workspace / path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OperationFailedError(f'stat workspace path "{path}": {reason.lower()}') from error
    return True


def _trace_result(task: Task, events: Sequence[str]) -> list[CheckResult]:
    if not task.required_trace_events:
        return []
    missing = [event for event in task.required_trace_events if event not in set(events)]
    return [
        CheckResult(
            id="trace_events",
            name="Required agent trace events",
            kind="trace",
            status="fail" if missing else "pass",
            expected_events=task.required_trace_events,
            actual_events=list(events),
            missing_events=missing,
        )
    ]


def _text(error: OSError | OperationFailedError) -> str:
    if isinstance(error, OperationFailedError):
        return error.message
    return f"{error.filename or 'workspace'}: {(error.strerror or str(error)).lower()}"

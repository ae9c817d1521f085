"""A task of a suite file and a case of the log say the same in two vocabularies; here one becomes the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from spl.contracts.harness import CheckResult, ScoreReport
from spl.harness.report import head
from spl.harness.suite import Command as TaskCommand
from spl.harness.suite import ContextChecks, Task
from spl.records.evals import Case, ChangedFiles, Command, Context, Expect
from spl.records.runs import Result, ResultKind

MAX_MESSAGE: Final = 1024
_NAMED: Final = 20


def case_of(task: Task) -> Case:
    """Return the case that tests what a task asks for; its files are not part of it yet."""
    context = task.context_checks
    return Case(
        key=task.id,
        name=task.name,
        goal=task.prompt,
        description=task.description or None,
        tags=task.tags or None,
        difficulty=task.difficulty or None,
        fixture=task.workspace_fixture,
        expect=Expect(
            commands=[Command(id=c.id, name=c.name, argv=c.command) for c in task.verification_commands],
            changed_files=ChangedFiles(
                expected=task.expected_changed_files, forbidden=task.forbidden_changed_files or None
            ),
            context=Context(
                required=context.required_files or None, forbidden=context.forbidden_files or None
            )
            if context.required_files or context.forbidden_files
            else None,
            trace=task.required_trace_events or None,
        ),
    )


def task_of(case: Case, goal: str) -> Task:
    """Return the task that puts a case to an agent.

    Args:
        case: The case.
        goal: Its goal, wherever that stands.
    """
    expect = case.expect
    changed, context = expect.changed_files, expect.context
    return Task(
        id=case.key,
        name=case.name,
        prompt=goal,
        workspace_fixture=case.fixture or "",
        verification_commands=[TaskCommand(c.id, c.name, c.argv) for c in expect.commands or ()],
        expected_changed_files=changed.expected if changed else [],
        forbidden_changed_files=(changed.forbidden or []) if changed else [],
        required_trace_events=expect.trace or [],
        context_checks=ContextChecks(context.required or [], context.forbidden or [])
        if context
        else ContextChecks(),
    )


def results_of(report: ScoreReport, expect: Expect) -> list[Result]:
    """Return what the checks found, for those things that a case expects."""
    expected = set(_expected(expect))
    return [
        Result(kind=kind, id=check.id, status=check.status, message=_message(check))
        for check in report.results
        if (kind := _kind(check)) in expected
    ]


def _kind(check: CheckResult) -> ResultKind:
    if check.kind == "changed_files" and check.id == "forbidden_changed_files":
        return "forbidden_changed_files"
    return check.kind


def _expected(expect: Expect) -> Iterator[ResultKind]:
    if expect.commands:
        yield "command"
    if expect.changed_files is not None:
        yield "changed_files"
        yield "forbidden_changed_files"
    if expect.context is not None:
        yield "context"
    if expect.trace is not None:
        yield "trace"


def _message(check: CheckResult) -> str | None:
    """Say why a check did not pass; the whole of its output stands in the run's evidence."""
    if check.status == "pass":
        return None
    lists = (
        ("missing", check.missing_files),
        ("unexpected", check.unexpected_files),
        ("missing event", check.missing_events),
    )
    said = [check.message] if check.message else []
    said += [f"{label}: {_listed(names)}" for label, names in lists if names]
    if not said and check.exit_code is not None:
        output = (head(check.stderr) or head(check.stdout)).strip()
        said = [f"exit status {check.exit_code}", *([output] if output else [])]
    text = "; ".join(said).encode("utf-8", "replace")[:MAX_MESSAGE].decode("utf-8", "ignore")
    return text or None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

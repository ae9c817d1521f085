"""Score reports, benchmark rows and the printed document, assembled from results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from spl.contracts.harness import (
    AgentResult,
    Attempt,
    Benchmark,
    BenchSummary,
    BenchTask,
    CheckResult,
    EvalDocument,
    Failure,
    ReportSummary,
    ScoreReport,
    Status,
    Text,
)
from spl.harness.events import AgentOutput
from spl.harness.paths import trim
from spl.harness.process import Outcome
from spl.harness.suite import Suite
from spl.harness.usage import Account, account, models_used

REPORT_NAME: Final = "agent-eval-report.json"
MAX_REASON: Final = 4096
_BY_PRECEDENCE: Final[tuple[Status, ...]] = ("blocked", "error", "fail")


def overall(statuses: Iterable[Status]) -> Status:
    """Return the status of the whole: blocked before error before fail before pass."""
    found = set(statuses)
    return next((status for status in _BY_PRECEDENCE if status in found), "pass")


def score_report(
    suite_id: str,
    task_id: str,
    results: Sequence[CheckResult],
    changed_files: Sequence[str] | None,
    *,
    error: str = "",
    changed_by_checks: Sequence[str] = (),
) -> ScoreReport:
    """Return the score report of one workspace."""
    statuses = [result.status for result in results]
    status = overall(statuses)
    return ScoreReport(
        suite_id=suite_id,
        task_id=task_id,
        status=status,
        ok=status == "pass",
        summary=ReportSummary(
            total=len(statuses),
            passed=statuses.count("pass"),
            failed=statuses.count("fail"),
            blocked=statuses.count("blocked"),
            errors=statuses.count("error"),
        ),
        changed_files=None if changed_files is None else list(changed_files),
        results=list(results),
        error=error,
        changed_by_checks=list(changed_by_checks),
    )


def selection_error(suite_id: str, task_id: str, message: str) -> ScoreReport:
    """Return the report of a task that the suite does not have, or that was not named."""
    result = CheckResult(
        id="task", name="Task selection", kind="changed_files", status="error", message=message
    )
    return score_report(suite_id, task_id, [result], None, error=message)


def harness_error(suite_id: str, task_id: str, message: str) -> ScoreReport:
    """Return the report of a row that never reached its agent; the message is the whole one."""
    result = CheckResult(
        id="benchmark", name="Benchmark harness", kind="changed_files", status="error", message=message
    )
    return score_report(suite_id, task_id, [result], None, error=message)


def untried_agent(error: str) -> AgentResult:
    """Return the result of an agent that was never tried."""
    return AgentResult(exit_code=-1, error=error)


def agent_result(
    outcome: Outcome, output: AgentOutput, *, error: str = "", attempts: Sequence[Attempt] = ()
) -> AgentResult:
    """Return what an agent did: how its program ended, what it said, and the attempts before that one."""
    sums = account(output.samples)
    return AgentResult(
        exit_code=outcome.exit_code,
        stdout=outcome.stdout or "",
        stderr=outcome.stderr or "",
        error=error,
        input_tokens=sums.input_tokens,
        output_tokens=sums.output_tokens,
        cached_input_tokens=sums.cached_input_tokens,
        cache_write_tokens=sums.cache_write_tokens,
        reasoning_tokens=sums.reasoning_tokens,
        cost_usd=sums.cost_usd,
        latency_ms=outcome.latency_ms,
        truncated=outcome.truncated,
        stages=output.stages,
        usage_samples=output.samples,
        cost_coverage=sums.coverage,
        attempts=list(attempts),
    )


def bench_task(
    task_id: str,
    model: str,
    *,
    workspace_path: str,
    fixture_path: str,
    agent: AgentResult,
    report: ScoreReport,
) -> BenchTask:
    """Return one row."""
    sums = account(agent.usage_samples)
    return BenchTask(
        task_id=task_id,
        model=model,
        workspace_path=workspace_path,
        fixture_path=fixture_path,
        input_tokens=agent.input_tokens,
        output_tokens=agent.output_tokens,
        cached_input_tokens=agent.cached_input_tokens,
        cache_write_tokens=agent.cache_write_tokens,
        reasoning_tokens=agent.reasoning_tokens,
        cost_coverage=agent.cost_coverage,
        latency_ms=agent.latency_ms,
        stages=agent.stages,
        agent=agent,
        report=report,
        cost_usd=sums.cost_usd if sums.coverage == "complete" else None,
    )


def row_status(row: BenchTask) -> Status:
    """Return the status of a row."""
    return "pass" if row.report.ok else row.report.status


def benchmark(suite_id: str, rows: Sequence[BenchTask]) -> Benchmark:
    """Return the benchmark of all rows."""
    return Benchmark(
        suite_id=suite_id,
        ok=all(row.report.ok for row in rows),
        summary=_summary(rows),
        tasks=list(rows),
    )


def _summary(rows: Sequence[BenchTask]) -> BenchSummary:
    statuses = [row_status(row) for row in rows]
    passed = statuses.count("pass")
    sums = account(sample for row in rows for sample in row.agent.usage_samples)
    total, of_passed = 0.0, 0.0
    for row in rows:
        total += row.agent.cost_usd
        if row.report.ok:
            of_passed += row.agent.cost_usd
    known = sums.priced > 0
    per_task = total / len(rows) if rows else 0
    per_pass = total / passed if passed else 0
    return BenchSummary(
        total_tasks=len(rows),
        passed_tasks=passed,
        failed_tasks=statuses.count("fail"),
        blocked_tasks=statuses.count("blocked"),
        error_tasks=statuses.count("error"),
        estimated_cost_usd=total if known else 0,
        cost_coverage="" if sums.coverage == "not_applicable" else sums.coverage,
        priced_request_count=sums.priced,
        unpriced_request_count=sums.unpriced,
        error_request_count=sums.errors,
        total_cost_usd=total,
        total_input_tokens=sums.input_tokens,
        total_output_tokens=sums.output_tokens,
        total_cached_input_tokens=sums.cached_input_tokens,
        total_cache_write_tokens=sums.cache_write_tokens,
        total_reasoning_tokens=sums.reasoning_tokens,
        mean_cost_per_task=per_task,
        mean_cost_per_passed_task=per_pass,
        mean_estimated_cost_per_task=per_task,
        mean_estimated_cost_of_passed_tasks=of_passed / passed if passed else 0,
        campaign_estimated_cost_per_pass=per_pass,
        mean_latency_ms=sum(row.latency_ms for row in rows) // len(rows) if rows else 0,
    )


def validate_document(suite: Suite) -> EvalDocument:
    """Return the document of a valid suite."""
    return EvalDocument(
        suite=suite.id,
        name=suite.name,
        status="valid",
        ok=True,
        tasks=len(suite.tasks),
        checks=suite.checks,
        total=0,
        passed=0,
        failed=0,
        blocked=0,
        errors=0,
        estimated_cost_usd=None,
    )


def run_document(suite: Suite, report: ScoreReport) -> EvalDocument:
    """Return the document of `eval run`."""
    counts = report.summary
    failures = _failures(report, "")
    if report.error:
        failures.insert(0, Failure("task", report.error))
    return EvalDocument(
        suite=suite.id,
        name=suite.name,
        task_id=report.task_id,
        status=report.status,
        ok=report.ok,
        tasks=0,
        checks=0,
        total=counts.total,
        passed=counts.passed,
        failed=counts.failed,
        blocked=counts.blocked,
        errors=counts.errors,
        estimated_cost_usd=None,
        failures=failures,
        report=report,
    )


def bench_document(
    suite: Suite,
    rows: Sequence[BenchTask],
    *,
    runner_kind: str,
    models: Sequence[str],
    work_root: str = "",
    facets: Mapping[str, str] | None = None,
) -> EvalDocument:
    """Return the document of `eval bench`.

    Args:
        suite: The suite.
        rows: Task-major.
        runner_kind: `external_command` or `splice_pipeline`.
        models: The models that were asked for.
        work_root: Where the workspaces are, when they are kept.
        facets: By model, the facet of the definition that was run, where there is one.
    """
    bench = benchmark(suite.id, rows)
    samples = [sample for row in rows for sample in row.agent.usage_samples]
    sums: Account = account(samples)
    counts = bench.summary
    used = [name for row in rows for name in models_used(row.agent.usage_samples, row.agent.stages)]
    model = next(iter(models), "")
    return EvalDocument(
        suite=suite.id,
        name=suite.name,
        task_id=rows[0].task_id if len(rows) == 1 else "",
        runner_kind=runner_kind,
        primary_model=model,
        requested_model=model,
        models_used=list(dict.fromkeys(used)),
        status=overall(row_status(row) for row in rows),
        ok=bench.ok,
        tasks=len(rows),
        checks=0,
        total=counts.total_tasks,
        passed=counts.passed_tasks,
        failed=counts.failed_tasks,
        blocked=counts.blocked_tasks,
        errors=counts.error_tasks,
        input_tokens=sums.input_tokens,
        output_tokens=sums.output_tokens,
        cached_input_tokens=sums.cached_input_tokens,
        cache_write_tokens=sums.cache_write_tokens,
        reasoning_tokens=sums.reasoning_tokens,
        estimated_cost_usd=counts.total_cost_usd if sums.priced else None,
        cost_coverage=sums.coverage,
        priced_usage_records=sums.priced,
        unpriced_usage_records=sums.unpriced,
        error_usage_records=sums.errors,
        truncated=any(row.agent.truncated for row in rows),
        work_root=work_root,
        failures=[failure for row in rows for failure in _row_failures(row)],
        benchmark=bench,
        definition_facets=dict(facets or {}),
    )


def _row_failures(row: BenchTask) -> list[Failure]:
    at = f"{row.model}.{row.task_id}" if row.model else row.task_id
    found = []
    if row.agent.error:
        found.append(Failure(at, row.agent.error))
    found += _failures(row.report, f"{at}.")
    if row.report.error:
        found.append(Failure(at, row.report.error))
    unique = {(trim(failure.id), trim(failure.message)): failure for failure in reversed(found)}
    kept = set(map(id, unique.values()))
    return [failure for failure in found if id(failure) in kept]


def _failures(report: ScoreReport, prefix: str) -> list[Failure]:
    return [
        Failure(prefix + result.id, _reason(result)) for result in report.results if result.status != "pass"
    ]


def _reason(result: CheckResult) -> str:
    for text in (result.message, head(result.stderr)):
        if trim(text):
            return trim(text)
    return result.status


def head(text: Text) -> str:
    """Return a text for a message: a spooled one is cut after a bounded number of bytes."""
    if isinstance(text, str):
        return text
    data = bytearray()
    for chunk in text.chunks():
        data += chunk
        if len(data) > MAX_REASON:
            break
    return bytes(data[:MAX_REASON]).decode("utf-8", "surrogateescape")


def with_report_path(document: EvalDocument, directory: str) -> EvalDocument:
    """Return the document that names its own report file."""
    return msgspec.structs.replace(document, report_path=os.path.normpath(f"{directory}/{REPORT_NAME}"))

"""The three published documents of offline evaluation: wrapper, score report, benchmark.

Field order, spelling and omission are those of the published contracts: a field with a default is left out while it
holds that default, a field without one is always printed. Costs are US dollars as floating-point numbers, as published.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Status = Literal["pass", "fail", "blocked", "error"]
Coverage = Literal["complete", "partial", "unavailable", "not_applicable"]


class SpooledText:
    """Text that lies in a file because it may be long; a document streams it."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes in pieces of bounded size; they need not be UTF-8."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Say whether there is any text."""
        raise NotImplementedError


Text = str | SpooledText


class Camel(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A part whose fields are published in camel case."""


class CheckResult(Camel, frozen=True, kw_only=True):
    """One result of a score report; `exit_code` is absent when the command did not run."""

    id: str
    name: str
    kind: Literal["command", "changed_files", "context", "trace"]
    status: Status
    command: list[str] = []
    exit_code: int | None = None
    stdout: Text = ""
    stderr: Text = ""
    truncated: bool = False
    message: str = ""
    expected_files: list[str] = []
    actual_files: list[str] = []
    missing_files: list[str] = []
    unexpected_files: list[str] = []
    expected_events: list[str] = []
    actual_events: list[str] = []
    missing_events: list[str] = []


class ReportSummary(Camel, frozen=True, kw_only=True):
    """How many results there are of each status."""

    total: int
    passed: int
    failed: int
    blocked: int
    errors: int


class ScoreReport(Camel, frozen=True, kw_only=True, tag_field="contract", tag="splice.agenteval.report.v1"):
    """The score of one workspace; `changed_files` is null when nothing was looked at.

    `changed_by_checks` (an addition) names what the verification commands themselves changed.
    """

    suite_id: str
    task_id: str
    status: Status
    ok: bool
    summary: ReportSummary
    changed_files: list[str] | None
    results: list[CheckResult]
    error: str = ""
    changed_by_checks: list[str] = []


class Stage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stage that the agent reported in its final event."""

    name: str
    status: str
    iteration: int
    provider: str = ""
    model: str = ""
    tokens_input: int
    tokens_output: int
    tokens_cached: int
    tokens_cache_write: int
    tokens_reasoning: int
    cost_usd: float | None = None
    cost_status: str
    latency_ms: int


class UsageSample(Camel, frozen=True, kw_only=True):
    """One usage event after accounting."""

    input_tokens: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    provider: str = ""
    model: str = ""
    api_model: str = ""
    stage: str = ""
    iteration: int | None = None
    usage_sequence: int | None = None
    usage_reported: bool | None = None
    cost_usd: float | None = None
    cost_status: str = ""
    cost_estimated: bool | None = None
    cost_provenance: str = ""
    pricing_source: str = ""
    pricing_as_of: str = ""
    unpriced_reason: str = ""


class Attempt(Camel, frozen=True, kw_only=True):
    """An earlier attempt at a row, whose agent could not be started (an addition)."""

    error: str
    latency_ms: int = 0


class AgentResult(Camel, frozen=True, kw_only=True):
    """What the agent did; -1 is the exit code of one that did not end by itself."""

    exit_code: int
    stdout: Text = ""
    stderr: Text = ""
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0
    latency_ms: int = 0
    truncated: bool = False
    stages: list[Stage] = []
    usage_samples: list[UsageSample] = []
    cost_coverage: Coverage | Literal[""] = ""
    attempts: list[Attempt] = []


class BenchTask(Camel, frozen=True, kw_only=True):
    """One row of a benchmark: a task under a model. `cost_usd` is a number only when every sample is priced."""

    task_id: str
    model: str = ""
    workspace_path: str
    fixture_path: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_coverage: Coverage | Literal[""] = ""
    latency_ms: int = 0
    stages: list[Stage] = []
    agent: AgentResult
    report: ScoreReport
    left_behind: list[str] = []
    cost_usd: float | None


class BenchSummary(Camel, frozen=True, kw_only=True):
    """The figures over all rows."""

    total_tasks: int
    passed_tasks: int
    failed_tasks: int
    blocked_tasks: int
    error_tasks: int
    estimated_cost_usd: float = 0
    cost_coverage: Coverage | Literal[""] = ""
    priced_request_count: int = 0
    unpriced_request_count: int = 0
    error_request_count: int = 0
    total_cost_usd: float = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    total_cached_input_tokens: int = 0
    total_cache_write_tokens: int = 0
    total_reasoning_tokens: int = 0
    mean_cost_per_task: float = 0
    mean_cost_per_passed_task: float = 0
    mean_estimated_cost_per_task: float = 0
    mean_estimated_cost_of_passed_tasks: float = 0
    campaign_estimated_cost_per_pass: float = 0
    mean_latency_ms: int = 0


class Benchmark(Camel, frozen=True, kw_only=True, tag_field="contract", tag="splice.agenteval.benchmark.v2"):
    """All rows of a benchmark, task-major."""

    suite_id: str
    ok: bool
    summary: BenchSummary
    tasks: list[BenchTask]


class Failure(Struct, frozen=True):
    """A result that did not pass, by its id within the document."""

    id: str
    message: str


class EvalDocument(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="contract", tag="splice.cli.eval.v1"
):
    """What `eval validate`, `run` and `bench` print.

    Attributes:
        report: An addition: the score report of `run`.
        definition_facets: An addition: by model, the facet of the behaviour that `spl`'s own agent had.
    """

    suite: str
    name: str = ""
    task_id: str = ""
    runner_kind: str = ""
    primary_model: str = ""
    requested_model: str = ""
    models_used: list[str] = []
    status: str
    ok: bool
    tasks: int
    checks: int
    total: int
    passed: int
    failed: int
    blocked: int
    errors: int
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_cost_usd: float | None
    cost_coverage: Coverage | Literal[""] = ""
    priced_usage_records: int = 0
    unpriced_usage_records: int = 0
    error_usage_records: int = 0
    truncated: bool = False
    work_root: str = ""
    report_path: str = ""
    failures: list[Failure] = []
    benchmark: Benchmark | None = None
    report: ScoreReport | None = None
    definition_facets: dict[str, str] = {}

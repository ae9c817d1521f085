"""Runs: one attempt of an actor at a goal or a case, a thread of its start and its end."""

from __future__ import annotations

from typing import Literal, TypeAlias

from spl.ids import BlobId, Facet
from spl.records.definitions import Body, Count, LongText, Name, Positive, check_long_text

RunStatus: TypeAlias = Literal["completed", "failed", "timed_out", "cancelled", "blocked"]
ResultStatus: TypeAlias = Literal["pass", "fail", "error", "blocked"]
ResultKind: TypeAlias = Literal[
    "command", "changed_files", "forbidden_changed_files", "context", "trace", "outcome"
]
CostStatus: TypeAlias = Literal["priced", "unpriced", "error"]

MAX_LIST_BYTES = 16_384  # a longer list is a blob with the field's name as its role


class RunObserved(Body, frozen=True):
    """What the kernel saw of the program that it started."""

    program: BlobId | None = None
    version: Name | None = None
    timeout_ms: Positive | None = None
    env: list[Name] | None = None


class Imported(Body, frozen=True):
    """Where an imported run came from; `key` makes a second import of the same line append nothing."""

    source: Name
    format: Name
    key: Name


class RunStart(Body, frozen=True):
    """`core.run.start.v1`: root of a run's thread."""

    facet: Facet
    trial: bool
    adapter: Literal["command", "pipeline", "external"]
    goal: LongText | None = None
    requested_model: Name | None = None
    observed: RunObserved | None = None
    imported: Imported | None = None

    def __post_init__(self) -> None:
        check_long_text(self.goal)


class ToolCalls(Body, frozen=True):
    """How many tool calls a run made, how many failed, and how often each tool was called."""

    total: Count
    failed: Count
    names: dict[str, Count]


class Result(Body, frozen=True):
    """The outcome of one check, unique in its run by (kind, id)."""

    kind: ResultKind
    id: Name
    status: ResultStatus
    message: str | None = None


class Usage(Body, frozen=True):
    """One total for each (provider, model, stage, cost status); what was not reported is absent."""

    reported: Count
    cost_status: CostStatus
    provider: Name | None = None
    model: Name | None = None
    api_model: Name | None = None
    stage: Name | None = None
    requests: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    cost_nusd: Count | None = None
    cost_estimated: bool | None = None
    cost_provenance: Name | None = None
    pricing_source: Name | None = None
    pricing_as_of: Name | None = None
    unpriced_reason: Name | None = None


class Trees(Body, frozen=True):
    """The workspace before and after the run, as fixture trees."""

    before: BlobId | None = None
    after: BlobId | None = None


class RunEnd(Body, frozen=True):
    """`core.run.end.v1`: how a run ended; one for each run, by the author of its start."""

    status: RunStatus
    cause: str | None = None
    exit_code: int | None = None
    answer: LongText | None = None
    tool_calls: ToolCalls | None = None
    results: list[Result] | None = None
    changed_files: list[str] | None = None
    usage: list[Usage] | None = None
    latency_ms: Count | None = None
    trees: Trees | None = None

    def __post_init__(self) -> None:
        check_long_text(self.answer)

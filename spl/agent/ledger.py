"""What the model requests of a run used and cost, and whether the limits of its definition are spent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from spl.agent.events import Events, Failure
from spl.agent.settings import Route
from spl.contracts.harness import UsageSample
from spl.harness.usage import PRICED, UNPRICED, priced
from spl.records.definitions import Limits

_NUSD: Final = 1_000_000_000
_NO_REQUEST: Final = "not_applicable"
# names of the library's counts, of the events, and of a stage's record
_CLASSES: Final = (
    ("input_tokens", "promptTokens", "tokens_input"),
    ("output_tokens", "completionTokens", "tokens_output"),
    ("cache_read_tokens", "cachedInputTokens", "tokens_cached"),
    ("cache_write_tokens", "cacheWriteTokens", "tokens_cache_write"),
    ("output_reasoning_tokens", "reasoningTokens", "tokens_reasoning"),
)


class Step(NamedTuple):
    """Where in the pipeline a request is made."""

    stage: str
    iteration: int


@dataclass(slots=True)
class Sums:
    """Sums over the requests of one stage, or of all."""

    requests: int = 0
    unpriced: int = 0
    cost_usd: float = 0.0
    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def add(self, sample: UsageSample) -> None:
        """Count one request."""
        self.requests += 1
        self.unpriced += sample.cost_status != PRICED
        self.cost_usd += sample.cost_usd or 0
        self.input += sample.input_tokens
        self.output += sample.output_tokens
        self.cached += sample.cached_input_tokens
        self.cache_write += sample.cache_write_tokens
        self.reasoning += sample.reasoning_tokens

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input + self.output

    def record(self) -> dict[str, object]:
        """Return the fields of a stage's record; a cost that is not wholly known is left out."""
        fields: dict[str, object] = {
            "tokens_input": self.input,
            "tokens_output": self.output,
            "tokens_cached": self.cached,
            "tokens_cache_write": self.cache_write,
            "tokens_reasoning": self.reasoning,
        }
        if not self.requests:
            return {**fields, "cost_status": _NO_REQUEST}
        if self.unpriced:
            return {**fields, "cost_status": UNPRICED}
        return {**fields, "cost_usd": self.cost_usd, "cost_status": PRICED}


class Ledger:
    """Takes the usage of each request, tells it as an event, and knows what may still be spent.

    Args:
        events: Where usage is told.
        limits: What the definition allows.
    """

    def __init__(self, events: Events, limits: Limits | None) -> None:
        self._events = events
        self._limits = limits or Limits()
        self._started = time.monotonic()
        self.total = Sums()
        self.stage = Sums()

    def open_stage(self) -> None:
        """Begin the sums of a stage."""
        self.stage = Sums()

    def add(self, step: Step, route: Route, usage: Mapping[str, int], api_model: str | None) -> None:
        """Count one request that was answered, wholly or in part, and tell its usage.

        Args:
            step: Where it was made.
            route: The model that was asked.
            usage: The counts that the server told, by the library's names; empty when it told none.
            api_model: The model that the server says it was.
        """
        known = {told: usage[name] for name, told, _ in _CLASSES if name in usage}
        sample = priced(
            UsageSample(
                input_tokens=known.get("promptTokens", 0),
                output_tokens=known.get("completionTokens", 0),
                prompt_tokens=known.get("promptTokens", 0),
                completion_tokens=known.get("completionTokens", 0),
                cached_input_tokens=known.get("cachedInputTokens", 0),
                cache_write_tokens=known.get("cacheWriteTokens", 0),
                reasoning_tokens=known.get("reasoningTokens", 0),
                provider=route.provider,
                model=route.model,
                usage_reported=bool(known),
            )
        )
        self.stage.add(sample)
        self.total.add(sample)
        total = {"totalTokens": sample.input_tokens + sample.output_tokens} if known else {}
        self._events.emit(
            "usage",
            provider=route.provider,
            model=route.model,
            apiModel=api_model,
            stage=step.stage,
            iteration=step.iteration,
            usageSequence=self.total.requests,
            usageReported=bool(known),
            **known,
            **total,
            costUsd=sample.cost_usd,
            costStatus=sample.cost_status,
            costEstimated=sample.cost_estimated,
            costProvenance=sample.cost_provenance or None,
            pricingSource=sample.pricing_source or None,
            pricingAsOf=sample.pricing_as_of or None,
            unpricedReason=sample.unpriced_reason or None,
        )

    def remaining_s(self) -> float | None:
        """Return the seconds that are left, or None without a limit."""
        if self._limits.time_ms is None:
            return None
        return max(0.0, self._limits.time_ms / 1000 - (time.monotonic() - self._started))

    def check(self) -> None:
        """Do nothing while there is something left to spend.

        Raises:
            Failure: A limit is spent, or a cost limit cannot be kept because a cost is unknown.
        """
        limits, total = self._limits, self.total
        if limits.tokens is not None and total.tokens >= limits.tokens:
            raise Failure(
                "limit_tokens", f"the limit of {limits.tokens} tokens is spent: {total.tokens} were used"
            )
        if limits.cost_nusd is not None:
            limit_usd = limits.cost_nusd / _NUSD
            if total.unpriced:
                raise Failure(
                    "limit_cost",
                    f"the cost of a request is unknown, so that a limit of ${limit_usd:g} cannot be kept",
                )
            if total.cost_usd >= limit_usd:
                raise Failure(
                    "limit_cost",
                    f"the cost limit of ${limit_usd:g} is spent: ${total.cost_usd:.6f} were used",
                )
        if self.remaining_s() == 0:
            raise self.out_of_time()

    def out_of_time(self) -> Failure:
        """Return the failure of a run whose time is over."""
        return Failure("limit_time", f"the time limit of {self._limits.time_ms} ms is over")

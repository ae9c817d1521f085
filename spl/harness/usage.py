"""Usage events: which lines count, what they cost, and how far the cost is known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from spl.contracts.harness import Coverage, Stage, UsageSample
from spl.harness import prices
from spl.harness.lenient import Pairs, folded, is_too_complex, without_surrogates
from spl.harness.paths import trim

_MAX_INT: Final = 2**63 - 1

MAX_STAGES: Final = 10_000

PRICED: Final = "priced"
UNPRICED: Final = "unpriced"
ERROR: Final = "error"

TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class Spoiled(Exception):  # noqa: N818 - a signal within this module
    """A known field has a value of another type."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Spoiled
    return without_surrogates(value)


def _integer(value: object) -> int:
    if type(value) is not int or not -_MAX_INT - 1 <= value <= _MAX_INT:
        raise Spoiled
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]
        raise Spoiled
    return float(value)  # type: ignore[arg-type]


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise Spoiled
    return value


def _texts(value: object) -> list[str]:
    if type(value) is not list:
        raise Spoiled
    return [_text(item) for item in value if item is not None]


def _object(value: object) -> object:
    if not isinstance(value, Pairs):
        raise Spoiled
    return value


def _text_map(value: object) -> object:
    if not isinstance(value, Pairs):
        raise Spoiled
    for _, item in value:
        if item is not None:
            _text(item)
    return value


def _words(text: str, check: Callable[[object], Any]) -> dict[str, Callable[[object], Any]]:
    return dict.fromkeys(text.split(), check)


_EVENT: Final[dict[str, Callable[[object], Any]]] = {
    **_words(
        "type runId sessionId cwd provider model apiModel delta id name action permission permissionMode autonomy "
        "sideEffect reason decisionReason status output costStatus costProvenance pricingSource pricingAsOf "
        "unpricedReason stage text message code",
        _text,
    ),
    **_words(
        "schemaVersion promptTokens completionTokens totalTokens cachedInputTokens cacheWriteTokens reasoningTokens "
        "iteration usageSequence exitCode",
        _integer,
    ),
    "costUsd": _number,
    **_words(
        "permissionGranted grantMatched truncated redacted costEstimated usageReported recoverable", _boolean
    ),
    "changedFiles": _texts,
    "meta": _text_map,
    **_words("risk block grant display checkpoint", _object),
}
_EVENT_TOKENS: Final = (
    "promptTokens",
    "completionTokens",
    "cachedInputTokens",
    "cacheWriteTokens",
    "reasoningTokens",
)
_BY_FOLDED: Final = {name.lower(): name for name in _EVENT}


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens by class, None where nobody said how many; input tokens include the cached and the written ones."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class UsageReport(Struct, frozen=True, kw_only=True):
    """What an agent said about one request, or about several at once.

    Attributes:
        sample: The published form, priced; it cannot tell no tokens from unknown ones.
        tokens: What was said and what was not.
        requests: How many requests it is about; None when nobody said.
    """

    sample: UsageSample
    tokens: Tokens
    requests: int | None = 1


def usage_report(
    tokens: Tokens,
    *,
    provider: str = "",
    model: str = "",
    cost_usd: float | None = None,
    requests: int | None = 1,
    unpriced_reason: str = "",
) -> UsageReport:
    """Return a report in which the agent's own cost stands, or the list price where it states none.

    Args:
        tokens: What the agent said; without any, the usage was not reported.
        provider: Who answered, where the agent says so.
        model: Which model did.
        cost_usd: What the agent states; agents state 0 also when they know no price, so that 0 counts as no statement.
        requests: How many requests the report is about.
        unpriced_reason: Why the report must not be priced, though it has tokens.
    """
    cost_usd = cost_usd or None
    known = {name: value for name in TOKENS if (value := getattr(tokens, name)) is not None}
    sample = UsageSample(
        **known,
        prompt_tokens=known.get("input_tokens", 0),
        completion_tokens=known.get("output_tokens", 0),
        provider=provider,
        model=model,
        cost_usd=cost_usd,
        cost_status=UNPRICED if unpriced_reason else "",
        cost_estimated=None if cost_usd is None else True,
        cost_provenance="" if cost_usd is None else "agent_estimate",
        unpriced_reason=unpriced_reason,
    )
    return UsageReport(sample=priced(sample), tokens=tokens, requests=requests)


def usage_event(event: Pairs) -> UsageReport | None:
    """Return what a usage event says, or None for a line that is none.

    Keys match without regard to case; a known key of the wrong type spoils the line, null is as if it were absent.
    """
    if all(value != "usage" for _, value in event):
        return None
    fields: dict[str, Any] = {}
    try:
        for key, value in event:
            name = key if key in _EVENT else _BY_FOLDED.get(folded(key))
            if name is not None and value is not None:
                fields[name] = _EVENT[name](value)
    except Spoiled:
        return None
    if fields.get("type") != "usage":
        return None
    sample = UsageSample(
        input_tokens=fields.get("promptTokens", 0),
        output_tokens=fields.get("completionTokens", 0),
        prompt_tokens=fields.get("promptTokens", 0),
        completion_tokens=fields.get("completionTokens", 0),
        cached_input_tokens=fields.get("cachedInputTokens", 0),
        cache_write_tokens=fields.get("cacheWriteTokens", 0),
        reasoning_tokens=fields.get("reasoningTokens", 0),
        provider=fields.get("provider", ""),
        model=fields.get("model", ""),
        api_model=fields.get("apiModel", ""),
        stage=fields.get("stage", ""),
        iteration=fields.get("iteration"),
        usage_sequence=fields.get("usageSequence"),
        usage_reported=fields.get("usageReported"),
        cost_usd=fields.get("costUsd"),
        cost_status=fields.get("costStatus", ""),
        cost_estimated=fields.get("costEstimated"),
        cost_provenance=fields.get("costProvenance", ""),
        pricing_source=fields.get("pricingSource", ""),
        pricing_as_of=fields.get("pricingAsOf", ""),
        unpriced_reason=fields.get("unpricedReason", ""),
    )
    tokens = Tokens(**{name: fields.get(key) for name, key in zip(TOKENS, _EVENT_TOKENS, strict=True)})
    return UsageReport(sample=priced(sample), tokens=tokens)


def model_name(sample: UsageSample) -> str:
    """Return the model a sample names: `model`, else `apiModel`, trimmed."""
    return trim(sample.model) or trim(sample.api_model)


def priced(sample: UsageSample) -> UsageSample:
    """Return the sample with its cost decided; the first rule that applies wins.

    A cost that the event itself states is never replaced; a negative one is an error, since no request earns money.
    """
    if _is_unreported(sample):
        return _unpriced(sample, "usage was not reported")
    model = model_name(sample)
    if not model:
        return _unpriced(sample, "model identity is missing")
    if sample.cost_status in {UNPRICED, ERROR}:
        return sample
    if sample.cost_usd is not None:
        if sample.cost_usd < 0:
            reason = sample.unpriced_reason or "the cost is negative"
            return msgspec.structs.replace(sample, cost_status=ERROR, unpriced_reason=reason)
        return msgspec.structs.replace(sample, cost_status=PRICED)
    if sample.cost_status == PRICED:
        return _unpriced(sample, "priced event is missing cost")
    price = prices.price(sample, model)
    if isinstance(price, str):
        return _unpriced(sample, f'price unavailable for model "{model}": {price}')
    return msgspec.structs.replace(
        sample,
        cost_usd=price.cost_usd,
        cost_status=PRICED,
        cost_estimated=True,
        cost_provenance="reconstructed_estimate",
        pricing_source=price.source,
        pricing_as_of=price.as_of,
    )


def _is_unreported(sample: UsageSample) -> bool:
    if sample.usage_reported is not None:
        return not sample.usage_reported
    tokens = (
        sample.prompt_tokens,
        sample.completion_tokens,
        sample.cached_input_tokens,
        sample.cache_write_tokens,
        sample.reasoning_tokens,
    )
    return sample.cost_usd is None and not any(tokens)


def _unpriced(sample: UsageSample, reason: str) -> UsageSample:
    return msgspec.structs.replace(
        sample,
        cost_usd=None,
        cost_status=UNPRICED,
        cost_estimated=None,
        cost_provenance="",
        pricing_source="",
        pricing_as_of="",
        unpriced_reason=sample.unpriced_reason or reason,
    )


class Account(Struct, frozen=True, kw_only=True):
    """The sums over samples; `cost_usd` counts the priced ones, in order, as floating-point numbers."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0
    priced: int = 0
    unpriced: int = 0
    errors: int = 0

    @property
    def coverage(self) -> Coverage:
        """Say how far the cost is known."""
        if not self.priced + self.unpriced + self.errors:
            return "not_applicable"
        if not self.priced:
            return "unavailable"
        return "partial" if self.unpriced + self.errors else "complete"


def account(samples: Iterable[UsageSample]) -> Account:
    """Return the sums over samples."""
    listed = list(samples)
    counted = [s for s in listed if s.cost_status == PRICED]
    cost = 0.0
    for sample in counted:  # in order: `sum` compensates since Python 3.12, and the published figures do not
        cost += sample.cost_usd or 0
    errors = sum(s.cost_status == ERROR for s in listed)
    return Account(
        input_tokens=sum(s.input_tokens for s in listed),
        output_tokens=sum(s.output_tokens for s in listed),
        cached_input_tokens=sum(s.cached_input_tokens for s in listed),
        cache_write_tokens=sum(s.cache_write_tokens for s in listed),
        reasoning_tokens=sum(s.reasoning_tokens for s in listed),
        cost_usd=cost,
        priced=len(counted),
        unpriced=len(listed) - len(counted) - errors,
        errors=errors,
    )


def models_used(samples: Sequence[UsageSample], stages: Sequence[Stage]) -> list[str]:
    """Return the models of samples, then of stages, without repeats, in the order of their first appearance."""
    named = [*map(model_name, samples), *(trim(stage.model) for stage in stages)]
    return list(dict.fromkeys(name for name in named if name))


_STAGE: Final[dict[str, tuple[Callable[[object], Any], Any]]] = {
    "name": (_text, ""),
    "status": (_text, ""),
    "iteration": (_integer, 0),
    "provider": (_text, ""),
    "model": (_text, ""),
    "tokens_input": (_integer, 0),
    "tokens_output": (_integer, 0),
    "tokens_cached": (_integer, 0),
    "tokens_cache_write": (_integer, 0),
    "tokens_reasoning": (_integer, 0),
    "cost_usd": (_number, None),
    "cost_status": (_text, ""),
    "latency_ms": (_integer, 0),
}


def final_stages(text: object) -> list[Stage]:
    """Return the stages of a final event's text, or none when it is not one JSON object with a list of them."""
    try:
        stages = _pipeline(text).get("stages")
        return [_stage(item) for item in stages] if type(stages) is list else []
    except Spoiled:
        return []


def final_answer(text: str) -> str | None:
    """Return the answer within the document of a pipeline, or None when it has none."""
    answer = _pipeline(text).get("answer")
    return without_surrogates(answer) if isinstance(answer, str) else None


def _pipeline(text: object) -> dict[str, object]:
    """Return the fields of a pipeline's document by their names in small letters; nothing for any other text."""
    if not isinstance(text, str) or text.count("{") > MAX_STAGES:
        return {}
    if is_too_complex(text.encode("utf-8", "replace")):
        return {}
    try:
        value = json.loads(text, object_pairs_hook=Pairs, parse_int=_stage_integer)
    except (ValueError, RecursionError):
        return {}
    return {key.lower(): item for key, item in value} if isinstance(value, Pairs) else {}


def _stage_integer(literal: str) -> int | float:
    return int(literal) if len(literal) <= 20 else float(literal)  # noqa: PLR2004 - digits of 2^63


def _stage(item: object) -> Stage:
    if item is None:
        item = Pairs()
    if not isinstance(item, Pairs):
        raise Spoiled
    fields = {name: default for name, (_, default) in _STAGE.items()}
    for key, value in item:
        name = key.lower()
        if name in _STAGE and value is not None:
            fields[name] = _STAGE[name][0](value)
    return Stage(**fields)

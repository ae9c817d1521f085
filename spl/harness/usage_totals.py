"""Usage of one run as its end record holds it: one total for each provider, model, stage and cost status."""

from __future__ import annotations

from typing import Any, Final

from spl.codec import money
from spl.codec.canonical import MAX_INTEGER
from spl.errors import EncodingError
from spl.harness.paths import trim
from spl.harness.usage import ERROR, PRICED, TOKENS, UNPRICED, UsageReport, model_name
from spl.records.runs import CostStatus, Usage

MAX_TOTALS: Final = 100
_MAX_NAME: Final = 256
_SAME: Final = (
    "api_model",
    "cost_estimated",
    "cost_provenance",
    "pricing_source",
    "pricing_as_of",
    "unpriced_reason",
)


def usage_of(report: UsageReport) -> Usage:
    """Return one report as a record holds it; what a record cannot hold is unknown.

    The cost is exact to the nano-US-dollar of the shortest decimal text that reads as the same number.
    """
    sample = report.sample
    status: CostStatus = UNPRICED
    reason = sample.unpriced_reason
    cost = None
    if sample.cost_status == ERROR:
        status = ERROR
    elif sample.cost_status == PRICED and sample.cost_usd is not None:
        try:
            cost = money.parse_usd(repr(sample.cost_usd))
            status = PRICED
        except EncodingError:
            status, reason = ERROR, "the cost is more than a record can hold"
    is_priced = status == PRICED
    return Usage(
        reported=0 if _says_nothing(report) else report.requests or 1,
        requests=report.requests,
        cost_status=status,
        provider=_name(sample.provider),
        model=_name(model_name(sample)),
        api_model=_name(sample.api_model),
        stage=_name(sample.stage),
        **{name: _count(getattr(report.tokens, name)) for name in TOKENS},
        cost_nusd=cost,
        cost_estimated=sample.cost_estimated if is_priced else None,
        cost_provenance=_name(sample.cost_provenance) if is_priced else None,
        pricing_source=_name(sample.pricing_source) if is_priced else None,
        pricing_as_of=_name(sample.pricing_as_of) if is_priced else None,
        unpriced_reason=None if is_priced else _name(reason),
    )


class UsageTotals:
    """Adds usage up, a total for each (provider, model, stage, cost status), in bounded memory.

    Past 100 totals, what would need a further one counts under its cost status alone. A sum that is known only for
    a part of the requests is the sum of that part, and a text that differs among them is absent.
    """

    def __init__(self) -> None:
        self._totals: dict[tuple[str | None, ...], Usage] = {}

    def add(self, usage: Usage) -> None:
        """Add one report."""
        key: tuple[str | None, ...] = (usage.provider, usage.model, usage.stage, usage.cost_status)
        if key not in self._totals and len(self._totals) >= MAX_TOTALS:
            usage = _without_names(usage)
            key = (None, None, None, usage.cost_status)
        before = self._totals.get(key)
        self._totals[key] = usage if before is None else _sum(before, usage)

    def result(self) -> list[Usage] | None:
        """Return the totals in the order of their first report, or None when nothing was reported."""
        return list(self._totals.values()) or None


def _sum(a: Usage, b: Usage) -> Usage:
    summed: dict[str, Any] = {
        name: _plus(getattr(a, name), getattr(b, name)) for name in (*TOKENS, "cost_nusd")
    }
    requests = None if a.requests is None or b.requests is None else a.requests + b.requests
    return Usage(
        reported=a.reported + b.reported,
        requests=requests,
        cost_status=a.cost_status,
        provider=a.provider,
        model=a.model,
        stage=a.stage,
        **summed,
        **{name: value for name in _SAME if (value := getattr(a, name)) == getattr(b, name)},
    )


def _plus(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return _count(a + b)


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MAX_INTEGER else None


def _name(text: str) -> str | None:
    return trim(text)[:_MAX_NAME] or None


def _says_nothing(report: UsageReport) -> bool:
    sample = report.sample
    if sample.usage_reported is not None:
        return not sample.usage_reported
    return sample.cost_usd is None and all(getattr(report.tokens, name) is None for name in TOKENS)


def _without_names(usage: Usage) -> Usage:
    return Usage(
        reported=usage.reported,
        requests=usage.requests,
        cost_status=usage.cost_status,
        cost_nusd=usage.cost_nusd,
        **{name: getattr(usage, name) for name in TOKENS},
    )

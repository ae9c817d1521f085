"""List prices of models, from the price library, with where and from when they are."""

from __future__ import annotations

import logging
from typing import NamedTuple

from spl.contracts.harness import UsageSample


class Price(NamedTuple):
    """What a request costs by list price, in US dollars, and where that price is from."""

    cost_usd: float
    source: str
    as_of: str


def price(sample: UsageSample, model: str) -> Price | str:
    """Return the list price of a sample, or the reason why there is none.

    Prompt tokens include the cached ones, as the providers' APIs report them.
    """
    import genai_prices  # noqa: PLC0415 - a large table, and most events carry their cost
    from genai_prices import data_snapshot  # noqa: PLC0415

    logging.getLogger("genai_prices").setLevel(logging.CRITICAL)
    usage = genai_prices.Usage(
        input_tokens=sample.prompt_tokens,
        output_tokens=sample.completion_tokens,
        cache_read_tokens=sample.cached_input_tokens or None,
        cache_write_tokens=sample.cache_write_tokens or None,
    )
    provider = sample.provider.strip().lower()
    found = None
    reason = ""
    for wanted in dict.fromkeys([provider or None, None]):
        try:
            found = genai_prices.calc_price(usage, model, provider_id=wanted)
        except (LookupError, ValueError, TypeError) as error:
            reason = str(error.args[0]) if error.args else type(error).__name__
        else:
            break
    if found is None:
        return reason
    snapshot = data_snapshot.get_snapshot()
    return Price(float(found.total_price), "genai-prices", snapshot.timestamp.date().isoformat())

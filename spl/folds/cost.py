"""What runs cost: priced requests are summed, the others counted, and unknown is never zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from spl.contracts.scores import SpentPart
from spl.records.evals import Axis, Cost
from spl.records.runs import RunEnd, Usage


def cost_of(ends: Iterable[RunEnd]) -> Cost:
    """Sum the priced requests and count the others; an ended run without usage is one unpriced request."""
    counts: Counter[str] = Counter()
    nusd = 0
    anything = False
    for end in ends:
        if not end.usage:
            counts["unpriced"] += 1
            continue
        anything = True
        for usage in end.usage:
            status = _cost_status(usage)
            counts[status] += 1 if usage.requests is None else usage.requests
            nusd += usage.cost_nusd or 0 if status == "priced" else 0
    return _covered_cost(counts, nusd, anything=anything)


def _cost_status(usage: Usage) -> str:
    return "unpriced" if usage.cost_status == "priced" and usage.cost_nusd is None else usage.cost_status


def _covered_cost(counts: Counter[str], nusd: int, *, anything: bool) -> Cost:
    priced, unpriced, error = counts["priced"], counts["unpriced"], counts["error"]
    common = {"priced": priced, "unpriced": unpriced, "error": error}
    if not anything:
        return Cost(coverage="not_applicable", **common)
    if not priced:
        return Cost(coverage="unavailable", **common)
    return Cost(coverage="partial" if unpriced or error else "complete", nusd=nusd, **common)


def spent(cost: Cost, substance: Axis) -> SpentPart:
    """Return what the matched runs cost for each that passed on substance.

    The cost is of all matched runs, the failed ones too: what a passed run costs includes the attempts that it took.
    From a partial cost both amounts are lower bounds, and the coverage says so; without any price there is none.
    """
    per_passed = None
    if cost.nusd is not None and substance.passed:
        per_passed = round(Fraction(cost.nusd, substance.passed))
    return SpentPart(
        coverage=cost.coverage,
        priced=cost.priced,
        of=cost.priced + cost.unpriced + cost.error,
        passed=substance.passed,
        nusd=cost.nusd,
        per_passed_nusd=per_passed,
    )

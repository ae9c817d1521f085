"""When two scores may be compared on an axis: unlike things are not compared."""

from __future__ import annotations

from spl.records.evals import Score
from spl.records.verdicts import AxisName


def why_not(
    axis: AxisName, base: Score, candidate: Score, *, common: bool = False, allow_mixed: bool = False
) -> str | None:
    """Return why the two may not be compared on an axis, or None when they may.

    Args:
        axis: Which.
        base: One score.
        candidate: The other.
        common: Only the cases that both cover are compared, so that neither the revision of the suite nor the coverage
            need be the same: a case is the same case when its facet is.
        allow_mixed: Runs with several programs or time limits on one side are accepted.
    """
    if base.scorer != candidate.scorer:
        return "different scorers"
    if not common:
        if base.suite_revision != candidate.suite_revision:
            return "different suite revisions"
        if getattr(base, axis).coverage != getattr(candidate, axis).coverage:
            return "different cases covered"
    if not getattr(base, axis).covered:
        return "no case is covered"
    if (base.observed.mixed or candidate.observed.mixed) and not allow_mixed:
        return "mixed programs or time limits"
    if axis == "structure" and bool(base.runs.tool_calls_unknown) != bool(candidate.runs.tool_calls_unknown):
        return "tool calls are unknown on one side"
    return None

"""When two scores may be compared on an axis: unlike things are not compared."""

from __future__ import annotations

from spl.records.evals import Score
from spl.records.verdicts import AxisName


def why_not(axis: AxisName, base: Score, candidate: Score) -> str | None:
    """Return why the two may not be compared on an axis, or None when they may."""
    if base.suite_revision != candidate.suite_revision:
        return "different suite revisions"
    if base.scorer != candidate.scorer:
        return "different scorers"
    if getattr(base, axis).coverage != getattr(candidate, axis).coverage:
        return "different cases covered"
    if not getattr(base, axis).covered:
        return "no case is covered"
    if base.observed.mixed or candidate.observed.mixed:
        return "mixed programs or time limits"
    if axis == "structure" and bool(base.runs.tool_calls_unknown) != bool(candidate.runs.tool_calls_unknown):
        return "tool calls are unknown on one side"
    return None

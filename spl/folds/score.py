"""The score: a suite's current cases against the runs of one actor under one definition.

The data's way: the kernel reads the current cases and the matching runs, `score` grades each run once and sums up,
and the kernel appends the body, with the table of grades beside it as a blob.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct

from spl.codec import digest
from spl.contracts.scores import FlakyPart, RatePart
from spl.folds import statistics
from spl.folds.cost import cost_of
from spl.folds.grade import Grade, Mark, grade, scorer
from spl.folds.inputs import CaseInput, RunInput
from spl.ids import CaseFacet, Facet
from spl.records.evals import (
    Axis,
    Observed,
    RunCounts,
    Score,
    Total,
    UsageTotals,
)
from spl.records.verdicts import AxisName

TOKENS = (
    "requests",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class GradedRun(Struct, frozen=True):
    """One run with its case and its grade."""

    case: CaseInput
    run: RunInput
    grade: Grade


def graded_runs(cases: Sequence[CaseInput], runs: Iterable[RunInput]) -> list[GradedRun]:
    """Return every run whose case is current with its grade, in the order of the cases, then of the log."""
    by_facet: dict[CaseFacet, list[RunInput]] = {}
    for run in runs:
        by_facet.setdefault(run.case_facet, []).append(run)
    return [
        GradedRun(case, run, grade(case.expect, run.end))
        for case in cases
        for run in sorted(by_facet.get(case.facet, ()), key=lambda run: run.position)
    ]


def score(facet: Facet, cases: Sequence[CaseInput], graded: Sequence[GradedRun], as_of: int) -> Score:
    """Return the body of the score.

    Args:
        facet: The definition's.
        cases: The suite's current cases.
        graded: What `graded_runs` made of the matching runs.
        as_of: The size of the log that was read.
    """
    return Score(
        facet=facet,
        suite_revision=digest.suite_revision(case.facet for case in cases),
        scorer=scorer(),
        structure=axis(cases, [(item.case.facet, item.grade.structure) for item in graded]),
        substance=axis(cases, [(item.case.facet, item.grade.substance) for item in graded]),
        runs=_run_counts(graded),
        observed=_observed(graded),
        usage=_usage(graded),
        cost=cost_of(item.run.end for item in graded if item.run.end is not None),
        as_of=as_of,
    )


def axis(cases: Sequence[CaseInput], marks: Sequence[tuple[CaseFacet, Mark]]) -> Axis:
    """Return the figures of one axis from the marks of its runs."""
    attempted = {facet for facet, _ in marks}
    graded = [(facet, mark) for facet, mark in marks if mark != "ungraded"]
    covered = {facet for facet, _ in graded}
    return Axis(
        passed=sum(mark == "pass" for _, mark in graded),
        of=len(graded),
        covered=len(covered),
        ungraded=len(attempted - covered),
        no_run=len(cases) - len(attempted),
        coverage=digest.coverage(covered),
    )


def _run_counts(graded: Sequence[GradedRun]) -> RunCounts:
    states = Counter("open" if item.run.end is None else item.run.end.status for item in graded)
    return RunCounts(
        matched=len(graded),
        open=states["open"],
        completed=states["completed"],
        failed=states["failed"],
        timed_out=states["timed_out"],
        cancelled=states["cancelled"],
        blocked=states["blocked"],
        trials=sum(item.run.trial for item in graded),
        tool_calls_unknown=sum(
            item.run.end is not None
            and item.run.end.status in ("completed", "failed", "timed_out")
            and item.run.end.tool_calls is None
            for item in graded
        ),
    )


def _observed(graded: Sequence[GradedRun]) -> Observed:
    seen = [item.run.observed for item in graded if item.run.observed is not None]
    programs = len({observed.program for observed in seen if observed.program is not None})
    timeouts = len({observed.timeout_ms for observed in seen})
    return Observed(programs=programs, timeouts=timeouts, mixed=programs > 1 or timeouts > 1)


def _usage(graded: Sequence[GradedRun]) -> UsageTotals:
    totals: dict[str, Total | None] = {}
    ends = [item.run.end for item in graded if item.run.end is not None]
    for name in TOKENS:
        reported = [
            sum(getattr(usage, name) or 0 for usage in end.usage or ())
            for end in ends
            if any(getattr(usage, name) is not None for usage in end.usage or ())
        ]
        totals[name] = Total(total=sum(reported), runs=len(reported)) if reported else None
    latencies = [end.latency_ms for end in ends if end.latency_ms is not None]
    totals["latency_ms"] = Total(total=sum(latencies), runs=len(latencies)) if latencies else None
    return UsageTotals(**totals)


def rates(cases: int, marks: Sequence[tuple[CaseFacet, Mark]]) -> RatePart:
    """Return how one axis reads: never a bare rate.

    Args:
        cases: How many cases the suite has.
        marks: The marks of its runs.
    """
    tallies: dict[CaseFacet, list[int]] = {}
    for facet, mark in marks:
        if mark != "ungraded":
            tally = tallies.setdefault(facet, [0, 0])
            tally[0] += mark == "pass"
            tally[1] += 1
    if not tallies:
        return RatePart(repeats=False)
    shapes = Counter((passed, of) for passed, of in tallies.values())  # few, however many cases there are
    per_case = [Fraction(passed, of) for (passed, of), cases_of in shapes.items() for _ in range(cases_of)]
    repeats = any(of > 1 for _, of in shapes)
    total = sum((Fraction(passed, of) * cases_of for (passed, of), cases_of in shapes.items()), Fraction())
    mean = total / len(per_case)
    interval = (
        statistics.clustered(per_case)
        if repeats
        else statistics.wilson(sum(passed for passed, _ in tallies.values()), len(per_case))
    )
    draws = range(1, min(of for _, of in shapes) + 1) if repeats else ()
    return RatePart(
        repeats=repeats,
        rate=statistics.rounded(float(mean)),
        low=statistics.rounded(interval.low) if interval else None,
        high=statistics.rounded(interval.high) if interval else None,
        worst=statistics.rounded(float(total / cases)),
        best=statistics.rounded(float((total + cases - len(per_case)) / cases)),
        pass_at=[_mean_over(shapes, statistics.pass_at, k) for k in draws],
        pass_all=[_mean_over(shapes, statistics.pass_all, k) for k in draws],
    )


def _mean_over(
    shapes: Counter[tuple[int, int]], chance: Callable[[int, int, int], Fraction], k: int
) -> float:
    total = sum((chance(of, passed, k) * cases for (passed, of), cases in shapes.items()), Fraction())
    return statistics.rounded(float(total / shapes.total()))


def flaky(keys: Mapping[CaseFacet, str], grades: Iterable[tuple[CaseFacet, Mark, Mark]]) -> list[FlakyPart]:
    """Return the cases with both outcomes, by axis, then by key.

    Args:
        keys: Of every case that was attempted.
        grades: The case, and the marks of structure and substance, of every run.
    """
    tallies: dict[AxisName, dict[CaseFacet, list[int]]] = {"structure": {}, "substance": {}}
    for facet, *marks in grades:
        for tally, mark in zip(tallies.values(), marks, strict=True):
            if mark != "ungraded":
                counts = tally.setdefault(facet, [0, 0])
                counts[0] += mark == "pass"
                counts[1] += 1
    return [
        FlakyPart(key=keys[facet], facet=facet, axis=name, passed=passed, of=of)
        for name, tally in tallies.items()
        for facet, (passed, of) in sorted(tally.items(), key=lambda item: (keys[item[0]], item[0]))
        if 0 < passed < of
    ]


def recovered(graded: Sequence[GradedRun]) -> list[str]:
    """Return the keys of cases that have a cancelled attempt and a later graded one."""
    cancelled: set[CaseFacet] = set()
    found: dict[str, None] = {}
    for item in graded:
        if item.run.end is not None and item.run.end.status == "cancelled":
            cancelled.add(item.case.facet)
        elif item.case.facet in cancelled and item.run.end is not None and item.run.end.status != "blocked":
            found[item.case.key] = None
    return list(found)

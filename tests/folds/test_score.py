from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.codec import digest
from spl.folds import statistics
from spl.folds.inputs import CaseInput, RunInput
from spl.folds.score import GradedRun, graded_runs, rates, recovered, score
from spl.ids import CaseFacet, Facet, RecordId
from spl.records.evals import Expect, Score
from spl.records.runs import Result, RunEnd, RunObserved, ToolCalls, Usage

FACET = Facet(bytes([1]) * 32)


def case(number: int) -> CaseInput:
    return CaseInput(
        RecordId(number.to_bytes(32)),
        f"k{number}",
        CaseFacet((1000 + number).to_bytes(32)),
        Expect(outcomes=["r"]),
    )


CASES = [case(i) for i in range(6)]


def run(
    position: int, of: int, status: Any = "completed", result: Any = "pass", failed: int = 0, **end: Any
) -> RunInput:
    return RunInput(
        id=RecordId((5000 + position).to_bytes(32)),
        case_facet=CASES[of].facet,
        position=position,
        trial=False,
        observed=None,
        end=None
        if status == "open"
        else RunEnd(
            status=status,
            results=None if result is None else [Result(kind="outcome", id="r", status=result)],
            tool_calls=ToolCalls(total=5, failed=failed, names={}),
            **end,
        ),
    )


def scored(runs: list[RunInput], cases: list[CaseInput] | None = None) -> Score:
    cases = CASES if cases is None else cases
    return score(FACET, cases, graded_runs(cases, runs), as_of=99)


RUNS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["open", "completed", "failed", "timed_out", "cancelled", "blocked"]),
        st.sampled_from(["pass", "fail", "error", None]),
        st.integers(0, 1),
    ),
    max_size=12,
).map(lambda rows: [run(i, *row) for i, row in enumerate(rows)])


@given(RUNS)
def test_the_cases_of_each_axis_sum_to_the_suite(runs: list[RunInput]) -> None:
    body = scored(runs)
    for axis in (body.structure, body.substance):
        assert axis.covered + axis.ungraded + axis.no_run == len(CASES)
        assert 0 <= axis.passed <= axis.of
    counts = body.runs
    ended = counts.completed + counts.failed + counts.timed_out + counts.cancelled + counts.blocked
    assert counts.matched == ended + counts.open == len(runs)


@given(RUNS, st.randoms(use_true_random=False))
def test_the_order_in_which_runs_are_read_changes_nothing(
    runs: list[RunInput], chance: random.Random
) -> None:
    shuffled = list(runs)
    chance.shuffle(shuffled)
    assert scored(shuffled) == scored(runs)


@given(RUNS)
def test_a_case_without_a_run_changes_no_figure_but_the_coverage(runs: list[RunInput]) -> None:
    more = [*CASES, case(77)]
    before, after = scored(runs), scored(runs, more)
    for name in ("structure", "substance"):
        old, new = getattr(before, name), getattr(after, name)
        assert msgspec.structs.replace(new, no_run=old.no_run) == old
        assert new.no_run == old.no_run + 1
    assert (before.runs, before.usage, before.cost) == (after.runs, after.usage, after.cost)


@given(RUNS)
def test_a_run_of_another_case_changes_nothing(runs: list[RunInput]) -> None:
    stranger = msgspec.structs.replace(run(500, 0), case_facet=CaseFacet(bytes([255]) * 32))
    assert scored([*runs, stranger]) == scored(runs)


@given(RUNS)
def test_the_axes_never_blend(runs: list[RunInput]) -> None:
    """Turning every tool call into a success moves structure alone; turning every result moves substance alone."""

    def changed(**changes: Any) -> list[RunInput]:
        return [
            item
            if item.end is None
            else msgspec.structs.replace(item, end=msgspec.structs.replace(item.end, **changes))
            for item in runs
        ]

    body = scored(runs)
    assert scored(changed(tool_calls=ToolCalls(total=1, failed=1, names={}))).substance == body.substance
    assert (
        scored(changed(results=[Result(kind="outcome", id="r", status="fail")])).structure == body.structure
    )


def test_cost_is_never_zero_when_unknown() -> None:
    priced = Usage(reported=2, requests=2, cost_status="priced", cost_nusd=7)
    unpriced = Usage(reported=1, cost_status="unpriced", input_tokens=3)
    nothing = scored([run(0, 0)]).cost
    assert (nothing.coverage, nothing.nusd, nothing.unpriced) == ("not_applicable", None, 1)
    whole = scored([run(0, 0, usage=[priced])]).cost
    assert (whole.coverage, whole.nusd, whole.priced) == ("complete", 7, 2)
    part = scored([run(0, 0, usage=[priced, unpriced])]).cost
    assert (part.coverage, part.nusd, part.unpriced) == ("partial", 7, 1)
    also = scored([run(0, 0, usage=[priced]), run(1, 1)]).cost
    assert (also.coverage, also.unpriced) == ("partial", 1)
    none = scored([run(0, 0, usage=[unpriced])]).cost
    assert (none.coverage, none.nusd) == ("unavailable", None)


def test_totals_say_how_many_runs_reported_them() -> None:
    usage = Usage(reported=1, requests=3, cost_status="unpriced", input_tokens=10)
    body = scored([run(0, 0, usage=[usage, usage], latency_ms=5), run(1, 1)])
    assert body.usage.requests is not None
    assert (body.usage.requests.total, body.usage.requests.runs) == (6, 1)
    assert body.usage.output_tokens is None
    assert body.usage.latency_ms is not None


def test_different_programs_or_time_limits_are_mixed() -> None:
    limits = [RunObserved(timeout_ms=1000), RunObserved(timeout_ms=2000)]
    runs = [
        msgspec.structs.replace(run(i, i), observed=observed)
        for i, observed in enumerate([*limits, limits[0]])
    ]
    assert scored(runs).observed.mixed
    assert not scored(runs[:1]).observed.mixed
    assert not scored([run(0, 0)]).observed.mixed


def test_repeats_count_all_attempts_and_give_pass_at_k() -> None:
    runs = [
        run(0, 0),
        run(1, 0, result="fail"),
        run(2, 1),
        run(3, 1),
        run(4, 2, result="fail"),
        run(5, 2, result="fail"),
    ]
    graded = graded_runs(CASES, runs)
    body = score(FACET, CASES, graded, 0)
    assert (body.substance.passed, body.substance.of, body.substance.covered) == (3, 6, 3)
    found = rates(6, [(item.case.facet, item.grade.substance) for item in graded])
    assert found.repeats
    assert found.rate == 0.5
    assert found.pass_at == [0.5, statistics.rounded(2 / 3)]
    assert found.pass_all == [0.5, statistics.rounded(1 / 3)]
    assert (found.worst, found.best) == (0.25, 0.75)


def test_cases_that_recovered_from_a_cancelled_attempt_are_listed() -> None:
    runs = [
        run(0, 0, "cancelled"),
        run(1, 0),
        run(2, 1),
        run(3, 1, "cancelled"),
        run(4, 2, "cancelled"),
        run(5, 2, "blocked"),
    ]
    assert recovered(graded_runs(CASES, runs)) == ["k0"]


def test_the_coverage_is_the_hash_of_the_covered_cases() -> None:
    body = scored([run(0, 0), run(1, 3)])
    assert body.substance.coverage == digest.coverage([CASES[3].facet, CASES[0].facet])
    assert body.suite_revision == digest.suite_revision(c.facet for c in reversed(CASES))


def test_one_case_without_spread_has_no_clustered_interval() -> None:
    found = rates(1, [(CASES[0].facet, "pass"), (CASES[0].facet, "fail")])
    assert (found.rate, found.low, found.high) == (0.5, None, None)
    nothing = rates(3, [(CASES[0].facet, "ungraded")])
    assert (nothing.rate, nothing.worst) == (None, None)


def test_grades_stay_in_the_order_of_the_cases_then_of_the_log() -> None:
    graded = graded_runs(CASES, [run(9, 2), run(3, 2), run(5, 0)])
    assert [(item.case.key, item.run.position) for item in graded] == [("k0", 5), ("k2", 3), ("k2", 9)]
    assert isinstance(graded[0], GradedRun)
    with pytest.raises(AttributeError):
        graded[0].run = run(1, 1)  # type: ignore[misc]

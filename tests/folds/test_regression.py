"""The verdict table cell by cell, what may not be compared, the steps, the gate, and real results."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from spl.codec import digest
from spl.contracts.comparison import AxisComparison, CompareDocument
from spl.contracts.verdicts import VerdictPart
from spl.folds.grade import Mark, scorer
from spl.folds.history import DefinitionInput
from spl.folds.regression import MarkInput, Question, SideInput, SuiteInput, compare, gate, regressions
from spl.folds.score import axis
from spl.ids import CaseFacet, Facet, RecordId
from spl.records.evals import Cost, Observed, RunCounts, Score, UsageTotals

Marks = Sequence[tuple[int, Mark, Mark]]
RESULTS = Path(__file__).parents[2].parent / "shared" / "data" / "swebench_bash_only.runs.jsonl"


def record(number: int) -> RecordId:
    return RecordId(number.to_bytes(32))


def of(number: int) -> CaseFacet:
    return CaseFacet((10_000 + number).to_bytes(32))


def facet(number: int) -> Facet:
    return Facet((90_000 + number).to_bytes(32))


def suite(cases: int) -> SuiteInput:
    return SuiteInput(record(1), "suite", {of(i): f"case-{i:04}" for i in range(cases)})


def side(number: int, marks: Marks, cases: int, **changes: Any) -> SideInput:
    rows = [MarkInput(of(case), structure, substance) for case, structure, substance in marks]
    current: Any = range(cases)
    body = Score(
        facet=facet(number),
        suite_revision=digest.suite_revision(of(i) for i in current),
        scorer=scorer(),
        structure=axis(current, [(row.case_facet, row.structure) for row in rows]),
        substance=axis(current, [(row.case_facet, row.substance) for row in rows]),
        runs=RunCounts(
            matched=len(rows),
            open=0,
            completed=len(rows),
            failed=0,
            timed_out=0,
            cancelled=0,
            blocked=0,
            trials=0,
            tool_calls_unknown=0,
        ),
        observed=Observed(programs=1, timeouts=1, mixed=False),
        usage=UsageTotals(),
        cost=Cost(coverage="not_applicable", priced=0, unpriced=0, error=0),
        as_of=9,
    )
    return SideInput(
        record(2), record(100 + number), record(200 + number), msgspec.structs.replace(body, **changes), rows
    )


def marks(substance: str, structure: str | None = None) -> Marks:
    """One run per case, `+` for pass and `-` for fail, case after case; structure passes unless given."""
    words: dict[str, Mark] = {"+": "pass", "-": "fail", "?": "ungraded"}
    return [
        (i, words[(structure or "+" * len(substance))[i]], words[mark]) for i, mark in enumerate(substance)
    ]


def compared(base: Marks, candidate: Marks, cases: int = 0, **question: Any) -> CompareDocument:
    cases = cases or 1 + max(case for case, _, _ in [*base, *candidate])
    return compare(
        suite(cases), side(1, base, cases), side(2, candidate, cases), question=Question(**question)
    )


def repeated(patterns: Sequence[str]) -> Marks:
    return [(i, "pass", "pass" if sign == "+" else "fail") for i, p in enumerate(patterns) for sign in p]


@pytest.mark.parametrize(
    ("base", "candidate", "margin", "verdict"),
    [
        ("------", "++++++", None, "inconclusive"),  # p is 1/32, and 1/16 after Holm over two axes
        ("-------", "+++++++", None, "better"),
        ("+++++++", "-------", None, "worse"),
        ("++--", "++--", None, "unchanged"),
        ("++--", "++--", 0.1, "unchanged"),
        ("+-++", "-+++", None, "inconclusive"),
        ("+-++", "-+++", 0.05, "inconclusive"),
        ("?+", "+?", None, "not_comparable"),
        ("-" * 30 + "+" * 970, "+" * 1000, None, "better"),
        ("+" * 1000, "-" * 30 + "+" * 970, None, "worse"),
        ("+" * 600 + "-" * 400, "+" * 600 + "-" * 400, None, "unchanged"),
        ("-+" * 5 + "+" * 990, "+-" * 5 + "+" * 990, 0.02, "equivalent"),
        ("-+" * 5 + "+" * 990, "+-" * 5 + "+" * 990, None, "inconclusive"),
        ("-+" * 250 + "+" * 500, "+-" * 250 + "+" * 500, 0.02, "inconclusive"),
        ("?" + "+" * 999, "+" * 1000, None, "not_comparable"),
    ],
)
def test_each_cell_of_the_verdict_table(
    base: str, candidate: str, margin: float | None, verdict: str
) -> None:
    found = compared(marks(base), marks(candidate), margin=margin)
    assert found.substance.verdict == verdict
    assert found.structure.verdict == "unchanged"


@pytest.mark.parametrize(
    ("base", "candidate", "margin", "verdict"),
    [
        (["--"] * 8, ["+-"] * 8, None, "better"),
        (["++"] * 8, ["+-"] * 8, None, "worse"),
        (["+-", "++"], ["-+", "++"], None, "unchanged"),
        (["+-", "++"], ["++", "+-"], 0.1, "inconclusive"),
        (["+-", "+++"], ["+", "+++"], None, "inconclusive"),
        (["+----"] * 900 + ["-----"] * 100, ["+----"] * 800 + ["++---"] * 200, None, "better"),
        (
            ["+----", "++---"] * 10 + ["+++++"] * 980,
            ["++---", "+----"] * 10 + ["+++++"] * 980,
            0.02,
            "equivalent",
        ),
    ],
)
def test_each_cell_of_the_verdict_table_with_repeats(
    base: list[str], candidate: list[str], margin: float | None, verdict: str
) -> None:
    found = compared(repeated(base), repeated(candidate), margin=margin).substance
    assert found.verdict == verdict
    assert found.test is not None
    assert found.test.name == "sign_flip_exact"
    assert found.cells is None
    assert found.directions is not None
    assert found.directions.lower + found.directions.higher + found.directions.equal == len(base)


def test_structure_up_and_substance_down_are_two_answers() -> None:
    found = compared(marks("+" * 12, "-" * 12), marks("-" * 12, "+" * 12))
    assert (found.structure.verdict, found.substance.verdict, found.tested) == ("better", "worse", 2)
    assert found.substance.test is not None
    assert found.substance.test.p_adjusted == pytest.approx(2 * found.substance.test.p)
    assert [change.key for change in found.substance.regressed] == [f"case-{i:04}" for i in range(12)]


def test_flips_that_cancel_out_are_listed_and_not_unchanged() -> None:
    found = compared(marks("+-+-"), marks("-++-")).substance
    assert (found.verdict, found.difference) == ("inconclusive", 0)
    assert found.cells is not None
    cells = found.cells
    assert (cells.both_pass, cells.regressed, cells.improved, cells.both_fail) == (1, 1, 1, 1)
    assert [c.key for c in (*found.regressed, *found.improved)] == ["case-0000", "case-0001"]


def test_one_attempt_against_five_is_averaged_within_the_case() -> None:
    found = compared(repeated(["+", "-"]), repeated(["+++--", "+----"])).substance
    assert found.base is not None
    assert found.candidate is not None
    assert (found.base.attempts_max, found.candidate.attempts_min) == (1, 5)
    assert found.difference == pytest.approx(-0.1)
    assert (found.candidate.passed, found.candidate.of) == (4, 10)


@pytest.mark.parametrize(
    ("change", "reason", "question"),
    [
        ({"suite_revision": digest.suite_revision([of(77)])}, "different suite revisions", {"common": True}),
        ({"scorer": msgspec.structs.replace(scorer(), version=99)}, "different scorers", None),
        (
            {"observed": Observed(programs=2, timeouts=1, mixed=True)},
            "mixed programs or time limits",
            {"allow_mixed": True},
        ),
    ],
)
def test_unlike_things_are_not_compared(
    change: dict[str, Any], reason: str, question: dict[str, bool] | None
) -> None:
    base, candidate = side(1, marks("+-"), 2), side(2, marks("++"), 2, **change)
    found = compare(suite(2), base, candidate)
    for figures in (found.structure, found.substance):
        assert (figures.verdict, figures.reason, figures.test) == ("not_comparable", reason, None)
    if question:
        assert compare(suite(2), base, candidate, question=Question(**question)).substance.reason is None


def test_tool_calls_that_one_side_does_not_report_stop_structure_alone() -> None:
    base, candidate = side(1, marks("+-"), 2), side(2, marks("++"), 2)
    runs = msgspec.structs.replace(candidate.body.runs, tool_calls_unknown=2)
    unknown = msgspec.structs.replace(candidate, body=msgspec.structs.replace(candidate.body, runs=runs))
    found = compare(suite(2), base, unknown)
    assert (found.structure.verdict, found.substance.verdict) == ("not_comparable", "inconclusive")
    assert found.tested == 1


def test_different_coverage_names_the_cases_and_common_compares_the_rest() -> None:
    base, candidate = marks("+++?"), marks("?+-+")
    refused = compared(base, candidate).substance
    assert refused.reason == "different cases covered"
    assert (refused.only_base, refused.only_candidate) == (["case-0000"], ["case-0003"])
    found = compared(base, candidate, common=True)
    assert found.common
    assert (found.substance.cases, found.substance.verdict) == (2, "inconclusive")
    assert (found.substance.only_base, found.substance.only_candidate) == (["case-0000"], ["case-0003"])
    nothing = compared(marks("+?"), marks("?+"), common=True).substance
    assert nothing.reason == "no case is covered by both"


def verdict(number: int, winner: int, loser: int, **fields: Any) -> VerdictPart:
    return VerdictPart(
        id=record(number),
        winner=record(0),
        loser=record(0),
        winner_facet=facet(winner),
        loser_facet=facet(loser),
        **{"features": [], "loser_features": [], **fields},
    )


def test_verdicts_between_the_sides_are_counted_and_no_others() -> None:
    known = [
        verdict(1, 2, 1, features=["terse"], loser_features=["slow"], axis="substance"),
        verdict(2, 1, 2, features=["kind"]),
        verdict(3, 2, 1, retracted=True),
        verdict(4, 2, 1, foreign=True),
        verdict(5, 2, 3),
        verdict(6, 3, 2, features=["terse"]),
    ]
    found = compare(suite(1), side(1, marks("+"), 1), side(2, marks("+"), 1), known)
    tally = found.preferences
    assert (tally.won, tally.lost) == ({"substance": 1}, {"unspecified": 1})
    assert (tally.candidate_features, tally.base_features) == ({"terse": 1}, {"slow": 1, "kind": 1})
    assert found.excluded == {"retracted": 1, "foreign": 1}
    assert tally.cycles == [[facet(1), facet(2), facet(3)]]
    assert compare(suite(1), side(1, marks("+"), 1), side(2, marks("+"), 1)).preferences.cycles == []


def test_a_rollback_is_two_steps_and_candidates_stand_against_the_incumbent() -> None:
    def definition(position: int, number: int, *, installed: bool = True) -> DefinitionInput:
        state = "installed" if installed else "candidate"
        return DefinitionInput(record(position), position, facet(number), state, installed, "d")

    definitions = [
        definition(1, 1),
        definition(2, 2),
        definition(3, 1),
        definition(4, 3, installed=False),
        definition(5, 3, installed=False),
        definition(6, 2, installed=False),
        definition(7, 4, installed=False),
    ]
    sides = {facet(n): side(n, marks(m), 8) for n, m in ((1, "+" * 8), (2, "-" * 8), (3, "+" * 8))}
    steps = regressions(suite(8), definitions, sides)
    assert [(step.change, step.base, step.candidate) for step in steps] == [
        ("install", record(1), record(2)),
        ("install", record(2), record(3)),
        ("candidate", record(3), record(4)),
        ("candidate", record(3), record(7)),
    ]
    found = [step.comparison.substance.verdict for step in steps if step.comparison]
    assert found == ["worse", "better", "unchanged"]
    assert steps[-1].unscored == [facet(4)]
    assert regressions(suite(8), definitions[3:], sides) == []


def test_the_gate_orders_its_answers() -> None:
    worse = compared(marks("+" * 12), marks("-" * 12))
    refused = compared(marks("+?", "-+"), marks("?+", "-+"))
    unsure = compared(marks("+-"), marks("-+"))
    same = compared(marks("+-"), marks("+-"))
    better = compared(marks("-" * 12), marks("+" * 12))
    assert gate([worse, refused, unsure], inconclusive=True).outcome == "fail"
    assert gate([refused, unsure], inconclusive=True).outcome == "refused"
    assert gate([unsure], inconclusive=True).outcome == "inconclusive"
    assert gate([unsure]).outcome == "pass"
    assert gate([same, better], inconclusive=True).outcome == "pass"
    assert gate([worse]).failed == ["substance"]


def test_what_is_allowed_is_allowed_on_its_axis_alone() -> None:
    worse = compared(marks("+" * 100), marks("-" * 10 + "+" * 90))
    assert worse.substance.difference == pytest.approx(-0.1)
    assert gate([worse], {"substance": 0.1}).outcome == "pass"
    assert gate([worse], {"substance": 0.09}).outcome == "fail"
    assert gate([worse], {"structure": 0.5}).outcome == "fail"


ROWS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["pass", "fail", "ungraded"]),
        st.sampled_from(["pass", "fail", "ungraded"]),
    ),
    min_size=1,
    max_size=20,
)


@given(ROWS, ROWS)
def test_the_axes_never_blend_in_a_comparison(base: Any, candidate: Any) -> None:
    """Whatever happens to structure, the figures of substance stay; only Holm's correction knows of both."""

    def alone(found: AxisComparison) -> AxisComparison:
        return msgspec.structs.replace(found, test=None, verdict="unchanged")

    flat: Marks = [(case, "fail", substance) for case, _, substance in candidate]
    before, after = (compared(base, rows, cases=6, common=True).substance for rows in (candidate, flat))
    assert alone(before) == alone(after)
    assert before.test is None or (after.test is not None and before.test.p == after.test.p)


@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_marks_changes_nothing(base: Any, candidate: Any, chance: random.Random) -> None:
    mixed = compared(chance.sample(base, len(base)), chance.sample(candidate, len(candidate)), 6, common=True)
    assert mixed == compared(base, candidate, 6, common=True)


@given(ROWS, ROWS)
def test_the_other_way_round_is_the_opposite_answer(base: Any, candidate: Any) -> None:
    there, back = (
        compared(old, new, 6, common=True).substance for old, new in ((base, candidate), (candidate, base))
    )
    opposite = {"better": "worse", "worse": "better"}
    assert back.verdict == opposite.get(there.verdict, there.verdict)
    assert (there.regressed == []) == (back.improved == [])
    assert there.difference is None or there.difference == -(back.difference or 0)


PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
import msgspec, test_regression as t
sys.stdout.buffer.write(msgspec.json.encode(t.compared(
    t.repeated(["+-", "++-", "-"] * 9), t.repeated(["++", "+--", "+"] * 9), margin=0.1)))
"""


def test_the_bytes_do_not_depend_on_the_hash_seed() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


@pytest.mark.shared
@pytest.mark.skipif(not RESULTS.exists(), reason="the real results are not here")
def test_pairs_of_real_models_agree_with_trusted_packages() -> None:
    models: dict[str, dict[str, bool]] = {}
    for line in RESULTS.read_text().splitlines():
        row = json.loads(line)
        models.setdefault(row["model"], {})[row["instance_id"]] = row["resolved"]
    keys = sorted(set().union(*models.values()))
    sides = {
        name: side(
            number, [(i, "pass", "pass" if runs[key] else "fail") for i, key in enumerate(keys)], len(keys)
        )
        for number, (name, runs) in enumerate(models.items())
    }
    pairs = list(combinations(models, 2))
    assert len(pairs) >= 50
    named = suite(len(keys))
    for old, new in pairs:
        found = compare(named, sides[old], sides[new]).substance
        regressed = sum(models[old][key] and not models[new][key] for key in keys)
        improved = sum(models[new][key] and not models[old][key] for key in keys)
        both = sum(models[new][key] and models[old][key] for key in keys)
        n = len(keys)
        table = [[both, regressed], [improved, n - both - regressed - improved]]
        expected = float(mcnemar(table, exact=True).pvalue)
        assert found.test is not None
        assert found.test.p == pytest.approx(expected, abs=1e-9)
        up, down = (improved + 1) / (n + 2), (regressed + 1) / (n + 2)
        half = float(stats.norm.ppf(0.975)) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
        assert (found.low, found.high) == pytest.approx((up - down - half, up - down + half), abs=1e-6)
        assert found.difference == pytest.approx((improved - regressed) / n, abs=1e-9)

"""Against trusted packages, which only the tests use."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from spl.folds import statistics


@given(st.integers(1, 3000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_wilson_agrees(figure: tuple[int, int]) -> None:
    ours = statistics.wilson(*figure)
    assert ours is not None
    assert ours == pytest.approx(proportion_confint(*figure, method="wilson"), abs=1e-9)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_agrees(regressed: int, improved: int) -> None:
    ours = statistics.mcnemar_exact(regressed, improved)
    if regressed + improved:
        table = [[5, regressed], [improved, 5]]
        assert ours == pytest.approx(float(mcnemar(table, exact=True).pvalue), abs=1e-9)
        assert ours == pytest.approx(stats.binomtest(regressed, regressed + improved).pvalue, abs=1e-9)
    else:
        assert ours == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_agrees(p_values: list[float]) -> None:
    assert statistics.holm(p_values) == pytest.approx(
        list(multipletests(p_values, method="holm")[1]), abs=1e-12
    )


def test_bonett_price_agrees_with_its_published_example() -> None:
    """Both 53, 16 and 8 discordant, 9 neither: the formula of the paper, worked by hand."""
    interval = statistics.bonett_price(53, 8, 16, 9)
    n, up, down = 86, 17 / 88, 9 / 88
    half = stats.norm.ppf(0.975) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    assert interval == pytest.approx((up - down - half, up - down + half), abs=1e-12)


@given(st.lists(st.fractions(0, 1, max_denominator=9), min_size=2, max_size=40))
def test_the_clustered_interval_is_that_of_the_case_means(rates: list[Fraction]) -> None:
    interval = statistics.clustered(rates)
    assert interval is not None
    values = [float(rate) for rate in rates]
    half = statistics.Z95 * float(stats.sem(values))
    mean = sum(values) / len(values)
    assert interval == pytest.approx((max(0, mean - half), min(1, mean + half)), abs=1e-9)


def test_pass_at_k_counts_the_draws() -> None:
    assert statistics.pass_at(5, 2, 1) == Fraction(2, 5)
    assert statistics.pass_at(5, 2, 4) == 1
    assert statistics.pass_all(5, 2, 2) == Fraction(1, 10)
    assert statistics.pass_all(5, 2, 3) == 0


def test_no_observation_has_no_interval() -> None:
    assert statistics.wilson(0, 0) is None
    assert statistics.clustered([Fraction(1)]) is None
    assert statistics.t_interval([Fraction(1)]) is None
    assert statistics.t_interval([Fraction(1, 5)] * 9) is None
    assert statistics.detectable_difference(0, 0.1, 0.1, 0.05) is None
    assert statistics.detectable_difference(500, 0.0, 0.0, 0.05) is None


def test_more_cases_detect_smaller_differences() -> None:
    found = [statistics.detectable_difference(n, 0.2, 0.2, 0.05) or 9 for n in (100, 500, 5000)]
    assert found == sorted(found, reverse=True)
    assert statistics.detectable_difference(20, 0.1, 0.1, 0.05) is None


@pytest.mark.parametrize(("n", "square", "alpha"), [(200, 0.2, 0.05), (500, 0.1, 0.01), (1000, 0.4, 0.1)])
def test_the_detectable_difference_has_the_power(n: int, square: float, alpha: float) -> None:
    """The normal approximation of the paired test, asked backwards."""
    found = statistics.detectable_difference(n, square, square, alpha)
    assert found is not None
    critical = stats.norm.ppf(1 - alpha / 2) * math.sqrt(square / n)
    power = stats.norm.sf((critical - found) / math.sqrt((square - found**2) / n))
    assert power == pytest.approx(0.8, abs=1e-9)


DIFFERENCES = st.lists(st.fractions(-1, 1, max_denominator=5), min_size=2, max_size=9)


@settings(max_examples=40)
@given(DIFFERENCES)
def test_sign_flips_agree_with_every_permutation(differences: list[Fraction]) -> None:
    scale = math.lcm(*(value.denominator for value in differences))
    whole = [int(value * scale) for value in differences]  # sums of floats would break ties

    def total(values: Any, axis: int) -> Any:
        return values.sum(axis=axis)

    expected = stats.permutation_test(
        (whole,), total, permutation_type="samples", n_resamples=10_000, vectorized=True
    )
    found = statistics.sign_flip(differences, b"")
    assert found.p == pytest.approx(min(1.0, float(expected.pvalue)), abs=1e-9)
    assert found.draws is None


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_sign_flips_of_ranks_are_the_signed_rank_test(signs: list[bool]) -> None:
    ranks = [rank if sign else -rank for rank, sign in enumerate(signs, start=1)]
    expected = stats.wilcoxon(ranks, method="exact").pvalue
    assert statistics.sign_flip([Fraction(r) for r in ranks], b"").p == pytest.approx(
        float(expected), abs=1e-9
    )


@given(st.integers(0, 300), st.integers(0, 300))
def test_sign_flips_of_single_runs_are_mcnemar(regressed: int, improved: int) -> None:
    flips = [Fraction(-1)] * regressed + [Fraction(1)] * improved + [Fraction(0)] * 3
    assert statistics.sign_flip(flips, b"").p == pytest.approx(
        statistics.mcnemar_exact(regressed, improved), abs=1e-12
    )


def test_past_the_documented_size_draws_come_near_the_exact_value(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [Fraction(i % 7 - 2, 5) for i in range(60)] + [Fraction(-3, 4)] * 8
    exact = statistics.sign_flip(differences, b"seed")
    assert exact.draws is None
    monkeypatch.setattr(statistics, "EXACT_CELLS", 0)
    drawn = statistics.sign_flip(differences, b"seed")
    assert drawn.draws == statistics.DRAWS
    assert drawn.p == pytest.approx(exact.p, abs=5 * math.sqrt(exact.p * (1 - exact.p) / statistics.DRAWS))
    assert drawn == statistics.sign_flip(list(reversed(differences)), b"seed")
    assert drawn != statistics.sign_flip(differences, b"another seed")
    never_zero = statistics.sign_flip([Fraction(1, 3)] * 200, b"seed")
    assert never_zero.p == 1 / (1 + statistics.DRAWS)


@given(st.integers(1, 3000), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
@settings(max_examples=30, deadline=None)
def test_quantiles_of_student_agree(freedom: int, level: float) -> None:
    expected = float(stats.t.ppf((1 + level) / 2, freedom))
    assert statistics.t_quantile(level, freedom) == pytest.approx(expected, rel=1e-9)


@given(DIFFERENCES.filter(lambda found: len(set(found)) > 1), st.sampled_from([0.9, 0.95]))
def test_the_interval_of_student_agrees(differences: list[Fraction], level: float) -> None:
    values = [float(value) for value in differences]
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    found = statistics.t_interval(differences, level)
    assert found == pytest.approx((max(-1, expected.low), min(1, expected.high)), abs=1e-9)

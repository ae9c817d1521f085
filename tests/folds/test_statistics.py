"""Against trusted packages, which only the tests use."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
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
    assert statistics.detectable_difference(0, 0.1, 0.05) is None


def test_more_cases_detect_smaller_differences() -> None:
    found = [statistics.detectable_difference(n, 0.2, 0.05) for n in (50, 500, 5000)]
    assert found == sorted(found, reverse=True)  # type: ignore[type-var]

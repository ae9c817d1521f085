"""The statistics of rates and differences, each with its source; no figure is shown without one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Final, NamedTuple

Z95: Final = NormalDist().inv_cdf(0.975)
SIGNIFICANT_DIGITS: Final = 9


class Interval(NamedTuple):
    """A 95% interval of a rate or a difference."""

    low: float
    high: float


def rounded(value: float) -> float:
    """Return a figure with nine significant digits, as documents carry it on every machine."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def wilson(passed: int, of: int) -> Interval | None:
    """Return the 95% score interval of a proportion; None without observations.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    if of == 0:
        return None
    rate, z2 = passed / of, Z95 * Z95
    centre = (rate + z2 / (2 * of)) / (1 + z2 / of)
    half = Z95 * math.sqrt(rate * (1 - rate) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def clustered(rates: Sequence[Fraction]) -> Interval | None:
    """Return the 95% interval of a mean of per-case rates, with the case as the cluster; None below two cases.

    Source: E. Miller, "Adding error bars to evals", arXiv 2411.00640 (2024), equation 4: with every case weighted
    alike, the clustered standard error is that of the per-case means.
    """
    n = len(rates)
    if n < 2:  # noqa: PLR2004 - one case has no spread
        return None
    mean = sum(rates, Fraction()) / n
    variance = sum(((rate - mean) ** 2 for rate in rates), Fraction()) / (n - 1) / n
    half = Z95 * math.sqrt(variance)
    return Interval(max(0.0, float(mean) - half), min(1.0, float(mean) + half))


def pass_at(n: int, c: int, k: int) -> Fraction:
    """Return the chance that at least one of k attempts passes, drawn from n of which c passed.

    Source: M. Chen et al., "Evaluating large language models trained on code", arXiv 2107.03374 (2021).
    """
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


def pass_all(n: int, c: int, k: int) -> Fraction:
    """Return the chance that all of k attempts pass, drawn from n of which c passed (pass^k).

    Source: S. Yao et al., "tau-bench", arXiv 2406.12045 (2024).
    """
    return Fraction(math.comb(c, k), math.comb(n, k))


def mcnemar_exact(regressed: int, improved: int) -> float:
    """Return the two-sided exact p-value that the discordant pairs are a fair coin.

    Source: Q. McNemar, Psychometrika 12 (1947); the exact form doubles the smaller binomial tail.
    """
    n = regressed + improved
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(min(regressed, improved) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**n)))


def bonett_price(both: int, regressed: int, improved: int, neither: int, level: float = 0.95) -> Interval:
    """Return the interval of the difference of paired proportions, candidate minus base.

    Source: D. G. Bonett and R. M. Price, "Adjusted Wald confidence interval for a difference of binomial proportions
    based on paired data", J. Educ. Behav. Stat. 37 (2012): one observation is added to each discordant cell.
    """
    n = both + regressed + improved + neither
    up, down = (improved + 1) / (n + 2), (regressed + 1) / (n + 2)
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return Interval(max(-1.0, up - down - half), min(1.0, up - down + half))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p-values, in the order given.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6 (1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def detectable_difference(cases: int, discordance: float, alpha: float, power: float = 0.8) -> float | None:
    """Return the smallest difference that a paired test over so many cases would show; None without cases.

    Source: R. J. Connor, "Sample size for testing differences in proportions for the paired-sample design",
    Biometrics 43 (1987), solved for the difference by fixed-point iteration; at most the discordance itself.
    """
    if cases == 0:
        return None
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    difference = 0.0
    for _ in range(200):
        spread = math.sqrt(max(0.0, discordance - difference * difference))
        difference = (z_alpha * math.sqrt(discordance) + z_power * spread) / math.sqrt(cases)
        difference = min(difference, discordance) if discordance else difference
    return difference

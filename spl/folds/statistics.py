"""The statistics of rates and differences, each with its source; no figure is shown without one of them."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Final, NamedTuple

Z95: Final = NormalDist().inv_cdf(0.975)
SIGNIFICANT_DIGITS: Final = 9
EXACT_CELLS: Final = 5_000_000  # cases that differ times the sum of their scaled differences; past it, draws
DRAWS: Final = 20_000


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
    tail = term = 1
    for i in range(min(regressed, improved)):
        term = term * (n - i) // (i + 1)  # the next binomial coefficient, without computing it afresh
        tail += term
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


def detectable_difference(cases: int, square: float, reach: float, alpha: float) -> float | None:
    """Return the smallest difference that a paired test over so many cases shows with power 0.8.

    Source: R. J. Connor, "Sample size for testing differences in proportions for the paired-sample design",
    Biometrics 43 (1987), solved for the difference; the discordance is there the mean square of the differences, so
    that the same equation serves cases with repeats.

    Args:
        cases: How many pairs there are.
        square: The mean of the squared differences; with one run per case, the discordance.
        reach: The mean of the absolute differences: no difference can exceed it, as it is what all of them give when
            they point the same way.
        alpha: The two-sided significance level.

    Returns:
        The difference, or None where no difference within reach would be shown (too few cases, or none differs).
    """
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(0.8)
    room = cases + z_power**2 - z_alpha**2
    if square == 0 or room < 0:
        return None
    found = (
        math.sqrt(square) * (z_alpha * math.sqrt(cases) + z_power * math.sqrt(room)) / (cases + z_power**2)
    )
    return found if found <= reach else None


class SignFlip(NamedTuple):
    """The outcome of a sign-flip test: the p-value, and how many draws it took (None: it is exact)."""

    p: float
    draws: int | None


def sign_flip(differences: Sequence[Fraction], seed: bytes) -> SignFlip:
    """Return the two-sided p-value that the sign of every difference is a fair coin, for the sum of them.

    Exact up to `EXACT_CELLS`: the number of sign patterns for each sum is a convolution, held in one long integer
    whose digits are the counts. Past that size it is estimated from `DRAWS` patterns with p = (1 + b) / (1 + m), which
    is never 0 and keeps the level.

    Source: R. A. Fisher, The Design of Experiments (1935), section 21; for the estimate, B. Phipson and G. K. Smyth,
    "Permutation p-values should never be zero", Stat. Appl. Genet. Mol. Biol. 9 (2010).

    Args:
        differences: One for each case; those of 0 do not matter.
        seed: What the draws follow from, so that everyone gets the same ones.
    """
    scale = math.lcm(*(difference.denominator for difference in differences))
    signed = [int(difference * scale) for difference in differences if difference]
    divisor = math.gcd(*signed)
    observed = abs(sum(signed)) // divisor if signed else 0
    if observed == 0:
        return SignFlip(1.0, None)
    sizes = [abs(value) // divisor for value in signed]
    if len(sizes) * sum(sizes) <= EXACT_CELLS:
        return SignFlip(_exact_tail(sizes, observed), None)
    return SignFlip(_drawn_tail(sizes, observed, seed), DRAWS)


def _exact_tail(sizes: Sequence[int], observed: int) -> float:
    """Return the share of sign patterns whose absolute sum is at least the observed one, which is above 0."""
    width = len(sizes) + 1  # bits of a digit: no count exceeds 2 to the number of sizes
    counts = 1
    for size in sorted(sizes):
        counts += counts << (size * width)
    # A pattern with positive part t sums to 2t - total; the sum of the digits is the remainder by the base less one.
    upper = counts >> ((sum(sizes) + observed) // 2 * width)
    return float(Fraction(2 * (upper % ((1 << width) - 1)), 2 ** len(sizes)))


def _drawn_tail(sizes: Sequence[int], observed: int, seed: bytes) -> float:
    """Return the estimate of the same from draws, each the bits of a hash of the seed and its number."""
    masks: list[tuple[int, int]] = []
    start = 0
    for size, times in sorted(Counter(sizes).items()):
        masks.append((size, ((1 << times) - 1) << start))
        start += times
    total, length = sum(sizes), (len(sizes) + 7) // 8
    extreme = 0
    for draw in range(DRAWS):
        bits = int.from_bytes(hashlib.shake_256(seed + draw.to_bytes(4)).digest(length))
        positive = sum(size * (bits & mask).bit_count() for size, mask in masks)
        extreme += abs(2 * positive - total) >= observed
    return (1 + extreme) / (1 + DRAWS)


def t_interval(differences: Sequence[Fraction], level: float = 0.95) -> Interval | None:
    """Return Student's interval of a mean difference; None below two cases, or where no spread is seen.

    Source: Student, "The probable error of a mean", Biometrika 6 (1908).
    """
    n = len(differences)
    if n < 2:  # noqa: PLR2004 - one case has no spread
        return None
    mean = sum(differences, Fraction()) / n
    variance = sum(((value - mean) ** 2 for value in differences), Fraction()) / (n - 1)
    if variance == 0:
        return None
    half = t_quantile(level, n - 1) * math.sqrt(variance / n)
    return Interval(max(-1.0, float(mean) - half), min(1.0, float(mean) + half))


def t_quantile(level: float, freedom: int) -> float:
    """Return t such that Student's distribution lies within ±t with the probability `level`, by bisection."""
    low, high = 0.0, 1.0
    while _t_within(high, freedom) < level:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if _t_within(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_within(t: float, freedom: int) -> float:
    """Return the probability that Student's t lies within ±t, for whole degrees of freedom.

    Source: M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    cosine2 = freedom / (freedom + t * t)
    sine = t / math.sqrt(freedom + t * t)
    odd = freedom % 2
    term = math.sqrt(cosine2) if odd else 1.0
    total = 0.0
    for i in range(odd + 2, freedom + 2, 2):
        total += term
        term *= cosine2 * (i - 1) / i
    return 2 / math.pi * (angle + sine * total) if odd else sine * total

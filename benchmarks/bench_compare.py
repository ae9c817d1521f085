"""Comparison and history: their time inside the process, and whether it follows the log. Prints figures and ratios.

Usage: python benchmarks/bench_compare.py [RECORDS [HOME]]
    RECORDS: how many records the large log has (default 200,000; the goal is stated for 1,000,000)
    HOME: where to keep it, for the other benchmarks of large logs
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from large_log import grow, measured

from spl.kernel.compare import Asked, actor_regressions, compare
from spl.kernel.history import history
from spl.kernel.home import Kernel, open_home
from spl.kernel.judge import list_verdicts
from spl.kernel.report import actor_report
from spl.kernel.score import score_suite

CASES, ATTEMPTS = 1_000, 5  # two definitions: 10,000 runs
MANY, MANY_CASES = 100, 100


def prepare(kernel: Kernel) -> None:
    """Append what is asked about: two definitions with 10,000 runs, and an actor with a hundred definitions."""
    measured(kernel, "pair", "big", ["one", "two"], CASES, ATTEMPTS)
    names = [f"version {number}" for number in range(MANY)]
    measured(kernel, "many", "small", names, MANY_CASES)
    for actor, suite in (("pair", "big"), ("many", "small")):
        for row in kernel.log.definitions(actor=kernel.log.actors(actor)[0].id):
            score_suite(kernel, suite, actor, row.id.hex())


def median_ms(asked: Callable[[], object]) -> float:
    """Return the median milliseconds of five calls."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        asked()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def figures(kernel: Kernel) -> dict[str, float]:
    """Return the milliseconds of every question."""
    one, two = (row.id.hex() for row in kernel.log.definitions(actor=kernel.log.actors("pair")[0].id))
    questions: dict[str, Callable[[], object]] = {
        f"compare {CASES:,} cases, {2 * CASES * ATTEMPTS:,} runs": lambda: compare(
            kernel, one, two, Asked(suite="big")
        ),
        f"history of {MANY} definitions": lambda: history(kernel, "many"),
        f"regressions of {MANY} definitions": lambda: actor_regressions(kernel, "many", Asked()),
        f"report on {MANY} definitions": lambda: actor_report(kernel, "many"),
        "verdicts of one actor": lambda: list_verdicts(kernel, "many"),
    }
    return {name: median_ms(asked) for name, asked in questions.items()}


def main(records: int, place: str | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        kernel = open_home(Path(place or directory) / "home", create=True)
        if not kernel.log.actors("pair"):
            prepare(kernel)
        small, size = figures(kernel), kernel.log.size()
        started = time.perf_counter()
        grow(kernel, records)
        print(
            f"a log of {kernel.log.size():,} records; growing it took {time.perf_counter() - started:.0f} s"
        )
        large = figures(kernel)
        for name, took in large.items():
            print(
                f"{name}: {took:.0f} ms in {kernel.log.size():,} records, {small[name]:.0f} ms in {size:,}, "
                f"ratio {took / small[name]:.2f}"
            )
        print("wanted: the comparison and the history under 500 ms, and ratios near 1")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000, sys.argv[2] if len(sys.argv) > 2 else None)

"""Import and score: records a second, and whether a score's cost follows the log. Prints figures and ratios.

Usage: python benchmarks/bench_kernel.py [TIMES]    (TIMES: how many times larger the second log is; default 10)
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from spl.kernel.actors import add_actor
from spl.kernel.define import Source, propose
from spl.kernel.home import Kernel, open_home
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import read_cases, read_runs, score_suite
from spl.kernel.suites import create_suite

CASES, RUNS = 500, 10_000


def lines(definition: int) -> list[bytes]:
    """Return one run of every case."""
    return [
        json.dumps(
            {
                "id": f"{definition}/{case}",
                "case": f"case-{case}",
                "results": [{"id": "resolved", "status": "pass" if (case * 7 + definition) % 3 else "fail"}],
                "usage": [{"model": "m", "requests": 20, "cost_usd": "0.0123"}],
            }
        ).encode()
        for case in range(CASES)
    ]


def grow(kernel: Kernel, actor: str, first: int, definitions: int) -> float:
    """Import runs of some definitions in one transaction and return the seconds that it took."""
    sources = {
        str(number): Source(behaviour={"adapter": "external", "system": "s", "version": str(number)})
        for number in range(first, first + definitions)
    }
    rows = []
    for number in range(first, first + definitions):
        for line in lines(number):
            row = json.loads(line)
            rows.append(json.dumps({**row, "d": str(number)}).encode())
    batch = Batch(source="b", suite="s", definition_from="d", definitions=sources, create_cases=True)
    started = time.perf_counter()
    import_runs(kernel, actor, rows, batch)
    return time.perf_counter() - started


def scored_ms(kernel: Kernel) -> float:
    """Return the median milliseconds of reading and folding one score of 500 cases and 500 runs."""
    from spl.folds.score import graded_runs, score  # noqa: PLC0415 - beside what it measures

    suite, actor = kernel.log.suites("s")[0].id, kernel.log.actors("a")[0].id
    facet = kernel.log.definitions(actor=actor)[0].facet
    times = []
    for _ in range(9):
        started = time.perf_counter()
        cases = read_cases(kernel.log, suite)
        graded = graded_runs(cases, read_runs(kernel, kernel.log, actor, facet, cases)[0])
        body = score(facet, cases, graded, kernel.log.size())
        times.append((time.perf_counter() - started) * 1000)
        assert body.substance.of == CASES
    return statistics.median(times)


def main(larger: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        kernel = open_home(Path(directory) / "home", create=True)
        add_actor(kernel, "a")
        add_actor(kernel, "others")
        create_suite(kernel, "s")
        seconds = grow(kernel, "a", 0, RUNS // CASES)
        records = kernel.log.size()
        print(
            f"import: {records} records in {seconds:.2f} s, {records / seconds:,.0f} records a second (wanted: 5,000)"
        )
        small = scored_ms(kernel)
        print(
            f"score of {CASES} cases and {CASES} runs in a log of {records}: {small:.1f} ms (wanted: under 50)"
        )
        propose(kernel, "others", Source(behaviour={"adapter": "external", "system": "o"}))
        for turn in range(1, larger):
            grow(kernel, "others", 1000 * turn, RUNS // CASES)
        large = scored_ms(kernel)
        print(
            f"the same in a log of {kernel.log.size()}: {large:.1f} ms, ratio {large / small:.2f} (wanted: at most 1.3)"
        )
        score_suite(kernel, "s", "a", kernel.log.definitions(actor=kernel.log.actors("a")[0].id)[0].id.hex())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)

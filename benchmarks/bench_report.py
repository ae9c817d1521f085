"""The report page: how long it takes to render, and how large it is. Prints figures.

Usage: python benchmarks/bench_report.py [DEFINITIONS [CASES [FILE]]]    (default 20 and 500; FILE keeps the page)
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from large_log import measured

from spl.cli.render.report.csvtable import render_csv
from spl.cli.render.report.junit import render_junit
from spl.cli.render.report.markdown import render_markdown
from spl.cli.render.report.page import render_page
from spl.kernel.home import open_home
from spl.kernel.report import actor_report
from spl.kernel.score import score_suite


def main(definitions: int, cases: int, kept: str | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        kernel = open_home(Path(directory) / "home", create=True)
        measured(kernel, "a", "s", [f"version {number}" for number in range(definitions)], cases)
        for row in kernel.log.definitions(actor=kernel.log.actors("a")[0].id):
            score_suite(kernel, "s", "a", row.id.hex())
        times: dict[str, list[float]] = {"fold": [], "page": [], "markdown": [], "csv": [], "junit": []}
        pages = {}
        for _ in range(3):
            started = time.perf_counter()
            document = actor_report(kernel, "a")
            times["fold"].append(time.perf_counter() - started)
            for name, render in (
                ("page", render_page),
                ("markdown", render_markdown),
                ("csv", render_csv),
                ("junit", render_junit),
            ):
                started = time.perf_counter()
                pages[name] = render(document)
                times[name].append(time.perf_counter() - started)
        if kept:
            Path(kept).write_text(pages["page"], "utf-8")
    total = statistics.median(times["fold"]) + statistics.median(times["page"])
    size = len(pages["page"].encode()) / 1e6
    print(
        f"{definitions} definitions, {cases} cases: page in {total:.2f} s inside the process (wanted: under 2), "
        f"{size:.2f} MB (wanted: under 2)"
    )
    print(", ".join(f"{name} {statistics.median(seconds):.2f} s" for name, seconds in times.items()))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]] + [20, 500][len(sys.argv[1:3]) :]
    main(numbers[0], numbers[1], sys.argv[3] if len(sys.argv) > 3 else None)

"""Export and import of a bundle: records a second, and the peak memory of the real program.

Usage: python benchmarks/bench_bundle.py [RECORDS]    (default 100,000)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from spl.kernel.actors import add_actor
from spl.kernel.define import Source, propose
from spl.kernel.home import open_home
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.suites import create_suite

RUNS_AT_ONCE = 5_000


def grow(path: Path, records: int) -> int:
    """Make a home with so many records, nearly all of them runs; return how many blobs it has."""
    kernel = open_home(path, create=True)
    add_actor(kernel, "a")
    create_suite(kernel, "s")
    propose(kernel, "a", Source(behaviour={"adapter": "external", "system": "s"}))
    batch = Batch(source="b", suite="s", definition="latest", create_cases=True)
    run = 0
    while kernel.log.size() < records:
        count = min(RUNS_AT_ONCE, -(-(records - kernel.log.size()) // 2))
        lines = [
            json.dumps(
                {
                    "id": str(run + number),
                    "case": f"case-{(run + number) % 500}",
                    "answer": f"answer {run + number} " * (2000 if (run + number) % 500 == 0 else 20),
                    "results": [{"id": "resolved", "status": "pass"}],
                    "usage": [{"model": "m", "requests": 20, "cost_usd": "0.0123"}],
                }
            ).encode()
            for number in range(count)
        ]
        import_runs(kernel, "a", lines, batch)
        run += count
    size = kernel.log.size()
    kernel.log.close()
    return size


def measured(*words: str) -> tuple[float, float, dict[str, int]]:
    """Return seconds, peak megabytes and the document of a command."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "spl", *words, "--json"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, out
    return time.perf_counter() - started, usage.ru_maxrss / 1024, json.loads(out)


def main(records: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        home, other, file = (Path(directory) / name for name in ("one", "two", "bundle"))
        size = grow(home, records)
        for what, words, wanted in (
            ("export", ("export", "-o", str(file), "--home", str(home)), "under 200 MB"),
            ("import", ("import", str(file), "--home", str(other)), "under 200 MB"),
            ("import again", ("import", str(file), "--home", str(other)), "appends nothing"),
        ):
            seconds, megabytes, document = measured(*words)
            print(
                f"{what}: {size} records, {document['blobs']} blobs, {file.stat().st_size / 1e6:.0f} MB in"
                f" {seconds:.1f} s, {size / seconds:,.0f} records a second, {megabytes:.0f} MB of memory"
                f" (wanted: {wanted})"
            )
        assert document["appended"] == 0


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)

"""Verification and proofs: records a second, against what the signatures alone would cost, and proofs in a large log.

Usage: python benchmarks/bench_verify.py [RECORDS [HOME]]
    RECORDS: how many records the log has (default 60,000; the goals for proofs are stated for 1,000,000)
    HOME: where a home is kept for the benchmarks of large logs
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from large_log import grow

from spl.kernel.home import Kernel, open_home
from spl.kernel.proof import checkpoint, prove, prove_growth
from spl.kernel.records import put_record
from spl.kernel.verify import Depth, verify_home
from spl.kernel.workers import cores
from spl.records.envelope import read_record
from spl.store.keys import check_signature

_SAMPLE = 4_000
NOTE = b'{"kind": "acme.note.v1", "body": {}}'


def bare_us(kernel: Kernel) -> float:
    """Return the microseconds that checking one signature takes by itself, with the same library."""
    signed = [
        (read_record(entry.record).by, entry.record, entry.signature)
        for entry in kernel.log.at(range(_SAMPLE))
        if entry.record is not None
    ]
    started = time.process_time()
    for by, record, signature in signed:
        check_signature(by, record, signature)
    return (time.process_time() - started) / len(signed) * 1e6


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_ms(work: Callable[[], object]) -> float:
    """Return the median milliseconds of nine calls."""
    return statistics.median(seconds(work) * 1000 for _ in range(9))


def verifying(kernel: Kernel) -> None:
    """Print how fast everything is read again."""
    size, bare = kernel.log.size(), bare_us(kernel)
    limit = cores() * 1e6 / bare
    print(f"one signature alone: {bare:.0f} us, so {limit:,.0f} a second on {cores()} cores at the most")
    for name, depth, wanted in (
        ("verify", Depth(), 12_000),
        ("verify --no-signatures", Depth(signatures=False), 30_000),
    ):
        alone = seconds(partial(verify_home, kernel, depth, workers=0))
        together = seconds(partial(verify_home, kernel, depth, workers=cores()))
        rate = size / together
        print(
            f"{name}: {rate:,.0f} records a second on {cores()} cores (wanted: {wanted:,}), {size / alone:,.0f} in "
            f"one process, ratio {alone / together:.2f}; {rate / limit:.2f} of signatures alone"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process at its highest: {memory:.0f} MB")


def proving(kernel: Kernel) -> None:
    """Print how long checkpoints and proofs take."""
    checkpoint(kernel)
    record = kernel.log.at([kernel.log.size() // 3])[0].id.hex()

    def anew() -> None:
        put_record(kernel, NOTE, "note")
        checkpoint(kernel)

    appended = median_ms(lambda: put_record(kernel, NOTE, "note"))
    signing = max(0.0, median_ms(anew) - appended)
    inclusion = median_ms(lambda: prove(kernel, record))
    growth = median_ms(lambda: prove_growth(kernel, kernel.log.size() // 3))
    print(
        f"in {kernel.log.size():,} records: checkpoint {signing:.1f} ms, inclusion {inclusion:.1f} ms, "
        f"growth {growth:.1f} ms (wanted: under 50)"
    )


def main(records: int, place: str | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        kernel = open_home(Path(place or directory) / "home", create=True)
        grow(kernel, 2_000)
        proving(kernel)
        grow(kernel, records)
        proving(kernel)
        verifying(kernel)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000, sys.argv[2] if len(sys.argv) > 2 else None)

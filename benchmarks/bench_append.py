"""Appends: what tree and signature add, how many syncs one takes, and how many a second. Prints figures and ratios.

Usage: python benchmarks/bench_append.py [RECORDS]    (how many in one transaction; default 20,000)
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from large_log import measured
from nacl.bindings import crypto_sign
from nacl.signing import SigningKey

from spl.ids import Digest
from spl.kernel.home import Kernel, open_home
from spl.records.envelope import Draft
from spl.store.log import Transaction

SINGLE = 200
ROUNDS = 5


def filled(kernel: Kernel, records: int) -> Callable[[Transaction], None]:
    """Return what appends so many records of a few hundred bytes."""

    def fill(tx: Transaction) -> None:
        for number in range(records):
            body = {"number": number, "text": "what a person might note " * 8}
            tx.append(Draft(body=body, kind="acme.note.v1", by=kernel.operator))

    return fill


def notes_seconds(path: Path, records: int) -> float:
    """Return the processor time of one transaction on a new home, so that the disk and other work do not count.

    Notes of another namespace are the cheapest records that there are: nothing is projected from them.
    """
    kernel = open_home(path, create=True)
    kernel.transact(filled(kernel, 1))
    started = time.process_time()
    kernel.transact(filled(kernel, records))
    took = time.process_time() - started
    kernel.log.close()
    shutil.rmtree(path)
    return took


def runs_seconds(path: Path, records: int) -> float:
    """Return the same of an import of runs, a start and an end each, of which logs mostly consist."""
    kernel = open_home(path, create=True)
    measured(kernel, "a", "s", ["first"], records // 2)
    started = time.process_time()
    measured(kernel, "a", "s", ["second"], records // 2)
    took = time.process_time() - started
    kernel.log.close()
    shutil.rmtree(path)
    return took


def bare(seconds: Callable[[Path, int], float], path: Path, records: int) -> float:
    """Return the same without leaves, tree and signatures: the log is worth nothing then."""
    with (
        patch("spl.store.tree.entry_leaf", lambda *_: Digest(bytes(32))),
        patch("spl.store.tree.extend", lambda *_: []),
        patch("spl.store.keys.KeyStore.sign", lambda *_: bytes(64)),
    ):
        return seconds(path, records)


def signing_us() -> float:
    """Return the microseconds that libsodium takes for one signature over a record of that size."""
    secret = SigningKey.generate()
    pair, message = secret.encode() + secret.verify_key.encode(), bytes(430)
    started = time.process_time()
    for _ in range(ROUNDS * 1000):
        crypto_sign(message, pair)
    return (time.process_time() - started) / (ROUNDS * 1000) * 1e6


def syncs(directory: Path) -> str:
    """Return how many syncs a command that appends one record makes, as strace counts them."""
    if shutil.which("strace") is None:
        return "unknown: strace is not there"
    home = ["--home", str(directory / "counted")]
    subprocess.run([sys.executable, "-m", "spl", *home, "init"], check=True, capture_output=True)
    note = directory / "note.json"
    note.write_text('{"kind": "acme.note.v1", "body": {}}')
    trace = directory / "trace"
    command = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
    subprocess.run(
        [*command, sys.executable, "-m", "spl", *home, "put", str(note)], check=True, capture_output=True
    )
    return str(len(re.findall(r"\bf(?:data)?sync\(", trace.read_text())))


def main(records: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        signing = signing_us()
        for kind, seconds in (("notes", notes_seconds), ("imported runs", runs_seconds)):
            pairs = [
                (seconds(directory / "whole", records), bare(seconds, directory / "bare", records))
                for _ in range(ROUNDS)
            ]
            ratio = statistics.median(whole / without for whole, without in pairs)
            each = statistics.median(whole for whole, _ in pairs) / records * 1e6
            print(
                f"one transaction of {records:,} {kind}: {each:.0f} us of processor time a record; tree and signature "
                f"add {100 * (ratio - 1):.0f}% (wanted: at most 60%), the signature alone, as its library makes it, "
                f"{100 * signing * ratio / each:.0f}%"
            )
        kernel = open_home(directory / "single", create=True)
        times = []
        for _ in range(SINGLE):
            started = time.perf_counter()
            kernel.transact(filled(kernel, 1))
            times.append(time.perf_counter() - started)
        print(f"one durable append: {1000 * statistics.median(times):.1f} ms (median of {SINGLE})")
        print(f"syncs of spl put: {syncs(directory)} (wanted: at most 6)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)

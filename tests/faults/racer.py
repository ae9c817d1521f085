"""Appends records for ever and says of each, on standard output, when it is in: one of several that are killed.

Usage: racer.py HOME NAME MODE    (MODE: honest, or early, which acknowledges before the commit: a negative control)
"""

import os
import sys
import time
from functools import partial
from pathlib import Path

from spl.kernel.home import open_home
from spl.records.envelope import Draft
from spl.store.log import Entry, Transaction

kernel = open_home(Path(sys.argv[1]), create=False)
early = sys.argv[3] == "early"


def say(entry: Entry, began: float) -> None:
    """Acknowledge an entry, with the seconds that it took."""
    os.write(1, f"{entry.id.hex()} {time.monotonic() - began:.6f}\n".encode())


def append(number: int, began: float, transaction: Transaction) -> Entry:
    """Append one note."""
    body = {"writer": sys.argv[2], "number": number}
    entry = transaction.append(Draft(kind="acme.note.v1", body=body, by=kernel.operator))
    if early:
        say(entry, began)
        time.sleep(0.02)
    return entry


for count in range(1_000_000):
    start = time.monotonic()
    done = kernel.transact(partial(append, count, start))
    if not early:
        say(done, start)

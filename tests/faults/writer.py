"""Appends records to a home, and says of each, on standard output, when it is in: the program under test.

Usage: writer.py HOME COUNT MODE    (MODE: as it is, or a journal and a synchronous mode that are known to lose)
"""

import os
import sys
from functools import partial
from pathlib import Path

from spl.kernel.content import put_blob
from spl.kernel.home import open_home
from spl.records.envelope import Draft
from spl.store.log import Entry, Transaction
from spl.store.sqlite import SqliteLog


def append(draft: Draft, transaction: Transaction) -> Entry:
    """Append one draft."""
    return transaction.append(draft)


kernel = open_home(Path(sys.argv[1]), create=False)
if sys.argv[3] != "as-it-is":
    journal, synchronous = sys.argv[3].split("+")
    assert isinstance(kernel.log, SqliteLog)
    kernel.log._connection.execute(f"PRAGMA journal_mode={journal}").fetchall()
    kernel.log._connection.execute(f"PRAGMA synchronous={synchronous}")
for number in range(int(sys.argv[2])):
    blobs = (
        (put_blob(kernel.blobs, b"content %d" % (number % 4), "note", "text/plain"),) if number % 2 else ()
    )
    draft = Draft(kind="acme.note.v1", body={"number": number}, by=kernel.operator, blobs=blobs)
    entry = kernel.transact(partial(append, draft))
    named = "".join(f" {blob.h.hex()}" for blob in blobs)
    os.write(1, f"{entry.id.hex()}{named}\n".encode())
os._exit(0)  # the end of the process is not part of what is tested

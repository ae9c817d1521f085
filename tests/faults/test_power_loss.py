"""What was acknowledged survives power loss at any moment, and modes that are known to lose are seen to lose."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from faults.crash_states import CALLS, Recording, State, put_on_disk, recording, states

from spl.ids import BlobId
from spl.kernel.home import open_home
from spl.store import tree
from spl.store.blobs import BlobStore

pytestmark = pytest.mark.faults
WRITER = Path(__file__).with_name("writer.py")
RECORDS = 8


def record(strace: str, home: Path, mode: str, unsynced: Sequence[Path] = ()) -> Recording:
    """Return what the writer's system calls do to a home."""
    before = {str(path): path.read_bytes() if path.is_file() else None for path in home.rglob("*")}
    trace = home.with_name("trace")
    tracer = [strace, "-f", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(trace)]
    writer = [sys.executable, str(WRITER), str(home), str(RECORDS), mode]
    subprocess.run([*tracer, *writer], check=True, capture_output=True)
    return recording(home, before, trace.read_text(), [str(path) for path in unsynced])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    open_home(tmp_path / "home", create=True).log.close()
    return tmp_path / "home"


def lost(state: State, home: Path, place: Path) -> str | None:
    """Return what is wrong with a home that is opened after power was lost, or None."""
    shutil.rmtree(place, ignore_errors=True)
    put_on_disk(state, home, place)
    (place / "blobs").mkdir(exist_ok=True)
    try:
        connection = sqlite3.connect(place / "log.db")
        rows = connection.execute("SELECT position, id, record, signature, leaf FROM entries").fetchall()
        sound = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
    except sqlite3.DatabaseError as error:
        return f"damaged: {error}"
    if not sound or [row[0] for row in rows] != list(range(len(rows))):
        return "damaged"
    if any(tree.entry_leaf(row[2], row[3]) != row[4] for row in rows):
        return "an entry was altered"
    ids = {row[1].hex() for row in rows}
    blobs = BlobStore(place / "blobs", place / "tmp")
    for line in state.acknowledged:
        entry, *named = line.split()
        if entry not in ids:
            return f"lost: {entry}"
        for blob in named:
            if BlobId(bytes.fromhex(blob)) not in blobs or not blobs.get(BlobId(bytes.fromhex(blob))):
                return f"lost: the blob {blob}"
    return None


def faults(record_: Recording, home: Path, count: int, seed: int = 1) -> list[str]:
    found = [lost(state, home, home.with_name("after")) for state in states(record_, count, seed)]
    return [fault for fault in found if fault is not None]


def test_the_model_ends_where_the_disk_does(strace: str, home: Path) -> None:
    record_ = record(strace, home, "as-it-is")
    last = next(state for state in states(record_, 10_000, seed=2) if len(state.acknowledged) == RECORDS)
    on_disk = {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    kept = {path: data for path, data in last.content.items() if Path(path).parent != home / "tmp"}
    assert kept == on_disk, (
        "after the last acknowledgement only the removal of files in the making is unsynced"
    )


@pytest.mark.parametrize("part", range(2))
def test_what_was_acknowledged_survives_power_loss(
    strace: str, home: Path, part: int, tally: Callable[[str, int], None], *, long: bool
) -> None:
    count = 25_000 if long else 750
    assert faults(record(strace, home, "as-it-is"), home, count, seed=part) == []
    tally("states", count)


def test_a_name_that_a_killed_process_left_unsynced_is_synced_before_it_is_relied_on(
    strace: str, home: Path
) -> None:
    blobs = BlobStore(home / "blobs", home / "tmp")
    for number in (1, 3):
        blobs.put(b"content %d" % number)
    left = list((home / "blobs").rglob("*"))
    assert len(left) == 4, "two directories with a blob in each"
    record_ = record(strace, home, "as-it-is", left)
    files = [str(path) for path in left if path.is_file()]
    assert any(files[0] not in state.content for state in states(record_, 200, seed=3)), "it can be lost"
    assert faults(record_, home, 1500) == []


@pytest.mark.parametrize("mode", ["DELETE+FULL", "WAL+NORMAL"])
def test_modes_that_are_known_to_lose_are_seen_to_lose(
    strace: str, home: Path, mode: str, tally: Callable[[str, int], None]
) -> None:
    found = [fault for fault in faults(record(strace, home, mode), home, 1500) if fault.startswith("lost")]
    assert found
    tally("states-control", len(found))

"""Several processes on one home: each takes its turn, nothing is lost, nothing stands twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from spl.errors import LockTimeoutError, StorageError
from spl.kernel.home import open_home
from spl.kernel.verify import verify_home
from spl.store.lock import write_lock
from spl.store.log import Selection

WRITER = """
import sys
from pathlib import Path
from spl.kernel.home import open_home
from spl.kernel.records import put_record
kernel = open_home(Path(sys.argv[1]), create=True)
for number in range(int(sys.argv[3])):
    text = '{"kind": "acme.note.v1", "body": {"by": "%s", "n": %d}}' % (sys.argv[2], number)
    done = put_record(kernel, text.encode(), "note")
    print(done.id.hex(), flush=True)
"""


def writer(home: Path, name: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, home, name, str(count)], stdout=subprocess.PIPE)


def test_processes_that_write_at_once_all_succeed_in_turn(tmp_path: Path) -> None:
    home = tmp_path / "home"
    writers = [writer(home, f"w{number}", 15) for number in range(5)]
    ids = [line.decode() for process in writers for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in writers] == [0] * 5
    kernel = open_home(home, create=False)
    entries = list(kernel.log.scan(Selection()))
    assert [entry.position for entry in entries] == list(range(75))
    assert {entry.id.hex() for entry in entries} == set(ids)
    assert len(ids) == 75
    assert verify_home(kernel).clean


def test_what_was_printed_survives_a_kill(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_home(home, create=True).log.close()
    printed: list[str] = []
    for turn in range(6):
        process = writer(home, f"k{turn}", 10_000)
        assert process.stdout is not None
        printed.append(process.stdout.readline().decode().strip())
        time.sleep(0.02 * turn)
        process.send_signal(signal.SIGKILL)
        printed += [line.decode() for line in process.communicate()[0].split(b"\n")[:-1]]
    kernel = open_home(home, create=False)
    there = {entry.id.hex() for entry in kernel.log.scan(Selection())}
    assert set(printed) <= there
    assert len(there) - len(printed) <= 6, "at most the record of each last moment is unacknowledged"
    assert verify_home(kernel).clean


def test_waiting_for_the_lock_has_an_end(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        write_lock(lock),
        pytest.raises(LockTimeoutError, match="another process"),
        write_lock(lock, wait_limit_s=0.05),
    ):
        pass
    assert os.path.exists(lock)  # noqa: PTH110 - it is never unlinked


DESCRIPTORS = Path("/proc/self/fd")
GREEDY = """
import sys, time
from pathlib import Path
from spl.store.lock import write_lock
turns, end = 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    with write_lock(Path(sys.argv[1])):
        turns += 1
        time.sleep(0.004)
print(turns)
"""


def test_who_waits_for_the_lock_stands_in_a_queue(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GREEDY, str(tmp_path / "lock"), "2"]
    waiting = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    turns = sorted(int(process.communicate()[0]) for process in waiting)
    assert turns[0] >= turns[-1] / 4, f"nobody waits while others come again and again: {turns}"


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="the system does not list open files")
def _open_on(path: Path) -> int:
    """Return how many descriptors of this process are open on a file; others come and go with other tests."""
    found = 0
    for descriptor in DESCRIPTORS.iterdir():
        with suppress(FileNotFoundError):  # the one that lists the directory is closed by now
            found += descriptor.readlink() == path
    return found


def test_who_gave_up_waiting_does_not_get_the_lock_after_all(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with write_lock(lock):
        for _ in range(3):
            with pytest.raises(LockTimeoutError), write_lock(lock, wait_limit_s=0.01):
                pass
        assert _open_on(lock) == 4, "the holder, and three that still stand in the queue"
    with write_lock(lock, wait_limit_s=5):
        pass
    give_up = time.monotonic() + 5
    while _open_on(lock) and time.monotonic() < give_up:
        time.sleep(0.01)
    assert _open_on(lock) == 0, "places that were left are closed"


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="cannot lock"), write_lock(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()

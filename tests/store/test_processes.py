"""Several processes on one home: each takes its turn, nothing is lost, nothing stands twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spl.errors import LockTimeoutError
from spl.kernel.home import open_home
from spl.kernel.proof import verify_home
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

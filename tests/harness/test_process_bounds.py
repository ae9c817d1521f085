from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from spl.harness import process
from spl.harness.limit import Limit
from spl.harness.process import Outcome
from spl.harness.spool import CAPTURE_LIMIT


class Collected:
    def __init__(self) -> None:
        self.size = 0
        self.closed = False

    def feed(self, chunk: bytes) -> None:
        self.size += len(chunk)

    def close(self) -> None:
        self.closed = True


def run(
    program: str, tmp_path: Path, limit: Limit | None = None, consumer: Collected | None = None
) -> Outcome:
    environment = process.inherited({"PATH": os.environ["PATH"]}, tmp_path)
    return process.run(
        [sys.executable, "-c", program],
        directory=tmp_path,
        environment=environment,
        spools=tmp_path,
        limit=limit or Limit(),
        consumer=consumer,
    )


def is_alive(path: Path) -> bool:
    try:
        os.kill(int(path.read_text()), 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    return True


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon.pid", "w").write(str(os.getpid()))
        {hide}
        time.sleep(60)
    os._exit(0)
while not os.path.exists("daemon.pid"): time.sleep(0.01)
time.sleep(0.1)
"""
HIDDEN = 'os.execve("/bin/sleep", ["sleep", "60"], {})'


@pytest.mark.parametrize("hide", ["pass", HIDDEN])
def test_a_daemon_that_left_the_session_does_not_survive_its_run(tmp_path: Path, hide: str) -> None:
    outcome = run(DAEMON.format(hide=hide), tmp_path)
    assert outcome.exit_code == 0
    assert outcome.left_behind >= 1
    assert not is_alive(tmp_path / "daemon.pid")


def test_a_daemon_of_one_run_is_left_alone_when_another_run_ends(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    long_run = DAEMON.format(hide="pass") + "\ntime.sleep(1.5)"
    worker = threading.Thread(target=run, args=(long_run, first))
    worker.start()
    while not (first / "daemon.pid").exists():
        time.sleep(0.01)
    run("pass", second)
    assert is_alive(first / "daemon.pid")
    worker.join()
    assert not is_alive(first / "daemon.pid")


def test_a_timeout_bounds_a_program_that_ignores_signals_and_its_children(tmp_path: Path) -> None:
    program = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0: os.setsid()\nopen('daemon.pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    started = time.monotonic()
    outcome = run(program, tmp_path, Limit(0.5))
    assert outcome.timed_out
    assert outcome.exit_code == -1
    assert time.monotonic() - started < 4
    assert not is_alive(tmp_path / "daemon.pid")


def test_a_child_that_keeps_the_pipes_open_is_not_waited_for(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = run("import subprocess; subprocess.Popen(['sleep', '30']); print('done')", tmp_path)
    assert outcome.exit_code == 0
    assert outcome.stdout.head(10) == b"done\n"
    assert time.monotonic() - started < 5


def test_cancelling_ends_the_program(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    outcome = run("import time; time.sleep(30)", tmp_path, Limit(cancel=cancel))
    assert outcome.cancelled


def test_output_beyond_the_cap_is_counted_and_seen_but_not_kept(tmp_path: Path) -> None:
    consumer = Collected()
    outcome = run("import os\nfor _ in range(12): os.write(1, b'x' * (1 << 20))", tmp_path, consumer=consumer)
    assert outcome.stdout.size == CAPTURE_LIMIT
    assert outcome.stdout.dropped == (12 << 20) - CAPTURE_LIMIT
    assert consumer.size == 12 << 20
    assert consumer.closed
    assert outcome.truncated


@pytest.mark.parametrize("program", ["no-such-program-here", "./missing", ""])
def test_a_program_that_cannot_be_started_says_why(tmp_path: Path, program: str) -> None:
    outcome = process.run(
        [program], directory=tmp_path, environment={"PATH": "/bin"}, spools=tmp_path, limit=Limit()
    )
    assert outcome.not_started
    assert outcome.exit_code == -1


def test_a_signal_is_told_apart_from_an_exit_status(tmp_path: Path) -> None:
    outcome = run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    assert (outcome.exit_code, outcome.signal) == (-1, 9)


def test_git_and_our_own_variables_do_not_reach_a_program(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "GIT_DIR": "x", "SPL_HOME": "y", "OTHER": "z"}
    assert process.inherited(given, tmp_path) == {"PATH": "/bin", "OTHER": "z", "PWD": str(tmp_path)}
    allowed = process.allowlisted(given, tmp_path, tmp_path / "private", ["OTHER", "SPL_HOME"])
    assert set(allowed) == {"PATH", "OTHER", "HOME", "TMPDIR", "PWD"}
    assert Path(allowed["HOME"]).is_dir()

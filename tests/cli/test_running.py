"""`spl run suite`, `spl run goal` and `spl eval bench --actor`, as a user starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Ran

Spl = Callable[..., Ran]

AGENT = """
import pathlib, sys, time
key, *rest = sys.argv[1:]
if key == "slow":
    pathlib.Path(sys.argv[0] + ".pid").write_text(str(__import__("os").getpid()))
    time.sleep(60)
pathlib.Path("made.txt").write_text(key)
"""


@pytest.fixture
def prepared(spl: Spl, tmp_path: Path) -> Spl:
    """A home with an actor, its definition and a suite of two cases."""
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx" / "read.me").write_text("read me")
    tasks = [
        {
            "id": key,
            "name": key,
            "prompt": "p",
            "workspaceFixture": "fx",
            "expectedChangedFiles": ["made.txt"],
            "verificationCommands": [{"id": "c", "name": "C", "command": ["grep", "-q", key, "made.txt"]}],
        }
        for key in ("quick", "slow")
    ]
    (tmp_path / "suite.json").write_text(json.dumps({"id": "s", "name": "S", "tasks": tasks}))
    (tmp_path / "agent.py").write_text(AGENT)
    words = [sys.executable, str(tmp_path / "agent.py"), "{task_id}"]
    (tmp_path / "d.toml").write_text(f'adapter = "command"\nargv = {json.dumps(words)}\n')
    assert spl("actor", "add", "bot").status == 0
    assert spl("definition", "install", "bot", "d.toml").status == 0
    assert spl("suite", "import", "suite.json").status == 0
    return spl


def test_a_suite_is_run_and_scored(prepared: Spl) -> None:
    made = prepared("run", "suite", "s", "--actor", "bot", "--case", "quick", "--json")
    assert made.status == 0
    assert made.document["contract"] == "spl.runs_made.v1"
    assert made.document["counts"] == {"completed": 1}
    assert made.document["cost"]["coverage"] == "not_applicable"
    score = prepared("eval", "score", "s", "--actor", "bot", "--definition", "incumbent", "--json")
    assert score.document["substance"]["passed"] == 1
    assert score.document["substance"]["no_run"] == 1
    assert "quick" in prepared("run", "suite", "s", "--actor", "bot", "--case", "quick").out


def test_a_blocked_run_is_a_no(prepared: Spl, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('adapter = "command"\nargv = ["no-such-agent"]\n')
    made = prepared("run", "suite", "s", "--actor", "bot", "--trial", "x.toml", "--case", "quick")
    assert made.status == 3
    assert "executable file not found" in made.out
    goal = prepared("run", "goal", "do it", "--actor", "bot", "--trial", "x.toml", "--json")
    assert (goal.status, goal.document["run"]["status"]) == (3, "blocked")


def test_a_timeout_is_a_duration(prepared: Spl) -> None:
    made = prepared("run", "suite", "s", "--actor", "bot", "--case", "slow", "--timeout", "3s", "--json")
    assert (made.status, made.document["counts"]) == (0, {"timed_out": 1})
    assert prepared("run", "suite", "s", "--actor", "bot", "--timeout", "soon").status == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--trial", "d.toml", "--definition", "incumbent"],
        ["--pin", "agent.py"],
        ["--trial", "missing.toml"],
        ["--case", "third"],
        ["--jobs", "0"],
    ],
)
def test_mistakes_are_told_before_anything_runs(prepared: Spl, words: list[str]) -> None:
    made = prepared("run", "suite", "s", "--actor", "bot", *words)
    assert (made.status, made.out) == (2, "")
    assert "Traceback" not in made.err
    assert prepared("run", "list", "--json").document["runs"] == []


def test_a_trial_of_the_incumbent_is_refused(prepared: Spl) -> None:
    made = prepared("run", "suite", "s", "--actor", "bot", "--trial", "d.toml", "--json")
    assert (made.status, made.document["code"]) == (4, "door_closed")


@pytest.fixture
def interrupted(prepared: Spl, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A suite that runs, up to its slow case."""
    environment = {"PATH": os.environ["PATH"], "SPL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    (tmp_path / "tmp").mkdir()
    environment["TMPDIR"] = str(tmp_path / "tmp")
    words = [sys.executable, "-m", "spl", "run", "suite", "s", "--actor", "bot", "--json"]
    assert prepared("run", "list").status == 0
    pid = tmp_path / "agent.py.pid"
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process:
        until = time.monotonic() + 30
        while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        yield process, pid
        process.kill()


def alive(pid: Path) -> bool:
    """Say whether the process whose number a file holds runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid.read_text()}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_interrupt_ends_the_agent_and_records_the_run(
    prepared: Spl, interrupted: tuple[subprocess.Popen[bytes], Path]
) -> None:
    process, pid = interrupted
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["code"] == "interrupted"
    assert "--resume" in json.loads(out)["hint"]
    assert not alive(pid)
    runs = prepared("run", "list", "--json").document["runs"]
    assert [run["status"] for run in runs] == ["completed", "cancelled"]
    words = ["run", "suite", "s", "--actor", "bot", "--resume", "--timeout", "3s", "--json"]
    again = prepared(*words).document
    assert [(run["case_key"], run["status"]) for run in again["runs"]] == [("slow", "timed_out")]
    assert again["skipped"] == 1


def test_a_killed_spl_leaves_a_run_that_is_open_and_nothing_else(
    prepared: Spl, interrupted: tuple[subprocess.Popen[bytes], Path], tmp_path: Path
) -> None:
    process, pid = interrupted
    process.kill()
    process.wait()
    until = time.monotonic() + 60
    while (alive(pid) or list((tmp_path / "tmp").iterdir())) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(pid)
    assert list((tmp_path / "tmp").iterdir()) == []
    runs = prepared("run", "list", "--json").document["runs"]
    assert [run["status"] for run in runs] == ["completed", "open"]
    assert prepared("run", "close").status == 0
    assert prepared("verify").status == 0


def test_two_commands_on_one_home_lose_nothing(prepared: Spl, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SPL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "spl", "run", "suite", "s", "--actor", "bot", "--case", "quick"]
    words += ["--attempts", "5", "--jobs", "2"]
    both = [subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) for _ in "ab"]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    runs = prepared("run", "list", "--json").document["runs"]
    assert [run["status"] for run in runs] == ["completed"] * 10
    assert [run["attempt"] for run in runs] == list(range(1, 11))
    assert prepared("verify").status == 0


def test_progress_is_shown_when_it_is_asked_for(prepared: Spl) -> None:
    words = ["run", "suite", "s", "--actor", "bot", "--case", "quick"]
    assert prepared(*words).err == ""
    assert "1/1 runs" in prepared(*words, "--progress", "always").err
    assert prepared(*words, "--progress", "loud").status == 2


def test_bench_records_what_it_reports(prepared: Spl) -> None:
    done = prepared("eval", "bench", "--suite", "suite.json", "--actor", "bot", "--task", "quick", "--json")
    assert done.status == 0
    assert done.document["runner_kind"] == "external_command"
    assert done.document["benchmark"]["tasks"][0]["report"]["ok"]
    score = prepared("eval", "score", "s", "--actor", "bot", "--definition", "incumbent", "--json")
    assert score.document["runs"]["matched"] == 1


def test_the_evidence_of_a_run_can_be_read(prepared: Spl) -> None:
    made = prepared("run", "suite", "s", "--actor", "bot", "--case", "quick", "--json").document
    run = made["runs"][0]["id"]
    checks = prepared("run", "show", run, "--evidence", "checks")
    assert json.loads(checks.out)["results"][0]["status"] == "pass"
    missing = prepared("run", "show", run, "--evidence", "stdout")
    assert missing.status == 2
    assert "it keeps diff, checks" in missing.err
    assert prepared("run", "show", run, "--evidence", "checks", "--json").document["code"] == "usage"

"""Agents in real processes, well-behaved and not: what is recorded of them, and that nothing of them survives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from spl.harness import process
from spl.harness.agent import AgentRun, run_agent
from spl.harness.limit import Limit
from spl.harness.observed import Observed, observed
from spl.harness.spool import CAPTURE_LIMIT
from spl.records.runs import ToolCalls

ROOT = Path(__file__).parent.parent.parent
AGENT = ROOT / "examples" / "agent.py"

Step = dict[str, Any]


def run(
    tmp_path: Path, *steps: Step, limit: Limit | None = None, words: list[str] | None = None, model: str = ""
) -> AgentRun:
    workspace, spools = tmp_path / "workspace", tmp_path / "spools"
    workspace.mkdir(exist_ok=True)
    spools.mkdir(exist_ok=True)
    return run_agent(
        words or [sys.executable, str(AGENT), json.dumps(steps)],
        workspace=workspace,
        environment=process.inherited(dict(os.environ), workspace),
        spools=spools,
        limit=limit or Limit(30),
        model=model,
    )


def is_alive(number: Path) -> bool:
    try:
        os.kill(int(number.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def test_a_whole_run_tells_its_tool_calls_usage_and_answer(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("one")
    ran = run(
        tmp_path,
        {"say": "I look."},
        {"read": "a.txt"},
        {"edit": "a.txt", "old": "one", "new": "two"},
        {"edit": "a.txt", "old": "gone", "new": "x"},
        {"read": "missing.txt"},
        {"write": "deep/b.txt", "text": "new"},
        {"tool": "search", "fails": True},
        {"delete": "a.txt"},
        {"usage": {"provider": "acme", "promptTokens": 100, "completionTokens": 7, "costUsd": 0.5}},
        {"usage": {"provider": "acme", "promptTokens": 50, "completionTokens": 3, "costUsd": 0.25}},
        {"verify": "tests"},
        {"answer": "Done."},
    )
    assert ran.failure == ""
    found = observed(ran.output)
    assert found.tool_calls == ToolCalls(
        total=7,
        failed=3,
        names={"delete_file": 1, "edit_file": 2, "read_file": 2, "search": 1, "write_file": 1},
    )
    assert found.answer == "Done."
    (total,) = found.usage or []
    assert (total.model, total.requests, total.input_tokens, total.cost_nusd) == (
        *("scripted-1", 2, 150),
        750_000_000,
    )
    assert {"tool:edit_file", "verify:tests"} <= set(ran.output.trace_events)
    assert sorted(path.name for path in (tmp_path / "workspace").rglob("*")) == ["b.txt", "deep"]


def test_an_agent_may_commit_its_work(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=workspace, check=True)
    ran = run(tmp_path, {"write": "a", "text": "a"}, {"commit": "add a"})
    assert observed(ran.output).tool_calls == ToolCalls(
        total=2, failed=0, names={"git_commit": 1, "write_file": 1}
    )
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=workspace, check=True, capture_output=True, text=True
    )
    assert log.stdout == "add a\n"


@pytest.mark.parametrize("task", ["one", "other"])
def test_a_script_may_hold_the_steps_of_many_tasks(tmp_path: Path, task: str) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"one": [{"answer": "1"}], "*": [{"answer": "?"}]}))
    ran = run(tmp_path, words=[sys.executable, str(AGENT), str(script), task, "m"])
    assert observed(ran.output).answer == {"one": "1", "other": "?"}[task]


def test_a_step_that_is_not_known_ends_the_agent_and_says_so(tmp_path: Path) -> None:
    ran = run(tmp_path, {"fly": 1})
    assert (ran.outcome.exit_code, ran.failure) == (1, "agent.py: no step begins with 'fly'")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["no-such-agent"], "executable file not found"),
        (["./no-such-agent"], "no such file"),
        (["./plain.txt"], "permission denied"),
        (["./directory"], "permission denied"),
        (["./no-program"], "exec format error"),
        ([" "], "agent command is required"),
    ],
)
def test_an_agent_that_cannot_be_started_says_why(tmp_path: Path, words: list[str], reason: str) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "directory").mkdir(parents=True)
    (workspace / "plain.txt").write_text("text")
    (workspace / "no-program").write_bytes(b"\x00\x01")
    (workspace / "no-program").chmod(0o700)
    ran = run(tmp_path, words=words)
    assert reason in ran.failure
    assert ran.outcome.exit_code == -1
    assert observed(ran.output) == Observed()


@pytest.mark.parametrize(
    ("step", "code", "signal"),
    [({"exit": 3}, 3, None), ({"signal": 9}, -1, 9), ({"signal": 15}, -1, 15), ({"exit": 0}, 0, None)],
)
def test_the_end_of_an_agent_is_its_own(tmp_path: Path, step: Step, code: int, signal: int | None) -> None:
    ran = run(tmp_path, {"answer": "half"}, step)
    assert (ran.outcome.exit_code, ran.outcome.signal, ran.outcome.timed_out) == (code, signal, False)


def test_a_silent_agent_leaves_everything_unknown(tmp_path: Path) -> None:
    ran = run(tmp_path, {"silent": True}, {"write": "a", "text": "a"}, {"answer": "x"})
    assert ran.failure == ""
    assert not ran.outcome.stdout
    assert observed(ran.output) == Observed()
    assert (tmp_path / "workspace" / "a").read_text() == "a"


@pytest.mark.parametrize("how", ["politely", "deaf"])
def test_an_agent_that_hangs_is_ended_and_what_it_said_is_kept(tmp_path: Path, how: str) -> None:
    number = tmp_path / "pid"
    steps: list[Step] = [
        {"pid": str(number)},
        {"tool": "read_file"},
        {"usage": {"promptTokens": 5, "costUsd": 1}},
        {"hang": how},
    ]
    started = time.monotonic()
    ran = run(tmp_path, *steps, limit=Limit(1.5))
    assert ran.outcome.timed_out
    assert time.monotonic() - started < 6
    found = observed(ran.output)
    assert found.tool_calls == ToolCalls(total=1, failed=0, names={"read_file": 1})
    assert found.usage
    assert found.answer is None
    assert not is_alive(number)


def test_an_agent_that_never_stops_printing_is_ended_in_bounded_memory(tmp_path: Path) -> None:
    steps: list[Step] = [
        {"tool": "read_file"},
        {"usage": {"promptTokens": 5, "costUsd": 1}},
        {"garbage": 65_536},
    ]
    ran = run(tmp_path, {"repeat": 0, "steps": steps}, limit=Limit(2))
    assert ran.outcome.timed_out
    found = observed(ran.output)
    assert found.tool_calls is not None
    assert found.tool_calls.total == found.tool_calls.names["read_file"] > 1
    assert ran.outcome.stdout.size <= CAPTURE_LIMIT


def test_an_agent_deep_in_its_own_children_leaves_none_of_them(tmp_path: Path) -> None:
    def nested(depth: int) -> list[Step]:
        here: list[Step] = [{"pid": str(tmp_path / f"pid-{depth}")}]
        if depth == 12:
            return [*here, {"hang": "deaf"}]
        way = {"session": depth % 3 == 1, "hidden": depth % 3 == 2}
        return [*here, {"spawn": nested(depth + 1), "wait": True, **way}]

    ran = run(tmp_path, *nested(0), limit=Limit(6))
    assert ran.outcome.timed_out
    numbers = sorted(tmp_path.glob("pid-*"))
    assert [number.name for number in numbers] == sorted(f"pid-{depth}" for depth in range(13))
    assert not any(map(is_alive, numbers))


@pytest.mark.parametrize("way", [{}, {"session": True}, {"hidden": True}])
def test_what_an_agent_leaves_running_is_ended_and_its_work_counts(tmp_path: Path, way: Step) -> None:
    child, grandchild = tmp_path / "child", tmp_path / "grandchild"
    below: list[Step] = [{"pid": str(grandchild)}, {"hang": "deaf"}]
    steps: list[Step] = [
        {"spawn": [{"spawn": below, **way}, {"pid": str(child)}, {"hang": "politely"}], **way},
        {"answer": "Done."},
    ]

    both = [str(child), str(grandchild)]
    waiter = tmp_path / "wait.py"
    waiter.write_text(f"import os, time\nwhile not all(map(os.path.exists, {both})): time.sleep(0.01)")
    shell = f'{sys.executable} "{AGENT}" "$1" && exec {sys.executable} "{waiter}"'
    ran = run(tmp_path, words=["/bin/sh", "-c", shell, "sh", json.dumps(steps)])
    assert ran.failure == ""
    assert ran.outcome.left_behind == 2
    assert observed(ran.output).answer == "Done."
    assert not is_alive(child)
    assert not is_alive(grandchild)


def test_interrupting_ends_an_agent_and_its_children(tmp_path: Path) -> None:
    number = tmp_path / "pid"
    cancel = threading.Event()

    def interrupt() -> None:
        while not number.exists():
            time.sleep(0.01)
        cancel.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    steps: list[Step] = [{"pid": str(number)}, {"hang": "deaf"}]
    ran = run(tmp_path, {"spawn": steps, "session": True, "wait": True}, limit=Limit(30, cancel))
    thread.join()
    assert ran.outcome.cancelled
    assert not is_alive(number)


def test_garbage_around_events_hides_none_of_them(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        {"garbage": 70_000},
        {"print": "plain text"},
        {"tool": "read_file"},
        {"event": {"type": "tool", "name": "caf\u00e9"}},
        {"print": "{not json}"},
        {"answer": "Done."},
    )
    found = observed(ran.output)
    assert found.tool_calls == ToolCalls(total=1, failed=0, names={"read_file": 1})
    assert found.answer == "Done."
    assert "tool:caf\u00e9" in ran.output.trace_events


MEASURE = """
import json, os, re, sys
from pathlib import Path
import spl.harness.bench
from spl.harness.agent import run_agent
from spl.harness.limit import Limit
from spl.harness.observed import observed
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
idle = peak()
words = [sys.executable, sys.argv[1], sys.argv[2]]
here = Path(sys.argv[3])
ran = run_agent(words, workspace=here, environment=dict(os.environ), spools=here, limit=Limit(120))
found = observed(ran.output)
print(json.dumps([peak() - idle, ran.outcome.exit_code, found.answer, ran.outcome.stdout.size]))
"""
MANY_VALUES = {"type": "usage", "promptTokens": 1, "filler": [[]] * 1_000_000}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of one process is read from /proc")
@pytest.mark.parametrize(
    "steps",
    [
        [{"line": 1 << 30}],
        [{"line": 1 << 30, "begin": '{"type":"usage"'}],
        [{"repeat": 30, "steps": [{"line": 7 << 20, "begin": '{"type":"tool","name":"'}]}],
        [{"print": json.dumps({"type": "\U0001f600", "text": "x" * (7 << 20)}, ensure_ascii=False)}],
        [
            {"event": MANY_VALUES},
            {"event": {"schemaVersion": 2, "type": "final", "text": json.dumps(MANY_VALUES)}},
        ],
        [
            {
                "repeat": 21_000,
                "steps": [{"usage": {"promptTokens": 1, "model": "m", "costUsd": 1}}, {"tool": "t"}],
            }
        ],
    ],
    ids=["a gigabyte", "a gigabyte of an event", "long lines", "wide text", "many values", "many events"],
)
def test_memory_stays_bounded_whatever_is_printed(tmp_path: Path, steps: list[Step]) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([*steps, {"answer": "Done."}]))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(AGENT), str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    growth_mb, exit_code, answer, kept = json.loads(done.stdout)
    assert growth_mb < 64
    assert (exit_code, answer) == (0, "Done.")
    assert kept <= CAPTURE_LIMIT

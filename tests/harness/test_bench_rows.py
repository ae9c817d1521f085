from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from spl.contracts.harness import BenchTask
from spl.harness.bench import run_bench
from spl.harness.request import BenchRequest
from spl.harness.suite import load_suite

CHANGE = "open('hello.txt', 'w').write('changed')"


def bench(tmp_path: Path, program: str | list[str], tasks: int = 1, **more: Any) -> list[BenchTask]:
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx" / "hello.txt").write_text("hello")
    (tmp_path / "spools").mkdir()
    check = {"id": "c", "name": "C", "command": ["grep", "-q", "changed", "hello.txt"]}
    listed = [
        {
            "id": f"t{number}",
            "name": "T",
            "prompt": "p",
            "workspaceFixture": "fx",
            "expectedChangedFiles": ["hello.txt"],
            "verificationCommands": more.pop("commands", [check]),
        }
        for number in range(tasks)
    ]
    path = tmp_path / "suite.json"
    path.write_text(json.dumps({"id": "s", "name": "S", "tasks": listed}))
    command = [sys.executable, "-c", program, "{task_id}", "{model}"] if isinstance(program, str) else program
    request = BenchRequest(
        suite=load_suite(str(path)),
        agent=command,
        environment=dict(os.environ),
        spools=tmp_path / "spools",
        work_root=str(tmp_path / "work"),
        **more,
    )
    rows = run_bench(request).rows
    assert list((tmp_path / "work").iterdir()) == []  # nothing stays, whatever the agent did
    return rows


def test_rows_stand_in_task_major_order_whatever_the_jobs(tmp_path: Path) -> None:
    slow_first = f"import sys, time; time.sleep(0.3 if sys.argv[1] == 't0' else 0); {CHANGE}"
    rows = bench(tmp_path, slow_first, tasks=2, models=["a", "b"], jobs=4)
    assert [(row.task_id, row.model) for row in rows] == [("t0", "a"), ("t0", "b"), ("t1", "a"), ("t1", "b")]
    assert all(row.report.ok for row in rows)


def test_failing_fast_starts_no_further_row(tmp_path: Path) -> None:
    assert len(bench(tmp_path, "pass", tasks=5, fail_fast=True)) == 1


def test_an_agent_that_cannot_be_started_is_tried_again_and_every_attempt_is_told(tmp_path: Path) -> None:
    (row,) = bench(tmp_path, ["no-such-agent"], retries=2)
    assert row.report.status == "blocked"
    assert len(row.agent.attempts) == 2


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("import os, shutil; shutil.rmtree(os.getcwd())", "blocked"),
        (f"import os; {CHANGE}; os.mkdir('d'); os.chmod('d', 0); os.chmod('.', 0)", "pass"),
        (
            f"import os, subprocess; {CHANGE}; subprocess.run(['git', 'commit', '-qam', 'x'], check=True)",
            "pass",
        ),
        (f"{CHANGE}; open('.git/info/exclude', 'w').write('*'); open('extra', 'w')", "fail"),
        ("import sys; sys.exit(3)", "blocked"),
    ],
)
def test_what_an_agent_does_to_its_workspace_is_seen(tmp_path: Path, program: str, status: str) -> None:
    if "exclude" in program:
        program = f"import os; os.makedirs('.git/info', exist_ok=True); {program}"
    (row,) = bench(tmp_path, program)
    assert row.report.status == status
    assert row.left_behind == []


def test_what_the_checks_change_is_told_apart_from_what_the_agent_changed(tmp_path: Path) -> None:
    (row,) = bench(tmp_path, CHANGE, commands=[{"id": "c", "name": "C", "command": ["touch", "made"]}])
    assert row.report.ok
    assert row.report.changed_files == ["hello.txt"]
    assert row.report.changed_by_checks == ["made"]


def test_a_clean_environment_has_a_home_of_its_own(tmp_path: Path) -> None:
    program = f"import os; assert os.environ['HOME'] != os.path.expanduser('~root'); {CHANGE}"
    (row,) = bench(tmp_path, program, clean_env=True)
    assert row.report.ok

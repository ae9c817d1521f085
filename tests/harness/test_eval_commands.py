from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "coding"
AGENT = [
    *("--agent-command", sys.executable, str(EXAMPLE.parent / "agent.py"), str(EXAMPLE / "script.json")),
    *("{task_id}", "{model}"),
]


def spl_eval(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spl", "eval", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(cwd)},
    )


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "coding"))


def test_the_sample_suite_ends_in_every_way_there_is(sample: Path) -> None:
    words = ["bench", "--suite", "suite.json", "--jobs", "2", "--json", "--csv-output", "rows.csv"]
    done = spl_eval(*words, "--report-dir", "out", *AGENT, cwd=sample)
    assert (done.returncode, done.stderr) == (3, "")
    document = json.loads(done.stdout)
    rows = document["benchmark"]["tasks"]
    assert [(row["taskId"], row["report"]["status"]) for row in rows] == [
        ("fix-slug", "pass"),
        ("write-note", "pass"),
        ("edit-check", "fail"),
        ("rename-option", "fail"),
        ("give-up", "blocked"),
        ("lost-fixture", "error"),
    ]
    assert document["cost_coverage"] == "complete"
    assert json.loads((sample / "out" / "agent-eval-report.json").read_text()) == document
    with (sample / "rows.csv").open(newline="") as file:
        assert [row["status"] for row in csv.DictReader(file)] == [row["report"]["status"] for row in rows]
    assert sorted(path.name for path in sample.iterdir()) == [
        "fixtures",
        "out",
        "rows.csv",
        "script.json",
        "suite.json",
    ]


def test_verbose_names_the_files_behind_a_failure(sample: Path) -> None:
    done = spl_eval("bench", "--suite", "suite.json", "--task", "edit-check", "--verbose", *AGENT, cwd=sample)
    assert (
        "  edit-check.changed_files - fail\n    missing: slug.py\n    unexpected: check_slug.py\n"
        in done.stdout
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--csv-output", "."], "[splice] failed to write eval CSV: "),
        (["--report-dir", "suite.json"], "[splice] failed to write eval report: "),
    ],
)
def test_outputs_are_checked_before_the_agent_starts(sample: Path, words: list[str], message: str) -> None:
    agent = ["--agent-command", "touch", str(sample / "started")]
    done = spl_eval("bench", "--suite", "suite.json", *words, *agent, cwd=sample)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message)
    assert not (sample / "started").exists()


def test_a_file_that_fails_later_does_not_take_the_answer_with_it(sample: Path) -> None:
    (sample / "out").mkdir()
    agent = [
        "--agent-command",
        sys.executable,
        "-c",
        f"import os; os.mkdir({str(sample / 'out' / 'rows.csv')!r})",
    ]
    words = [
        "bench",
        "--suite",
        "suite.json",
        "--task",
        "write-note",
        "--json",
        "--csv-output",
        "out/rows.csv",
    ]
    done = spl_eval(*words, *agent, cwd=sample)
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "fail"
    assert done.stderr.startswith("[splice] failed to write eval CSV: ")


def test_problems_become_annotations(sample: Path) -> None:
    (sample / "bad.json").write_text('{"id": "x%y", "tasks": []}')
    done = spl_eval("validate", "--suite", "bad.json", "--format", "github", cwd=sample)
    assert done.returncode == 2
    assert (
        done.stdout
        == "::error file=bad.json::suite name is required\n::error file=bad.json::tasks must not be empty\n"
    )


def test_run_shows_its_results_as_json(sample: Path) -> None:
    workspace = sample / "fixtures" / "notes"
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "b"],
    ):
        subprocess.run(["git", *words], cwd=workspace, check=True)
    (workspace / "1.1.0.md").write_text("# 1.1.0\n")
    words = [
        "run",
        "--suite",
        "suite.json",
        "--task",
        "write-note",
        "--workspace",
        "fixtures/notes",
        "--json",
    ]
    done = spl_eval(*words, cwd=sample)
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"]) == (0, "pass")
    assert document["report"]["changedFiles"] == ["1.1.0.md"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--definition", "x"], "--definition is only valid with --actor"),
        (["--trial", "x"], "--trial is only valid with --actor"),
        (["--actor", "a", "--model", "m"], "--model and --actor exclude each other"),
        (
            ["--actor", "a", "--definition", "x", "--trial", "y"],
            "--definition and --trial exclude each other",
        ),
        (["--actor", "a", "--agent-command", "x"], "--agent-command and --actor exclude each other"),
    ],
)
def test_an_actor_brings_its_own_agent(sample: Path, words: list[str], message: str) -> None:
    done = spl_eval("bench", "--suite", "suite.json", *words, cwd=sample)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_guide_shows_what_validate_prints(sample: Path) -> None:
    page = (EXAMPLE.parent.parent / "docs" / "evaluation.md").read_text("utf-8")
    command, _, shown = page.partition("```console\n$ spl eval ")[2].partition("```")[0].partition("\n")
    assert spl_eval(*command.split(), cwd=sample).stdout == shown

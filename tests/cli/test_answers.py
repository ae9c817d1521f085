"""The answers of folds through the real command: the statuses of a gate, and the same bytes wherever it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.test_commands import Shell
from conftest import FixedClock

from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install, propose
from spl.kernel.home import open_home
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suites import NewCase, add_cases, create_suite
from spl.records.evals import Case, Expect

COMPARE = ("eval", "compare", "incumbent", "latest", "--suite", "s", "--actor", "bot")
CASES = 24


def compared_home(
    path: Path, structure: tuple[int, int], substance: tuple[int, int], missing: int = 0
) -> None:
    """Make a home in which so many of 24 cases pass on each axis, for the incumbent and a candidate.

    Args:
        path: The home.
        structure: How many pass.
        substance: How many pass.
        missing: How many cases of the candidate have no run.
    """
    kernel = open_home(path, create=True, clock=FixedClock())
    add_actor(kernel, "bot")
    create_suite(kernel, "s")
    cases = [Case(key=f"c{i:02}", name="c", goal="g", expect=Expect(outcomes=["t"])) for i in range(CASES)]
    add_cases(kernel, "s", [NewCase(case) for case in cases])
    install(kernel, "bot", Source(behaviour={"adapter": "external", "system": "one"}))
    propose(kernel, "bot", Source(behaviour={"adapter": "external", "system": "two"}))
    for side, word in enumerate(("incumbent", "latest")):
        rows = [
            {
                "case": f"c{i:02}",
                "results": [{"id": "t", "status": "pass" if i < substance[side] else "fail"}],
                "tool_calls": {"total": 1, "failed": int(i >= structure[side]), "names": {"read": 1}},
            }
            for i in range(CASES - (missing if side else 0))
        ]
        lines = [json.dumps(row).encode() for row in rows]
        import_runs(kernel, "bot", lines, Batch(source="f", suite="s", definition=word))
        score_suite(kernel, "s", "bot", word)
    kernel.log.close()


@pytest.mark.parametrize(
    ("structure", "substance", "words", "status", "outcome"),
    [
        ((12, 12), (12, 12), ("--gate",), 0, "pass"),
        ((12, 24), (12, 24), ("--gate",), 0, "pass"),
        ((12, 24), (24, 12), ("--gate",), 3, "fail"),
        ((24, 12), (12, 24), ("--gate",), 3, "fail"),
        ((24, 12), (24, 24), ("--gate", "--allow", "structure=0.5"), 0, "pass"),
        ((24, 12), (24, 24), ("--gate", "--allow", "structure=0.49"), 3, "fail"),
        ((24, 12), (24, 24), ("--gate", "--allow", "substance=0.5"), 3, "fail"),
        ((12, 13), (12, 12), ("--gate",), 0, "pass"),
        ((12, 13), (12, 12), ("--gate-inconclusive",), 5, "inconclusive"),
        ((24, 12), (12, 13), ("--gate-inconclusive",), 3, "fail"),
    ],
)
def test_a_gate_turns_its_answer_into_the_documented_status(
    spl: Any,
    tmp_path: Path,
    structure: tuple[int, int],
    substance: tuple[int, int],
    words: tuple[str, ...],
    status: int,
    outcome: str,
) -> None:
    compared_home(tmp_path / "home", structure, substance)
    shell = Shell(spl)
    document = shell.document(*COMPARE, *words, status=status)
    assert document["gate"]["outcome"] == outcome
    listed = shell.document("eval", "regressions", "bot", *words, status=status)
    assert listed["gate"]["outcome"] == outcome
    assert spl(*COMPARE, *words).status == status  # the words for people end alike


def test_what_is_not_comparable_refuses_a_gate_and_a_failure_goes_before(spl: Any, tmp_path: Path) -> None:
    compared_home(tmp_path / "home", (24, 23), (24, 12), missing=1)
    shell = Shell(spl)
    assert shell.document(*COMPARE, status=4)["tested"] == 0
    refused = shell.document(*COMPARE, "--gate", status=4)
    assert refused["gate"]["refused"] == ["structure", "substance"]
    assert refused["substance"]["only_base"] == ["c23"]
    failed = shell.document(*COMPARE, "--gate", "--common", status=3)
    assert (failed["gate"]["failed"], failed["substance"]["cases"]) == (["substance"], 23)
    assert shell.document(*COMPARE, "--gate-inconclusive", "--common", status=3)["gate"]["outcome"] == "fail"


def test_the_window_of_a_history_is_a_day_or_a_time_and_a_count(spl: Any, tmp_path: Path) -> None:
    compared_home(tmp_path / "home", (12, 12), (12, 12))
    shell = Shell(spl)
    whole = shell.document("eval", "history", "bot")["suites"][0]
    day = shell.document("eval", "history", "bot", "--since", "2026-09-21")["suites"][0]
    assert whole["lines"] == day["lines"]
    late = shell.document("eval", "history", "bot", "--since", "2026-09-21T23:00:00+00:00", "--limit", "1")
    assert (late["suites"][0]["lines"], late["suites"][0]["left_out"]) == ([], 2)
    assert "2 more definitions were not asked for" in shell.text(
        "eval", "history", "bot", "--since", "2030-01-01"
    )
    cut = shell.text("eval", "history", "bot", "--limit", "1")
    assert ("two" in cut, "one" in cut) == (True, False)
    for wrong in (("--since", "yesterday"), ("--since", "2026-09-21T10:00:00"), ("--limit", "0")):
        assert shell.refused("eval", "history", "bot", *wrong)["code"] == "usage"


ANSWERS = (
    (*COMPARE, "--json"),
    ("eval", "history", "bot", "--json"),
    ("eval", "regressions", "bot", "--json"),
    ("eval", "score", "s", "--actor", "bot", "--definition", "latest", "--json"),
    ("verdict", "list", "--json"),
    ("eval", "report", "bot", "-o", "report.html"),
    ("eval", "history", "bot"),
    COMPARE,
)


def answers(program: str, home: Path, **environment: str) -> list[bytes]:
    """Return what every fold says, in a process of its own for each."""
    work = home.parent / "work"
    work.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    kept |= {"PATH": os.environ["PATH"], "HOME": str(work), "SPL_HOME": str(home), **environment}
    found = []
    for words in ANSWERS:
        done = subprocess.run(
            [program, "-m", "spl", *words], cwd=work, env=kept, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    found.append((work / "report.html").read_bytes())
    return found


def test_the_same_log_gives_the_same_bytes_wherever_it_is_asked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    compared_home(home, (12, 17), (20, 13))
    utf8 = {"LC_ALL": "C.UTF-8"}
    expected = answers(sys.executable, home, PYTHONHASHSEED="0", **utf8)
    assert json.loads(expected[0])["substance"]["cells"]["regressed"] == 7
    other = answers(
        sys.executable, home, PYTHONHASHSEED="4711", TZ="Pacific/Auckland", LC_ALL="C", PYTHONUTF8="1"
    )
    assert other == expected
    assert answers(sys.executable, home, PYTHONHASHSEED="1", LC_ALL="de_DE.UTF-8", TZ="UTC-9") == expected
    compared_home(tmp_path / "twin" / "home", (12, 18), (20, 13))
    changed = answers(sys.executable, tmp_path / "twin" / "home", PYTHONHASHSEED="0", **utf8)
    assert changed[0] != expected[0]  # the comparison can fail

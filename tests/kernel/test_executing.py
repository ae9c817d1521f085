"""Runs that the home executes itself: real processes in real workspaces, on each log."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from spl.codec import canonical
from spl.contracts.runs import RunsMade
from spl.errors import ConflictError, DoorClosedError, InputError, UnknownNameError
from spl.harness.suite import load_suite
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install, list_definitions, parse_behaviour
from spl.kernel.execute import How
from spl.kernel.history import history
from spl.kernel.home import Kernel
from spl.kernel.run_cases import Wanted, record_bench, run_goal, run_suite
from spl.kernel.runs import close_runs, list_runs, run_evidence, show_run
from spl.kernel.score import score_suite
from spl.kernel.suite_import import import_suite_file
from spl.kernel.trial import Choice
from spl.records.envelope import Draft
from spl.records.runs import RunStart
from spl.store.log import Selection

WRITES = "open('made.txt', 'w').write(sys.argv[1])"
TRIED = Choice()


def suite_file(root: Path, *keys: str, checks: list[str] | None = None) -> Path:
    """Write a suite whose tasks want `made.txt`, with a fixture of one program."""
    (root / "fx").mkdir(parents=True)
    (root / "fx" / "tool.sh").write_text("#!/bin/sh\n")
    (root / "fx" / "tool.sh").chmod(0o755)
    tasks = [
        {
            "id": key,
            "name": key,
            "prompt": f"make {key}",
            "workspaceFixture": "fx",
            "expectedChangedFiles": ["made.txt"],
            "verificationCommands": [
                {"id": "c", "name": "C", "command": checks or ["grep", "-q", key, "made.txt"]}
            ],
        }
        for key in keys or ("one", "two")
    ]
    path = root / "suite.json"
    path.write_text(json.dumps({"id": "s", "name": "S", "tasks": tasks}))
    return path


def agent(program: str, **more: Any) -> Source:
    """A behaviour whose agent is a line of Python; the task's id is its argument."""
    argv = [sys.executable, "-c", f"import os, sys, time\n{program}", "{task_id}"]
    return parse_behaviour(json.dumps({"adapter": "command", "argv": argv, **more}).encode(), "d.json")


@pytest.fixture
def home(kernel: Kernel, tmp_path: Path) -> Kernel:
    """A home with an actor and a suite, whose source files are gone."""
    add_actor(kernel, "bot")
    import_suite_file(kernel, load_suite(str(suite_file(tmp_path / "src"))), None)
    shutil.rmtree(tmp_path / "src")
    return kernel


def run(home: Kernel, choice: Choice = TRIED, *, wanted: Wanted | None = None, **how: Any) -> RunsMade:
    how.setdefault("environment", {"PATH": os.environ["PATH"]})
    return run_suite(home, "s", "bot", choice, wanted or Wanted(), How(**how))


def one(home: Kernel, choice: Choice = TRIED, **how: Any) -> dict[str, Any]:
    """Run one case, and return the run's end with its status and cause."""
    made = run(home, choice, wanted=Wanted(cases=["one"]), **how)
    end = show_run(home, made.runs[0].id.hex()).end
    assert end is not None
    return end


def test_a_suite_runs_from_the_home_alone_and_scores(home: Kernel) -> None:
    install(home, "bot", agent(f"{WRITES}; os.stat('tool.sh').st_mode & 0o100 or sys.exit(9)"))
    made = run(home, jobs=2)
    assert [part.status for part in made.runs] == ["completed", "completed"]
    assert made.counts == {"completed": 2}
    score = score_suite(home, "s", "bot", "incumbent")
    assert (score.substance.passed, score.substance.of) == (2, 2)
    assert score.structure.passed == 2
    end = show_run(home, made.runs[0].id.hex())
    assert end.end is not None
    assert end.end["changed_files"] == ["made.txt"]
    assert end.end["results"][0] == {"kind": "command", "id": "c", "status": "pass"}
    assert "checks" in end.blobs


def test_a_trial_installs_nothing_and_is_history_once_it_is_installed(home: Kernel) -> None:
    install(home, "bot", agent("sys.exit(1)"))
    run(home)
    score_suite(home, "s", "bot", "incumbent")
    before = list_definitions(home, "bot").definitions
    candidate = agent(WRITES)
    made = run(home, Choice(trial=candidate))
    after = list_definitions(home, "bot").definitions
    assert after[:-1] == before  # the incumbent and every installed definition are as they were
    assert (after[-1].state, after[-1].incumbent, after[-1].trust) == ("candidate", False, "untrusted")
    assert made.trial
    assert all(part.trial for part in made.runs)
    tried = score_suite(home, "s", "bot", made.facet.hex())
    assert (tried.structure.passed, tried.substance.passed) == (2, 2)
    install(home, "bot", candidate)
    lines = history(home, "bot").suites[0].lines
    assert [line.facet for line in lines] == [before[0].facet, made.facet]
    assert lines[1].structure is not None
    assert lines[1].structure.passed == 2  # measured before approval, and the same definition after it
    assert not run(home).trial


def test_a_known_candidate_runs_as_a_trial_by_its_id(home: Kernel) -> None:
    install(home, "bot", agent("pass"))
    first = run(home, Choice(trial=agent(WRITES)))
    again = run(home, Choice(trial=first.definition.hex()))
    assert again.definition == first.definition
    assert run(home, Choice(definition=first.facet.hex())).trial  # it is a candidate, whoever asks for it
    assert len(list_definitions(home, "bot").definitions) == 2


def test_there_is_nothing_to_try_about_the_incumbent(home: Kernel) -> None:
    install(home, "bot", agent(WRITES))
    with pytest.raises(DoorClosedError, match="installed already"):
        run(home, Choice(trial=agent(WRITES)))
    with pytest.raises(InputError, match="not under both"):
        run(home, Choice(trial=agent("pass"), definition="incumbent"))
    assert list_runs(home).runs == []


def test_the_door_of_a_trial_names_every_reason_and_writes_nothing(home: Kernel) -> None:
    argv = ["x", "{promt}", "{files}/a", "sk-ant-api03-" + "A" * 95]
    size = home.log.size()
    with pytest.raises(DoorClosedError) as closed:
        run(home, Choice(trial=Source(behaviour={"adapter": "command", "argv": argv})))
    reasons = closed.value.details["reasons"]
    assert len(reasons) == 3
    assert any("did you mean {prompt}" in reason for reason in reasons)
    assert any("pin a file" in reason for reason in reasons)
    assert any("secret" in reason for reason in reasons)
    assert home.log.size() == size


def test_work_that_is_run_elsewhere_is_not_run_here(home: Kernel) -> None:
    install(home, "bot", Source(behaviour={"adapter": "external", "system": "elsewhere"}))
    with pytest.raises(InputError, match="run elsewhere"):
        run(home)


def test_an_actor_without_a_definition_says_what_to_do(home: Kernel) -> None:
    with pytest.raises(InputError, match="no installed definition") as error:
        run(home)
    assert "spl definition install" in str(error.value.hint)
    with pytest.raises(UnknownNameError, match="'three'"):
        run(home, wanted=Wanted(cases=["three"]))


@pytest.mark.parametrize(
    ("program", "status", "cause"),
    [
        ("sys.exit(3)", "failed", "exit status 3"),
        ("print('no idea', file=sys.stderr); sys.exit(3)", "failed", "exit status 3: no idea"),
        ("os.kill(os.getpid(), 9)", "failed", "ended by signal 9"),
        ("time.sleep(60)", "timed_out", "the time limit of 1 s ended it"),
    ],
)
def test_how_a_process_ends_decides_the_status(home: Kernel, program: str, status: str, cause: str) -> None:
    install(home, "bot", agent(f"{WRITES}; {program}"))
    end = one(home, timeout_ms=1_000 if status == "timed_out" else 60_000)
    assert end["status"] == status
    assert end["cause"].startswith(cause)
    assert end["changed_files"] == ["made.txt"]  # it failed, and what it did is known all the same
    assert "results" not in end
    assert "usage" not in end  # unreported is not zero


@pytest.mark.parametrize(
    ("argv", "cause"),
    [
        (["no-such-agent"], "executable file not found"),
        (["/no/such/agent"], "no such file"),
        (["/etc/passwd"], "permission denied"),
    ],
)
def test_an_agent_that_cannot_be_started_is_blocked(home: Kernel, argv: list[str], cause: str) -> None:
    install(home, "bot", Source(behaviour={"adapter": "command", "argv": argv}))
    end = one(home)
    assert end["status"] == "blocked"
    assert cause in end["cause"]
    assert "latency_ms" not in end


def test_a_pinned_program_is_part_of_the_behaviour_and_runs_from_the_home(home: Kernel) -> None:
    text = json.dumps({"adapter": "command", "argv": [sys.executable, "{files}/a.py", "{task_id}"]}).encode()
    programs = [b"import sys\n" + line for line in (WRITES.encode(), b"sys.exit(1)")]
    one_, two = (parse_behaviour(text, "d.json", {"a.py": program}) for program in programs)
    install(home, "bot", one_)
    assert one(home)["status"] == "completed"
    assert one(home, Choice(trial=two))["status"] == "failed"


def test_a_pinned_file_that_differs_on_disk_blocks_the_run(home: Kernel, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(f"import sys\n{WRITES}")
    text = json.dumps({"adapter": "command", "argv": [sys.executable, str(script), "{task_id}"]}).encode()
    install(home, "bot", parse_behaviour(text, "d.json", {"agent.py": script.read_bytes()}))
    assert one(home)["status"] == "completed"
    script.write_text("print('something else')")
    end = one(home)
    assert end["status"] == "blocked"
    assert "agent.py is not what the definition names" in end["cause"]


@pytest.mark.parametrize("name", ["../out", "/etc/x", "a/../b", ""])
def test_a_pinned_file_has_a_relative_name(home: Kernel, name: str) -> None:
    blob = home.blobs.put(b"x")
    behaviour = {"adapter": "command", "argv": ["true"], "files": {name: blob}}
    with pytest.raises(DoorClosedError, match=r"files"):
        install(home, "bot", Source(behaviour=behaviour))


def test_only_the_allowlist_and_the_named_variables_reach_the_agent(home: Kernel) -> None:
    program = "print(sorted(os.environ)); print(os.environ['HOME'] != os.environ['PWD'])"
    install(home, "bot", agent(program, env=["WANTED", "ABSENT"]))
    environment = {"PATH": os.environ["PATH"], "WANTED": "w", "OTHER": "o", "SPL_HOME": "/h", "GIT_DIR": "/g"}
    made = run(home, wanted=Wanted(cases=["one"]), environment=environment)
    shown = show_run(home, made.runs[0].id.hex())
    printed = home.blobs.get(bytes.fromhex(shown.blobs["stdout"])).decode()  # type: ignore[arg-type]
    names = {"HOME", "PATH", "PWD", "TMPDIR", "WANTED"}
    assert set(eval(printed.splitlines()[0])) - {"SPLICE_RUN_MARKER", "LC_CTYPE"} == names  # noqa: S307
    assert printed.splitlines()[1] == "True"
    assert shown.start["observed"]["env"] == sorted(names)


def test_the_start_says_what_the_run_was_made_with(home: Kernel) -> None:
    install(home, "bot", agent(WRITES, model="m-1", timeout_ms=9000))
    shown = show_run(home, run(home, wanted=Wanted(cases=["one"])).runs[0].id.hex())
    assert shown.start["requested_model"] == "m-1"
    assert shown.start["observed"]["timeout_ms"] == 9000
    assert len(shown.start["observed"]["program"]) == 32
    assert "goal" not in shown.start  # the case has it
    assert run(home, timeout_ms=5000).runs
    score = score_suite(home, "s", "bot", "incumbent")
    assert score.observed.timeouts == 2
    assert score.observed.mixed


def test_resume_runs_only_what_did_not_end_by_itself(home: Kernel) -> None:
    install(home, "bot", agent("sys.exit(1)"))
    assert len(run(home, wanted=Wanted(cases=["one"])).runs) == 1
    rest = run(home, wanted=Wanted(resume=True))
    assert [part.case_key for part in rest.runs] == ["two"]
    assert rest.skipped == 1
    more = run(home, wanted=Wanted(attempts=3, resume=True))
    assert [(part.case_key, part.attempt) for part in more.runs] == [
        ("one", 2), ("two", 2), ("one", 3), ("two", 3),
    ]  # fmt: skip
    install(home, "bot", Source(behaviour={"adapter": "command", "argv": ["no-such-agent"]}))
    assert run(home).counts == {"blocked": 2}
    assert len(run(home, wanted=Wanted(resume=True)).runs) == 2


def test_a_start_without_an_end_is_visible_and_does_not_count_as_made(home: Kernel) -> None:
    install(home, "bot", agent(WRITES))
    made = run(home)
    row = next(home.log.runs(run=made.runs[0].id))
    case = next(case for case in home.log.cases(home.log.suites("s")[0].id) if case.facet == row.case_facet)
    refs = {
        "actor": (made.actor,), "definition": (made.definition,), "case": (case.id,), "suite": (made.suite,),
    }  # fmt: skip
    body = RunStart(facet=made.facet, trial=False, adapter="command")
    home.transact(lambda tx: tx.append(Draft(body=body, by=home.kernel, refs=refs)))
    assert [part.status for part in list_runs(home).runs] == ["completed", "completed", "open"]
    assert close_runs(home, [], "crashed").closed[0].status == "cancelled"


def test_a_run_that_is_being_executed_is_nobodys_to_close(kernel: Kernel, tmp_path: Path) -> None:
    if kernel.path is None:
        pytest.skip("needs a second process")
    add_actor(kernel, "bot")
    import_suite_file(kernel, load_suite(str(suite_file(tmp_path / "src", "one"))), None)
    close = [sys.executable, "-m", "spl", "--home", str(kernel.path), "run", "close"]
    install(kernel, "bot", agent(f"import subprocess; subprocess.run({close!r}, check=True)"))
    made = run(kernel, wanted=Wanted(cases=["one"]))
    shown = show_run(kernel, made.runs[0].id.hex())
    assert shown.run.status == "completed"
    assert (
        run_evidence(kernel, made.runs[0].id.hex(), "stdout")
        == b"no run was left open\n1 runs are being executed\n"
    )
    assert not list((kernel.path / "tmp").iterdir())


def test_a_goal_works_in_a_directory_that_stays(home: Kernel, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".gitignore").write_text("*.log\n")
    (tmp_path / "work" / "kept.txt").write_text("kept")
    install(home, "bot", agent("open('made.txt', 'w').write('x'); open('noise.log', 'w').write('x')"))
    how = How(environment={"PATH": os.environ["PATH"]})
    made = run_goal(home, "make it", "bot", TRIED, how, tmp_path / "work")
    assert made.run.status == "completed"
    assert made.end is not None
    assert made.end["changed_files"] == ["made.txt"]
    assert made.start["goal"] == "make it"
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == [
        ".gitignore", "kept.txt", "made.txt", "noise.log",
    ]  # fmt: skip
    with pytest.raises(InputError, match="not a directory"):
        run_goal(home, "make it", "bot", TRIED, how, tmp_path / "nowhere")


def test_a_long_goal_is_a_blob(home: Kernel) -> None:
    install(home, "bot", agent("pass"))
    goal = "x" * 20_000
    made = run_goal(home, goal, "bot", TRIED, How(environment={"PATH": os.environ["PATH"]}))
    assert made.start["goal"] == goal


def test_nothing_of_a_run_stays_behind(home: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    pid = tmp_path / "pid"
    child = f"open({str(pid)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(60)"
    program = (
        "import subprocess\n"
        f"subprocess.Popen([sys.executable, '-c', {f'import os, time; {child}'!r}], start_new_session=True)\n"
        f"os.makedirs('deep/er'); os.chmod('deep', 0)\n{child}"
    )
    install(home, "bot", agent(program))
    assert run(home, jobs=2, timeout_ms=1500).counts == {"timed_out": 2}
    started = [int(word) for word in pid.read_text().split()]
    assert len(started) == 4
    assert not [number for number in started if Path(f"/proc/{number}").exists()]
    assert list((tmp_path / "t").iterdir()) == []


def test_bench_records_the_runs_that_it_reports(kernel: Kernel, tmp_path: Path) -> None:
    add_actor(kernel, "bot")
    install(kernel, "bot", agent(f"{WRITES} if sys.argv[1] == 'one' else sys.exit(1)", model="m"))
    suite = load_suite(str(suite_file(tmp_path / "src")))
    how = How(environment={"PATH": os.environ["PATH"]}, jobs=2, scratch=tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()
    made = record_bench(kernel, suite, "bot", TRIED, how)
    assert [(row.task_id, row.model, row.report.ok) for row in made.rows] == [
        ("one", "m", True), ("two", "m", False),
    ]  # fmt: skip
    assert made.rows[0].report.suite_id == "s"
    assert made.rows[0].fixture_path == "fx"
    score = score_suite(kernel, "s", "bot", "incumbent")
    assert (score.substance.passed, score.substance.of) == (1, 2)
    unknown = record_bench(kernel, suite, "bot", TRIED, how, "three")
    assert unknown.rows[0].report.error == 'task "three" not found'
    assert len(list_runs(kernel).runs) == 2


def test_an_end_holds_the_evidence_of_its_checks(kernel: Kernel, tmp_path: Path) -> None:
    add_actor(kernel, "bot")
    check = [sys.executable, "-c", "import sys; print('seen ' + 'x' * 100_000); sys.exit('wrong')"]
    import_suite_file(kernel, load_suite(str(suite_file(tmp_path / "src", "one", checks=check))), None)
    install(kernel, "bot", agent(WRITES))
    shown = show_run(kernel, run(kernel).runs[0].id.hex())
    assert shown.end is not None
    assert shown.end["results"][0]["message"] == "exit status 1; wrong"
    checks = json.loads(kernel.blobs.get(bytes.fromhex(shown.blobs["checks"])))  # type: ignore[arg-type]
    assert checks["results"][0]["stdout"].startswith("seen xxx")
    assert len(checks["results"][0]["stdout"]) == 65_536  # the beginning, and it says so
    assert checks["results"][0]["truncated"]


def test_records_of_a_run_are_by_the_kernel_and_carry_the_anchor(home: Kernel) -> None:
    install(home, "bot", agent(WRITES))
    made = run(home, wanted=Wanted(cases=["one"]))
    entries = list(home.log.scan(Selection(thread=made.runs[0].id)))
    records = [canonical.decode(entry.record or b"") for entry in entries]
    assert [record["kind"] for record in records] == ["core.run.start.v1", "core.run.end.v1"]  # type: ignore[call-overload,index]
    assert {record["by"] for record in records} == {home.kernel}  # type: ignore[call-overload,index]
    assert records[0]["body"]["facet"] == made.facet  # type: ignore[call-overload,index]
    assert records[0]["refs"]["definition"] == [made.definition]  # type: ignore[call-overload,index]


def test_an_install_still_compares_and_sets(home: Kernel) -> None:
    first = install(home, "bot", agent("pass"))
    install(home, "bot", agent(WRITES))
    with pytest.raises(ConflictError):
        install(home, "bot", agent("sys.exit(2)"), expect=first.id.hex())


def test_a_line_too_long_to_be_an_event_blocks_nothing(home: Kernel) -> None:
    program = "sys.stdout.write('{' + 'x' * 9_000_000)"
    install(home, "bot", agent(f"{WRITES}; {program}"))
    made = run(home, wanted=Wanted(cases=["one"]))
    shown = show_run(home, made.runs[0].id.hex())
    assert shown.run.status == "completed"
    assert len(home.blobs.get(bytes.fromhex(shown.blobs["stdout"]))) == 8_388_608  # type: ignore[arg-type]
    assert score_suite(home, "s", "bot", "incumbent").substance.passed == 1

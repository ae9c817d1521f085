"""Agents that reach for the evidence: other attempts' files, the home of the checks, the workspace itself, the log."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel.test_executing import TRIED, WRITES, agent, one, run, suite_file
from msgspec.structs import replace

from spl.errors import ConflictError, InputError, RefusedError, StorageError
from spl.harness.built_in import BuiltIn
from spl.harness.suite import load_suite
from spl.ids import Did
from spl.kernel import execute, trial
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, door_reasons, install, parse_source
from spl.kernel.execute import How
from spl.kernel.home import Kernel
from spl.kernel.names import record_of
from spl.kernel.run_cases import Wanted, run_goal
from spl.kernel.runs import close_runs, list_runs, run_evidence, show_run
from spl.kernel.score import score_suite
from spl.kernel.suite_import import import_suite_file
from spl.kernel.trial import Choice
from spl.store.running import Running, running

TASK = "sys.argv[1]"
# What the first attempt does to every copy of a fixture that it can find.
POISON = """
if sys.argv[1] == "one":
    for name in os.listdir("../.."):
        if name.startswith("baseline-"):
            open(f"../../{name}/made.txt", "w").write("two one")
"""


@pytest.fixture
def home(kernel: Kernel, tmp_path: Path) -> Kernel:
    add_actor(kernel, "bot")
    import_suite_file(kernel, load_suite(str(suite_file(tmp_path / "src"))), None)
    return kernel


def test_an_attempt_begins_with_the_files_of_its_case_whatever_another_did_to_their_copy(
    home: Kernel,
) -> None:
    install(home, "bot", agent(f"{POISON}\nprint(sorted(os.listdir('.')))"))
    made = run(home)
    printed = [run_evidence(home, part.id.hex(), "stdout").decode() for part in made.runs]
    assert printed == ["['.git', 'tool.sh']\n"] * 2
    score = score_suite(home, "s", "bot", "incumbent")
    assert (score.substance.passed, score.substance.of) == (0, 2)


def test_a_home_of_the_checks_holds_nothing_that_the_agent_has_put_there(
    kernel: Kernel, tmp_path: Path
) -> None:
    add_actor(kernel, "bot")
    check = ["sh", "-c", 'find "$HOME" "$TMPDIR" -type f | grep -q planted && exit 0; exit 1']
    import_suite_file(kernel, load_suite(str(suite_file(tmp_path / "src", "one", checks=check))), None)
    plant = """
for place in (os.environ["HOME"], os.environ["HOME"] + "/../checks/home", os.environ["TMPDIR"] + "/../checks/tmp"):
    os.makedirs(place, exist_ok=True)
    open(f"{place}/planted", "w").write("x")
open("made.txt", "w").write("one")
"""
    install(kernel, "bot", agent(plant))
    run(kernel)
    assert score_suite(kernel, "s", "bot", "incumbent").substance.passed == 0


def test_who_destroys_the_workspace_has_failed(home: Kernel) -> None:
    install(home, "bot", agent("import shutil; shutil.rmtree(os.getcwd())"))
    end = one(home)
    assert (end["status"], "cannot be read" in end["cause"]) == ("failed", True)
    score = score_suite(home, "s", "bot", "incumbent")
    assert (score.structure.of, score.substance.of, score.substance.passed) == (1, 1, 0)


def test_the_time_limit_is_the_agents_and_not_that_of_making_its_workspace(home: Kernel) -> None:
    install(home, "bot", agent("time.sleep(9)"))
    end = one(home, timeout_ms=1)
    assert end["status"] == "timed_out"


def test_runs_that_live_are_told_apart_from_those_that_a_crash_left(home: Kernel) -> None:
    if home.path is None:
        pytest.skip("needs a second process")
    install(home, "bot", agent("time.sleep(60)"))
    words = [sys.executable, "-m", "spl", "--home", str(home.path), "run", "suite", "s", "--actor", "bot"]
    process = subprocess.Popen([*words, "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while len(home.log.open_runs()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        living = [row.id for row in home.log.open_runs()]
        assert len(living) == 2
        assert close_runs(home, [], "left").running == living
        with pytest.raises(ConflictError, match="being executed"):
            close_runs(home, [living[0].hex()], "left")
    finally:
        process.kill()
        process.wait()
    closed = close_runs(home, [], "left")
    assert ([part.id for part in closed.closed], closed.running) == (living, [])
    assert running(home.path / "tmp") == set()


def test_a_file_of_runs_that_is_damaged_names_none(tmp_path: Path) -> None:
    held = Running(tmp_path)
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b"\xff\nxyz\n" + b"ab" * 32 + b"\n")
    assert [run.hex() for run in running(tmp_path)] == ["ab" * 32]
    held.close()
    assert list(tmp_path.iterdir()) == []


def test_when_a_record_cannot_be_kept_the_other_runs_are_cancelled(
    home: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(home, "bot", agent("print(1); time.sleep(0.2) if sys.argv[1] == 'one' else time.sleep(60)"))

    def full(*_: object) -> None:
        raise StorageError("cannot store the blob: the disk is full")

    monkeypatch.setattr(execute, "put_text", full)
    with pytest.raises(StorageError) as failed:
        run(home, jobs=2)
    assert failed.value.hint is not None
    assert "--resume" in failed.value.hint
    assert home.log.open_runs() == []
    assert {part.status for part in list_runs(home).runs} == {"cancelled"}


def test_more_attempts_than_the_system_has_files_for_are_refused_before_anything_runs(
    home: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(home, "bot", agent(WRITES))
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 256))
    with pytest.raises(InputError, match="open files"):
        run(home, jobs=100)
    assert list_runs(home).runs == []
    assert run(home, jobs=2).counts == {"completed": 2}


def test_a_pinned_script_that_is_gone_blocks_the_run(home: Kernel, tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text("open('made.txt', 'w').write('one')")
    text = f'{{"adapter": "command", "argv": ["{sys.executable}", "{script}"]}}'.encode()
    install(home, "bot", parse_source(text, "d.json", {"agent.py": script.read_bytes()}))
    assert one(home)["status"] == "completed"
    script.unlink()
    end = one(home)
    assert (end["status"], "is not there any more" in end["cause"]) == ("blocked", True)


def test_a_key_that_is_not_set_blocks_and_an_unknown_provider_runs_nothing(home: Kernel) -> None:
    install(home, "bot", Source(behaviour={"adapter": "pipeline", "model": "m", "instructions": "x"}))
    built_in = BuiltIn(variables={}, key_variables=lambda _models: ["A_KEY"])
    end = one(home, built_in=built_in)
    assert (end["status"], "A_KEY is not set" in end["cause"]) == ("blocked", True)

    def unknown(_models: object) -> list[str]:
        raise InputError("there is no provider x")

    before = len(list_runs(home).runs)
    with pytest.raises(InputError):
        run(home, built_in=BuiltIn(variables={}, key_variables=unknown))
    assert len(list_runs(home).runs) == before


def test_what_others_define_is_not_run_as_ones_own(home: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = install(home, "bot", agent(WRITES))
    foreign = replace(record_of(home.log, installed.id), by=Did("did:web:other.example"))
    monkeypatch.setattr(trial, "record_of", lambda *_: foreign)
    with pytest.raises(RefusedError, match=r"by did:web:other\.example"):
        run(home, Choice(definition=installed.id.hex()))
    assert list_runs(home).runs == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"env": ["A=B"]}, "$.env[0]"),
        ({"env": ["SPL_HOME"]}, "SPL_HOME is never passed on"),
        ({"argv": ["a\0b"]}, "null character"),
        ({"files": {"a": "ab" * 32, "a/b": "ab" * 32}}, "the directory of another"),
    ],
)
def test_the_door_stays_closed_for_what_could_never_run(
    home: Kernel, more: dict[str, object], reason: str
) -> None:
    text = json.dumps({"adapter": "command", "argv": ["a"], **more}).encode()
    actor = home.log.actors("bot")[0].id
    assert any(reason in found for found in door_reasons(home, home.log, actor, parse_source(text, "d.json")))


def test_work_that_is_run_elsewhere_is_not_even_recorded_as_a_trial(home: Kernel) -> None:
    size = home.log.size()
    with pytest.raises(InputError, match="run elsewhere"):
        run(home, Choice(trial=Source(behaviour={"adapter": "external", "system": "x"})))
    assert home.log.size() == size


def test_the_home_is_no_workspace(home: Kernel) -> None:
    if home.path is None:
        pytest.skip("a home in memory has no files")
    install(home, "bot", agent(WRITES))
    for place in (home.path, home.path / "blobs", home.path.parent):
        with pytest.raises(InputError, match="within each other"):
            run_goal(home, "x", "bot", TRIED, How(environment=dict(os.environ)), place)


def test_a_usage_event_that_cannot_be_read_leaves_no_cost_complete(home: Kernel) -> None:
    good = '{"schemaVersion":2,"type":"usage","runId":"r","provider":"a","model":"m","promptTokens":9,"costUsd":0.5}'
    for bad in (
        '{"schemaVersion":2,"type":"usage","runId":"r","model":"m","promptTokens":"5","costUsd":1.0}',
        '{"schemaVersion":2,"type":"usage","runId":"r","model":"m","promptTokens":5,"costUsd":"x"}',
        '{"schemaVersion":2,"type":"usage","runId":"r","model":"m","prom',
    ):
        install(home, "bot", agent(f"print({good!r}); print({bad!r})"))
        end = one(home)
        assert [total["cost_status"] for total in end["usage"]] == ["priced", "error"], bad
    score = score_suite(home, "s", "bot", "incumbent")
    assert (score.cost.coverage, score.cost.error) == ("partial", 1)


def test_the_latest_runs_are_listed(home: Kernel) -> None:
    install(home, "bot", agent(WRITES))
    made = run(home, wanted=Wanted(attempts=2))
    found = list_runs(home, limit=3)
    assert (found.more, [part.id for part in found.runs]) == (True, sorted_ids(home)[1:])
    assert len(made.runs) == 4
    assert [part.id for part in list_runs(home, suite="s", limit=2).runs] == sorted_ids(home)[2:]
    assert show_run(home, sorted_ids(home)[0].hex()).run.attempt == 1


def sorted_ids(home: Kernel) -> list[bytes]:
    return [row.id for row in home.log.runs()]

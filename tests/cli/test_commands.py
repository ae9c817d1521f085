"""Each command as a user calls it: its document keeps its schema, its text says the same, its refusals say why."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from spl.cli import output
from spl.codec import digest

ROOT = Path(__file__).parents[2]
IMPORTED = ROOT / "examples" / "imported"
SCHEMAS = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "schemas").glob("*.json")}

Spl = Callable[..., Any]


class Shell:
    """Runs commands in one home, and holds each document against its schema."""

    def __init__(self, spl: Spl) -> None:
        self.spl = spl

    def document(self, *words: str, status: int = 0, contract: str | None = None) -> Any:
        """Return what a command says as JSON."""
        ran = self.spl(*words, "--json")
        assert (ran.status, ran.err) == (status, ""), ran
        document = ran.document
        jsonschema.validate(document, SCHEMAS[document["contract"]])
        assert next(iter(document)) == "contract"
        assert contract in (None, document["contract"])
        return document

    def text(self, *words: str) -> str:
        """Return what a command says in words."""
        ran = self.spl(*words)
        assert (ran.status, ran.err) == (0, ""), ran
        return str(ran.out)

    def refused(self, *words: str, status: int = 2) -> Any:
        """Return the error document of a command that must fail."""
        return self.document(*words, status=status, contract="spl.error.v1")


@pytest.fixture
def shell(spl: Spl, tmp_path: Path) -> Shell:
    """An empty home, with the files of the imported example in the working directory."""
    for file in IMPORTED.iterdir():
        if file.suffix != ".py" and file.is_file():
            shutil.copy(file, tmp_path)
    return Shell(spl)


@pytest.fixture
def scored(shell: Shell) -> Shell:
    """The imported example: two definitions with their runs and scores."""
    for words in (
        "actor add coder --note one",
        "suite create smoke",
        "suite add smoke cases.json",
        "definition install coder v1.toml",
        "run import runs-v1.jsonl --actor coder",
        "eval score smoke --actor coder --definition incumbent",
        "definition propose coder v2.toml --origin elsewhere",
        "run import runs-v2.jsonl --actor coder --definition latest",
        "eval score smoke --actor coder --definition latest",
    ):
        shell.text(*words.split())
    return shell


def test_a_home_is_made_once_and_shown(shell: Shell, tmp_path: Path) -> None:
    made = shell.document("init", contract="spl.home.v1")
    assert (made["created"], made["size"], made["path"]) == (True, 0, str(tmp_path / "home"))
    assert "created" not in shell.document("init")
    shell.text("actor", "add", "coder")
    status = shell.document("status")
    assert (status["size"], status["actors"], status["last"]["kind"]) == (1, 1, "core.actor.v1")
    assert status["operator"] == made["operator"]
    assert "records   1" in shell.text("status")


def test_an_actor_is_found_by_name_did_id_and_prefix(shell: Shell) -> None:
    added = shell.document("actor", "add", "coder", "--did", "did:web:a.example")
    assert added["appended"] is True
    assert "appended" not in shell.document("actor", "add", "coder", "--did", "did:web:a.example")
    for words in ("coder", "did:web:a.example", added["id"], added["id"][:8]):
        assert shell.document("actor", "show", words)["id"] == added["id"]
    assert [actor["name"] for actor in shell.document("actor", "list")["actors"]] == ["coder"]
    assert added["id"][:12] in shell.text("actor", "list")
    assert shell.refused("actor", "show", "codr")["hint"] == "did you mean coder?"
    assert (
        shell.refused("actor", "add", "coder", "--did", "did:web:b.example", status=4)["code"] == "conflict"
    )


def test_lists_of_an_empty_home_say_what_to_do(shell: Shell) -> None:
    shell.text("init")
    assert "spl actor add" in shell.text("actor", "list")
    assert "spl suite import" in shell.text("suite", "list")
    assert "spl judge" in shell.text("verdict", "list")
    assert shell.text("run", "list") == "no runs\n"
    assert shell.text("run", "close") == "no run was left open\n"
    assert shell.text("log") == "no records\n"


def test_a_definition_keeps_its_facet_from_file_to_incumbent(shell: Shell) -> None:
    shell.text("actor", "add", "coder")
    assert "has no definition yet" in shell.text("definition", "list", "coder")
    facet = shell.document("definition", "facet", "v1.toml")["facet"]
    assert shell.text("definition", "facet", "v1.toml") == facet + "\n"
    proposed = shell.document("definition", "propose", "coder", "v1.toml")
    installed = shell.document("definition", "install", "coder", "v1.toml")
    assert proposed["facet"] == installed["facet"] == facet
    assert proposed["id"] != installed["id"]
    shown = shell.document("definition", "show", "incumbent", "--actor", "coder")
    assert (shown["id"], shown["definition"]["incumbent"]) == (installed["id"], True)
    assert re.search(r"params\.temperature +0\.7", shell.text("definition", "show", installed["id"][:12]))
    listed = shell.document("definition", "list", "coder")["definitions"]
    assert [(d["state"], d["incumbent"]) for d in listed] == [("candidate", False), ("installed", True)]


def test_an_install_that_expects_another_incumbent_changes_nothing(shell: Shell) -> None:
    shell.text("actor", "add", "coder")
    first = shell.document("definition", "install", "coder", "v1.toml")
    second = shell.document("definition", "install", "coder", "v2.toml", "--expect", first["id"])
    assert second["definition"]["succeeds"] == first["id"]
    refusal = shell.refused("definition", "install", "coder", "v1.toml", "--expect", first["id"], status=4)
    assert refusal["code"] == "conflict"
    shown = shell.document("definition", "show", "incumbent", "--actor", "coder")
    assert shown["id"] == second["id"]


def test_a_malformed_definition_is_refused_with_every_problem(shell: Shell, tmp_path: Path) -> None:
    shell.text("actor", "add", "coder")
    (tmp_path / "bad.json").write_text('{"adapter": "external", "colour": "red", "system": 3}')
    closed = shell.refused("definition", "propose", "coder", "bad.json", status=4)
    assert [reason.split(":")[0] for reason in closed["details"]["reasons"]] == ["$.colour", "$.system"]
    refusal = shell.refused("definition", "facet", "bad.json")
    assert {problem["path"] for problem in refusal["details"]["problems"]} == {"$.colour", "$.system"}
    assert shell.document("status")["size"] == 1
    assert shell.refused("definition", "propose", "coder", "none.toml")["code"] == "file_input"
    assert shell.refused("definition", "propose", "coder", "v1.toml", "--trust", "much")["code"] == "usage"


def test_a_suite_is_filled_shown_and_emptied(shell: Shell) -> None:
    created = shell.document("suite", "create", "smoke", "--description", "small")
    added = shell.document("suite", "add", "smoke", "cases.json")
    assert (len(added["added"]), added["suite"]["cases"]) == (6, 6)
    assert shell.document("suite", "add", "smoke", "cases.json")["unchanged"] == 6
    assert shell.document("suite", "list")["suites"][0]["id"] == created["id"]
    case = shell.document("suite", "show", "smoke", "--case", "add-flag")
    assert case["expect"] == {"outcomes": ["tests"]}
    assert "outcomes  tests" in shell.text("suite", "show", "smoke", "--case", "add-flag")
    retired = shell.document("suite", "retire", "smoke", "add-flag", "--reason", "old")
    assert (retired["retired"], retired["suite"]["cases"]) == (["add-flag"], 5)
    assert "add-flag" not in shell.text("suite", "show", "smoke")
    assert shell.refused("suite", "retire", "smoke", "nothing", "--reason", "x")["code"] == "unknown_name"


SUITE = {
    "id": "mending",
    "name": "Mending",
    "tasks": [
        {
            "id": "greet",
            "name": "Greet",
            "prompt": "Mend the greeting.",
            "workspaceFixture": "greet",
            "expectedChangedFiles": ["hello.py"],
            "verificationCommands": [{"id": "tests", "name": "Tests", "command": ["python", "test.py"]}],
        }
    ],
}


def test_a_suite_file_is_taken_over_with_its_fixtures(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "greet").mkdir()
    (tmp_path / "greet" / "hello.py").write_text("print('helo')\n")
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    first = shell.document("suite", "import", "suite.json")
    assert (first["suite"]["name"], first["added"], first["cases"][0]["fixture"]) == (
        "mending",
        ["greet"],
        "greet",
    )
    assert "1 unchanged" in shell.text("suite", "import", "suite.json")
    (tmp_path / "greet" / "hello.py").write_text("print('hullo')\n")
    assert shell.document("suite", "import", "suite.json")["replaced"] == ["greet"]
    named = shell.document("suite", "import", "suite.json", "--name", "other")
    assert named["suite"]["name"] == "other"


def test_a_suite_file_is_refused_with_all_its_problems(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text('{"id": "", "name": "", "tasks": []}')
    message = shell.refused("suite", "import", "suite.json")["message"]
    for problem in ("suite id is required", "suite name is required", "tasks must not be empty"):
        assert problem in message
    assert not (tmp_path / "home" / "log.db").exists() or shell.document("status")["size"] == 0


def test_a_score_says_what_it_left_out_and_how_repeats_read(shell: Shell, tmp_path: Path) -> None:
    def run(case: str, ended: str, outcome: str) -> str:
        return json.dumps({"case": case, "status": ended, "results": [{"id": "tests", "status": outcome}]})

    shell.text("actor", "add", "coder")
    assert "no scores yet" in shell.text("eval", "history", "coder")
    shell.text("suite", "create", "smoke")
    shell.text("suite", "add", "smoke", "cases.json")
    shell.text("definition", "install", "coder", "v1.toml")
    lines = [
        run("add-flag", "completed", "pass"),
        run("add-flag", "failed", "fail"),
        run("fix-off-by-one", "cancelled", "error"),
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    shell.text("run", "import", "r.jsonl", "--actor", "coder")
    shell.text("definition", "propose", "coder", "v2.toml")
    text = shell.text("eval", "score", "smoke", "--actor", "coder", "--definition", "incumbent")
    assert re.search(r"substance +1/2 50\.0% mean of cases", text)
    assert "covers 1 of 6 cases; 1 ungraded, 4 without a run; between 8.3% and 91.7% if they ran" in text
    assert "pass@2 100.0%, pass^2 0.0%" in text
    assert "tool calls unknown in 2" in text
    assert re.search(r"cost +unknown; requests: 0 priced, 3 unpriced", text) or "n/a" in text
    assert "not scored: 6834f392d1c6 (scripted-coder 2 sample-small)" in shell.text(
        "eval", "history", "coder"
    )


def test_runs_are_imported_once_and_listed(scored: Shell) -> None:
    again = scored.document("run", "import", "runs-v1.jsonl", "--actor", "coder")
    assert (again["appended"], again["already_there"]) == (0, 6)
    runs = scored.document("run", "list", "--actor", "coder", "--definition", "incumbent")["runs"]
    assert [run["attempt"] for run in runs] == [1] * 6
    assert runs[0]["cost_nusd"] == 10_500_000
    shown = scored.document("run", "show", runs[0]["id"])
    assert shown["end"]["status"] == "completed"
    assert scored.document("run", "show", runs[0]["end"])["id"] == runs[0]["id"]
    assert "$0.0105" in scored.text("run", "show", runs[0]["id"][:12])
    assert scored.text("run", "list", "--limit", "2").startswith("… earlier ones; raise --limit\n")
    assert scored.document("run", "close")["closed"] == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"case": "add-flag", "status": "done"}', "input"),
        ('{"case": "add-flag", "colour": 1}', "input"),
        ('{"case": "add-flag", "case": "x"}', "input"),
        ('{"case": "add-flag", "latency_ms": NaN}', "input"),
        ('{"case": "add-flag", "answer": "\\ud800"}', "input"),
        ("[" * 5000, "input"),
        ("no json", "input"),
        ('{"case": "nowhere"}', "unknown_name"),
    ],
)
def test_a_bad_line_is_named_by_number_and_nothing_is_imported(
    scored: Shell, tmp_path: Path, line: str, code: str
) -> None:
    before = scored.document("status")["size"]
    (tmp_path / "bad.jsonl").write_text('{"case": "add-flag"}\n' + line + "\n")
    refusal = scored.refused("run", "import", "bad.jsonl", "--actor", "coder")
    assert refusal["code"] == code
    assert "line 2" in refusal["message"]
    assert scored.document("status")["size"] == before


def test_imports_refuse_options_that_contradict_each_other(scored: Shell) -> None:
    words = ["run", "import", "runs-v1.jsonl", "--actor", "coder"]
    assert "go together" in scored.refused(*words, "--definition-from", "model")["message"]
    both = [*words, "--definition-from", "model", "--definitions", "d.json", "--definition", "latest"]
    assert "exclude each other" in scored.refused(*both)["message"]


def test_one_file_may_carry_the_runs_of_many_definitions(shell: Shell, tmp_path: Path) -> None:
    shell.text("actor", "add", "coder")
    shell.text("suite", "create", "smoke")
    behaviours = {name: {"adapter": "external", "system": "s", "model": name} for name in ("m1", "m2")}
    (tmp_path / "d.json").write_text(json.dumps(behaviours))
    lines = [
        {"case": "a", "model": name, "results": [{"id": "done", "status": "pass"}]} for name in behaviours
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["run", "import", "r.jsonl", "--actor", "coder", "--suite", "smoke", "--create-cases"]
    imported = shell.document(*words, "--definition-from", "model", "--definitions", "d.json")
    assert (imported["appended"], imported["definitions"], imported["cases_created"]) == (2, 2, 1)


def test_a_score_is_appended_once_and_keeps_its_axes_apart(scored: Shell) -> None:
    words = ["eval", "score", "smoke", "--actor", "coder", "--definition", "incumbent"]
    score = scored.document(*words, contract="spl.score.v1")
    assert score["appended"] is False
    assert [(score[axis]["passed"], score[axis]["of"]) for axis in ("structure", "substance")] == [
        (2, 6),
        (5, 6),
    ]
    assert len(score["grades"]) == 6
    text = scored.text(*words)
    assert re.search(r"structure +2/6 33\.3% \[9\.7%, 70\.0%\]", text)
    assert "said before" in text


def test_a_score_over_no_run_is_refused_with_what_would_have_matched(scored: Shell) -> None:
    scored.text("actor", "add", "other")
    scored.text("definition", "install", "other", "v1.toml")
    before = scored.document("status")["size"]
    refusal = scored.refused(
        "eval", "score", "smoke", "--actor", "other", "--definition", "incumbent", status=4
    )
    assert refusal["code"] == "nothing_to_grade"
    assert scored.document("status")["size"] == before


def test_the_history_has_an_arrow_and_a_sparkline_for_each_axis(scored: Shell) -> None:
    suite = scored.document("eval", "history", "coder")["suites"][0]
    assert [line["looks"] for line in suite["lines"]] == [1, 1]
    assert suite["lines"][1]["structure_change"]["difference"] == 0.5
    text = scored.text("eval", "history", "coder", "--suite", "smoke")
    assert re.search(
        r"5/6 83\.3% \[43\.6%, 97\.0%\] +▲ \+50\.0 +2/6 33\.3% \[9\.7%, 70\.0%\] +▼ -50\.0", text
    )
    assert re.search(r"structure +▃▇\nsubstance +▇▃", text)
    scored.text("suite", "retire", "smoke", "add-flag", "--reason", "old")
    assert "smoke  6 cases  revision " + suite["revision"][:12] in scored.text("eval", "history", "coder")


def test_a_preference_is_recorded_folded_and_retracted(scored: Shell) -> None:
    listed = scored.document("definition", "list", "coder")["definitions"]
    first, second = (definition["id"] for definition in listed)
    words = ["judge", first[:12], "over", second[:12], "--feature", "asks first", "--axis", "substance"]
    verdict = scored.document(*words, contract="spl.verdict.v1")
    assert verdict["verdict"]["winner"] == first
    assert "asks first" in scored.text("verdict", "list")
    facets = {tally["facet"]: tally["won"] for tally in scored.document("verdict", "list")["facets"]}
    assert facets[listed[0]["facet"]] == {"substance": 1}
    text = scored.text("judge", second, "over", first, "--basis", "on the whole", "--loser-feature", "slow")
    assert re.search(r"axis +unspecified", text)
    scored.text("verdict", "retract", text.split()[1], "--reason", "no")
    assert "1-0" in scored.text("eval", "history", "coder")
    retracted = scored.document("verdict", "retract", verdict["id"], "--reason", "a slip")
    assert len(retracted["retraction"]) == 64
    after = scored.document("verdict", "list", "--actor", "coder")
    assert [part["retracted"] for part in after["verdicts"]] == [True, True]
    assert after["excluded"] == {"retracted": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["A", "under", "B", "--basis", "x"], "a preference reads"),
        (["A", "over", "B"], "feature"),
        (["A", "over", "A", "--basis", "x"], "itself"),
        (["A", "over", "B", "--feature", "x", "--loser-feature", "x"], "x"),
        (["A", "over", "B", "--feature", " "], "blank"),
        (["A", "over", "B", "--basis", "x", "--axis", "speed"], "--axis is structure or substance"),
    ],
)
def test_a_preference_that_says_nothing_is_refused(scored: Shell, words: list[str], message: str) -> None:
    first, second = (d["id"] for d in scored.document("definition", "list", "coder")["definitions"])
    meant = [{"A": first, "B": second}.get(word, word) for word in words]
    assert message in scored.refused("judge", *meant)["message"]


def test_records_are_listed_by_kind_author_thread_and_position(scored: Shell) -> None:
    every = scored.document("log")
    assert [entry["position"] for entry in every["entries"]] == list(range(every["size"]))
    scores = scored.document("log", "--kind", "core.eval.run.v1")["entries"]
    assert [entry["summary"] for entry in scores] == [
        "structure 2/6, substance 5/6",
        "structure 5/6, substance 2/6",
    ]
    by = scored.document("log", "--by", scores[0]["by"], "--limit", "1")
    assert (len(by["entries"]), by["more"]) == (1, True)
    suite = scored.document("suite", "list")["suites"][0]["id"]
    threads = {entry["kind"] for entry in scored.document("log", "--thread", suite[:10])["entries"]}
    assert threads <= {"core.suite.v1", "core.eval.case.v1", "core.eval.run.v1"}
    newest = scored.document("log", "--newest", "--limit", "1")["entries"][0]
    assert newest["position"] == every["size"] - 1
    assert len(scored.document("log", "--from", "2", "--to", "5")["entries"]) == 3
    assert "… more" in scored.text("log", "--limit", "1")


def test_a_record_is_shown_and_its_bytes_printed(scored: Shell, spl: Spl) -> None:
    score = scored.document("log", "--kind", "core.eval.run.v1")["entries"][0]
    shown = scored.document("show", score["id"][:12], contract="spl.record.v1")
    assert shown["body"]["structure"]["passed"] == 2
    assert re.search(r"structure\.passed +2", scored.text("show", score["id"]))
    digits = scored.text("get", score["id"]).strip()
    assert len(bytes.fromhex(digits)) == score["size"]
    assert scored.document("get", score["id"])["id"] == score["id"]
    assert spl("get", score["id"], "--raw", "--json").document["code"] == "usage"


def test_raw_bytes_are_the_record_and_nothing_else(scored: Shell, tmp_path: Path) -> None:
    (tmp_path / "first.json").write_text('{"kind": "acme.note.v1", "body": {"text": "x"}}')
    assert re.search(r"kind +acme\.note\.v1", scored.text("put", "first.json"))
    (tmp_path / "note.json").write_text('{"kind": "acme.note.v1", "body": {"rate": 0.70, "text": "ä"}}')
    put = scored.document("put", "note.json")
    assert put["kind"] == "acme.note.v1"
    shown = scored.document("show", put["id"])
    assert shown["body"] == {"rate": {"dec": [7, -1]}, "text": "ä"}
    raw = subprocess.run(
        [sys.executable, "-m", "spl", "--home", str(tmp_path / "home"), "get", put["id"], "--raw"],
        capture_output=True,
        check=True,
    ).stdout
    assert raw.hex() + "\n" == scored.text("get", put["id"])
    assert digest.record_id(raw).hex() == put["id"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"kind": "core.note.v1", "body": {}}', "reserved_kind"),
        ('{"kind": "core.eval.run.v1", "body": {}}', "reserved_kind"),
        ('{"kind": "acme.note.v1"}', "schema"),
        ('{"kind": "acme.note.v1", "body": {}, "colour": 1}', "schema"),
        ('{"kind": "acme.note.v1", "body": {"a": 1e999}}', "encoding"),
        ('{"kind": "acme.note.v1", "body": {"a": null}}', "encoding"),
        ('{"kind": "Bad", "body": {}}', "schema"),
        ('{"kind": "acme.note.v1", "body": {"a": "' + "x" * 62_000 + '"}}', "encoding"),
        ('{"kind": "acme.note.v1", "body": {"a": ' + "[" * 40 + "]" * 40 + "}}", "encoding"),
    ],
    ids=[
        "foreign core",
        "score",
        "no body",
        "unknown field",
        "huge",
        "null",
        "bad kind",
        "oversized",
        "deep",
    ],
)
def test_what_may_not_be_a_record_is_not_put(shell: Shell, tmp_path: Path, text: str, code: str) -> None:
    shell.text("init")
    (tmp_path / "r.json").write_text(text)
    assert shell.refused("put", "r.json")["code"] == code
    assert shell.document("status")["size"] == 0


def test_ids_that_are_unknown_or_too_short_say_so(scored: Shell) -> None:
    assert scored.refused("show", "abc")["hint"].startswith("an id is 8 to 64")
    assert scored.refused("show", "0" * 64)["code"] == "unknown_id"


def test_standard_input_stands_in_for_a_file(spl: Spl) -> None:
    spl("init")
    ran = spl("put", "-", "--json", stdin=b'{"kind": "acme.note.v1", "body": {}}')
    assert ran.document["contract"] == "spl.appended.v1"


def test_a_clean_home_verifies_and_a_changed_byte_is_found(scored: Shell, tmp_path: Path) -> None:
    clean = scored.document("verify")
    assert (clean["ok"], clean["clean"], clean["faults"]) == (True, True, [])
    assert scored.document("verify", "--no-signatures")["clean"] is False
    assert "not a clean verify" in scored.text("verify", "--no-signatures")
    assert scored.document("verify", "--rebuild-projections")["ok"] is True
    blob = next(path for path in (tmp_path / "home" / "blobs").rglob("*") if path.is_file())
    blob.chmod(0o600)
    blob.write_bytes(b"changed" + blob.read_bytes())
    damaged = scored.document("verify", status=6)
    assert [fault["check"] for fault in damaged["faults"]] == ["blob"]


def test_the_reference_commands_list_kinds_errors_and_schemas(shell: Shell, tmp_path: Path) -> None:
    kinds = shell.document("kinds")["kinds"]
    assert {"kind": "core.run.end.v1"}.items() <= kinds[6].items()
    assert "core.verdict.pair.v1" in shell.text("kinds")
    codes = [error["code"] for error in shell.document("errors")["errors"]]
    assert codes[-1] == "interrupted"
    assert "nothing_to_grade" in shell.text("errors")
    names = shell.document("schema")["schemas"]
    assert set(names) == set(SCHEMAS)
    assert shell.text("schema").split() == names
    assert json.loads(shell.text("schema", "core.run.end.v1")) == SCHEMAS["core.run.end.v1"]
    assert shell.document("schema", "--write", "out")["written_to"] == "out"
    assert shell.text("schema", "--write", "out") == f"{len(SCHEMAS)} schemas in out\n"
    assert {path.stem for path in (tmp_path / "out").iterdir()} == set(SCHEMAS)


def test_text_from_records_never_controls_the_terminal(shell: Shell) -> None:
    hostile = "a\x1b[2Jb\u202ec"
    shell.text("actor", "add", hostile)
    shell.text("suite", "create", "s", "--description", hostile)
    for words in (["actor", "list"], ["actor", "show", hostile], ["suite", "show", "s"], ["log"]):
        text = shell.text(*words)
        assert "a\\x1b[2Jb\\u{202e}c" in text
        assert "\x1b" not in text
    assert shell.document("actor", "list")["actors"][0]["name"] == hostile


def test_colour_is_for_terminals_and_for_those_who_demand_it(
    scored: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in scored.text("eval", "history", "coder")
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert output._painted("x ▲ +50.0 ▼ -1.0") == "x \x1b[32m▲ +50.0\x1b[0m \x1b[31m▼ -1.0\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output._painted("x ▲ +50.0") == "x ▲ +50.0"

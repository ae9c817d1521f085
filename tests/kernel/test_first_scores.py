"""From definitions to a history, on each log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import ROOT

from spl.codec import canonical
from spl.errors import (
    AmbiguousIdError,
    ConflictError,
    DoorClosedError,
    InputError,
    NothingToGradeError,
    SchemaError,
    UnknownIdError,
    UnknownNameError,
)
from spl.ids import RecordId
from spl.kernel.actors import add_actor, list_actors
from spl.kernel.define import (
    Source,
    facet_of,
    install,
    list_definitions,
    parse_behaviour,
    parse_source,
    propose,
    show_definition,
)
from spl.kernel.history import history
from spl.kernel.home import Kernel
from spl.kernel.judge import judge, list_verdicts, retract
from spl.kernel.names import resolve_definition, resolve_id
from spl.kernel.records import list_entries, put_record, show_record, status
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.runs import close_runs, list_runs, show_run
from spl.kernel.score import score_suite
from spl.kernel.suite_import import parse_cases
from spl.kernel.suites import add_cases, create_suite, list_suites, retire_case, show_case, show_suite
from spl.records.envelope import Draft
from spl.records.runs import RunStart
from spl.records.verdicts import PairVerdict
from spl.store.log import Selection, Transaction

IMPORTED = ROOT / "examples" / "imported"


def behaviour(version: str) -> Source:
    return Source(behaviour={"adapter": "external", "system": "s", "version": version})


def lines(*rows: dict[str, Any]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


def prepared(kernel: Kernel) -> Kernel:
    """The imported example, up to the runs of both definitions."""
    add_actor(kernel, "coder")
    create_suite(kernel, "smoke")
    add_cases(kernel, "smoke", parse_cases((IMPORTED / "cases.json").read_bytes(), "cases.json"))
    for version, way in (("v1", install), ("v2", propose)):
        way(kernel, "coder", parse_behaviour((IMPORTED / f"{version}.toml").read_bytes(), "v.toml"))
        rows = (IMPORTED / f"runs-{version}.jsonl").read_bytes().splitlines()
        import_runs(kernel, "coder", rows, Batch(source=f"runs-{version}.jsonl", definition="latest"))
    return kernel


def test_the_imported_example_shows_structure_up_and_substance_down(kernel: Kernel) -> None:
    prepared(kernel)
    first = score_suite(kernel, "smoke", "coder", "incumbent")
    second = score_suite(kernel, "smoke", "coder", "latest")
    assert (first.structure.passed, first.substance.passed) == (2, 5)
    assert (second.structure.passed, second.substance.passed) == (5, 2)
    found = history(kernel, "coder")
    base, candidate = found.suites[0].lines
    assert candidate.predecessor == base.facet
    assert candidate.structure_change is not None
    assert candidate.substance_change is not None
    assert candidate.structure_change.difference == 0.5
    assert candidate.substance_change.difference == -0.5
    assert base.structure_change is None
    assert (base.incumbent, candidate.incumbent) == (True, False)


def test_approval_does_not_reset_a_history(kernel: Kernel) -> None:
    prepared(kernel)
    score_suite(kernel, "smoke", "coder", "incumbent")
    before = score_suite(kernel, "smoke", "coder", "latest")
    source = parse_behaviour((IMPORTED / "v2.toml").read_bytes(), "v2.toml")
    installed = install(kernel, "coder", source)
    assert installed.appended
    assert installed.facet == before.facet
    line = history(kernel, "coder").suites[0].lines[1]
    assert line.states == ["candidate", "installed"]
    assert line.incumbent
    assert line.score == before.id
    assert len(line.definitions) == 2
    assert not score_suite(kernel, "smoke", "coder", "incumbent").appended


def test_scoring_again_appends_nothing_until_something_changed(kernel: Kernel) -> None:
    prepared(kernel)
    first = score_suite(kernel, "smoke", "coder", "incumbent")
    size = kernel.log.size()
    again = score_suite(kernel, "smoke", "coder", "incumbent")
    assert (again.id, again.appended, kernel.log.size()) == (first.id, False, size)
    put_record(kernel, b'{"kind": "acme.note.v1", "body": {"unrelated": true}}', "note")
    assert not score_suite(kernel, "smoke", "coder", "incumbent").appended
    row = {"case": "add-flag", "id": "again", "results": [{"id": "tests", "status": "fail"}]}
    import_runs(kernel, "coder", lines(row), Batch(source="more", definition="incumbent"))
    third = score_suite(kernel, "smoke", "coder", "incumbent")
    assert third.appended
    assert third.substance.of == first.substance.of + 1
    assert history(kernel, "coder").suites[0].lines[0].looks == 2


def test_nothing_to_grade_is_refused_and_says_what_would_have_matched(kernel: Kernel) -> None:
    prepared(kernel)
    propose(kernel, "coder", behaviour("untried"))
    size = kernel.log.size()
    with pytest.raises(NothingToGradeError) as refused:
        score_suite(kernel, "smoke", "coder", "latest")
    assert kernel.log.size() == size
    assert {item["runs"] for item in refused.value.details["with_runs"]} == {6}


def test_runs_of_an_older_case_revision_do_not_count(kernel: Kernel) -> None:
    prepared(kernel)
    score_suite(kernel, "smoke", "coder", "incumbent")
    case = json.loads((IMPORTED / "cases.json").read_bytes())[0]
    renamed = add_cases(kernel, "smoke", parse_cases(json.dumps({**case, "name": "New name"}).encode(), "c"))
    assert renamed.replaced == [case["key"]]
    assert score_suite(kernel, "smoke", "coder", "incumbent").structure.no_run == 0
    add_cases(kernel, "smoke", parse_cases(json.dumps({**case, "goal": "Another goal."}).encode(), "c"))
    changed = score_suite(kernel, "smoke", "coder", "incumbent")
    assert changed.structure.no_run == 1
    line = history(kernel, "coder").suites[0].lines[0]
    assert line.score == changed.id


def test_an_install_is_compare_and_set(kernel: Kernel) -> None:
    add_actor(kernel, "bot")
    first = install(kernel, "bot", behaviour("1"))
    assert not install(kernel, "bot", behaviour("1")).appended
    second = install(kernel, "bot", behaviour("2"), expect=first.id.hex())
    size = kernel.log.size()
    with pytest.raises(ConflictError):
        install(kernel, "bot", behaviour("3"), expect=first.id.hex())
    assert kernel.log.size() == size
    back = install(kernel, "bot", behaviour("1"))
    assert back.facet == first.facet
    assert back.definition.succeeds == second.id
    listed = list_definitions(kernel, "bot").definitions
    assert [part.incumbent for part in listed] == [False, False, True]
    assert list_actors(kernel).actors[0].incumbent == back.id


def test_the_define_door_names_every_reason(kernel: Kernel) -> None:
    add_actor(kernel, "bot")
    with pytest.raises(DoorClosedError) as closed:
        propose(
            kernel,
            "bot",
            Source(behaviour={"adapter": "command", "argv": ["", "{model}"], "files": {"p": bytes(32)}}),
        )
    assert len(closed.value.details["reasons"]) == 3
    with pytest.raises(SchemaError) as malformed:
        parse_behaviour(b'{"adapter": "command", "argv": [1], "speed": 2}', "d.json")
    assert len(malformed.value.details["problems"]) == 2


def test_a_closed_door_names_what_the_file_the_actor_and_the_home_have_against_it(kernel: Kernel) -> None:
    text = b"""
adapter = "command"
argv = ["agent", 1]
speed = 2
params = {heat = nan, key = "AKIAIOSFODNN7EXAMPLE"}
files = {prompt = "0000000000000000000000000000000000000000000000000000000000000000"}
"""
    add_actor(kernel, "bot")
    first = propose(kernel, "bot", Source(behaviour={"adapter": "command", "argv": ["agent"]}))
    size = kernel.log.size()
    with pytest.raises(DoorClosedError) as closed:
        install(kernel, "bot", parse_source(text, "d.toml"), expect=first.id.hex())
    named = "\n".join(closed.value.details["reasons"])
    assert "$.argv[1]" in named
    assert "$.speed" in named
    assert "$.params.heat: 'nan' is not a finite number" in named
    assert "$.params.key: holds a secret" in named
    assert "pinned file prompt" in named
    assert "to be installed, but nothing is" in named
    assert len(closed.value.details["reasons"]) == 6
    assert kernel.log.size() == size


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"adapter": "command", "argv": ["a"], "params": {"n": 2**53}}, "$: "),
        ({"adapter": "command", "argv": ["a"], "params": {"n": None}}, "$.params.n: null"),
        ({"adapter": "command", "argv": ["a"], "files": [1]}, "$.files: "),
        ({"adapter": "command", "argv": ["a"], "params": {"n": [["x"] * 61_440]}}, "$.params"),
        ({"adapter": "command", "argv": ["a"], "params": {"n": ["x"] * 61_440}}, "$: "),
        ({"adapter": "psychic", "params": {"n": 1}}, "$.adapter: "),
    ],
)
def test_what_no_record_can_hold_is_a_reason_of_the_door(
    kernel: Kernel, behaviour: dict[str, object], reason: str
) -> None:
    add_actor(kernel, "bot")
    source = parse_source(json.dumps(behaviour).encode(), "d.json")
    with pytest.raises(DoorClosedError) as closed:
        propose(kernel, "bot", source)
    assert [found for found in closed.value.details["reasons"] if found.startswith(reason)]
    with pytest.raises(SchemaError):
        facet_of(source)


def test_a_pinned_file_moves_the_facet(kernel: Kernel) -> None:
    text = b'{"adapter": "command", "argv": ["python", "agent.py", "{prompt}"]}'
    one, two = (parse_behaviour(text, "d.json", {"agent.py": data}) for data in (b"print(1)", b"print(2)"))
    add_actor(kernel, "bot")
    assert propose(kernel, "bot", one).facet != propose(kernel, "bot", two).facet
    assert show_definition(kernel, "latest", "bot").behaviour["files"].keys() == {"agent.py"}


def test_an_import_is_all_or_nothing_and_the_same_file_appends_nothing(kernel: Kernel) -> None:
    add_actor(kernel, "bot")
    create_suite(kernel, "s")
    install(kernel, "bot", behaviour("1"))
    good = {"case": "a", "results": [{"id": "r", "status": "pass"}], "answer": "long " * 9000}
    size = kernel.log.size()
    bad: list[tuple[dict[str, Any] | bytes, str]] = [
        (b"{", "line 2"),
        (b'{"case": "a", "case": "b"}', "line 2"),
        ({"case": "a", "status": "done"}, "line 2"),
        ({"case": "a", "latency_ms": -1}, "line 2"),
        ({"case": "a", "colour": "red"}, "line 2"),
        ({"case": "a", "usage": [{"cost_usd": "much"}]}, "line 2"),
        ({"case": "a", "started_at": "yesterday"}, "line 2"),
        ({"case": "unknown"}, "line 2"),
        ({"case": "a", "results": [{"id": "r", "status": "pass"}, {"id": "r", "status": "fail"}]}, "line 2"),
    ]
    for row, where in bad:
        raw = row if isinstance(row, bytes) else json.dumps(row).encode()
        with pytest.raises(InputError, match=where):
            import_runs(kernel, "bot", [*lines(good), raw], Batch(source="f", create_cases=True))
        assert kernel.log.size() == size
    batch = Batch(source="f", create_cases=True)
    done = import_runs(kernel, "bot", lines(good, good), batch)
    assert (done.appended, done.cases_created) == (2, 1)
    again = import_runs(kernel, "bot", lines(good, good), batch)
    assert (again.appended, again.already_there) == (0, 2)
    third = import_runs(kernel, "bot", lines(good, good, good), batch)
    assert third.appended == 1
    run = show_run(kernel, list_runs(kernel).runs[0].id.hex())
    assert run.end is not None
    assert run.end["answer"] == good["answer"]
    assert [part.attempt for part in list_runs(kernel, suite="s").runs] == [1, 2, 3]


def test_one_file_can_carry_runs_of_many_definitions(kernel: Kernel) -> None:
    add_actor(kernel, "bot")
    create_suite(kernel, "s")
    rows = [
        {"model": model, "case": "a", "results": [{"id": "r", "status": "pass"}]}
        for model in ("m1", "m2", "m1")
    ]
    batch = Batch(
        source="f",
        suite="s",
        definition_from="model",
        definitions={"m1": behaviour("m1"), "m2": behaviour("m2")},
        create_cases=True,
    )
    done = import_runs(kernel, "bot", lines(*rows), batch)
    assert (done.appended, done.definitions) == (3, 2)
    assert len(list_definitions(kernel, "bot").definitions) == 2
    with pytest.raises(UnknownNameError, match="m3"):
        import_runs(kernel, "bot", lines({**rows[0], "model": "m3"}), batch)


def test_open_runs_are_shown_and_can_be_closed(kernel: Kernel) -> None:
    prepared(kernel)
    row = resolve_definition(kernel.log, "incumbent", kernel.log.actors("coder")[0].id)
    case = kernel.log.cases(kernel.log.suites("smoke")[0].id)[0]
    start = Draft(
        body=RunStart(facet=row.facet, trial=False, adapter="external"),
        by=kernel.operator,
        refs={"actor": (row.actor,), "definition": (row.id,), "case": (case.id,)},
    )
    opened = kernel.transact(lambda tx: tx.append(start))
    assert score_suite(kernel, "smoke", "coder", "incumbent").runs.open == 1
    assert show_run(kernel, opened.id.hex()).end is None
    closed = close_runs(kernel, [], "power cut")
    assert [(part.id, part.status) for part in closed.closed] == [(opened.id, "cancelled")]
    with pytest.raises(InputError, match="has ended"):
        close_runs(kernel, [opened.id.hex()], "again")
    assert score_suite(kernel, "smoke", "coder", "incumbent").runs.cancelled == 1


def test_a_verdict_is_recorded_counted_and_retracted(kernel: Kernel) -> None:
    prepared(kernel)
    score_suite(kernel, "smoke", "coder", "incumbent")
    first, second = (part.id.hex() for part in list_definitions(kernel, "coder").definitions)
    verdict = PairVerdict(features=["asks first"], loser_features=["guesses"], axis="substance")
    done = judge(kernel, first, second, verdict)
    assert done.verdict.winner_facet is not None
    run = list_runs(kernel).runs[-1].id.hex()
    judge(kernel, run, first, PairVerdict(features=[], loser_features=[], basis="shorter"))
    found = list_verdicts(kernel, "coder")
    assert len(found.cycles) == 1
    assert [(tally.feature, tally.won, tally.lost) for tally in found.features] == [
        ("asks first", 1, 0),
        ("guesses", 0, 1),
    ]
    assert history(kernel, "coder").suites[0].lines[0].won == 1
    retract(kernel, done.id.hex(), "mistaken")
    after = list_verdicts(kernel)
    assert after.excluded == {"retracted": 1}
    assert after.cycles == []
    with pytest.raises(ConflictError):
        retract(kernel, done.id.hex(), "again")
    assert history(kernel, "coder").suites[0].lines[0].won == 0


@pytest.mark.parametrize(
    "verdict",
    [
        PairVerdict(features=[], loser_features=[]),
        PairVerdict(features=[" "], loser_features=[]),
        PairVerdict(features=["a", "a"], loser_features=[]),
        PairVerdict(features=["a"], loser_features=["a"]),
        PairVerdict(features=[], loser_features=[], basis=" "),
    ],
)
def test_a_verdict_needs_what_differed(kernel: Kernel, verdict: PairVerdict) -> None:
    prepared(kernel)
    first, second = (part.id.hex() for part in list_definitions(kernel, "coder").definitions)
    with pytest.raises(InputError):
        judge(kernel, first, second, verdict)
    with pytest.raises(InputError):
        judge(kernel, first, first, PairVerdict(features=["a"], loser_features=[]))
    actor = kernel.log.actors("coder")[0].id.hex()
    with pytest.raises(InputError, match="are judged"):
        judge(kernel, actor, second, PairVerdict(features=["a"], loser_features=[]))


def test_names_and_prefixes_that_mean_nothing_or_several_are_refused_with_candidates(kernel: Kernel) -> None:
    prepared(kernel)
    with pytest.raises(UnknownNameError, match="codre") as unknown:
        history(kernel, "codre")
    assert unknown.value.hint == "did you mean coder?"
    with pytest.raises(UnknownIdError):
        resolve_id(kernel.log, "00000000")
    with pytest.raises(UnknownIdError):
        resolve_id(kernel.log, "short")
    with pytest.raises(InputError, match="needs an actor"):
        resolve_definition(kernel.log, "incumbent")
    add_actor(kernel, "other")
    facet = list_definitions(kernel, "coder").definitions[0].facet
    install(kernel, "other", parse_behaviour((IMPORTED / "v1.toml").read_bytes(), "v1.toml"))
    with pytest.raises(AmbiguousIdError):
        resolve_definition(kernel.log, facet.hex())
    owner = kernel.log.actors("coder")[0].id
    assert resolve_definition(kernel.log, facet.hex()[:10], owner).facet == facet
    with pytest.raises(ConflictError):
        add_actor(kernel, "coder", did="did:web:else.example")


def test_suites_change_case_by_case(kernel: Kernel) -> None:
    prepared(kernel)
    revision = show_suite(kernel, "smoke").suite.revision
    retired = retire_case(kernel, "smoke", "add-flag", "old")
    assert retired.retired == ["add-flag"]
    assert show_suite(kernel, "smoke").suite.revision != revision
    assert list_suites(kernel).suites[0].cases == 5
    assert show_case(kernel, "smoke", "rename-field").expect["outcomes"] == ["tests", "old_files_read"]
    with pytest.raises(UnknownNameError):
        retire_case(kernel, "smoke", "add-flag", "again")
    with pytest.raises(SchemaError) as malformed:
        parse_cases(b'[{"key": "a"}, {"key": "b", "name": "", "goal": "", "expect": {}}, 3]', "c.json")
    paths = [problem["path"] for problem in malformed.value.details["problems"]]
    assert "$[0].name" in paths
    assert "$[1].expect" in paths
    assert "$[2]" in paths


def test_records_are_listed_and_shown(kernel: Kernel) -> None:
    prepared(kernel)
    listed = list_entries(kernel, Selection(kind="core.run.end.v1"), limit=5)
    assert listed.more
    assert {part.kind for part in listed.entries} == {"core.run.end.v1"}
    shown = show_record(kernel, listed.entries[0].id.hex()[:10])
    assert shown.body["status"] == "completed"
    note = put_record(
        kernel,
        json.dumps(
            {"kind": "acme.note.v1", "body": {"weight": 0.5}, "refs": {"about": [shown.id.hex()]}}
        ).encode(),
        "n",
    )
    assert show_record(kernel, note.id.hex()).body == {"weight": {"dec": [5, -1]}}
    assert status(kernel).size == kernel.log.size()


def test_a_run_that_cannot_be_read_is_counted_as_excluded(kernel: Kernel) -> None:
    """An end with a field of a later version may arrive by import; it is opaque here, and no figure uses it."""
    prepared(kernel)
    row = resolve_definition(kernel.log, "incumbent", kernel.log.actors("coder")[0].id)
    case = kernel.log.cases(kernel.log.suites("smoke")[0].id)[0]
    before = score_suite(kernel, "smoke", "coder", "incumbent")

    def arrived(tx: Transaction, kind: str, body: Mapping[str, object], **envelope: object) -> RecordId:
        record = {
            "v": 1,
            "kind": kind,
            "by": "did:web:later.example",
            "at": 1,
            "body": body,
            "salt": bytes(16),
        }
        return tx.append_signed(canonical.encode(record | envelope), b"").id

    def append(tx: Transaction) -> None:
        refs = {"actor": [row.actor], "definition": [row.id], "case": [case.id]}
        begun = {"facet": row.facet, "trial": False, "adapter": "external"}
        start = arrived(tx, "core.run.start.v1", begun, refs=refs)
        ended = {"status": "completed", "mood": "good"}
        arrived(tx, "core.run.end.v1", ended, thread=start, refs={"start": [start]})

    kernel.transact(append)
    after = score_suite(kernel, "smoke", "coder", "incumbent")
    assert after.structure == before.structure
    assert (after.substance, after.runs) == (before.substance, before.runs)
    assert after.excluded == {"opaque": 1}

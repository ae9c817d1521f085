"""A withdrawal takes content away and leaves everything that was concluded from it standing."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import tampered

from spl.errors import InputError, SplError, UnknownIdError, WithdrawnError
from spl.ids import RecordId
from spl.kernel.actors import add_actor, list_actors
from spl.kernel.define import Source, install, list_definitions, propose
from spl.kernel.history import history
from spl.kernel.home import Kernel, open_home
from spl.kernel.judge import judge, list_verdicts, retract
from spl.kernel.names import incumbent_of, record_of, resolve_actor
from spl.kernel.records import get_entry, list_entries, put_record, show_record
from spl.kernel.redact import redact
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.runs import list_runs, show_run
from spl.kernel.score import score_suite
from spl.kernel.suites import NewCase, NewFile, add_cases, create_suite, list_suites, show_suite
from spl.kernel.verify import rebuild_projections, verify_home
from spl.records.envelope import Draft, read_record
from spl.records.evals import Case, Expect
from spl.records.runs import RunEnd
from spl.records.verdicts import PairVerdict, Redaction
from spl.store.blobs import BlobStore
from spl.store.log import Selection
from spl.store.sqlite import SqliteLog

CANARY = "marigold-5511"
LONG = "a long answer " * 3000


def external(version: str) -> Source:
    return Source(behaviour={"adapter": "external", "system": CANARY, "version": version})


@pytest.fixture
def grown(kernel: Kernel) -> Kernel:
    """A home with one record of every kind that can be withdrawn."""
    add_actor(kernel, "a", note=CANARY)
    create_suite(kernel, "s", CANARY)
    files = [NewFile("f.txt", 644, b"fixture " + CANARY.encode())]
    cases = [NewCase(Case(key=k, name=CANARY, goal="g", expect=Expect(outcomes=["o"])), files) for k in "xy"]
    add_cases(kernel, "s", cases)
    for version in "12":
        install(kernel, "a", external(version))
    import_lines(kernel, "1", "fail")
    import_lines(kernel, "2", "pass")
    for row in kernel.log.definitions(actor=actor_of(kernel)):
        score_suite(kernel, "s", "a", row.id.hex())
    first, second = (row.id.hex() for row in kernel.log.definitions(actor=actor_of(kernel)))
    judge(kernel, second, first, PairVerdict(features=[CANARY], loser_features=[]))
    return kernel


def actor_of(kernel: Kernel) -> RecordId:
    return kernel.log.actors()[0].id


def import_lines(kernel: Kernel, version: str, found: str) -> None:
    rows = kernel.log.definitions(actor=actor_of(kernel))
    run = {"answer": LONG + CANARY + version, "results": [{"id": "o", "status": found}]}
    lines = [json.dumps({**run, "case": key, "id": f"{version}{key}"}).encode() for key in "xy"]
    row = rows[int(version) - 1]
    import_runs(kernel, "a", lines, Batch(source="f", suite="s", definition=row.id.hex()))


def ids(kernel: Kernel, kind: str) -> list[str]:
    return [entry.id.hex() for entry in kernel.log.scan(Selection(kind=kind))]


def sound(kernel: Kernel) -> None:
    """Demand that everything derived is what the entries say."""
    if isinstance(kernel.log, SqliteLog):
        document = verify_home(kernel)
        assert document.ok, document.faults


KINDS = [
    "core.actor.v1",
    "core.definition.v1",
    "core.suite.v1",
    "core.eval.case.v1",
    "core.run.start.v1",
    "core.run.end.v1",
    "core.eval.run.v1",
    "core.verdict.pair.v1",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_goes_on_when_a_record_was_withdrawn(grown: Kernel, kind: str) -> None:
    record = ids(grown, kind)[0]
    root = grown.log.subtrees()
    document = redact(grown, record, "a test")
    assert document.appended
    assert grown.log.subtrees() != root
    assert get_entry(grown, record).record is None
    shown = show_record(grown, record)
    assert (shown.entry.signature, shown.redaction, shown.reason) == ("withdrawn", document.id, "a test")
    with pytest.raises(WithdrawnError):
        record_of(grown.log, RecordId(bytes.fromhex(record)))
    sound(grown)
    assert len(list_entries(grown, Selection()).entries) == grown.log.size()
    actor, suite = actor_of(grown).hex(), grown.log.suites()[0].id.hex()
    assert len(list_actors(grown).actors) == len(list_suites(grown).suites) == 1
    assert len(list_definitions(grown, actor).definitions) == 2
    show_suite(grown, suite)
    assert len(list_runs(grown).runs) == 4
    list_verdicts(grown)
    history(grown, actor)
    for row in grown.log.definitions(actor=actor_of(grown)):
        score_suite(grown, suite, actor, row.id.hex()) if kind != "core.definition.v1" else None
    sound(grown)


def test_the_proof_of_the_redaction_names_place_leaf_and_record(grown: Kernel) -> None:
    record = ids(grown, "core.run.end.v1")[0]
    before = get_entry(grown, record)
    document = redact(grown, record, "a test")
    own = grown.log.at([grown.log.size() - 1])[0]
    assert own.record is not None
    body: Any = read_record(own.record, own.id).body
    assert isinstance(body, Redaction)
    assert (body.position, body.leaf, body.record) == (before.position, before.leaf, before.id)
    assert document.id == own.id
    assert get_entry(grown, record).leaf == before.leaf


def test_blobs_go_only_when_no_living_record_names_them(grown: Kernel) -> None:
    first, second = ids(grown, "core.eval.case.v1")
    ends = ids(grown, "core.run.end.v1")
    answer = show_record(grown, ends[0]).body["answer"]
    shared = show_record(grown, ends[1]).body["answer"]
    assert answer == shared
    assert redact(grown, ends[0], "r").blobs == []
    assert redact(grown, ends[1], "r").blobs == [answer]
    assert answer not in grown.blobs
    tree = show_record(grown, first).body["tree"]
    assert redact(grown, first, "r").blobs == []
    assert tree in grown.blobs
    gone = redact(grown, second, "r").blobs
    assert len(gone) == 2
    assert gone[0] == tree
    assert not any(blob in grown.blobs for blob in gone)
    sound(grown)


def test_a_withdrawn_first_end_does_not_promote_a_second(grown: Kernel) -> None:
    row = next(iter(grown.log.runs()))
    end = grown.log.at([row.end_position or 0])[0]
    by = record_of(grown.log, row.id).by
    second = Draft(body=RunEnd(status="completed"), by=by, thread=row.id, refs={"start": (row.id,)})
    grown.transact(lambda tx: tx.append(second))
    redact(grown, end.id.hex(), "r")
    assert next(iter(grown.log.runs())).end_position == end.position
    assert list_runs(grown).runs[0].status == "withdrawn"
    assert show_run(grown, row.id.hex()).end is None
    if isinstance(grown.log, SqliteLog):
        rebuild_projections(grown)
        assert next(iter(grown.log.runs())).end_position == end.position
    sound(grown)


def test_scores_count_withdrawn_runs_and_grade_the_others(grown: Kernel) -> None:
    definition = grown.log.definitions(actor=actor_of(grown))[1]
    before = score_suite(grown, "s", "a", definition.id.hex())
    assert (before.substance.of, before.excluded, before.appended) == (2, {}, False)
    runs = [row.id.hex() for row in grown.log.runs(facet=definition.facet)]
    redact(grown, runs[0], "r")
    after = score_suite(grown, "s", "a", definition.id.hex())
    assert (after.substance.of, after.substance.no_run, after.excluded) == (1, 1, {"withdrawn": 1})
    redact(grown, show_run(grown, runs[1]).run.end.hex(), "r")  # type: ignore[union-attr]
    assert show_run(grown, runs[1]).run.status == "withdrawn"


def test_a_withdrawn_install_keeps_its_place_and_can_be_succeeded(grown: Kernel) -> None:
    first, second = ids(grown, "core.definition.v1")
    redact(grown, first, "r")
    actor = actor_of(grown)
    assert incumbent_of(grown.log, actor).id.hex() == second  # type: ignore[union-attr]
    redact(grown, second, "r")
    assert incumbent_of(grown.log, actor).id.hex() == second  # type: ignore[union-attr]
    assert not propose(grown, "a", external("9")).definition.incumbent
    again = install(grown, "a", external("2"), expect=None)
    assert again.appended
    assert incumbent_of(grown.log, actor).id == again.id  # type: ignore[union-attr]
    assert history(grown, "a").excluded == {"withdrawn": 2}
    sound(grown)


def test_a_withdrawn_case_leaves_its_suite_and_promotes_no_older_one(grown: Kernel) -> None:
    case = Case(key="x", name="new", goal="another", expect=Expect(outcomes=["o"]))
    add_cases(grown, "s", [NewCase(case)])
    current = next(row for row in grown.log.cases(grown.log.suites()[0].id) if row.key == "x")
    redact(grown, current.id.hex(), "r")
    assert [row.key for row in grown.log.cases(grown.log.suites()[0].id)] == ["y"]
    sound(grown)


def test_withdrawn_verdicts_do_not_count_and_a_withdrawn_retraction_still_does(grown: Kernel) -> None:
    first, second = (row.id.hex() for row in grown.log.definitions(actor=actor_of(grown)))
    other = judge(grown, first, second, PairVerdict(features=["b"], loser_features=[]))
    retraction = retract(grown, other.id.hex(), "wrong").retraction
    assert retraction is not None
    redact(grown, retraction.hex(), "r")
    assert [part.retracted for part in list_verdicts(grown).verdicts] == [False, True]
    redact(grown, ids(grown, "core.verdict.pair.v1")[0], "r")
    document = list_verdicts(grown)
    assert document.excluded == {"retracted": 1, "withdrawn": 1}
    assert document.facets == []


def test_withdrawing_again_is_harmless(grown: Kernel) -> None:
    record = ids(grown, "core.run.end.v1")[0]
    once = redact(grown, record, "r")
    size = grown.log.size()
    twice = redact(grown, record, "another reason")
    assert (twice.appended, twice.id, twice.reason) == (False, once.id, "r")
    assert grown.log.size() == size


def test_a_redaction_and_a_blank_reason_and_an_unknown_id_are_refused(grown: Kernel) -> None:
    redaction = redact(grown, ids(grown, "core.run.end.v1")[0], "r").id.hex()
    size = grown.log.size()
    with pytest.raises(InputError, match="is a redaction"):
        redact(grown, redaction, "r")
    with pytest.raises(InputError, match="needs a reason"):
        redact(grown, redaction, " ")
    with pytest.raises(UnknownIdError):
        redact(grown, "0123456789", "r")
    assert grown.log.size() == size


def test_nothing_of_the_content_is_left_in_the_files(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", create=True)
    canary = "marigold-" * 40
    put_record(home, json.dumps({"kind": "acme.keep.v1", "body": {"t": "stays"}}).encode(), "n")
    put = put_record(home, json.dumps({"kind": "acme.note.v1", "body": {"t": canary}}).encode(), "n")

    def everything() -> bytes:
        return b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())

    assert b"marigold" in everything()
    redact(home, put.id.hex(), "r")
    assert b"marigold" not in everything()
    assert b"stays" in everything()


def test_what_a_crash_left_behind_is_finished_by_the_next_redaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(tmp_path / "home", create=True)
    note = {"kind": "acme.note.v1", "body": {"t": "x"}}
    blob = home.blobs.put(b"content " * 100)
    draft = Draft(kind="acme.note.v1", body={"blob": bytes(blob)}, by=home.operator)
    record = home.transact(lambda tx: tx.append(draft)).id.hex()
    put_record(home, json.dumps(note).encode(), "n")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BlobStore, "remove", crash)
        with pytest.raises(KeyboardInterrupt):
            redact(home, record, "r")
    assert get_entry(home, record).record is None
    assert blob in home.blobs
    document = verify_home(home)
    assert document.ok
    assert any("1 blobs are still there" in finding.message for finding in document.notices)
    again = redact(home, record, "r")
    assert (again.appended, again.blobs) == (False, [blob])
    assert blob not in home.blobs


def test_a_log_refuses_to_lose_bytes_without_a_redaction(tmp_path: Path) -> None:
    import sqlite3

    home = open_home(tmp_path / "home", create=True)
    put_record(home, json.dumps({"kind": "acme.note.v1", "body": {"t": "x"}}).encode(), "n")
    connection = sqlite3.connect(tmp_path / "home" / "log.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("UPDATE entries SET record = NULL")
    with pytest.raises(sqlite3.IntegrityError, match="needs its redaction"):
        connection.execute("INSERT INTO withdrawals VALUES (0, 0, x'a0')")
    connection.close()


def test_content_that_is_gone_without_a_redaction_is_a_fault(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", create=True)
    for text in "xy":
        put_record(home, json.dumps({"kind": "acme.note.v1", "body": {"t": text}}).encode(), "n")
    redact(home, get_entry(home, list_entries(home, Selection()).entries[1].id.hex()).id.hex(), "r")
    assert verify_home(home).ok
    with tampered(tmp_path / "home") as database:
        database.execute("UPDATE entries SET record = NULL WHERE position = 0")
    faults = verify_home(home).faults
    assert [(fault.check, fault.position) for fault in faults] == [("withdrawal", 0)]


def test_the_command_says_what_it_cannot_do(spl: Callable[..., Any], tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    note.write_text(json.dumps({"kind": "acme.note.v1", "body": {"text": "x"}}))
    record = spl("put", str(note), "--json").document["id"]
    done = spl("redact", record, "--reason", "a name")
    assert done.status == 0
    assert "copies elsewhere" in done.out
    assert "must be changed" in done.out
    assert spl("get", record, "--json").document["code"] == "withdrawn"
    shown = spl("show", record).out
    assert "a name" in shown
    assert "redacted at  20" in shown
    assert "None" not in shown
    verified = spl("verify", "--json")
    assert verified.status == 0
    assert [notice["message"] for notice in verified.document["notices"]] == ["withdrawn"]


def test_resolving_by_the_facet_prefers_what_is_there(grown: Kernel) -> None:
    first = grown.log.definitions(actor=actor_of(grown))[0]
    redact(grown, first.id.hex(), "r")
    again = propose(grown, "a", external("1"))
    assert again.appended
    from spl.kernel.names import resolve_definition

    assert resolve_definition(grown.log, first.facet.hex()).id == again.id
    assert resolve_actor(grown.log, "a").id == actor_of(grown)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET signature = x'' WHERE position = {at}",
        "UPDATE entries SET thread = NULL WHERE position = {at}",
        "UPDATE entries SET thread = {at} - 5 WHERE position = {at}",
        "UPDATE withdrawals SET redaction = 0",
        "UPDATE withdrawals SET remains = x'a0'",
        "UPDATE withdrawals SET position = 0",
        "DELETE FROM withdrawals",
        "INSERT INTO withdrawals VALUES (0, 1, x'a0')",
    ],
)
@pytest.mark.parametrize("rebuilt", [False, True])
def test_what_is_kept_of_a_withdrawn_record_is_compared_with_what_others_say(
    tmp_path: Path, change: str, *, rebuilt: bool
) -> None:
    kernel = open_home(tmp_path / "home", create=True)
    add_actor(kernel, "a")
    create_suite(kernel, "s")
    expect = Expect(outcomes=["o"])
    add_cases(kernel, "s", [NewCase(Case(key=k, name=k, goal="g", expect=expect), []) for k in "xy"])
    install(kernel, "a", external("1"))
    import_lines(kernel, "1", "fail")
    end = get_entry(kernel, ids(kernel, "core.run.end.v1")[0])
    redact(kernel, end.id.hex(), "r")
    assert verify_home(kernel).clean
    with tampered(tmp_path / "home") as database:
        database.execute(change.format(at=end.position))
    if rebuilt:
        with suppress(SplError):
            rebuild_projections(kernel)
    assert "withdrawal" in {fault.check for fault in verify_home(kernel).faults}


def test_a_redaction_that_arrived_where_the_record_lives_is_noted_whoever_made_it(tmp_path: Path) -> None:
    kernel = open_home(tmp_path / "home", create=True)
    put = put_record(kernel, json.dumps({"kind": "acme.note.v1", "body": {"t": "x"}}).encode(), "n")
    entry = get_entry(kernel, put.id.hex())
    body = Redaction(position=0, leaf=entry.leaf, record=put.id, blobs=[], reason="r")
    kernel.transact(lambda tx: tx.append(Draft(body=body, by=kernel.operator)))
    found = verify_home(kernel)
    assert found.clean
    assert [notice.position for notice in found.notices if notice.check == "withdrawal"] == [0]

"""Export and import: homes become the union of their records, and nothing takes effect by arriving."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bundles import Stranger, exported, home_at, imported, items
from conftest import tampered
from hypothesis import given, settings
from hypothesis import strategies as st

from spl.errors import (
    AmbiguousNameError,
    BundleError,
    DamagedError,
    InputError,
    UnknownNameError,
    WithdrawnError,
)
from spl.ids import RecordId
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install
from spl.kernel.export import export_lines
from spl.kernel.history import history
from spl.kernel.home import Kernel
from spl.kernel.judge import judge, list_verdicts
from spl.kernel.names import incumbent_of, resolve_actor
from spl.kernel.proof import prove, show_key
from spl.kernel.records import get_entry, put_record, show_record
from spl.kernel.redact import redact
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suites import NewCase, NewFile, add_cases, create_suite
from spl.kernel.verify import verify_home
from spl.records.definitions import Definition
from spl.records.envelope import Draft, read_record
from spl.records.evals import Case, Expect
from spl.records.runs import RunEnd, RunStart
from spl.records.verdicts import PairVerdict, Redaction
from spl.store.blobs import BlobStore
from spl.store.log import Selection

LONG = "a long answer " * 3000


def note(kernel: Kernel, text: str) -> RecordId:
    return put_record(kernel, json.dumps({"kind": "acme.note.v1", "body": {"t": text}}).encode(), "n").id


def grow(kernel: Kernel, name: str) -> None:
    """Give a home an actor with two installs, a suite with a fixture, runs, scores and a verdict."""
    add_actor(kernel, name)
    create_suite(kernel, name)
    files = [NewFile("f.txt", 644, name.encode() * 1000)]
    add_cases(
        kernel,
        name,
        [NewCase(Case(key=k, name=k, goal=LONG + "g", expect=Expect(outcomes=["o"])), files) for k in "xy"],
    )
    ids = []
    for version in "12":
        behaviour = {"adapter": "external", "system": name, "version": version}
        ids.append(install(kernel, name, Source(behaviour=behaviour)).id.hex())
        run = {"answer": LONG + version, "results": [{"id": "o", "status": "pass"}]}
        lines = [json.dumps({**run, "case": key, "id": key}).encode() for key in "xy"]
        import_runs(kernel, name, lines, Batch(source="f", suite=name, definition=ids[-1]))
        score_suite(kernel, name, name, ids[-1])
    judge(kernel, ids[1], ids[0], PairVerdict(features=["better"], loser_features=[]))


def records(kernel: Kernel) -> set[bytes]:
    return {bytes(entry.id) for entry in kernel.log.scan(Selection())}


@pytest.fixture
def two(tmp_path: Path) -> tuple[Kernel, Kernel]:
    return home_at(tmp_path / "one"), home_at(tmp_path / "two")


def test_a_whole_home_arrives_in_another_with_its_blobs(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    grow(one, "a")
    document = imported(other, exported(one))
    assert records(one) == records(other)
    assert document.appended == one.log.size()
    assert document.blobs > 3
    assert verify_home(other).clean
    assert [entry.id for entry in one.log.scan(Selection())] == [
        entry.id for entry in other.log.scan(Selection())
    ]


def test_importing_twice_appends_nothing(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    grow(one, "a")
    data = exported(one)
    size = imported(other, data).size
    again = imported(other, data)
    assert (again.appended, again.blobs, again.size) == (0, 0, size)
    assert imported(one, data).appended == 0


def test_the_same_log_gives_the_same_bytes(two: tuple[Kernel, Kernel]) -> None:
    grow(two[0], "a")
    assert exported(two[0]) == exported(two[0])


OPERATIONS = st.lists(st.sampled_from(["note", "grow", "one to two", "two to one"]), min_size=1, max_size=6)


@settings(max_examples=12, deadline=None)
@given(OPERATIONS, OPERATIONS)
def test_homes_that_import_from_each_other_converge(left: list[str], right: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        one, two = home_at(Path(directory) / "one"), home_at(Path(directory) / "two")
        homes = [(one, "a", left), (two, "b", right)]
        for step in range(6):
            for home, name, operations in homes:
                operation = operations[step] if step < len(operations) else None
                if operation == "note":
                    note(home, f"{name} {step}")
                elif operation == "grow":
                    grow(home, f"{name}{step}")
                elif operation == "one to two" and one.log.size():
                    imported(two, exported(one))
                elif operation == "two to one" and two.log.size():
                    imported(one, exported(two))
        note(one, "last"), note(two, "last")
        imported(two, exported(one))
        imported(one, exported(two))
        assert records(one) == records(two)
        assert verify_home(one).clean
        assert verify_home(two).clean
        for home in (one, two):
            home.log.close()


def test_an_id_brings_what_it_refers_to_and_nothing_else(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    grow(one, "a")
    grow(one, "b")
    score = next(iter(one.log.scan(Selection(kind="core.eval.run.v1"))))
    document = imported(other, exported(one, score.id.hex()))
    assert document.records < one.log.size() / 2
    assert {row.name for row in other.log.actors()} == {"a"}
    kinds = {read_record(e.record or b"").kind for e in other.log.scan(Selection())}
    assert {"core.run.start.v1", "core.run.end.v1", "core.eval.case.v1"} <= kinds
    assert verify_home(other).clean


def test_the_root_of_a_thread_means_the_thread(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    grow(one, "a")
    imported(other, exported(one, one.log.suites("a")[0].id.hex()[:12]))
    assert [row.key for row in other.log.cases(other.log.suites("a")[0].id)] == ["x", "y"]


def test_a_foreign_install_is_not_the_incumbent_and_scores_and_verdicts_do_not_count(
    two: tuple[Kernel, Kernel],
) -> None:
    one, other = two
    grow(one, "a")
    document = imported(other, exported(one))
    assert document.without_effect == {
        "core.definition.v1": 2,
        "core.eval.run.v1": 2,
        "core.verdict.pair.v1": 1,
    }
    actor = other.log.actors("a")[0].id
    assert incumbent_of(other.log, actor) is None
    assert history(other, "a").excluded == {"foreign": 2}
    assert list_verdicts(other).excluded == {"foreign": 1}


def test_a_withdrawn_record_does_not_come_back_nor_its_blobs(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    grow(one, "a")
    data = exported(one)
    imported(other, data)
    ends = [e.id.hex() for e in other.log.scan(Selection(kind="core.run.end.v1"))]
    answers = [show_record(other, end).body["answer"] for end in ends]
    for end in ends[:2]:
        redact(other, end, "r")
    assert answers[0] == answers[1]
    assert answers[0] not in other.blobs
    document = imported(other, data)
    assert (document.appended, document.withdrawn_here, document.blobs) == (0, 2, 0)
    assert get_entry(other, ends[0]).record is None
    assert answers[0] not in other.blobs
    assert verify_home(other).ok


def test_a_foreign_withdrawal_hides_nothing_until_it_is_confirmed(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    target = note(one, "x")
    imported(other, exported(one))
    redact(one, target.hex(), "r")
    note(one, "y")
    document = imported(other, exported(one))
    assert document.withdrawn_there == [target]
    assert get_entry(other, target.hex()).record is not None
    found = verify_home(other)
    assert found.ok
    assert any("spl redact" in notice.message for notice in found.notices)
    assert redact(other, target.hex(), "as they did").appended
    assert verify_home(other).ok


def test_an_export_leaves_out_what_was_withdrawn_and_what_refers_to_it(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    grow(one, "a")
    kept = note(one, "x")
    case = next(iter(one.log.scan(Selection(kind="core.eval.case.v1"))))
    redact(one, case.id.hex(), "r")
    imported(other, exported(one))
    assert kept in records(other)
    assert case.id not in records(other)
    assert verify_home(other).clean
    run = next(iter(one.log.runs(case_facets=None)))
    with pytest.raises(WithdrawnError, match="refers to"):
        exported(one, run.id.hex())


def test_a_foreign_end_does_not_end_a_run_of_somebody_else(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    grow(home, "a")
    actor = home.log.actors()[0].id
    row = home.log.definitions(actor=actor)[0]
    start = Draft(
        body=RunStart(facet=row.facet, trial=False, adapter="external"),
        by=home.operator,
        refs={"actor": (actor,), "definition": (row.id,)},
    )
    run = home.transact(lambda tx: tx.append(start)).id
    stranger = Stranger()
    ended = Draft(body=RunEnd(status="completed"), by=stranger.did, thread=run, refs={"start": (run,)})
    assert imported(home, stranger.bundle([stranger.record(ended)])).appended == 1
    assert [row.id for row in home.log.open_runs()] == [run]
    assert verify_home(home).ok


def test_a_stranger_cannot_install_into_a_thread_of_this_home(tmp_path: Path) -> None:
    home = home_at(tmp_path / "home")
    grow(home, "a")
    actor = home.log.actors()[0].id
    before = incumbent_of(home.log, actor)
    assert before is not None
    stranger = Stranger()
    body = Definition(
        behaviour={"adapter": "external", "system": "theirs"}, state="installed", origin="x", trust="trusted"
    )
    draft = Draft(body=body, by=stranger.did, thread=actor, refs={"succeeds": (before.id,)})
    assert imported(home, stranger.bundle([stranger.record(draft)])).without_effect == {
        "core.definition.v1": 1
    }
    assert incumbent_of(home.log, actor) == before


def test_a_kind_of_core_that_this_version_does_not_know_is_kept_opaque(tmp_path: Path) -> None:
    from spl.codec import canonical

    home, stranger = home_at(tmp_path / "home"), Stranger()
    record = {"v": 1, "kind": "core.future.v7", "by": stranger.did, "at": 1, "body": {"x": 1}}
    data = canonical.encode(record)
    document = imported(home, stranger.bundle([(data, stranger.signature(data))]))
    assert (document.appended, document.opaque) == (1, 1)
    assert verify_home(home).clean


def test_a_redaction_in_a_bundle_never_empties_an_entry(tmp_path: Path) -> None:
    home, stranger = home_at(tmp_path / "home"), Stranger()
    target = note(home, "x")
    entry = get_entry(home, target.hex())
    body = Redaction(position=0, leaf=entry.leaf, record=entry.id, blobs=[], reason="because")
    assert imported(home, stranger.bundle([stranger.record(Draft(body=body, by=stranger.did))])).appended
    assert get_entry(home, target.hex()).record is not None


def test_a_record_that_may_hold_a_secret_is_named(tmp_path: Path) -> None:
    home, stranger = home_at(tmp_path / "home"), Stranger()
    draft = Draft(kind="acme.note.v1", body={"t": "ghp_" + "a1" * 18}, by=stranger.did)
    document = imported(home, stranger.bundle([stranger.record(draft)]))
    assert len(document.suspicious) == document.appended == 1


def test_a_record_that_was_altered_is_handed_out_by_nothing(two: tuple[Kernel, Kernel]) -> None:
    here = two[0]
    record = note(here, "as it was").hex()
    data = get_entry(here, record).record
    assert data is not None
    assert here.path is not None
    altered = data.replace(b"as it was", b"as it is.")
    with tampered(here.path) as database:
        database.execute("UPDATE entries SET record = ? WHERE id = ?", (altered, bytes.fromhex(record)))
    assert [fault.check for fault in verify_home(here).faults] == ["leaf", "id", "signature"]
    give: tuple[Callable[[], object], ...] = (
        lambda: get_entry(here, record),
        lambda: prove(here, record),
        lambda: exported(here),
        lambda: export_lines(here, [record], len, path="x"),
    )
    for each in give:
        with pytest.raises(DamagedError, match=f"the record {record} at position .* was altered"):
            each()


def test_two_actors_of_one_name_are_told_apart_by_their_ids(two: tuple[Kernel, Kernel]) -> None:
    here, there = two
    ids = [add_actor(kernel, "coder").id.hex()[:12] for kernel in two]
    imported(there, exported(here))
    with pytest.raises(AmbiguousNameError) as caught:
        resolve_actor(there.log, "coder")
    assert caught.value.hint is not None
    assert all(each in caught.value.hint for each in ids)
    with pytest.raises(UnknownNameError) as unknown:
        resolve_actor(there.log, "codr")
    assert unknown.value.hint == "did you mean coder?"


def test_the_key_that_is_demanded_must_have_signed(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    note(one, "x")
    data = exported(one)
    with pytest.raises(BundleError, match="the checkpoint") as caught:
        imported(other, data, key=show_key(other).key)
    assert "--key" in str(caught.value.hint)
    assert imported(other, data, key=show_key(one).key).appended == 1


def test_there_must_be_something_to_export(two: tuple[Kernel, Kernel]) -> None:
    with pytest.raises(InputError, match="nothing to export"):
        exported(two[0])


def test_an_export_without_a_blob_that_a_record_names_is_refused(two: tuple[Kernel, Kernel]) -> None:
    here, there = two
    grow(here, "n")
    assert isinstance(here.blobs, BlobStore)
    for blob in list(here.blobs.ids()):
        path = here.blobs.root / blob.hex()[:2] / blob.hex()
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DamagedError, match=f"{blob.hex()}.*is missing"):
            exported(here)
        path.write_bytes(content)
    assert imported(there, exported(here)).appended == here.log.size()


def test_blobs_of_many_parts_arrive_whole(two: tuple[Kernel, Kernel]) -> None:
    one, other = two
    for content in (b"", b"x" * (1 << 20), b"yz" * (1 << 20), bytes(range(256)) * 10_000):
        blob = one.blobs.put(content)
        draft = Draft(kind="acme.file.v1", body={"blob": bytes(blob)}, by=one.operator)
        one.transact(lambda tx, draft=draft: tx.append(draft))  # type: ignore[misc]
        imported(other, exported(one))
        assert other.blobs.get(blob) == content


def test_the_commands_pass_a_bundle_through_a_pipe(spl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "note.json"
    file.write_text(json.dumps({"kind": "acme.note.v1", "body": {"text": "x"}}))
    spl("put", str(file))
    written = spl("export", "-o", "out.spl", "--json")
    assert written.document["records"] == 1
    assert (tmp_path / "out.spl").stat().st_size == written.document["bytes"]
    data = (tmp_path / "out.spl").read_bytes()
    other = tmp_path / "other"
    got = spl("import", "-", "--json", "--key", written.document["key"], stdin=data, home=other)
    assert (got.status, got.document["appended"]) == (0, 1)
    lines = spl("export", "--format", "jsonl", "-o", "-", home=other)
    assert [json.loads(line)["body"] for line in lines.out.splitlines()] == [{"text": "x"}]
    assert spl("export", "-o", "-", "--json").document["code"] == "usage"
    assert spl("export", "-o", "x", "--format", "zip", "--json").document["code"] == "usage"
    assert spl("export", "-o", "no/such/place", "--json").document["code"] == "operation_failed"
    assert spl("import", "no-such-file", "--json").document["code"] == "file_input"
    assert sorted(path.name for path in tmp_path.glob("*.spl*")) == ["out.spl"]


def test_items_are_in_the_documented_form(two: tuple[Kernel, Kernel]) -> None:
    grow(two[0], "a")
    head, *rest = items(exported(two[0]))
    assert head[0] == "spl-bundle 1"
    kinds = [item[0] for item in rest]
    assert kinds[: int(head[2])] == ["record"] * int(head[2])
    assert kinds.count("blob") == head[3]
    assert msgspec.json.encode(kinds[int(head[2]) :]).startswith(b'["blob","part"')

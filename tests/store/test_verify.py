"""Whatever is changed in a home, verify finds it: one damage for each kind of fault."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, FixedClock, tampered

from spl.codec.digest import blob_id
from spl.contracts.verify import VerifyDocument
from spl.errors import DamagedError
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install
from spl.kernel.home import open_home
from spl.kernel.proof import checkpoint
from spl.kernel.records import put_record, status
from spl.kernel.redact import redact
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suite_import import parse_cases
from spl.kernel.suites import NewCase, NewFile, add_cases, create_suite
from spl.kernel.verify import Depth, rebuild_projections, verify_home
from spl.records.definitions import Definition
from spl.records.envelope import Draft, read_record
from spl.records.evals import Case, Expect
from spl.records.runs import RunEnd
from spl.store import head, verify
from spl.store import verified as verified_note
from spl.store.blobs import BlobStore
from spl.store.check import Job, Report, Task
from spl.store.log import Selection, Transaction
from spl.store.sqlite import SqliteLog

IMPORTED = ROOT / "examples" / "imported"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    kernel = open_home(path, create=True, clock=FixedClock())
    add_actor(kernel, "coder")
    create_suite(kernel, "smoke")
    add_cases(kernel, "smoke", parse_cases((IMPORTED / "cases.json").read_bytes(), "c"))
    install(kernel, "coder", Source(behaviour={"adapter": "external", "system": "s"}))
    import_runs(kernel, "coder", (IMPORTED / "runs-v1.jsonl").read_bytes().splitlines(), Batch(source="f"))
    score_suite(kernel, "smoke", "coder", "incumbent")
    kernel.log.close()
    return path


def verified(path: Path) -> VerifyDocument:
    kernel = open_home(path, create=False)
    try:
        return verify_home(kernel)
    finally:
        kernel.log.close()


def damage(path: Path, *statements: str) -> None:
    with tampered(path) as database:
        for statement in statements:
            database.execute(statement)


def test_an_untouched_home_is_clean(home: Path) -> None:
    found = verified(home)
    assert found.ok
    assert found.clean
    assert found.blobs_checked == 1


FIRST_BYTE = "UPDATE entries SET {0} = CAST(x'00' || substr({0}, 2) AS BLOB) WHERE position = 3"
DAMAGES: dict[str, tuple[str, set[str]]] = {
    "a record": (FIRST_BYTE.format("record"), {"id", "leaf", "encoding"}),
    "a signature": (FIRST_BYTE.format("signature"), {"signature", "leaf"}),
    "a leaf": (FIRST_BYTE.format("leaf"), {"leaf", "tree"}),
    "an id": (FIRST_BYTE.format("id"), {"id"}),
    "no signature": ("UPDATE entries SET signature = x'' WHERE position = 3", {"signature", "leaf"}),
    "the tree": ("UPDATE tree SET node = zeroblob(32) WHERE level = 0", {"tree"}),
    "a projected run": ("UPDATE p_runs SET ended = NULL", {"projection"}),
    "a projected case": ("DELETE FROM p_cases WHERE key = 'add-flag'", {"projection"}),
    "a row's kind": ("UPDATE entries SET kind = 1 WHERE position = 3", {"column"}),
    "a row's author": ("UPDATE entries SET author = 1 WHERE position = 3", {"column"}),
    "a row's thread": ("UPDATE entries SET thread = 0 WHERE position = 3", {"column"}),
    "a hash": ("UPDATE p_hashes SET hash = zeroblob(32) WHERE no = 1", {"projection"}),
    "an incumbent": ("UPDATE p_definitions SET incumbent = 0", {"projection"}),
}


@pytest.mark.parametrize("name", list(DAMAGES))
def test_each_change_of_the_database_is_reported(home: Path, name: str) -> None:
    statement, checks = DAMAGES[name]
    damage(home, statement)
    found = verified(home)
    assert not found.ok
    assert checks <= {fault.check for fault in found.faults}
    located = {
        fault.position
        for fault in found.faults
        if fault.check in ("id", "leaf", "signature", "encoding", "column")
    }
    assert located <= {3}


def test_a_removed_entry_leaves_a_gap(home: Path) -> None:
    damage(home, "PRAGMA foreign_keys=OFF", "DELETE FROM entries WHERE position = 12")
    checks = {fault.check for fault in verified(home).faults}
    assert {"position", "tree"} <= checks


def _blob(home: Path) -> Path:
    return next(path for path in (home / "blobs").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "harm",
    [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1]), lambda path: path.write_bytes(b"")],
)
def test_a_missing_or_altered_blob_is_reported(home: Path, harm: Callable[[Path], object]) -> None:
    harm(_blob(home))
    assert "blob" in {fault.check for fault in verified(home).faults}


def test_files_of_a_fixture_are_checked_and_orphans_are_only_noted(home: Path) -> None:
    kernel = open_home(home, create=False, clock=FixedClock())
    body = Case(key="f", name="f", goal="g", expect=Expect(outcomes=["r"]))
    add_cases(kernel, "smoke", [NewCase(body, [NewFile("a.txt", 644, b"content of a file")])])
    orphan = kernel.blobs.put(b"left by a crash")
    kernel.log.close()
    found = verified(home)
    assert found.ok
    assert [notice.id for notice in found.notices] == [orphan.hex()]
    file = blob_id(b"content of a file").hex()
    (home / "blobs" / file[:2] / file).unlink()
    assert [fault.check for fault in verified(home).faults] == ["blob"]


def test_rebuilding_mends_the_projections_and_nothing_else(home: Path) -> None:
    damage(home, "DELETE FROM p_runs", "UPDATE p_names SET name = 'other'")
    kernel = open_home(home, create=False)
    assert not verify_home(kernel).ok
    rebuild_projections(kernel)
    assert verify_home(kernel).ok
    assert kernel.log.actors("coder")


def test_what_is_legal_but_notable_is_noted(home: Path) -> None:
    kernel = open_home(home, create=False, clock=FixedClock())
    (end,) = (e for e in kernel.log.scan(Selection(kind="core.run.end.v1", stop=12)))
    assert end.record is not None
    first = read_record(end.record)

    def append(tx: Transaction) -> None:
        assert first.thread is not None
        refs = {"start": (first.thread,)}
        tx.append(Draft(body=RunEnd(status="failed"), by=first.by, thread=first.thread, refs=refs))
        start = tx.get(first.thread)
        assert start is not None
        assert start.record is not None
        run = read_record(start.record)
        tx.append(Draft(body=run.body, by=run.by, refs={role: tuple(ids) for role, ids in run.refs.items()}))
        behaviour = {"adapter": "external", "system": "other"}
        foreign = Definition(behaviour=behaviour, state="installed", origin="elsewhere", trust="trusted")
        tx.append(Draft(body=foreign, by=kernel.kernel, thread=tx.actors("coder")[0].id))

    kernel.transact(append)
    kernel.log.close()
    found = verified(home)
    assert found.clean
    messages = [notice.message for notice in found.notices]
    assert len(messages) == 3
    assert any("a second end of its run" in message for message in messages)
    assert "open: it has no end" in messages
    assert any("a candidate here, whatever it says" in message for message in messages)


def test_a_head_that_the_log_does_not_extend_is_a_fault(home: Path) -> None:
    kernel = open_home(home, create=False, clock=FixedClock())
    checkpoint(kernel)
    assert verify_home(kernel).clean
    head = home / "head.json"
    signed = head.read_text()
    head.write_text("x")
    assert [fault.check for fault in verify_home(kernel).faults] == ["head"]
    head.unlink()
    assert "is missing" in verify_home(kernel).faults[0].message
    head.write_text(signed)
    kernel.log.close()
    damage(home, "PRAGMA foreign_keys=OFF", "DELETE FROM entries WHERE position > 9")
    assert "a checkpoint of" in next(f.message for f in verified(home).faults if f.check == "head")


def test_a_home_that_can_only_be_read_is_verified(home: Path) -> None:
    for path in [*home.rglob("*"), home]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file()}
    try:
        found = verified(home)
        assert found.clean
        assert {path: path.stat().st_mtime_ns for path in before} == before
        kept = (home / "verified.json").exists()  # root may write what others may not
        assert kept != any("is not kept" in notice.message for notice in found.notices)
    finally:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)


@pytest.fixture
def grown(home: Path) -> Path:
    """A home whose log has more than two full subtrees of 256 entries."""
    kernel = open_home(home, create=False, clock=FixedClock())

    def grow(tx: Transaction) -> None:
        for number in range(600):
            tx.append(Draft(body={"n": number}, kind="acme.note.v1", by=kernel.operator))

    kernel.transact(grow)
    kernel.log.close()
    return home


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE subtrees SET node = zeroblob(32) WHERE level = 8 AND number = 1",
        "DELETE FROM subtrees WHERE level = 9",
        "INSERT INTO subtrees VALUES (8, 2, zeroblob(32))",
    ],
)
def test_a_stored_subtree_that_is_not_that_of_the_entries_is_reported_and_made_anew(
    grown: Path, statement: str
) -> None:
    assert verified(grown).clean
    damage(grown, statement)
    assert {fault.check for fault in verified(grown).faults} == {"tree"}
    kernel = open_home(grown, create=False)
    rebuild_projections(kernel)
    assert verify_home(kernel).clean


def test_several_processes_find_what_one_finds(grown: Path) -> None:
    damage(
        grown,
        FIRST_BYTE.format("record"),
        FIRST_BYTE.format("signature").replace("= 3", "= 400"),
        "UPDATE p_runs SET ended = NULL",
        "DELETE FROM subtrees WHERE level = 8 AND number = 0",
    )
    _blob(grown).unlink()
    kernel = open_home(grown, create=False)
    alone, together = verify_home(kernel, workers=0), verify_home(kernel, workers=2)
    assert {fault.check for fault in alone.faults} >= {"id", "signature", "projection", "tree", "blob"}
    assert together == alone
    assert not multiprocessing.active_children()


def test_workers_end_when_they_are_not_needed_any_more(grown: Path) -> None:
    kernel = open_home(grown, create=False)

    def interrupt(done: int, _of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_home(kernel, workers=2, progress=interrupt)
    deadline = time.monotonic() + 30
    while multiprocessing.active_children():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_only_the_first_of_very_many_findings_are_listed_and_the_others_counted(
    grown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(grown, "UPDATE entries SET signature = x'' WHERE length(signature)")
    monkeypatch.setattr(verify, "MAX_FINDINGS", 100)
    found = verified(grown)
    assert not found.ok
    assert (len(found.faults), found.faults_omitted > 600) == (100, True)


def test_a_home_of_before_the_derived_tables_had_versions_is_upgraded_when_it_is_opened(grown: Path) -> None:
    damage(grown, "DROP TABLE subtrees", "DROP INDEX p_names_name", "DELETE FROM p_names", "DELETE FROM meta")
    kernel = open_home(grown, create=False)
    assert kernel.log.actors("coder")
    assert verify_home(kernel).clean


@pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1])
def test_one_position_far_from_all_others_is_named_and_not_walked_to(home: Path, size: int) -> None:
    with tampered(home) as database:
        last = database.execute("SELECT max(position) FROM entries").fetchone()[0]
        database.execute("UPDATE entries SET position = ? WHERE position = ?", (size, last))
    kernel = open_home(home, create=False)
    found = verify_home(kernel)
    assert ("position", size) in {(fault.check, fault.position) for fault in found.faults}
    with pytest.raises(DamagedError):
        kernel.log.at([last])
    if size > 1 << 53:
        for ask in (kernel.log.size, lambda: status(kernel), lambda: checkpoint(kernel)):
            with pytest.raises(DamagedError):
                ask()


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("others", ["appends", "a withdrawal"])
def test_what_is_written_meanwhile_is_no_fault(home: Path, others: str, *, quick: bool) -> None:
    kernel, other = open_home(home, create=False), open_home(home, create=False)
    note = b'{"kind": "acme.note.v1", "body": {"t": "x"}}'
    put = put_record(other, note, "n")
    since = None
    if quick:
        assert verify_home(kernel).clean
        assert kernel.path is not None
        since = verified_note.load(kernel.path / "verified.json")
    put_record(other, note, "n")

    def spread(job: Job, tasks: Iterable[Task]) -> Iterator[Report]:
        yield from verify.in_this_process(job, tasks)
        if others == "appends":
            for _ in range(300):
                put_record(other, note, "n")
            add_actor(other, f"actor-{other.log.size()}")
            install(
                other, "coder", Source(behaviour={"adapter": "external", "system": f"{other.log.size()}"})
            )
            checkpoint(other)
        else:
            redact(other, put.id.hex(), "r")

    assert kernel.path is not None
    assert isinstance(kernel.log, SqliteLog)
    assert isinstance(kernel.blobs, BlobStore)
    found = verify.verify(
        verify.Home(kernel.log, kernel.blobs, kernel.path / "head.json", head.verifier_key(kernel.kernel)),
        since=since,
        spread=spread,
    )
    assert found.faults == []
    assert found.size == other.log.size()
    assert found.clean == (others == "appends" or quick)
    assert verify_home(kernel).clean


@pytest.mark.parametrize(
    "change",
    [
        "DROP TRIGGER entries_never_updated",
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN UPDATE p_runs SET ended = NULL; END",
        "CREATE TABLE more (x)",
        "DROP INDEX entries_kind",
        "DROP TABLE meta",
    ],
)
def test_a_schema_that_was_altered_is_a_fault(home: Path, change: str) -> None:
    kernel = open_home(home, create=False)
    database = sqlite3.connect(home / "log.db")
    database.execute(change)
    database.commit()
    database.close()
    assert "schema" in {fault.check for fault in verify_home(kernel).faults}


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE entries SET thread = 4242 WHERE position = 0", "column"),
        ("UPDATE tree SET level = level + 7", "tree"),
        ("UPDATE p_runs SET ended = 9000000", "projection"),
    ],
)
@pytest.mark.parametrize("depth", [Depth(), Depth(scores=True)])
def test_columns_that_only_another_reader_would_use_are_checked_too(
    home: Path, change: str, check: str, depth: Depth
) -> None:
    damage(home, change)
    kernel = open_home(home, create=False)
    try:
        assert check in {fault.check for fault in verify_home(kernel, depth).faults}
    except DamagedError:
        assert depth.scores


@pytest.mark.parametrize("version", ["²", "9" * 6000, "x", "-1"])
def test_a_version_of_the_derived_tables_that_is_no_number_makes_them_anew(home: Path, version: str) -> None:
    with tampered(home) as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'derived'", (version,))
    assert verified(home).clean


def test_what_stands_among_the_blobs_and_is_none_does_no_harm_and_links_are_not_followed(
    home: Path, tmp_path: Path
) -> None:
    blob = _blob(home)
    (blob.parent / ("z" * 64)).write_bytes(b"x")
    assert verified(home).clean
    blob.parent.rename(tmp_path / "elsewhere")
    blob.parent.symlink_to(tmp_path / "elsewhere")
    assert {fault.check for fault in verified(home).faults} == {"blob"}


def test_a_database_whose_entries_cannot_be_read_at_all_is_reported(home: Path) -> None:
    connection = sqlite3.connect(home / "log.db")
    page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entries'").fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    with (home / "log.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    assert "database" in {fault.check for fault in verified(home).faults}

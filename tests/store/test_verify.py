"""Whatever is changed in a home, verify finds it: one damage for each kind of fault."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, FixedClock

from spl.codec.digest import blob_id
from spl.contracts.verify import VerifyDocument
from spl.errors import SplError
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install
from spl.kernel.home import open_home
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suite_import import parse_cases
from spl.kernel.suites import NewCase, NewFile, add_cases, create_suite
from spl.kernel.verify import rebuild_projections, verify_home
from spl.records.envelope import Draft
from spl.records.evals import Case, Expect
from spl.store.log import Transaction

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
    """Change the database as somebody with a tool of their own would: without the triggers."""
    database = sqlite3.connect(path / "log.db")
    for trigger in ("entries_never_updated", "entries_never_deleted", "entries_contiguous"):
        database.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


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
        fault.position for fault in found.faults if fault.check in ("id", "leaf", "signature", "encoding")
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


def test_a_home_of_before_the_derived_tables_had_versions_is_upgraded_when_it_is_opened(grown: Path) -> None:
    damage(grown, "DROP TABLE subtrees", "DROP INDEX p_names_name", "DELETE FROM p_names", "DELETE FROM meta")
    kernel = open_home(grown, create=False)
    assert kernel.log.actors("coder")
    assert verify_home(kernel).clean


def test_every_flipped_byte_of_the_log_is_found_or_harmless(home: Path) -> None:
    """Flip single bytes all over the database: each is reported, refused at opening, or changes no record."""
    original = (home / "log.db").read_bytes()
    before = _content(home)
    generator = random.Random(1)
    reported = 0
    for _ in range(160):
        flipped = bytearray(original)
        at = generator.randrange(len(flipped))
        flipped[at] ^= 1 << generator.randrange(8)
        (home / "log.db").write_bytes(flipped)
        try:
            found = verified(home)
            harmless = found.ok and _content(home) == before
        except (SplError, sqlite3.DatabaseError):
            harmless, found = False, None
        reported += found is None or not found.ok
        assert harmless or found is None or not found.ok, f"the flip at byte {at} went unseen"
    assert reported > 10, "some flips must hit something"


def _content(home: Path) -> list[tuple[object, ...]]:
    database = sqlite3.connect(home / "log.db")
    try:
        return database.execute("SELECT position, id, record, signature, leaf FROM entries").fetchall()
    finally:
        database.close()

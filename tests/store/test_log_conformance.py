"""What every log must do, on each of them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from conftest import FixedClock
from records.samples import DRAFTS, rid

from spl.errors import DamagedError, DanglingReferenceError, SchemaError, SignatureError, StorageError
from spl.ids import Digest, RecordId
from spl.kernel.home import Kernel, open_home
from spl.records.definitions import Actor
from spl.records.envelope import Draft, encode_record, read_record
from spl.records.evals import Case, Expect, Retire, Suite
from spl.store import tree
from spl.store.log import Selection, Transaction


def suite(kernel: Kernel, name: str) -> RecordId:
    return kernel.transact(lambda tx: tx.append(Draft(body=Suite(name=name), by=kernel.operator)).id)


def case(kernel: Kernel, root: RecordId, key: str, goal: str = "g") -> Draft:
    body = Case(key=key, name=key, goal=goal, expect=Expect(outcomes=["r"]))
    return Draft(body=body, by=kernel.operator, thread=root)


def test_positions_are_contiguous_from_zero_and_entries_are_found_by_id(kernel: Kernel) -> None:
    ids = [suite(kernel, f"s{i}") for i in range(5)]
    assert kernel.log.size() == 5
    entries = kernel.log.at(range(5))
    assert [entry.id for entry in entries] == ids
    assert [entry.position for entry in entries] == list(range(5))
    assert kernel.log.get(ids[3]) == entries[3]
    assert kernel.log.get(rid(1)) is None
    with pytest.raises(DamagedError):
        kernel.log.at([5])


def test_a_transaction_that_raises_appends_nothing(kernel: Kernel) -> None:
    suite(kernel, "kept")

    def fail(tx: Transaction) -> None:
        tx.append(Draft(body=Suite(name="lost"), by=kernel.operator))
        assert tx.suites("lost")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        kernel.transact(fail)
    assert kernel.log.size() == 1
    assert kernel.log.suites("lost") == []
    suite(kernel, "after")
    assert [entry.position for entry in kernel.log.scan(Selection())] == [0, 1]


def test_what_was_appended_can_be_referred_to_at_once(kernel: Kernel) -> None:
    def append(tx: Transaction) -> list[RecordId]:
        root = tx.append(Draft(body=Suite(name="s"), by=kernel.operator)).id
        first = tx.append(case(kernel, root, "a")).id
        return [root, first]

    root, first = kernel.transact(append)
    assert [row.id for row in kernel.log.cases(root)] == [first]


def test_appending_signed_bytes_again_returns_the_first_entry(kernel: Kernel) -> None:
    data = encode_record(Draft(body=Suite(name="s"), by=kernel.operator), at=1, salt=bytes(16))
    if kernel.path is not None:  # this home's operator has a key: bytes without its signature may not enter
        with pytest.raises(SignatureError):
            kernel.transact(lambda tx: tx.append_signed(data, b""))
        return
    first = kernel.transact(lambda tx: tx.append_signed(data, b""))
    again = kernel.transact(lambda tx: tx.append_signed(data, b""))
    assert first == again
    assert kernel.log.size() == 1


def test_a_record_that_refers_to_nothing_is_refused(kernel: Kernel) -> None:
    with pytest.raises(DanglingReferenceError):
        kernel.transact(lambda tx: tx.append(case(kernel, rid(1), "a")))
    draft = Draft(kind="acme.note.v1", body={}, by=kernel.operator, refs={"about": (rid(2),)})
    with pytest.raises(DanglingReferenceError):
        kernel.transact(lambda tx: tx.append(draft))
    blob = DRAFTS["core.run.end.v1"].blobs[0]
    with pytest.raises(DanglingReferenceError, match="blob"):
        kernel.transact(
            lambda tx: tx.append(Draft(kind="acme.note.v1", body={}, by=kernel.operator, blobs=(blob,)))
        )
    assert kernel.log.size() == 0


def test_a_record_of_the_wrong_shape_is_refused(kernel: Kernel) -> None:
    with pytest.raises(SchemaError):
        kernel.transact(lambda tx: tx.append(Draft(body=Suite(name=""), by=kernel.operator)))
    assert kernel.log.size() == 0


def test_ids_resolve_by_prefix_in_order(kernel: Kernel) -> None:
    ids = sorted(suite(kernel, f"s{i}") for i in range(20))
    assert kernel.log.resolve(ids[7].hex()) == [ids[7]]
    assert kernel.log.resolve(ids[7].hex()[:8]) == [ids[7]]
    assert kernel.log.resolve("", limit=3) == ids[:3]
    assert kernel.log.resolve("00000000") in ([], [ids[0]])


def test_scans_select_by_position_kind_thread_and_author(kernel: Kernel) -> None:
    root, other = suite(kernel, "a"), suite(kernel, "b")
    kernel.transact(
        lambda tx: [tx.append(case(kernel, r, f"k{i}")) for i in range(1200) for r in (root, other)]
    )
    log = kernel.log
    assert [e.position for e in log.scan(Selection())] == list(range(2402))
    assert [e.position for e in log.scan(Selection(newest_first=True))] == list(reversed(range(2402)))
    assert [e.position for e in log.scan(Selection(start=10, stop=13))] == [10, 11, 12]
    assert len(list(log.scan(Selection(thread=root)))) == 1201
    assert [e.id for e in log.scan(Selection(kind="core.suite.v1"))] == [root, other]
    assert list(log.scan(Selection(by=kernel.kernel))) == []
    assert list(log.scan(Selection(kind="acme.none.v1"))) == []
    assert len(list(log.scan(Selection(by=kernel.operator, start=2401)))) == 1


def test_the_later_case_of_a_key_is_current_and_retired_ones_leave(kernel: Kernel) -> None:
    root = suite(kernel, "s")
    first, second, other = kernel.transact(
        lambda tx: [
            tx.append(case(kernel, root, key, goal)).id for key, goal in (("a", "1"), ("a", "2"), ("b", "1"))
        ]
    )
    assert first != second
    assert [(row.key, row.id) for row in kernel.log.cases(root)] == [("a", second), ("b", other)]
    retire = Draft(body=Retire(reason="old"), by=kernel.operator, thread=root, refs={"case": (second,)})
    kernel.transact(lambda tx: tx.append(retire))
    assert [row.key for row in kernel.log.cases(root)] == ["b"]
    assert len(kernel.log.referrers(second, "case")) == 1


def test_names_are_found_exactly(kernel: Kernel) -> None:
    root = suite(kernel, "s")
    did = DRAFTS["core.actor.v1"].by
    actor = kernel.transact(
        lambda tx: tx.append(Draft(body=Actor(did=did, name="bot"), by=kernel.operator)).id
    )
    assert [row.id for row in kernel.log.actors("bot")] == [actor]
    assert [row.id for row in kernel.log.actors(did)] == [actor]
    assert [row.id for row in kernel.log.suites()] == [root]
    assert kernel.log.suites("bot") == []


def test_a_home_on_disk_reopens_with_the_same_records_and_refuses_to_be_changed(tmp_path: Path) -> None:
    import sqlite3

    home = open_home(tmp_path / "home", create=True, clock=FixedClock())
    record_id = suite(home, "s")
    home.log.close()
    again = open_home(tmp_path / "home", create=False)
    entry = again.log.get(record_id)
    assert entry is not None
    assert entry.record is not None
    assert read_record(entry.record).body == Suite(name="s")
    assert (again.kernel, again.operator) == (home.kernel, home.operator)
    database = sqlite3.connect(tmp_path / "home" / "log.db")
    for statement in (
        "UPDATE entries SET record = x'00'",
        "UPDATE entries SET record = NULL",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries SELECT 0, x'00', kind, author, thread, record, signature, leaf FROM entries",
        "INSERT INTO entries SELECT 5, x'00', kind, author, thread, record, signature, leaf FROM entries",
    ):
        database.execute("PRAGMA recursive_triggers=ON")
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(statement)
    database.close()


def test_the_roots_of_perfect_subtrees_are_those_of_the_leaves(kernel: Kernel) -> None:
    def grow(tx: Transaction, names: range) -> None:
        for number in names:
            tx.append(Draft(body=Suite(name=str(number)), by=kernel.operator))

    kernel.transact(lambda tx: grow(tx, range(200)))
    kernel.transact(lambda tx: grow(tx, range(200, 1100)))
    leaves = [entry.leaf for entry in kernel.log.scan(Selection())]

    for level in range(11):
        for index in {0, (len(leaves) >> level) - 1}:
            low = index << level
            expected = root_of(leaves[low : low + (1 << level)])
            assert kernel.log.subtree(level, index) == expected, (level, index)
    assert tree.root(kernel.log.subtrees()) == root_of(leaves)


def root_of(leaves: list[Digest]) -> bytes:
    """Hash a tree by the definition."""
    if len(leaves) == 1:
        return leaves[0]
    middle = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + root_of(leaves[:middle]) + root_of(leaves[middle:])).digest()


def test_only_a_home_is_opened(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no home"):
        open_home(tmp_path / "none", create=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(StorageError, match="not empty"):
        open_home(tmp_path / "other", create=True)

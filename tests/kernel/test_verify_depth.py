"""Verification by depth: what is new alone, scores folded again, and what is kept of a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import FixedClock, tampered
from kernel.test_first_scores import lines, prepared

from spl.contracts.verify import VerifyDocument
from spl.errors import DamagedError
from spl.kernel.home import Kernel, open_home
from spl.kernel.names import record_of
from spl.kernel.records import put_record, status
from spl.kernel.redact import redact
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suites import retire_case
from spl.kernel.verify import Depth, verify_home
from spl.records.envelope import BlobRef, Draft
from spl.records.evals import Score
from spl.store.log import Selection, Transaction

QUICK = Depth(quick=True)
REFOLD = Depth(scores=True)


@pytest.fixture
def home(tmp_path: Path) -> Kernel:
    kernel = prepared(open_home(tmp_path / "home", create=True, clock=FixedClock()))
    score_suite(kernel, "smoke", "coder", "incumbent")
    return kernel


def note(kernel: Kernel) -> None:
    put_record(kernel, b'{"kind": "acme.note.v1", "body": {}}', "note")


def damage(kernel: Kernel, position: int) -> None:
    """Change a byte of a record as somebody with a tool of their own would: without the triggers."""
    assert kernel.path is not None
    with tampered(kernel.path) as database:
        database.execute(
            "UPDATE entries SET record = CAST(substr(record, 1, 20) || x'00' || substr(record, 22) AS BLOB) "
            "WHERE position = ?",
            (position,),
        )


def kept(kernel: Kernel) -> Any:
    assert kernel.path is not None
    return json.loads((kernel.path / "verified.json").read_text())


def test_a_quick_verification_reads_what_is_new(home: Kernel) -> None:
    size = home.log.size()
    assert verify_home(home, QUICK).since is None  # nothing vouches for anything yet
    note(home)
    found = verify_home(home, QUICK)
    assert (found.clean, found.since, found.size) == (True, size, size + 1)
    note(home)
    damage(home, size + 1)
    worse = verify_home(home, QUICK)
    assert (worse.ok, worse.since) == (False, size + 1)
    assert {fault.position for fault in worse.faults} == {size + 1}
    assert verify_home(home, QUICK).since is None  # after a fault, everything is read again


def test_a_quick_verification_trusts_earlier_entries_only_while_the_tree_is_the_same(home: Kernel) -> None:
    assert verify_home(home).clean
    before = kept(home)
    assert home.path is not None
    forged = before | {"root": "00" * 32}
    (home.path / "verified.json").write_text(json.dumps(forged))
    note(home)
    found = verify_home(home, QUICK)
    assert [fault.check for fault in found.faults] == ["tree"]
    (home.path / "verified.json").write_text(json.dumps(before | {"size": 10_000}))
    assert "are not those that were verified" in verify_home(home, QUICK).faults[0].message
    for useless in (b"{", b'{"format": "spl-verified 2"}', json.dumps(before | {"root": "xy"}).encode()):
        (home.path / "verified.json").write_bytes(useless)
        assert status(home).last_verify is None
        assert verify_home(home, QUICK).since is None


def test_what_was_found_is_kept_and_told_by_the_status(home: Kernel) -> None:
    assert status(home).last_verify is None
    assert verify_home(home, Depth(signatures=False)).ok
    assert status(home).last_verify is None  # it never counts as clean
    verify_home(home)
    last = status(home).last_verify
    assert last is not None
    assert (last.clean, last.faults, last.size) == (True, 0, home.log.size())
    note(home)
    damage(home, home.log.size() - 1)
    with pytest.raises(DamagedError, match="cannot be read"):
        status(home)  # the last record cannot even be shown
    verify_home(home, Depth(signatures=False))
    assert kept(home)["faults"] > 0
    note(home)
    worse = status(home).last_verify
    assert worse is not None
    assert (worse.clean, worse.faults) == (False, kept(home)["faults"])


def refolded(kernel: Kernel) -> VerifyDocument:
    document = verify_home(kernel, REFOLD)
    assert document.scores is not None
    return document


def counts(document: VerifyDocument) -> tuple[int, int, int]:
    assert document.scores is not None
    return document.scores.reproduced, document.scores.differing, document.scores.not_reproducible


def test_scores_are_reproduced_whatever_happened_later(home: Kernel) -> None:
    retire_case(home, "smoke", "add-flag", "old")
    again = lines({"id": "later", "case": "fix-off-by-one", "results": [{"id": "tests", "status": "fail"}]})
    import_runs(home, "coder", again, Batch(source="m", definition="incumbent"))
    score_suite(home, "smoke", "coder", "incumbent")
    score_suite(home, "smoke", "coder", "latest")
    found = refolded(home)
    assert (found.clean, counts(found)) == (True, (3, 0, 0))


def appended(kernel: Kernel, change: Any, table: BlobRef | None = None) -> int:
    """Append a score as the kernel would, changed, and return its position."""
    (first,) = [entry.id for entry in kernel.log.scan(Selection(kind="core.eval.run.v1"))]
    record = record_of(kernel.log, first)
    assert isinstance(record.body, Score)
    body = msgspec.structs.replace(record.body, **change)
    blobs = record.blobs if table is None else (table,)

    refs = {role: tuple(ids) for role, ids in record.refs.items()}

    def append(tx: Transaction) -> int:
        draft = Draft(body=body, by=kernel.kernel, thread=record.thread, refs=refs, blobs=tuple(blobs))
        return tx.append(draft).position

    return kernel.transact(append)


def test_a_score_that_the_fold_does_not_give_is_a_fault_with_its_place(home: Kernel) -> None:
    (row,) = home.log.scores()
    body = record_of(home.log, row.id).body
    assert isinstance(body, Score)
    better = msgspec.structs.replace(body.substance, passed=body.substance.passed + 1)
    position = appended(home, {"substance": better})
    assert verify_home(home).clean  # bytes, signatures and tree are those of an honest record
    found = refolded(home)
    assert (found.ok, found.clean, counts(found)) == (False, False, (1, 1, 0))
    (fault,) = found.faults
    assert (fault.check, fault.position, "substance" in fault.message) == ("score", position, True)


def test_a_score_with_another_table_of_grades_is_a_fault(home: Kernel) -> None:
    blob = home.blobs.put(b"\x80")
    appended(home, {"as_of": home.log.size()}, BlobRef(h=blob, n=1, t="application/cbor", r="grades"))
    found = refolded(home)
    assert counts(found) == (1, 1, 0)
    assert "table of grades" in found.faults[0].message


def test_withdrawn_evidence_and_other_versions_of_the_fold_are_not_reproducible(home: Kernel) -> None:
    (row,) = home.log.scores()
    body = record_of(home.log, row.id).body
    assert isinstance(body, Score)
    appended(home, {"scorer": msgspec.structs.replace(body.scorer, version=99)})
    run = next(iter(home.log.runs(actor=row.actor, facet=row.facet)))
    redact(home, run.id.hex(), "a secret")
    found = refolded(home)
    assert (found.ok, counts(found)) == (True, (0, 0, 2))
    reasons = [notice.message for notice in found.notices if notice.check == "score"]
    assert any("withdrawn" in reason for reason in reasons)
    assert any("99" in reason for reason in reasons)
    score_suite(home, "smoke", "coder", "incumbent")
    assert counts(refolded(home)) == (1, 0, 2)  # what is left can be scored, and folded again

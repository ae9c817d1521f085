"""Checkpoints and proofs: what a home signs, what it refuses to sign, and what others can check without it."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path

import pytest
from conftest import FixedClock, memory_home
from nacl.signing import VerifyKey

from spl.errors import DamagedError, InputError, OperationFailedError, SignatureError, SplitViewError
from spl.kernel.home import Kernel, open_home
from spl.kernel.proof import checkpoint, prove, prove_growth, show_key
from spl.kernel.proof_check import check_proof
from spl.records.envelope import Draft
from spl.store.log import Transaction
from spl.store.tree import EMPTY_ROOT, encode_entry


@pytest.fixture
def home(tmp_path: Path) -> Kernel:
    kernel = open_home(tmp_path / "home", create=True, clock=FixedClock())
    grow(kernel, 700)
    return kernel


def grow(kernel: Kernel, count: int, text: str = "") -> None:
    def append(tx: Transaction) -> None:
        for number in range(tx.size(), tx.size() + count):
            tx.append(Draft(body={"n": number, "t": text}, kind="acme.note.v1", by=kernel.operator))

    kernel.transact(append)


def record_at(kernel: Kernel, position: int) -> tuple[str, bytes, bytes]:
    entry = kernel.log.at([position])[0]
    assert entry.record is not None
    return entry.id.hex(), entry.record, entry.signature


def reopened(kernel: Kernel) -> Kernel:
    kernel.log.close()
    assert kernel.path is not None
    return open_home(kernel.path, create=False, clock=FixedClock())


def independent(proof: str, entry: bytes, key: str) -> bool:
    """Check a tlog-proof with nothing of spl: a note, an audit path, a signature."""
    head, _, note = proof.partition("\n\n")
    lines = [line for line in head.split("\n")[1:] if not line.startswith("extra ")]
    index, path = int(lines[0].split()[1]), [base64.b64decode(line) for line in lines[1:]]
    text, _, signature = note.rpartition("\n\n")
    _, size, root = text.split("\n")[:3]
    public = base64.b64decode(key.split("+", 2)[2])[1:]
    VerifyKey(public).verify(f"{text}\n".encode(), base64.b64decode(signature.split()[2])[4:])

    def root_of(index: int, size: int, path: list[bytes]) -> bytes:
        if size == 1:
            return hashlib.sha256(b"\0" + entry).digest()
        middle = 1 << ((size - 1).bit_length() - 1)
        if index < middle:
            return hashlib.sha256(b"\1" + root_of(index, middle, path[:-1]) + path[-1]).digest()
        return hashlib.sha256(b"\1" + path[-1] + root_of(index - middle, size - middle, path[:-1])).digest()

    return root_of(index, int(size), path) == base64.b64decode(root)


@pytest.mark.parametrize("position", [0, 1, 255, 256, 511, 512, 640, 699])
def test_a_proof_is_checked_without_the_home_by_this_program_and_by_another(
    home: Kernel, position: int
) -> None:
    record_id, record, signature = record_at(home, position)
    made, key = prove(home, record_id), show_key(home).key
    for subject in (record, encode_entry(record, signature)):
        checked = check_proof(made.proof.encode(), subject, key)
        assert checked.ok, checked.reason
        assert checked.id is not None
        assert (checked.id.hex(), checked.position, checked.size) == (record_id, position, 700)
        assert checked.by == home.operator
    assert independent(made.proof, encode_entry(record, signature), key)
    assert not independent(made.proof, encode_entry(record, bytes(64)), key)


def test_a_proof_proves_nothing_about_another_record_or_by_another_key(home: Kernel, tmp_path: Path) -> None:
    proof, key = prove(home, record_at(home, 3)[0]).proof.encode(), show_key(home).key
    _, record, signature = record_at(home, 4)
    _, proved, proved_signature = record_at(home, 3)
    altered = [bytearray(proved) for _ in range(3)]
    for number, at in enumerate((1, len(proved) // 2, len(proved) - 1)):
        altered[number][at] ^= 1
    for subject in (
        record,
        encode_entry(record, signature),
        encode_entry(proved, signature),
        proved[:-1],
        *altered,
    ):
        checked = check_proof(proof, bytes(subject), key)
        assert not checked.ok
        assert "not the record that the proof is about, entry 3 " in str(checked.reason)
    assert check_proof(proof, encode_entry(proved, proved_signature), key).ok
    other = show_key(open_home(tmp_path / "other", create=True)).key
    assert "not signed by a key that was given" in str(check_proof(proof, record, other).reason)
    for wrong in (b"", b"\x82\x01\x02", b"not a record"):
        with pytest.raises(InputError):
            check_proof(proof, wrong, key)


def test_growth_since_a_checkpoint_or_a_size_is_proved_to_whoever_kept_the_checkpoint(home: Kernel) -> None:
    old, key = checkpoint(home), show_key(home).key
    grow(home, 400)
    for since in (old.note.encode(), 700):
        made = prove_growth(home, since)
        checked = check_proof(made.proof.encode(), old.note.encode(), key)
        assert checked.ok
        assert (checked.old, checked.size) == (700, 1100)
    newer = checkpoint(home).note.encode()
    assert "of 700 entries, and the checkpoint of 1100" in str(
        check_proof(prove_growth(home, 700).proof.encode(), newer, key).reason
    )
    with pytest.raises(SplitViewError, match="has 1100 entries, not 2000"):
        prove_growth(home, 2000)
    with pytest.raises(SignatureError):
        prove_growth(home, old.note.replace("700", "701").encode())


def test_an_empty_log_has_a_checkpoint_and_a_home_in_memory_has_none(tmp_path: Path) -> None:
    empty = checkpoint(open_home(tmp_path / "empty", create=True))
    assert (empty.size, empty.root) == (0, EMPTY_ROOT)
    with pytest.raises(OperationFailedError, match="in memory"):
        checkpoint(memory_home())


def test_a_log_that_has_not_grown_has_one_checkpoint(home: Kernel) -> None:
    first = checkpoint(home)
    assert first.signed
    again = checkpoint(reopened(home))
    assert not again.signed
    assert again.note == first.note


def test_a_proof_leads_to_the_last_checkpoint_when_that_covers_the_record(home: Kernel) -> None:
    checkpoint(home)
    grow(home, 10)
    assert prove(home, record_at(home, 5)[0]).size == 700
    assert prove(home, record_at(home, 705)[0]).size == 710
    assert prove(home, record_at(home, 5)[0]).size == 710


def test_a_log_from_an_old_backup_signs_only_when_a_person_says_so(home: Kernel) -> None:
    assert home.path is not None
    backup = home.path.parent / "backup.db"
    shutil.copy(home.path / "log.db", backup)
    grow(home, 5)
    signed = checkpoint(home)
    home.log.close()
    shutil.copy(backup, home.path / "log.db")
    restored = reopened(home)
    with pytest.raises(
        SplitViewError, match="the log has 700 entries, and a checkpoint of 705 was signed"
    ) as refused:
        checkpoint(restored)
    assert refused.value.exit_status == 4
    assert "two histories" in refused.value.message
    assert "--accept-split-view" in str(refused.value.hint)
    grow(restored, 30, "another history")
    with pytest.raises(SplitViewError, match="first 705 entries of the log are not those"):
        checkpoint(restored)
    with pytest.raises(SplitViewError):
        prove(restored, record_at(restored, 3)[0])
    with pytest.raises(SplitViewError):
        prove_growth(restored, signed.note.encode())
    accepted = checkpoint(restored, accept_split_view=True)
    assert accepted.size == 730
    assert prove(restored, record_at(restored, 3)[0]).size == 730, "from then on it is the history"
    with pytest.raises(SplitViewError, match="first 705 entries of the log are not those of that checkpoint"):
        prove_growth(restored, signed.note.encode())


@pytest.mark.parametrize(
    "harm", ["{", "[]", '{"format": "spl-head 2"}', '{"format": "spl-head 1", "note": "x"}', "signature"]
)
def test_a_damaged_head_is_told_and_nothing_is_signed_over_it(home: Kernel, harm: str) -> None:
    assert home.path is not None
    checkpoint(home)
    head = home.path / "head.json"
    if harm == "signature":
        value = json.loads(head.read_text())
        harm = json.dumps({**value, "note": value["note"].replace("\n700\n", "\n7\n")})
    head.write_text(harm)
    with pytest.raises(DamagedError, match=r"head\.json is damaged"):
        checkpoint(home)
    with pytest.raises(DamagedError):
        prove(home, record_at(home, 0)[0])
    assert head.read_text() == harm
    assert checkpoint(home, accept_split_view=True).signed


def test_a_missing_head_is_noticed_once_a_checkpoint_was_signed(home: Kernel) -> None:
    assert home.path is not None
    checkpoint(home)
    (home.path / "head.json").unlink()
    with pytest.raises(SplitViewError, match=r"head\.json is missing"):
        checkpoint(reopened(home))


def test_a_stored_tree_that_is_wrong_makes_no_proof(home: Kernel) -> None:
    checkpoint(home)
    home.log._connection.execute("UPDATE subtrees SET node = zeroblob(32) WHERE level = 9")  # type: ignore[attr-defined]
    home = reopened(home)
    with pytest.raises(DamagedError, match="stored tree"):
        prove(home, record_at(home, 600)[0])

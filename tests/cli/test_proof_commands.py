"""`spl checkpoint`, `prove` and `verify-proof`, as somebody uses them who has the home, and somebody who has not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

Spl = Callable[..., Ran]


@pytest.fixture
def record(spl: Spl) -> str:
    put = [
        spl("put", "-", "--json", stdin=b'{"kind": "acme.note.v1", "body": {"n": %d}}' % n) for n in range(3)
    ]
    return str(put[1].document["id"])


def get(tmp_path: Path, record: str, form: str) -> str:
    """Write what `spl get` prints to a file, as a shell would, and return its name."""
    path = tmp_path / f"record{form}"
    environment = {"PATH": os.environ["PATH"], "SPL_HOME": str(tmp_path / "home")}
    with path.open("wb") as out:
        subprocess.run(
            [sys.executable, "-m", "spl", "get", record, form], stdout=out, env=environment, check=True
        )
    return str(path)


@pytest.mark.parametrize("form", ["--raw", "--entry"])
def test_a_proof_is_made_in_one_home_and_checked_where_there_is_none(
    spl: Spl, tmp_path: Path, record: str, form: str
) -> None:
    key = spl("checkpoint", "--key").out.strip()
    assert spl("status", "--json").document["key"] == key
    made = spl("prove", record, "-o", "a.tlog-proof")
    assert "position  1" in made.out
    words = ("verify-proof", "a.tlog-proof", get(tmp_path, record, form), "--key", key)
    checked = spl(*words, home=tmp_path / "nowhere")
    assert checked.status == 0, checked.err
    assert checked.out.startswith("proved    the record is in the log\n")
    assert not (tmp_path / "nowhere").exists()
    assert spl("prove", record).out == (tmp_path / "a.tlog-proof").read_text()


def test_a_proof_about_something_else_exits_3_and_what_is_no_proof_exits_2(
    spl: Spl, tmp_path: Path, record: str
) -> None:
    key = spl("checkpoint", "--key").out.strip()
    spl("prove", record[:10], "-o", "proof")
    (tmp_path / "other").write_bytes(bytes.fromhex(spl("get", record).out.replace("616e01", "616e02")))
    answered = spl("verify-proof", "proof", "other", "--key", key, "--json")
    assert answered.status == 3
    assert answered.document["ok"] is False
    assert "not the record that the proof is about" in answered.document["reason"]
    (tmp_path / "digits").write_text(spl("get", record).out)
    unread = spl("verify-proof", "proof", "digits", "--key", key, "--json")
    assert (unread.status, unread.document["hint"]) == (2, "spl get ID --raw writes a record")
    assert (
        "spl checkpoint --key"
        in spl("verify-proof", "proof", "other", "--key", "k", "--json").document["hint"]
    )
    for words in (
        ("other", "other", "--key", key),
        ("proof", "other", "--key", "k"),
        ("-", "-", "--key", key),
    ):
        assert spl("verify-proof", *words, "--json").status == 2
    assert spl("prove", "--json").status == 2
    assert spl("checkpoint", "--key", "-o", "x").status == 2
    assert spl("get", record, "--raw", "--entry").status == 2


@pytest.mark.usefixtures("record")
def test_growth_is_proved_to_whoever_kept_a_checkpoint(spl: Spl, tmp_path: Path) -> None:
    kept = spl("checkpoint", "-o", "kept.note")
    assert kept.out.splitlines()[-1] == "signed   now"
    note = (tmp_path / "kept.note").read_text()
    assert spl("checkpoint").out == note
    spl("put", "-", stdin=b'{"kind": "acme.note.v1", "body": {}}')
    assert spl("prove", "--consistency", "kept.note", "-o", "growth").status == 0
    key = spl("checkpoint", "--key").out.strip()
    checked = spl("verify-proof", "growth", "kept.note", "--key", key)
    assert checked.out.startswith("proved   a log of 3 records has only grown\n")
    assert "records  4" in checked.out
    assert spl("prove", "--consistency", "2", "--json").document["old"] == 2
    refused = spl("prove", "--consistency", "5", "--json")
    assert (refused.status, refused.document["code"]) == (4, "split_view")


def test_a_head_that_is_gone_is_refused_until_a_person_says_so(spl: Spl, tmp_path: Path, record: str) -> None:
    assert spl("checkpoint").status == 0
    (tmp_path / "home" / "head.json").unlink()
    refused = spl("checkpoint", "--json")
    assert (refused.status, refused.document["code"]) == (4, "split_view")
    assert spl("prove", record).status == 4
    assert spl("checkpoint", "--accept-split-view").status == 0
    assert spl("prove", record).status == 0


@pytest.mark.parametrize("words", [("checkpoint",), ("prove",), ("export",)])
def test_an_answer_stands_whole_under_its_name_or_the_old_one_does(
    spl: Spl, tmp_path: Path, record: str, words: tuple[str, ...]
) -> None:
    words = (*words, *([record] if words == ("prove",) else []), "-o")
    assert spl(*words, "answer").status == 0
    before = (tmp_path / "answer").read_bytes()
    assert before
    (tmp_path / "closed").mkdir(mode=0o500)
    spl("put", "-", stdin=b'{"kind": "acme.note.v1", "body": {}}')
    full = spl(*words, "/dev/full", "--json")
    assert full.status == 1
    assert "cannot write /dev/full" in full.document["message"]
    assert not Path("/dev/full").is_file()
    (tmp_path / "link").symlink_to(tmp_path / "answer")
    assert spl(*words, "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "answer").read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    assert spl(*words, "nowhere/answer", "--json").status == 1

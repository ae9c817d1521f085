"""A reader written from docs/format.md alone sees what the program sees, and sees when it was altered."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Ran
from homes import rich_home

READER = Path(__file__).with_name("reader.py")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return rich_home(tmp_path / "home")


def second_reading(home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(READER), str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_both_readers_list_the_same_log_with_the_same_root(home: Path, spl: Callable[..., Ran]) -> None:
    read = second_reading(home)
    assert read.returncode == 0, read.stderr
    *entries, root = read.stdout.splitlines()
    listed = spl("log", "--json").document["entries"]
    assert [line.split()[:2] for line in entries] == [[str(e["position"]), e["id"]] for e in listed]
    told = [line.split()[2:] for line in entries]
    assert told == [
        ["withdrawn"] if entry["signature"] == "withdrawn" else [entry["kind"], entry["by"], str(entry["at"])]
        for entry in listed
    ]
    assert ["withdrawn"] in told
    assert root == f"root {spl('status', '--json').document['root']}"
    assert root == f"root {spl('verify', '--json').document['root']}"


def test_the_second_reader_needs_nothing_of_the_program() -> None:
    text = READER.read_text()
    assert "spl." not in text.replace("spl.note", "")
    assert "import spl" not in text
    assert "from spl" not in text
    assert "reader.py" in (ROOT / "docs" / "format.md").read_text()


@pytest.mark.parametrize("column", ["record", "signature", "leaf", "id"])
def test_the_second_reader_sees_a_changed_byte(home: Path, column: str) -> None:
    database = sqlite3.connect(home / "log.db")
    database.execute("DROP TRIGGER entries_never_updated")
    change = f"UPDATE entries SET {column} = CAST(x'ff' || substr({column}, 2) AS BLOB) WHERE position = 3"  # noqa: S608
    database.execute(change)
    database.commit()
    database.close()
    assert "AssertionError" in second_reading(home).stderr


def test_the_second_reader_sees_an_altered_blob(home: Path) -> None:
    path = max(
        (path for path in (home / "blobs").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    assert second_reading(home).returncode != 0

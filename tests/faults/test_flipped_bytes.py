"""Any changed byte is found: single bits are flipped in every file of a home, and the home is verified."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from homes import rich_home

from spl.errors import SplError
from spl.kernel.home import Kernel, open_home
from spl.kernel.records import status
from spl.kernel.verify import verify_home
from spl.store import check

SHORT, LONG = 180, 4_000
CONTROLS = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_home(tmp_path_factory.mktemp("flips") / "home")


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "home")
    return tmp_path / "home"


def files(home: Path) -> list[Path]:
    """Return every file of a home that holds something."""
    return sorted(path for path in home.rglob("*") if path.is_file() and path.stat().st_size)


def flips(home: Path, count: int, seed: int) -> Iterator[tuple[Path, int]]:
    """Flip one bit at a time, half of them in the log and half in any file, and put it back after each."""
    chance = random.Random(seed)
    every = files(home)
    for _ in range(count):
        path = chance.choice([home / "log.db", chance.choice(every)])
        data = path.read_bytes()
        at = chance.randrange(len(data))
        flipped = bytearray(data)
        flipped[at] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        yield path, at
        path.write_bytes(data)
        for left in (home / "verified.json", home / "log.db-journal"):
            left.unlink(missing_ok=True)


def content(kernel: Kernel) -> object:
    """Return everything that a home says: entries, blobs, identities, the head, and what the log derives."""
    assert kernel.path is not None
    database = sqlite3.connect(kernel.path / "log.db")
    try:
        entries = database.execute("SELECT position, id, record, signature, leaf FROM entries").fetchall()
    finally:
        database.close()
    named = list(kernel.blobs.ids())  # type: ignore[attr-defined]
    return entries, [(blob, kernel.blobs.get(blob)) for blob in sorted(named)], status(kernel)


def seen(home: Path) -> tuple[bool, object]:
    """Return whether something was reported, and what the home says."""
    kernel = None
    try:
        kernel = open_home(home, create=False)
        reported = not verify_home(kernel).ok
        (home / "verified.json").unlink(missing_ok=True)
        return reported, None if reported else content(kernel)
    except (SplError, sqlite3.DatabaseError):
        return True, None
    finally:
        if kernel is not None:
            kernel.log.close()


@pytest.mark.faults
def test_every_flipped_bit_is_reported_or_harmless(
    home: Path, tally: Callable[[str, int], None], *, long: bool
) -> None:
    count = LONG if long else SHORT
    clean, before = seen(home)
    assert not clean
    reported = 0
    for path, at in flips(home, count, seed=count):
        found, now = seen(home)
        assert found or now == before, f"the flip at byte {at} of {path.relative_to(home)} went unseen"
        reported += found
    assert reported > count // 3, "most flips must hit something"
    tally("flips", count)


@pytest.mark.faults
def test_a_verification_that_does_not_look_at_blobs_lets_flips_pass(
    home: Path, monkeypatch: pytest.MonkeyPatch, tally: Callable[[str, int], None]
) -> None:
    monkeypatch.setattr(check.Checker, "_blob", lambda *_: None)
    blobs = [path for path in files(home) if path.is_relative_to(home / "blobs")]
    chance = random.Random(1)
    unseen = 0
    for _ in range(CONTROLS):
        path = chance.choice(blobs)
        data = path.read_bytes()
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1
        path.write_bytes(flipped)
        kernel = open_home(home, create=False)
        unseen += verify_home(kernel).ok
        kernel.log.close()
        path.write_bytes(data)
    assert unseen > CONTROLS // 2
    tally("flips-control", unseen)

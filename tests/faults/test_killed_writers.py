"""Many writers at once, killed at random moments: nothing lost, nothing twice, nobody waits for ever."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from spl.kernel.home import open_home
from spl.kernel.verify import verify_home
from spl.records.envelope import read_record
from spl.store.lock import write_lock
from spl.store.log import Selection

pytestmark = pytest.mark.faults
HERE = Path(__file__).parent
WRITERS = 8
LONGEST_WAIT_S = 20.0


class Race(NamedTuple):
    """What the writers acknowledged, and how long the slowest append took."""

    acknowledged: list[str]
    slowest_s: float


def race(home: Path, kills: int, mode: str) -> Race:
    """Return what eight writers said while one after another was killed and another took its place."""
    open_home(home, create=True).log.close()
    chance = random.Random(kills)
    outputs: list[Path] = []
    writers: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        outputs.append(home.with_name(f"said-{len(outputs)}"))
        with outputs[-1].open("wb") as output:
            words = [sys.executable, str(HERE / "racer.py"), str(home), f"w{len(outputs)}", mode]
            return subprocess.Popen(words, stdout=output)

    try:
        writers += [start() for _ in range(WRITERS)]
        said = 0
        for _ in range(kills):
            place = chance.randrange(WRITERS)
            give_up = time.monotonic() + 60
            while said == (said := _said(outputs)) and time.monotonic() < give_up:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.03)
            writers[place].kill()
            writers[place].wait()
            writers[place] = start()
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    lines = [line.decode().split() for path in outputs for line in path.read_bytes().split(b"\n")[:-1]]
    return Race([line[0] for line in lines], max(float(line[1]) for line in lines))


def _said(outputs: list[Path]) -> int:
    """Return how much was acknowledged so far."""
    return sum(path.stat().st_size for path in outputs)


def violations(home: Path, ran: Race, killed: int) -> list[str]:
    """Return what the home does not hold as it was acknowledged."""
    kernel = open_home(home, create=False)
    entries = list(kernel.log.scan(Selection()))
    ids = Counter(entry.id.hex() for entry in entries)
    bodies = [read_record(entry.record).body for entry in entries if entry.record is not None]
    notes = Counter((body["writer"], body["number"]) for body in bodies if isinstance(body, dict))
    found = [f"lost: {one}" for one in ran.acknowledged if one not in ids]
    found += [f"twice: {note}" for note, count in notes.items() if count > 1]
    found += [fault.message for fault in verify_home(kernel).faults]
    if len(entries) - len(ran.acknowledged) > killed:
        found.append("more records than writers that were killed before they could say so")
    if [entry.position for entry in entries] != list(range(len(entries))):
        found.append("the positions have gaps")
    kernel.log.close()
    return found


def test_what_killed_writers_acknowledged_is_there_once(
    tmp_path: Path, tally: Callable[[str, int], None], *, long: bool
) -> None:
    kills = 250 if long else 10
    ran = race(tmp_path / "home", kills, "honest")
    assert violations(tmp_path / "home", ran, kills + WRITERS) == []
    assert len(ran.acknowledged) > kills
    assert ran.slowest_s < LONGEST_WAIT_S
    tally("kills", kills + WRITERS)


def test_writers_that_speak_too_early_are_caught(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    lost: list[str] = []
    for turn in range(12):  # a kill has to fall between the word and the commit
        home = tmp_path / f"home-{turn}"
        ran = race(home, 6, "early")
        lost += [one for one in violations(home, ran, 6 + WRITERS) if one.startswith("lost")]
        if lost:
            break
    assert lost
    tally("kills-control", len(lost))


def test_a_command_that_waits_too_long_for_the_lock_says_who_holds_it_up(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_home(home, create=True).log.close()
    (tmp_path / "note.json").write_text('{"kind": "acme.note.v1", "body": {}}')
    command = [sys.executable, str(HERE / "impatient.py"), "--json", "--home", str(home), "put", "note.json"]
    with write_lock(home / "lock"):
        done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["code"] == "lock_timeout"
    assert "another process has been writing" in document["message"]
    assert "try again" in document["hint"]
    assert open_home(home, create=False).log.size() == 0

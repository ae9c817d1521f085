"""Each system call by which a command touches a home fails, once and for ever: nothing half done, nothing untrue."""

from __future__ import annotations

import compileall
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT
from faults.injection import PROGRAM, SYNCS, Injection, Traced, injections, synced_again, traced

from spl.errors import SplError
from spl.ids import RecordId
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install, propose
from spl.kernel.home import open_home
from spl.kernel.suite_import import parse_cases
from spl.kernel.suites import add_cases, create_suite
from spl.kernel.verify import verify_home
from spl.store.log import Selection

pytestmark = pytest.mark.faults
HERE = Path(__file__).parent
IMPORTED = ROOT / "examples" / "imported"
PARTS = 4


class Workload(NamedTuple):
    """A command, and what it needs."""

    words: list[str]
    home: bool = True


WORKLOADS = {
    "init": Workload(["init"], home=False),
    "put": Workload(["put", "note.json"]),
    "judge": Workload(["judge", "incumbent", "over", "latest", "--actor", "coder", "--feature", "f"]),
    "suite import": Workload(["suite", "import", "suite.json"]),
    "run import": Workload(["run", "import", "runs.jsonl", "--actor", "coder"]),
}
NOTE = {"kind": "acme.note.v1", "body": {"text": "n" * 100}}


def prepared(place: Path) -> Path:
    """Return a home with an actor, two definitions and a suite; the input files lie beside it."""
    home = place / "home"
    kernel = open_home(home, create=True)
    add_actor(kernel, "coder")
    create_suite(kernel, "smoke")
    add_cases(kernel, "smoke", parse_cases((IMPORTED / "cases.json").read_bytes(), "c"))
    install(kernel, "coder", Source(behaviour={"adapter": "external", "system": "first"}))
    propose(kernel, "coder", Source(behaviour={"adapter": "external", "system": "second"}))
    kernel.log.close()
    (place / "note.json").write_text(json.dumps(NOTE))
    coding = ROOT / "examples" / "coding"
    shutil.copytree(coding / "fixtures" / "slug", place / "fixtures" / "slug")
    suite = json.loads((coding / "suite.json").read_text())
    suite["tasks"] = [task for task in suite["tasks"] if task["workspaceFixture"] == "fixtures/slug"]
    (place / "suite.json").write_text(json.dumps(suite))
    runs = [json.loads(line) for line in (IMPORTED / "runs-v1.jsonl").read_text().splitlines()[:3]]
    for number, run in enumerate(runs):
        run["answer"] = f"a long answer {number} " * 2000  # too long for a record: a blob
    (place / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    return home


class Held(NamedTuple):
    """What a home holds, and what is wrong with it."""

    ids: list[RecordId]
    faults: list[str]


def held(home: Path, *, create: bool = False) -> Held:
    kernel = open_home(home, create=create)
    try:
        ids = [entry.id for entry in kernel.log.scan(Selection())]
        return Held(ids, [fault.message for fault in verify_home(kernel).faults])
    finally:
        kernel.log.close()


class Bench:
    """A command that is run again and again on the same home, each time with another failure."""

    def __init__(
        self, strace: str, place: Path, workload: Workload, program: Sequence[str] = PROGRAM
    ) -> None:
        self._strace, self._workload, self._program = strace, workload, program
        compileall.compile_dir(ROOT / "spl", quiet=1)  # so that every run opens the same files
        self.home = prepared(place)
        self._template = self.home.rename(place / "template")
        if not workload.home:
            shutil.rmtree(self._template)
        self._before = held(self._reset()).ids if workload.home else []
        self.clean = self.run(None)
        assert self.clean.status == 0, self.clean
        self._growth = len(held(self.home).ids) - len(self._before)

    def _reset(self) -> Path:
        shutil.rmtree(self.home, ignore_errors=True)
        if self._workload.home:
            shutil.copytree(self._template, self.home)
        return self.home

    def run(self, injection: Injection | None) -> Traced:
        self._reset()
        return traced(self._strace, self.home, self._workload.words, injection, self._program)

    def injections(self) -> list[Injection]:
        return injections(self.clean.calls, self.home)

    def violations(self, injection: Injection) -> list[str]:
        """Return what the command did wrong when a call failed."""
        ran = self.run(injection)
        hit = next((call for call in ran.calls if call.injected), None)
        if hit is None or str(self.home) not in hit.arguments:
            return [f"the failure did not reach the home: {hit}"]
        found = self._said(ran, injection)
        again = synced_again(ran.calls)
        if again is not None:
            found.append(f"the failed sync of {again} was tried again")
        try:
            after = held(self.home, create=not self._workload.home)
        except SplError as error:
            return [*found, f"the home does not open: {error.message}"]
        found += [f"verify: {fault}" for fault in after.faults]
        grown = len(after.ids) - len(self._before)
        if after.ids[: len(self._before)] != self._before:
            found.append("what was there before is gone")
        if ran.status == 0 and grown != self._growth:
            found.append(f"it succeeded and appended {grown}, not {self._growth}")
        if ran.status != 0 and grown and '"unconfirmed"' not in ran.out:
            found.append(f"it failed and appended {grown}")
        return found

    def _said(self, ran: Traced, injection: Injection) -> list[str]:
        """Return what is wrong with what the command said."""
        if ran.status == 0:
            return [] if self._harmless(injection) else ["it succeeded although a call failed"]
        if ran.status != 1 or "Traceback" in ran.err:
            return [f"status {ran.status}: {ran.err[-500:]}{ran.out[-500:]}"]
        if not ran.out:  # where nothing can be written, nothing can be said
            return [] if injection.call.name == "write" and injection.for_ever else ["it said nothing"]
        document = json.loads(ran.out)
        return [] if document["exit_status"] == 1 and document["message"] else [f"it said {document}"]

    def _harmless(self, injection: Injection) -> bool:
        """Say whether a command may succeed although this call failed.

        SQLite syncs the directory of a journal that it opens, and takes no notice when it cannot; the journal's
        name has been durable since the home was made. A journal that cannot be opened to see whether it is empty is
        rolled back. A log that opens only for reading is enough for a command that reads.
        """
        call = injection.call
        of_journal = call.name == "fdatasync" and call.arguments.endswith(f"<{self.home}>")
        to_sync = call.name == "openat" and call.arguments.endswith(f'"{self.home}", O_RDONLY|O_CLOEXEC')
        rolled_back = "log.db-journal" in call.arguments and "O_RDONLY" in call.arguments
        reading = not self._workload.home and "log.db" in call.arguments and not injection.for_ever
        return of_journal or to_sync or rolled_back or reading


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_a_call_that_fails_leaves_everything_or_nothing_and_is_told(
    strace: str, tmp_path: Path, name: str, part: int, tally: Callable[[str, int], None], *, long: bool
) -> None:
    if not long and part:
        pytest.skip("in make faults")
    bench = Bench(strace, tmp_path, WORKLOADS[name])
    chosen = bench.injections()
    assert len(chosen) > 60
    chosen = chosen[part::PARTS] if long else random.Random(name).sample(chosen, 6)
    for injection in chosen:
        assert bench.violations(injection) == [], injection
    tally("injections", len(chosen))


@pytest.mark.parametrize("control", ["deaf", "stubborn", "halves"])
def test_programs_that_are_known_to_be_wrong_are_caught(
    strace: str, tmp_path: Path, control: str, tally: Callable[[str, int], None]
) -> None:
    bench = Bench(strace, tmp_path, WORKLOADS["run import"], [str(HERE / f"{control}.py")])
    if control == "halves":
        wanted = [
            injection
            for injection in bench.injections()
            if injection.call.name == "fdatasync" and injection.call.arguments.endswith("log.db>")
        ][2:3]
    else:
        wanted = [
            injection
            for injection in bench.injections()
            if injection.call.name == "fsync" and not injection.for_ever
        ][:2]
    found = [violation for injection in wanted for violation in bench.violations(injection)]
    expected = {
        "deaf": "it succeeded although a call failed",
        "stubborn": "was tried again",
        "halves": "it failed and appended",
    }
    assert any(expected[control] in violation for violation in found), found
    tally("injections-control", len(found))


def test_a_durable_append_takes_at_most_six_syncs(strace: str, tmp_path: Path) -> None:
    bench = Bench(strace, tmp_path, WORKLOADS["put"])
    syncs = [call for call in bench.clean.calls if call.name in SYNCS]
    assert 3 <= len(syncs) <= 6, syncs

"""Whatever is done to a log, in whatever order, both implementations hold what a list and a dictionary would."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import KERNEL, FixedClock, NamedKeys
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from spl.errors import DamagedError, DanglingReferenceError, SchemaError, SplError
from spl.ids import Did, RecordId
from spl.kernel.home import Kernel, Stamp, open_home
from spl.kernel.redact import redact
from spl.records.envelope import Draft, encode_record, read_record
from spl.store.blobs import MemoryBlobs
from spl.store.log import Entry, Selection, Transaction
from spl.store.memory import MemoryLog

pytestmark = pytest.mark.faults
FOREIGN = Did("did:web:foreign.example")
KINDS = ("acme.note.v1", "acme.other.v1")
positions = st.integers(0, 60)


class Kept(NamedTuple):
    """What the model knows of an entry."""

    id: RecordId
    record: bytes | None
    kind: str
    by: Did
    thread: RecordId | None


class CallerStoppedError(Exception):
    """A caller changed its mind in the middle."""


class LogMachine(RuleBasedStateMachine):
    """A log beside a list of what it must hold; each step is done to both."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.model: list[Kept] = []
        self.number = 0
        self.kernel: Kernel

    def home(self) -> Kernel:
        raise NotImplementedError

    def reopened(self, kernel: Kernel) -> Kernel:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.kernel = self.home()

    def draft(self, kind: str, about: int | None, thread: int | None) -> Draft:
        self.number += 1
        refs = {} if about is None or not self.model else {"about": (self.model[about % len(self.model)].id,)}
        root = None if thread is None or not self.model else self.model[thread % len(self.model)]
        return Draft(
            kind=kind,
            body={"number": self.number},
            by=self.kernel.operator,
            refs=refs,
            thread=None if root is None else root.id if root.thread is None else root.thread,
        )

    def keep(self, entry: Entry) -> None:
        assert entry.position == len(self.model)
        assert entry.record is not None
        record = read_record(entry.record, entry.id)
        self.model.append(Kept(entry.id, entry.record, record.kind, record.by, record.thread))

    @rule(
        kinds=st.lists(st.sampled_from(KINDS), max_size=4),
        about=st.none() | positions,
        thread=st.none() | positions,
    )
    def transact(self, kinds: list[str], about: int | None, thread: int | None) -> None:
        drafts = [self.draft(kind, about, thread) for kind in kinds]
        for entry in self.kernel.transact(lambda tx: [tx.append(draft) for draft in drafts]):
            self.keep(entry)

    @rule(stop=st.sampled_from(["raise", "dangling", "shape"]), first=st.booleans())
    def fail(self, stop: str, *, first: bool) -> None:
        def function(tx: Transaction) -> None:
            if first:
                tx.append(self.draft(KINDS[0], None, None))
                assert tx.size() == len(self.model) + 1
            if stop == "dangling":
                nowhere = {"about": (RecordId(bytes(32)),)}
                tx.append(Draft(kind=KINDS[0], body={}, by=self.kernel.operator, refs=nowhere))
            if stop == "shape":
                tx.append(Draft(kind="not a kind", body={}, by=self.kernel.operator))
            raise CallerStoppedError

        with pytest.raises((CallerStoppedError, DanglingReferenceError, SchemaError, SplError)):
            self.kernel.transact(function)

    @rule(kind=st.sampled_from(KINDS), times=st.integers(1, 3))
    def take_over(self, kind: str, times: int) -> None:
        """A record stamped elsewhere enters once, however often it comes."""
        self.number += 1
        draft = Draft(kind=kind, body={"foreign": self.number}, by=FOREIGN)
        data = encode_record(draft, at=self.number, salt=bytes(16))
        found = [self.kernel.transact(lambda tx: tx.append_signed(data, b"")) for _ in range(times)]
        assert len(set(map(repr, found))) == 1
        self.keep(found[0])

    @rule(place=positions)
    def take_over_what_is_there(self, place: int) -> None:
        unsigned = [
            at for at, kept in enumerate(self.model) if kept.record is not None and kept.by == FOREIGN
        ]
        if unsigned:
            at = unsigned[place % len(unsigned)]
            record = self.model[at].record
            assert record is not None
            assert self.kernel.transact(lambda tx: tx.append_signed(record, b"")).position == at

    @rule(expected=positions)
    def compare_and_set(self, expected: int) -> None:
        """What a caller saw is checked inside the transaction: at another size nothing is written."""

        def function(tx: Transaction) -> Entry:
            if tx.size() != expected:
                raise CallerStoppedError
            return tx.append(self.draft(KINDS[1], None, None))

        if expected == len(self.model):
            self.keep(self.kernel.transact(function))
        else:
            with pytest.raises(CallerStoppedError):
                self.kernel.transact(function)

    @rule()
    def reopen(self) -> None:
        self.kernel = self.reopened(self.kernel)

    @rule(
        start=positions,
        stop=st.none() | positions,
        kind=st.none() | st.sampled_from([*KINDS, "core.redaction.v1", "acme.never.v1"]),
        by=st.none() | st.sampled_from(["operator", FOREIGN, KERNEL]),
        thread=st.none() | positions,
        newest=st.booleans(),
    )
    def scan(
        self,
        start: int,
        stop: int | None,
        kind: str | None,
        by: str | None,
        thread: int | None,
        *,
        newest: bool,
    ) -> None:
        author = self.kernel.operator if by == "operator" else None if by is None else Did(by)
        root = None if thread is None or not self.model else self.model[thread % len(self.model)].id
        selection = Selection(start=start, stop=stop, kind=kind, by=author, thread=root, newest_first=newest)
        wanted = [
            at
            for at, kept in list(enumerate(self.model))[start : len(self.model) if stop is None else stop]
            if kind in (None, kept.kind)
            and author in (None, kept.by)
            and root in (None, kept.id, kept.thread)
        ]
        found = [entry.position for entry in self.kernel.log.scan(selection)]
        assert found == (wanted[::-1] if newest else wanted)

    @rule(place=positions, digits=st.integers(1, 64))
    def look_up(self, place: int, digits: int) -> None:
        assert self.kernel.log.get(RecordId(bytes(32))) is None
        with pytest.raises(DamagedError):
            self.kernel.log.at([len(self.model)])
        if self.model:
            at = place % len(self.model)
            kept = self.model[at]
            entry = self.kernel.log.get(kept.id)
            assert entry is not None
            assert (entry.position, entry.record) == (at, kept.record)
            prefix = kept.id.hex()[:digits]
            ids = sorted(one.id for one in self.model if one.id.hex().startswith(prefix))
            assert self.kernel.log.resolve(prefix) == ids[:16]

    @rule(place=positions)
    def withdraw(self, place: int) -> None:
        living = [at for at, kept in enumerate(self.model) if kept.record and kept.kind in KINDS]
        if living:
            at = living[place % len(living)]
            redact(self.kernel, self.model[at].id.hex(), "a test")
            self.model[at] = self.model[at]._replace(record=None)
            self.keep(self.kernel.log.at([len(self.model)])[0])

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        type(self).steps += 1
        if not hasattr(self, "kernel"):
            return
        assert self.kernel.log.size() == len(self.model)
        entries = self.kernel.log.at(range(len(self.model)))
        assert [(entry.id, entry.record) for entry in entries] == [
            (kept.id, kept.record) for kept in self.model
        ]


class MemoryMachine(LogMachine):
    """The log in memory."""

    def home(self) -> Kernel:
        clock, blobs = FixedClock(), MemoryBlobs()
        log = MemoryLog(Stamp(clock, lambda _by, _record: b""), Did("did:web:o.example"), blobs.__contains__)
        return Kernel(log, blobs, NamedKeys(), clock, KERNEL, Did("did:web:o.example"))

    def reopened(self, kernel: Kernel) -> Kernel:
        return kernel


class SqliteMachine(LogMachine):
    """The log on disk, which can also be closed and opened."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="spl-machine-"))

    def home(self) -> Kernel:
        return open_home(self.directory / "home", create=True, clock=FixedClock())

    def reopened(self, kernel: Kernel) -> Kernel:
        kernel.log.close()
        return open_home(self.directory / "home", create=False, clock=kernel.clock)

    def teardown(self) -> None:
        if hasattr(self, "kernel"):
            self.kernel.log.close()
        shutil.rmtree(self.directory)


@pytest.mark.parametrize("machine", [MemoryMachine, SqliteMachine])
def test_a_log_does_what_a_list_would(
    machine: type[LogMachine], tally: Callable[[str, int], None], *, long: bool
) -> None:
    runs = (600 if long else 15) if machine is SqliteMachine else (4000 if long else 60)
    machine.steps = 0
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert machine.steps > runs
    tally("steps", machine.steps)


class ForgetfulMachine(MemoryMachine):
    """Negative control: a log that keeps the records of a transaction whose function raised."""

    def home(self) -> Kernel:
        kernel = super().home()
        assert isinstance(kernel.log, MemoryLog)
        log, transact = kernel.log, kernel.log.transact

        def leaky(function: Callable[[Transaction], object]) -> object:
            def kept(tx: Transaction) -> object:
                try:
                    return function(tx)
                except CallerStoppedError as error:
                    return error

            found = transact(kept)
            if isinstance(found, CallerStoppedError):
                raise found
            return found

        log.transact = leaky  # type: ignore[method-assign,assignment]
        return kernel


def test_a_log_that_keeps_half_of_what_failed_is_caught(tally: Callable[[str, int], None]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            ForgetfulMachine,
            settings=settings(
                max_examples=200,
                phases=[Phase.generate],
                deadline=None,
                derandomize=True,
                database=None,
                print_blob=False,
            ),
        )
    tally("steps-control", 1)

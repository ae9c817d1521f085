"""A log that lives as long as the process: the smallest thing that keeps the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TypeVar

import msgspec

from spl.errors import DamagedError
from spl.ids import BlobId, CaseFacet, Did, Digest, Facet, RecordId
from spl.records.envelope import Record
from spl.records.registry import ACTOR
from spl.store import projections, tree
from spl.store.appending import Appending, Owner
from spl.store.log import (
    CaseRow,
    DefinitionRow,
    Entry,
    NameRow,
    RunRow,
    ScoreRow,
    Selection,
    Stamp,
    VerdictRow,
)
from spl.store.remains import Remains, remains_of, withdrawn_record

T = TypeVar("T")


class _State:
    """Everything that a log holds; a transaction works on a copy that takes its place when it succeeds."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.records: dict[RecordId, Record] = {}
        self.positions: dict[RecordId, int] = {}
        self.names: list[NameRow] = []
        self.definitions: list[DefinitionRow] = []
        self.cases: dict[RecordId, dict[str, CaseRow]] = {}
        self.runs: dict[RecordId, RunRow] = {}
        self.imports: set[tuple[RecordId, RecordId, str]] = set()
        self.scores: list[ScoreRow] = []
        self.verdicts: list[VerdictRow] = []

    def clone(self) -> _State:
        twin = _State()
        for name, value in vars(self).items():
            setattr(twin, name, copy(value))
        twin.cases = {suite: dict(cases) for suite, cases in self.cases.items()}
        return twin


class _MemoryView:
    """The reading half, over a state."""

    def __init__(self, state: _State) -> None:
        self._state = state

    def size(self) -> int:
        return len(self._state.entries)

    def get(self, record_id: RecordId) -> Entry | None:
        position = self._state.positions.get(record_id)
        return None if position is None else self._state.entries[position]

    def withdrawn(self, record_id: RecordId) -> Record | None:
        record = self._state.records.get(record_id)
        return record if record is not None and isinstance(record.body, Remains) else None

    def at(self, positions: Sequence[int]) -> list[Entry]:
        if any(not 0 <= position < self.size() for position in positions):
            raise DamagedError("the log is damaged: there is no entry at such a position")
        return [self._state.entries[position] for position in positions]

    def resolve(self, prefix: str, limit: int = 16) -> list[RecordId]:
        ids = sorted(self._state.positions)
        return [rid for rid in ids if rid.hex().startswith(prefix)][:limit]

    def scan(self, selection: Selection) -> Iterator[Entry]:
        stop = self.size() if selection.stop is None else min(selection.stop, self.size())
        positions = range(selection.start, stop)
        for position in reversed(positions) if selection.newest_first else positions:
            entry = self._state.entries[position]
            record = self._state.records[entry.id]
            if (
                selection.kind in (None, record.kind)
                and selection.by in (None, record.by)
                and selection.thread in (None, record.thread, record.id)
            ):
                yield entry

    def referrers(self, record_id: RecordId, role: str) -> list[RecordId]:
        return [
            e.id for e in self._state.entries if record_id in self._state.records[e.id].refs.get(role, [])
        ]

    def actors(self, text: str | None = None) -> list[NameRow]:
        return [row for row in self._state.names if row.did is not None and text in (None, row.name, row.did)]

    def suites(self, text: str | None = None) -> list[NameRow]:
        return [row for row in self._state.names if row.did is None and text in (None, row.name)]

    def definitions(
        self, *, actor: RecordId | None = None, facet: Facet | None = None
    ) -> list[DefinitionRow]:
        rows = self._state.definitions
        return [row for row in rows if actor in (None, row.actor) and facet in (None, row.facet)]

    def facets(self, prefix: str, limit: int = 16) -> list[Facet]:
        found = {row.facet for row in self._state.definitions if row.facet.hex().startswith(prefix)}
        return sorted(found)[:limit]

    def cases(self, suite: RecordId) -> list[CaseRow]:
        return list(self._state.cases.get(suite, {}).values())

    def runs(
        self,
        *,
        actor: RecordId | None = None,
        facet: Facet | None = None,
        case_facets: Sequence[CaseFacet] | None = None,
        run: RecordId | None = None,
        last: int | None = None,
    ) -> Iterator[RunRow]:
        wanted = None if case_facets is None else set(case_facets)
        found = [
            row
            for row in self._state.runs.values()
            if actor in (None, row.actor)
            and facet in (None, row.facet)
            and run in (None, row.id)
            and (wanted is None or row.case_facet in wanted)
        ]
        yield from found if last is None else found[max(0, len(found) - last) :]

    def open_runs(self) -> list[RunRow]:
        return [row for row in self._state.runs.values() if row.end_position is None]

    def imported(self, actor: RecordId, definition: RecordId, keys: Sequence[str]) -> set[str]:
        return {key for key in keys if (actor, definition, key) in self._state.imports}

    def scores(
        self, *, actor: RecordId | None = None, suite: RecordId | None = None, facet: Facet | None = None
    ) -> list[ScoreRow]:
        return [
            row
            for row in self._state.scores
            if actor in (None, row.actor) and suite in (None, row.suite) and facet in (None, row.facet)
        ]

    def verdicts(
        self, *, facet: Facet | None = None, verdict: RecordId | None = None
    ) -> Iterator[VerdictRow]:
        return (
            row
            for row in self._state.verdicts
            if facet in (None, row.winner, row.loser) and verdict in (None, row.id)
        )


class _MemoryTransaction(_MemoryView, Appending):
    """The writing half, on a state of its own; also the `Lookup` of the projections."""

    def __init__(self, state: _State, log: Owner) -> None:
        super().__init__(state)
        self._log = log

    def _has(self, record_id: RecordId) -> bool:
        return record_id in self._state.positions

    def _keep(self, entry: Entry, record: Record) -> None:
        for change in projections.changes(record, entry.position, self._log.operator, self):
            self._apply(change)
        self._state.entries.append(entry)
        self._state.records[record.id] = record
        self._state.positions[record.id] = entry.position

    def withdraw(self, record_id: RecordId, redaction: int) -> None:  # noqa: ARG002 - no trigger asks for it
        state = self._state
        record, position = state.records[record_id], state.positions[record_id]
        state.records[record_id] = withdrawn_record(
            record.id, record.kind, record.by, record.thread, remains_of(record)
        )
        state.entries[position] = msgspec.structs.replace(state.entries[position], record=None)
        fresh = _State()
        for name in ("names", "definitions", "cases", "runs", "imports", "scores", "verdicts"):
            setattr(state, name, getattr(fresh, name))
        for entry in state.entries:
            for change in projections.changes(
                state.records[entry.id], entry.position, self._log.operator, self
            ):
                self._apply(change)

    def _apply(self, change: projections.Change) -> None:  # noqa: C901, PLR0912 - one arm for each change
        state = self._state
        match change:
            case NameRow():
                state.names.append(change)
            case DefinitionRow():
                state.definitions.append(change)
            case projections.CaseChange(suite, row):
                state.cases.setdefault(suite, {})[row.key] = row
            case projections.CaseKept():
                pass  # its record is asked for its facet
            case projections.CaseGone(case):
                for cases in state.cases.values():
                    for key in [key for key, row in cases.items() if row.id == case]:
                        del cases[key]
            case RunRow():
                state.runs[change.id] = change
            case projections.RunEnded(start, position):
                run = state.runs.get(start)
                if run is not None and run.end_position is None:
                    state.runs[start] = msgspec.structs.replace(run, end_position=position)
            case projections.ImportKey(actor, definition, key):
                state.imports.add((actor, definition, key))
            case ScoreRow():
                state.scores.append(change)
            case VerdictRow():
                state.verdicts.append(change)

    def owner_of(self, actor: RecordId) -> Did | None:
        record = self._state.records.get(actor)
        return record.by if record is not None and record.kind == ACTOR else None

    def author_of(self, record: RecordId) -> Did | None:
        found = self._state.records.get(record)
        return None if found is None else found.by

    def incumbent(self, actor: RecordId) -> RecordId | None:
        rows = [row.id for row in self.definitions(actor=actor) if row.incumbent]
        return rows[-1] if rows else None

    def case_facet(self, case: RecordId) -> CaseFacet | None:
        return projections.case_facet_of(self._state.records.get(case))

    def facet_of(self, record: RecordId) -> Facet | None:
        return projections.facet_of(self._state.records.get(record), self._state.records.get)


class MemoryLog(_MemoryView):
    """A log in memory.

    Args:
        stamp: Clock, salts and signatures.
        operator: Who owns the home.
        has_blob: Says whether a blob is there.
    """

    def __init__(self, stamp: Stamp, operator: Did, has_blob: Callable[[BlobId], bool]) -> None:
        super().__init__(_State())
        self.stamp = stamp
        self.operator = operator
        self.has_blob = has_blob

    def transact(self, function: Callable[[_MemoryTransaction], T]) -> T:
        """Run `function` on a copy that takes the log's place when it returns."""
        state = self._state.clone()
        result = function(_MemoryTransaction(state, self))
        self._state = state
        return result

    def scrub(self) -> None:
        """Do nothing: what was withdrawn is forgotten already."""

    def subtrees(self) -> list[Digest]:
        """Return the compact range of the whole log."""
        found: list[Digest] = []
        for entry in self._state.entries:
            tree.extend(found, entry.position, entry.leaf)
        return found

    def subtree(self, level: int, index: int) -> Digest:
        """Return the root of the perfect subtree of 2^level leaves that begins at leaf `index * 2^level`."""
        if level == 0:
            return self._state.entries[index].leaf
        return tree.node_hash(self.subtree(level - 1, 2 * index), self.subtree(level - 1, 2 * index + 1))

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

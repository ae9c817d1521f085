"""Reading the SQLite log: entries by id, position and range, and the projections."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from spl.errors import DamagedError
from spl.ids import CaseFacet, Did, Digest, Facet, RecordId
from spl.records.envelope import Record
from spl.store.log import (
    CaseRow,
    DefinitionRow,
    Entry,
    NameRow,
    RunRow,
    ScoreRow,
    Selection,
    VerdictRow,
)
from spl.store.remains import decode_remains, withdrawn_record

MAX_ENTRIES: Final = 1 << 53  # as far as an integer in a record reaches
_CHUNK: Final = 500
_COLUMNS: Final = "position, id, record, signature, leaf"
_HEX_DIGITS: Final = 64
_BYTES_OR_NONE: Final = (bytes, type(None))


class SqliteView:
    """The reading half of the SQLite log; within a transaction it sees what was appended."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _rows(self, query: str, arguments: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(query, arguments).fetchall()

    def _value(self, query: str, arguments: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - a column of any type
        row = self._connection.execute(query, arguments).fetchone()
        return None if row is None else row[0]

    def _position(self, record_id: RecordId) -> int | None:
        position: int | None = self._value("SELECT position FROM entries WHERE id = ?", (record_id,))
        return position

    def _place(self, record_id: RecordId) -> int:
        """Return the position of a record, or one that no record has."""
        position = self._position(record_id)
        return -1 if position is None else position

    def size(self) -> int:
        """Return the number of entries.

        Raises:
            DamagedError: The last one has a position that none can have.
        """
        last = self._value("SELECT max(position) FROM entries")
        if last is None:
            return 0
        if not 0 <= last < MAX_ENTRIES:
            raise DamagedError(f"the log is damaged: its last entry has the position {last}")
        return int(last) + 1

    def get(self, record_id: RecordId) -> Entry | None:
        """Return the entry of a record, or None."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM entries WHERE id = ?", (record_id,))  # noqa: S608
        return _entry(rows[0]) if rows else None

    def withdrawn(self, record_id: RecordId) -> Record | None:
        """Return what is kept of a withdrawn record, or None when it is not one."""
        query = (
            "SELECT k.text, a.text, t.id, w.remains FROM withdrawals w JOIN entries e USING (position) "
            "JOIN terms k ON k.no = e.kind JOIN terms a ON a.no = e.author "
            "LEFT JOIN entries t ON t.position = e.thread WHERE e.id = ?"
        )
        rows = self._rows(query, (record_id,))
        if not rows:
            return None
        kind, by, thread, kept = rows[0]
        return withdrawn_record(record_id, kind, Did(by), thread, decode_remains(kept))

    def at(self, positions: Sequence[int]) -> list[Entry]:
        """Return the entries at some positions, in the order asked for.

        Raises:
            DamagedError: There is none at a position, which only a damaged log can name.
        """
        found: dict[int, Entry] = {}
        for start in range(0, len(positions), _CHUNK):
            chunk = positions[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT {_COLUMNS} FROM entries WHERE position IN ({marks})"  # noqa: S608
            found.update((row[0], _entry(row)) for row in self._rows(query, chunk))
        missing = next((position for position in positions if position not in found), None)
        if missing is not None:
            raise DamagedError(f"the log is damaged: there is no entry at position {missing}")
        return [found[position] for position in positions]

    def resolve(self, prefix: str, limit: int = 16) -> list[RecordId]:
        """Return up to `limit` ids that begin with hexadecimal digits, in order of the ids."""
        query = "SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
        return [RecordId(row[0]) for row in self._rows(query, (*_prefix_range(prefix), limit))]

    def scan(self, selection: Selection) -> Iterator[Entry]:
        """Yield entries in bounded memory; the head is pinned when the scan begins."""
        low, stop = selection.start, self.size()
        if selection.stop is not None:
            stop = min(stop, selection.stop)
        conditions, arguments = self._conditions(selection)
        order = "DESC" if selection.newest_first else "ASC"
        query = (
            f"SELECT {_COLUMNS} FROM entries WHERE position >= ? AND position < ? {conditions} "  # noqa: S608
            f"ORDER BY position {order} LIMIT {_CHUNK}"
        )
        while low < stop:
            rows = self._rows(query, (low, stop, *arguments))
            yield from map(_entry, rows)
            if len(rows) < _CHUNK:
                return
            if selection.newest_first:
                stop = rows[-1][0]
            else:
                low = rows[-1][0] + 1

    def _conditions(self, selection: Selection) -> tuple[str, list[Any]]:
        conditions = ""
        arguments: list[Any] = []
        if selection.kind is not None:
            conditions += " AND kind = (SELECT no FROM terms WHERE text = ?)"
            arguments.append(selection.kind)
        if selection.by is not None:
            conditions += " AND author = (SELECT no FROM terms WHERE text = ?)"
            arguments.append(selection.by)
        if selection.thread is not None:
            root = self._position(selection.thread)
            conditions += " AND (position = ? OR thread = ?)"
            arguments += [root, root]
        return conditions, arguments

    def referrers(self, record_id: RecordId, role: str) -> list[RecordId]:
        """Return the records whose refs name this record under a role."""
        query = (
            "SELECT e.id FROM p_refs r JOIN entries e USING (position) "
            "WHERE r.target = ? AND r.role = (SELECT no FROM terms WHERE text = ?) ORDER BY position"
        )
        return [RecordId(row[0]) for row in self._rows(query, (self._position(record_id), role))]

    def actors(self, text: str | None = None) -> list[NameRow]:
        """Return the actors, or those whose name or DID is exactly `text`."""
        condition = "did IS NOT NULL" + ("" if text is None else " AND (name = ?1 OR did = ?1)")
        return self._names(condition, text)

    def suites(self, text: str | None = None) -> list[NameRow]:
        """Return the suites, or those whose name is exactly `text`."""
        return self._names("did IS NULL" + ("" if text is None else " AND name = ?1"), text)

    def _names(self, condition: str, text: str | None) -> list[NameRow]:
        query = (
            "SELECT e.id, position, name, did FROM p_names JOIN entries e USING (position) "  # noqa: S608
            f"WHERE {condition} ORDER BY position"
        )
        return [
            NameRow(id=RecordId(rid), position=position, name=name, did=Did(did) if did else None)
            for rid, position, name, did in self._rows(query, () if text is None else (text,))
        ]

    def definitions(
        self, *, actor: RecordId | None = None, facet: Facet | None = None
    ) -> list[DefinitionRow]:
        """Return the definitions of an actor, or with a facet, or both."""
        conditions, arguments = _filters(
            ("d.actor", None if actor is None else self._place(actor)), ("d.facet", facet)
        )
        query = (
            "SELECT e.id, d.position, d.facet, a.id, d.incumbent FROM p_definitions d "  # noqa: S608
            "JOIN entries e ON e.position = d.position JOIN entries a ON a.position = d.actor "
            f"WHERE {' AND '.join(conditions)} ORDER BY d.position"
        )
        return [
            DefinitionRow(
                id=RecordId(rid),
                position=position,
                facet=Facet(found),
                actor=RecordId(of),
                incumbent=bool(incumbent),
            )
            for rid, position, found, of, incumbent in self._rows(query, arguments)
        ]

    def facets(self, prefix: str, limit: int = 16) -> list[Facet]:
        """Return up to `limit` facets of definitions that begin with hexadecimal digits."""
        query = "SELECT DISTINCT facet FROM p_definitions WHERE facet BETWEEN ? AND ? ORDER BY facet LIMIT ?"
        return [Facet(row[0]) for row in self._rows(query, (*_prefix_range(prefix), limit))]

    def cases(self, suite: RecordId) -> list[CaseRow]:
        """Return a suite's current cases, in order of the key's first appearance."""
        query = (
            "SELECT e.id, c.position, c.key, c.facet FROM p_cases c JOIN entries e USING (position) "
            "WHERE c.suite = ? AND c.current ORDER BY c.first"
        )
        return [
            CaseRow(id=RecordId(rid), position=position, key=key, facet=CaseFacet(facet))
            for rid, position, key, facet in self._rows(query, (self._position(suite),))
        ]

    def runs(
        self,
        *,
        actor: RecordId | None = None,
        facet: Facet | None = None,
        case_facets: Sequence[CaseFacet] | None = None,
        run: RecordId | None = None,
        last: int | None = None,
    ) -> Iterator[RunRow]:
        """Yield the runs that match, by position of their start."""
        conditions, arguments = _filters(
            ("r.actor", None if actor is None else self._place(actor)),
            ("r.facet", None if facet is None else self._hash(facet)),
            ("r.position", None if run is None else self._place(run)),
        )
        if case_facets is None:
            if last is None:
                yield from self._ranged_runs(conditions, arguments)
            else:
                yield from reversed(self._runs(conditions, arguments, f"DESC LIMIT {last:d}"))
            return
        numbers = [self._hash(case) for case in case_facets]
        found: list[RunRow] = []
        for start in range(0, len(numbers), _CHUNK):
            chunk = numbers[start : start + _CHUNK]
            marks = f"r.case_facet IN ({','.join('?' * len(chunk))})"
            found += self._runs([marks, *conditions], [*chunk, *arguments], "")
        found.sort(key=lambda row: row.position)
        yield from found if last is None else found[max(0, len(found) - last) :]

    def _ranged_runs(self, conditions: list[str], arguments: list[Any]) -> Iterator[RunRow]:
        low = 0
        while True:
            rows = self._runs(["r.position >= ?", *conditions], [low, *arguments], f"LIMIT {_CHUNK}")
            yield from rows
            if len(rows) < _CHUNK:
                return
            low = rows[-1].position + 1

    def _runs(self, conditions: list[str], arguments: list[Any], limit: str) -> list[RunRow]:
        query = (
            "SELECT e.id, r.position, a.id, f.hash, c.hash, r.ended FROM p_runs r "  # noqa: S608
            "JOIN entries e ON e.position = r.position JOIN entries a ON a.position = r.actor "
            "JOIN p_hashes f ON f.no = r.facet LEFT JOIN p_hashes c ON c.no = r.case_facet "
            f"WHERE {' AND '.join(conditions)} ORDER BY r.position {limit}"
        )
        return [
            RunRow(
                id=RecordId(rid),
                position=position,
                actor=RecordId(actor),
                facet=Facet(facet),
                case_facet=CaseFacet(case) if case else None,
                end_position=ended,
            )
            for rid, position, actor, facet, case, ended in self._rows(query, arguments)
        ]

    def _hash(self, value: bytes) -> int:
        return self._value("SELECT no FROM p_hashes WHERE hash = ?", (value,)) or -1

    def open_runs(self) -> list[RunRow]:
        """Return the runs that have no end."""
        return self._runs(["r.ended IS NULL"], [], "")

    def imported(self, actor: RecordId, definition: RecordId, keys: Sequence[str]) -> set[str]:
        """Return those of the import keys that runs of this actor and definition already carry."""
        owner, under = self._position(actor), self._position(definition)
        query = "SELECT 1 FROM p_imports WHERE actor = ? AND definition = ? AND key = ?"
        return {key for key in keys if self._value(query, (owner, under, key))}

    def scores(
        self, *, actor: RecordId | None = None, suite: RecordId | None = None, facet: Facet | None = None
    ) -> list[ScoreRow]:
        """Return the scores that match."""
        conditions, arguments = _filters(
            ("s.actor", None if actor is None else self._place(actor)),
            ("s.suite", None if suite is None else self._place(suite)),
            ("s.facet", facet),
        )
        query = (
            "SELECT e.id, s.position, u.id, a.id, s.facet FROM p_scores s "  # noqa: S608
            "JOIN entries e ON e.position = s.position JOIN entries u ON u.position = s.suite "
            f"JOIN entries a ON a.position = s.actor WHERE {' AND '.join(conditions)} ORDER BY s.position"
        )
        return [
            ScoreRow(
                id=RecordId(rid),
                position=position,
                suite=RecordId(of),
                actor=RecordId(by),
                facet=Facet(found),
            )
            for rid, position, of, by, found in self._rows(query, arguments)
        ]

    def verdicts(
        self, *, facet: Facet | None = None, verdict: RecordId | None = None
    ) -> Iterator[VerdictRow]:
        """Yield the verdicts, or those that a facet won or lost, or the one with an id."""
        condition = "1"
        arguments: list[Any] = []
        if facet is not None:
            condition, arguments = "(v.winner = ? OR v.loser = ?)", [facet, facet]
        if verdict is not None:
            condition += " AND v.position = ?"
            arguments.append(self._place(verdict))
        query = (
            "SELECT e.id, v.position, v.winner, v.loser FROM p_verdicts v JOIN entries e USING (position) "  # noqa: S608
            f"WHERE {condition} ORDER BY v.position"
        )
        for rid, position, winner, loser in self._rows(query, arguments):
            yield VerdictRow(
                id=RecordId(rid),
                position=position,
                winner=Facet(winner) if winner else None,
                loser=Facet(loser) if loser else None,
            )


def _filters(*columns: tuple[str, Any]) -> tuple[list[str], list[Any]]:
    """Return the conditions for the columns whose value is given, behind one that always holds, and their arguments."""
    given = [(column, value) for column, value in columns if value is not None]
    return ["1", *(f"{column} = ?" for column, _ in given)], [value for _, value in given]


def _entry(row: tuple[int, bytes, bytes | None, bytes, bytes]) -> Entry:
    position, rid, record, signature, leaf = row
    if not (type(rid) is type(signature) is type(leaf) is bytes and type(record) in _BYTES_OR_NONE):
        raise DamagedError(f"the entry at position {position} is not readable: a column holds no bytes")
    return Entry(position, RecordId(rid), record, signature, Digest(leaf))


def _prefix_range(prefix: str) -> tuple[bytes, bytes]:
    return bytes.fromhex(prefix.ljust(_HEX_DIGITS, "0")), bytes.fromhex(prefix.ljust(_HEX_DIGITS, "f"))

"""What only a verification asks of a log: how far it reaches, what stands beside the entries, what is out of place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from spl.contracts.verify import Finding
from spl.ids import Did, RecordId
from spl.records.registry import RUN_END
from spl.store import schema
from spl.store.log import Entry
from spl.store.sqlite_view import SqliteView

_GAP: Final = 1024  # positions without entries that a verification still walks over and names one by one


class Withdrawal(NamedTuple):
    """A row of `withdrawals` beside that of its entry.

    Attributes:
        threaded: Whether the entry's row says that it stands in a thread.
        emptied: Whether the content is gone.
    """

    position: int
    redaction: int
    remains: bytes
    id: RecordId | None
    kind: str | None
    by: Did | None
    thread: RecordId | None
    threaded: bool
    signature: bytes | None
    emptied: bool


class Inspected(SqliteView):
    """A log whose tables can be looked at beside its entries."""

    def stored_tree(self) -> list[tuple[int, bytes]]:
        """Return the compact range as it is kept: level, counted from the smallest subtree, and root."""
        return self._rows("SELECT level, node FROM tree ORDER BY level")

    def altered(self) -> list[str]:
        """Return what of tables, indexes and triggers is not as this version makes it, by name."""
        return schema.altered(self._connection)

    def extent(self) -> int:
        """Return how far positions reach; no further than twice as many entries as there are can reach.

        One altered position would otherwise make a verification walk for ever: `misplaced` finds it.
        """
        count: int
        count, last = self._rows("SELECT count(*), max(position) FROM entries")[0]
        return int(last) + 1 if count and 0 <= last <= 2 * count + _GAP else count

    def misplaced(self, size: int) -> Iterator[Finding]:
        """Yield the entries whose position none of the first `size` has."""
        query = "SELECT position, id FROM entries WHERE position < 0 OR position >= ? ORDER BY position"
        for position, record_id in self._connection.execute(query, (size,)):
            found = record_id.hex() if type(record_id) is bytes else None
            yield Finding(
                check="position", message="stands far from all other entries", position=position, id=found
            )

    def count_withdrawn(self) -> int:
        """Return how many records were withdrawn."""
        count: int = self._value("SELECT count(*) FROM withdrawals")
        return count

    def withdrawals(self) -> Iterator[Withdrawal]:
        """Yield what is kept of each withdrawal, by position; None where there is no such entry."""
        query = (
            "SELECT w.position, w.redaction, w.remains, e.id, k.text, a.text, t.id, e.thread IS NOT NULL, e.signature, "
            "e.record IS NULL FROM withdrawals w LEFT JOIN entries e USING (position) "
            "LEFT JOIN terms k ON k.no = e.kind LEFT JOIN terms a ON a.no = e.author "
            "LEFT JOIN entries t ON t.position = e.thread ORDER BY w.position"
        )
        yield from map(Withdrawal._make, self._connection.execute(query))

    def stored_subtrees(self) -> int:
        """Return how many subtrees are stored."""
        count: int = self._value("SELECT count(*) FROM subtrees")
        return count

    def second_ends(self) -> Iterator[tuple[int, RecordId]]:
        """Yield position and id of the ends of runs that had an end already."""
        query = (
            "SELECT e.position, e.id FROM entries e JOIN p_runs r ON r.position = e.thread "
            "WHERE e.kind = (SELECT no FROM terms WHERE text = ?) AND r.ended IS NOT e.position ORDER BY e.position"
        )
        for position, record_id in self._connection.execute(query, (RUN_END,)):
            yield position, RecordId(record_id)

    def emptied(self) -> Iterator[Entry]:
        """Yield the entries whose record is gone, in log order."""
        query = "SELECT position FROM entries WHERE record IS NULL ORDER BY position"
        for (position,) in self._connection.execute(query):
            yield from self.at([position])

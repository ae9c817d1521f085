"""Negative control: the command line with a program that commits each record by itself."""

from collections.abc import Callable
from typing import TypeVar

from spl.__main__ import main
from spl.records.envelope import Draft
from spl.store.log import Entry
from spl.store.sqlite import SqliteLog, SqliteTransaction

T = TypeVar("T")


class Halves(SqliteTransaction):
    """A transaction that ends and begins anew at each record."""

    def append(self, draft: Draft) -> Entry:
        """Append, and commit at once."""
        entry = super().append(draft)
        self.finish()
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")
        return entry


whole = SqliteLog.transact


def transact(log: SqliteLog, function: Callable[[SqliteTransaction], T]) -> T:
    """Run a function on such a transaction."""
    return whole(log, lambda transaction: function(Halves(transaction._connection, log)))


SqliteLog.transact = transact  # type: ignore[method-assign,assignment]
main()

"""The projections derived a second time, in tables that only this connection sees, to be compared with those kept.

Temporary tables hide those of the same name in the database, so the code that derives is the code that runs at each
append. Nothing is written to the home: a verification works where it can only be read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from spl.contracts.verify import Finding
from spl.errors import SplError, StorageError
from spl.store import schema
from spl.store.sqlite import SqliteLog, SqliteTransaction

CHECK: Final = "projection"
_AT_ONCE: Final = 1000


class Shadow:
    """Projections in the making, beside those of a log.

    Args:
        log: The log.
    """

    def __init__(self, log: SqliteLog) -> None:
        self._connection = schema.connect(log.path)
        self._failed: SplError | sqlite3.DatabaseError | None = None
        try:
            schema.make_shadow(self._connection)
            self._deriving = SqliteTransaction(self._connection, log)
        except (SplError, sqlite3.DatabaseError) as error:
            self._failed = error

    def derive(self, start: int, stop: int) -> None:
        """Derive a range of entries; the ranges come in order, without gaps."""
        if self._failed is not None:
            return
        try:
            self._connection.execute("BEGIN")  # for a range: a reader never keeps writers waiting for long
            self._deriving.derive(start, stop)
            self._connection.execute("COMMIT")
        except (SplError, sqlite3.DatabaseError) as error:
            self._failed = error

    def prevented(self) -> str | None:
        """Return what kept the projections from being derived that is no fault of the log: a full disk, for one."""
        if isinstance(self._failed, sqlite3.OperationalError):
            reason = schema.storage_error("the projections were not checked", self._failed)
            return reason.message if isinstance(reason, StorageError) else None
        return None

    def differences(self) -> Iterator[Finding]:
        """Yield one finding for each table that is not what the entries say."""
        if self._failed is not None:
            yield Finding(check=CHECK, message=f"cannot be derived from the entries: {self._failed}")
            return
        for table in schema.PROJECTION_TABLES:
            try:
                yield from self._difference(table)
            except sqlite3.DatabaseError as error:
                yield Finding(check=CHECK, message=f"{table} cannot be read: {error}")

    def _difference(self, table: str) -> Iterator[Finding]:
        columns = [row[1] for row in self._connection.execute(f"PRAGMA main.table_info({table})")]
        order = ", ".join(str(number) for number in range(1, min(len(columns), 3) + 1))
        kept, derived = (
            self._connection.execute(f"SELECT * FROM {place}.{table} ORDER BY {order}")  # noqa: S608 - constants
            for place in ("main", "temp")
        )
        while True:
            left, right = kept.fetchmany(_AT_ONCE), derived.fetchmany(_AT_ONCE)
            if left != right:
                message = (
                    f"{table} is not what the entries say; spl verify --rebuild-projections derives it anew"
                )
                yield Finding(check=CHECK, message=message, position=_place(columns, left, right))
                return
            if not left:
                return

    def close(self) -> None:
        """Drop what was derived."""
        self._connection.close()


def _place(
    columns: list[str], kept: list[tuple[object, ...]], derived: list[tuple[object, ...]]
) -> int | None:
    """Return the position that the first different rows are about, where the table says so."""
    if "position" not in columns:
        return None
    at = next((i for i, pair in enumerate(zip(kept, derived, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        at = min(len(kept), len(derived))
    row = derived[at] if at < len(derived) else kept[at]
    position = row[columns.index("position")]
    return position if isinstance(position, int) else None

"""The tables of the log, and how a connection to them is opened.

Rollback journal that stays, with `synchronous=EXTRA`: a commit is durable once the journal is empty and that is synced.
Why not DELETE and not WAL: docs/adr/0006. Sources: https://sqlite.org/pragma.html#pragma_synchronous,
https://sqlite.org/security.html, https://sqlite.org/lang_conflict.html (recursive triggers).
"""

from __future__ import annotations

import re
import resource
import sqlite3
import sys
from pathlib import Path
from typing import Final

from spl.errors import DamagedError, SplError, StorageError

APPLICATION_ID: Final = 0x53504C31  # "SPL1"
FORMAT: Final = 1
DERIVED: Final = 2  # of the tables that are derived from the entries; those of another version are made anew
_BUSY_TIMEOUT_MS: Final = 30_000
_PAGE_BYTES: Final = 8192
# A table that is not there and a row that no rule allows are damage too; without a name, a text that is not UTF-8.
_DAMAGE: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_CONSTRAINT")
_REASONS: Final = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "the home is read-only",
    "SQLITE_IOERR": "input/output error",
    "SQLITE_CANTOPEN": "a file of the log cannot be opened",
    "SQLITE_BUSY": "another process is using the log",
}

ENTRIES: Final = """
CREATE TABLE terms (no INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE entries (
  position INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  kind INTEGER NOT NULL REFERENCES terms,
  author INTEGER NOT NULL REFERENCES terms,
  thread INTEGER REFERENCES entries,
  record BLOB,
  signature BLOB NOT NULL,
  leaf BLOB NOT NULL
) STRICT;
CREATE INDEX entries_kind ON entries (kind, position);
CREATE INDEX entries_thread ON entries (thread, position) WHERE thread IS NOT NULL;
CREATE TABLE tree (level INTEGER PRIMARY KEY, node BLOB NOT NULL) STRICT;
CREATE TABLE withdrawals (position INTEGER PRIMARY KEY REFERENCES entries,
  redaction INTEGER NOT NULL UNIQUE REFERENCES entries, remains BLOB NOT NULL) STRICT;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TRIGGER entries_contiguous BEFORE INSERT ON entries
WHEN NEW.position IS NOT (SELECT ifnull(max(position) + 1, 0) FROM entries)
BEGIN SELECT RAISE(ABORT, 'positions are contiguous'); END;
CREATE TRIGGER entries_never_updated BEFORE UPDATE ON entries
WHEN NEW.record IS NOT NULL
  OR NEW.position IS NOT OLD.position OR NEW.id IS NOT OLD.id OR NEW.kind IS NOT OLD.kind
  OR NEW.author IS NOT OLD.author OR NEW.thread IS NOT OLD.thread
  OR NEW.signature IS NOT OLD.signature OR NEW.leaf IS NOT OLD.leaf
  OR NOT EXISTS (SELECT 1 FROM withdrawals WHERE position = OLD.position)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER entries_never_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER withdrawals_need_redaction BEFORE INSERT ON withdrawals
WHEN NOT EXISTS (SELECT 1 FROM entries e JOIN terms t ON t.no = e.kind
  WHERE e.position = NEW.redaction AND t.text = 'core.redaction.v1')
BEGIN SELECT RAISE(ABORT, 'a withdrawal needs its redaction'); END;
CREATE TRIGGER withdrawals_never_updated BEFORE UPDATE ON withdrawals
BEGIN SELECT RAISE(ABORT, 'a withdrawal is final'); END;
CREATE TRIGGER withdrawals_never_deleted BEFORE DELETE ON withdrawals
BEGIN SELECT RAISE(ABORT, 'a withdrawal is final'); END;
"""

PROJECTIONS: Final = """
CREATE TABLE subtrees (level INTEGER, number INTEGER, node BLOB NOT NULL,
  PRIMARY KEY (level, number)) STRICT, WITHOUT ROWID;
CREATE TABLE p_refs (target INTEGER, role INTEGER, position INTEGER,
  PRIMARY KEY (target, role, position)) STRICT, WITHOUT ROWID;
CREATE TABLE p_names (position INTEGER PRIMARY KEY, name TEXT NOT NULL, did TEXT) STRICT;
CREATE INDEX p_names_name ON p_names (name);
CREATE TABLE p_definitions (position INTEGER PRIMARY KEY, actor INTEGER NOT NULL, facet BLOB NOT NULL,
  incumbent INTEGER NOT NULL) STRICT;
CREATE INDEX p_definitions_actor ON p_definitions (actor, position);
CREATE INDEX p_definitions_facet ON p_definitions (facet);
CREATE TABLE p_cases (position INTEGER PRIMARY KEY, suite INTEGER NOT NULL, key TEXT NOT NULL,
  facet BLOB NOT NULL, first INTEGER NOT NULL, current INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX p_cases_current ON p_cases (suite, key) WHERE current;
CREATE TABLE p_hashes (no INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE) STRICT;
CREATE TABLE p_runs (position INTEGER PRIMARY KEY, actor INTEGER NOT NULL, facet INTEGER NOT NULL,
  case_facet INTEGER, ended INTEGER) STRICT;
CREATE INDEX p_runs_matching ON p_runs (case_facet, actor, facet);
CREATE INDEX p_runs_actor ON p_runs (actor, facet);
CREATE INDEX p_runs_open ON p_runs (position) WHERE ended IS NULL;
CREATE TABLE p_imports (actor INTEGER, definition INTEGER, key TEXT,
  PRIMARY KEY (actor, definition, key)) STRICT, WITHOUT ROWID;
CREATE TABLE p_scores (position INTEGER PRIMARY KEY, suite INTEGER NOT NULL, actor INTEGER NOT NULL,
  facet BLOB NOT NULL) STRICT;
CREATE INDEX p_scores_actor ON p_scores (actor, suite, facet);
CREATE TABLE p_verdicts (position INTEGER PRIMARY KEY, winner BLOB, loser BLOB) STRICT;
CREATE INDEX p_verdicts_winner ON p_verdicts (winner);
CREATE INDEX p_verdicts_loser ON p_verdicts (loser);
"""

PROJECTION_TABLES: Final = (
    "p_refs",
    "p_names",
    "p_definitions",
    "p_cases",
    "p_hashes",
    "p_runs",
    "p_imports",
    "p_scores",
    "p_verdicts",
)


def storage_error(what: str, error: sqlite3.DatabaseError) -> SplError:
    """Return the documented error for one of SQLite's: what did not happen, and why."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(_DAMAGE) or (not name and "decode" in str(error)):
        return DamagedError(f"the log is damaged: {error}", details={"sqlite": name})
    reason = next((reason for prefix, reason in _REASONS.items() if name.startswith(prefix)), str(error))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if name == "SQLITE_IOERR_WRITE" and limit != resource.RLIM_INFINITY:
        reason += f", or the file size limit of {limit} bytes is reached"
    return StorageError(f"{what}: {reason}", details={"sqlite": name})


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection with every safeguard on.

    Raises:
        StorageError: The database cannot be opened, or belongs to another version.
        DamagedError: The file is not a log.
    """
    try:
        connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None)
        for pragma in (
            f"busy_timeout={_BUSY_TIMEOUT_MS}",
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "mmap_size=0",
            "foreign_keys=ON",
            "recursive_triggers=ON",
            "synchronous=EXTRA",
            *(("fullfsync=ON",) if sys.platform == "darwin" else ()),
        ):
            connection.execute(f"PRAGMA {pragma}")
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if journal != "wal":  # to leave that mode would write
            journal = _keep_journal(connection)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise storage_error(f"cannot open {path}", error) from error
    except UnicodeDecodeError as error:  # in SQLite's message about a schema that is not text any more
        raise DamagedError("the log is damaged: its schema is not readable") from error
    if application != APPLICATION_ID:
        raise DamagedError(f"{path} is not a log of spl")
    if version != FORMAT:
        raise StorageError(f"{path} has format {version}; this version of spl reads format {FORMAT}")
    if journal != "persist":
        raise StorageError(f"{path} has the journal mode {journal}, under which a commit may be lost")
    return connection


def altered(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables, indexes and triggers that are not as this version makes them, sorted.

    Whoever altered one may have let a change through, or made a column of one table stand for another's. The
    statistics that ANALYZE makes are nobody's.
    """
    made = sqlite3.connect(":memory:", isolation_level=None)
    try:
        made.executescript(ENTRIES + PROJECTIONS)
        query = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"
        differing = set(made.execute(query)) ^ set(connection.execute(query))
        return sorted({str(name) for _, name, _, _ in differing})
    finally:
        made.close()


def derived_version(connection: sqlite3.Connection) -> int | None:
    """Return the version of the derived tables, or None when they are older than versions."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'derived'").fetchone()
    return int(row[0]) if row is not None and re.fullmatch("[0-9]{1,9}", row[0]) else None


def make_derived(connection: sqlite3.Connection) -> None:
    """Make the derived tables, empty and in place of what was there, within a write transaction."""
    for table in ("subtrees", *PROJECTION_TABLES):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in PROJECTIONS.split(";"):
        connection.execute(statement)
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('derived', ?)", (str(DERIVED),))


def count_entries(path: Path) -> int:
    """Return how many entries a database holds; none when it is not a log yet.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
            return 0
        count: int = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
    finally:
        connection.close()
    return count


_ASKED_BY_DERIVING: Final = ("p_definitions_actor", "p_cases_current")


def make_shadow(connection: sqlite3.Connection) -> None:
    """Make empty projections, and a copy of the terms, as temporary tables that hide those of the database.

    They have the indexes that deriving asks, and no others.
    """
    connection.execute("PRAGMA temp.journal_mode=OFF")
    connection.execute("PRAGMA temp.cache_size=-65536")
    connection.execute("CREATE TEMP TABLE terms (no INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT")
    connection.execute("INSERT INTO temp.terms SELECT * FROM main.terms")
    for statement in map(str.strip, PROJECTIONS.split(";")):
        if statement.startswith("CREATE TABLE p_"):
            connection.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
        elif any(f"INDEX {name} " in statement for name in _ASKED_BY_DERIVING):
            connection.execute(statement.replace("INDEX p_", "INDEX temp.p_", 1))


def create(path: Path) -> None:
    """Make an empty log at a path where there is none.

    Raises:
        sqlite3.Error: It could not be written.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
        _keep_journal(connection)
        connection.execute("PRAGMA synchronous=EXTRA")
        connection.executescript(
            f"BEGIN IMMEDIATE; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT}; {ENTRIES}"
        )
        make_derived(connection)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _keep_journal(connection: sqlite3.Connection) -> str:
    """Let the journal stay between commits, empty, and return the mode that is on now."""
    connection.execute("PRAGMA journal_size_limit=0")
    mode: str = connection.execute("PRAGMA journal_mode=PERSIST").fetchone()[0]
    return mode

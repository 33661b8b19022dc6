"""The SQLite file of a state: one writer, one transaction a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spaseq.connect.sinks import Record
from spaseq.errors import EngineError

#: "SPSQ", by which SQLite files of this kind are known.
APPLICATION: Final = 0x53505351
#: The layout of the tables and of what is in them.
VERSION: Final = 4
#: The layouts before it that are read: 1 has no records, 2 no graphs, and no counts of what was released, 3
#: not where partitions began anew, no numbers of events that queries make, and no column as its steps.
_READ: Final = (1, 2, 3, VERSION)

_GRAPHS: Final = """
CREATE TABLE graph (iri TEXT PRIMARY KEY, triples TEXT) STRICT;
"""

_RECORDS: Final = """
CREATE TABLE record (seq INTEGER PRIMARY KEY, query TEXT NOT NULL, number INTEGER NOT NULL,
    value BLOB NOT NULL) STRICT;
"""

#: No record has this number.
_LAST: Final = 2**62

_TABLES: Final = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE entry (seq INTEGER PRIMARY KEY, events INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE query (number INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL,
    entry INTEGER NOT NULL, given INTEGER NOT NULL, base TEXT) STRICT;
CREATE TABLE source (stream TEXT PRIMARY KEY, position TEXT NOT NULL) STRICT;
CREATE TABLE output (path TEXT PRIMARY KEY, size INTEGER NOT NULL) STRICT;
CREATE TABLE reject (stream TEXT NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (stream, kind)) STRICT;
"""
    + _RECORDS
    + _GRAPHS
)

#: What makes a file of a layout one of today's; of 0, which is none yet.
_ADDED: Final = {0: _TABLES, 1: _RECORDS + _GRAPHS, 2: _GRAPHS, 3: ""}


@dataclass(slots=True)
class Query:
    """A registered query. ``entry``: the number of the entry that has its registration.

    ``given``: how many of its matches were taken. ``base``: what it had come to at the mark, as JSON.
    """

    number: int
    name: str
    text: str
    entry: int
    given: int = 0
    base: str | None = None


@dataclass(slots=True)
class Commit:
    """What one transaction changes."""

    entries: list[tuple[int, int, bytes]] = field(default_factory=list)
    #: Entries before this one go.
    first: int = 0
    queries: list[Query] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    given: list[tuple[int, int]] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    rejects: dict[tuple[str, str], int] = field(default_factory=dict)
    #: Background graphs as they were before the first entry, where they had changed.
    graphs: dict[str, str | None] = field(default_factory=dict)
    #: What is to be sent, each with how many records are before it.
    records: list[tuple[int, Record]] = field(default_factory=list)


class Store:
    """An open state file. Not for several threads at once: the engine's turn has the lock."""

    def __init__(self, path: str | Path) -> None:
        """Opens a state file, or makes it. Raises ``EngineError`` for one in use, or that is none."""
        self.path = Path(path)
        self._lock = _locked(self.path)
        try:
            self._connection = _connected(self.path)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Lets go of the file."""
        self._connection.close()
        self._lock.close()

    def commit(self, commit: Commit) -> None:
        """Writes all of it, or nothing. Raises ``EngineError`` if it cannot be written, as on a full disk."""
        run = self._connection
        with _failing(self.path, "cannot be written"), _transaction(run):
            run.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?)", commit.entries)
            run.execute("DELETE FROM entry WHERE seq < ?", (commit.first,))
            run.executemany(
                "INSERT OR REPLACE INTO query VALUES (?, ?, ?, ?, ?, ?)",
                ((q.number, q.name, q.text, q.entry, q.given, q.base) for q in commit.queries),
            )
            run.executemany("DELETE FROM query WHERE number = ?", ((number,) for number in commit.gone))
            run.executemany("UPDATE query SET given = ?2 WHERE number = ?1", commit.given)
            run.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", commit.meta.items())
            run.executemany("INSERT OR REPLACE INTO source VALUES (?, ?)", commit.sources.items())
            run.executemany("INSERT OR REPLACE INTO output VALUES (?, ?)", commit.outputs.items())
            run.executemany(
                "INSERT OR REPLACE INTO reject VALUES (?, ?, ?)",
                ((stream, kind, count) for (stream, kind), count in commit.rejects.items()),
            )
            run.executemany("INSERT OR REPLACE INTO graph VALUES (?, ?)", commit.graphs.items())
            self._insert(commit.records)

    def add_records(self, records: Iterable[tuple[int, Record]]) -> None:
        """Writes records that are part of the next commit."""
        with _failing(self.path, "cannot be written"), _transaction(self._connection):
            self._insert(records)

    def _insert(self, records: Iterable[tuple[int, Record]]) -> None:
        self._connection.executemany(
            "INSERT INTO record VALUES (?, ?, ?, ?)",
            ((seq, record.query, record.number, record.value) for seq, record in records),
        )

    def forget_records(self, *, before: int = 0, after: int | None = None) -> None:
        """Takes out the records before a number, or from ``after`` on, if there are any."""
        ends = (before, _LAST if after is None else after)
        if self._all("SELECT 1 FROM record WHERE seq < ? OR seq >= ? LIMIT 1", ends):
            with _failing(self.path, "cannot be written"), _transaction(self._connection):
                self._connection.execute("DELETE FROM record WHERE seq < ? OR seq >= ?", ends)

    def records(self, most: int) -> list[tuple[int, Record]]:
        """The first records that are to be sent, each with how many are before it."""
        rows = self._all("SELECT seq, query, number, value FROM record ORDER BY seq LIMIT ?", (most,))
        return [(seq, Record(query, number, value)) for seq, query, number, value in rows]

    # --- what is there ----------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """Values by name."""
        return dict(self._all("SELECT key, value FROM meta"))

    def queries(self) -> list[Query]:
        """The queries, in the order of registration."""
        return [Query(*row) for row in self._all("SELECT * FROM query ORDER BY number")]

    def sizes(self) -> list[tuple[int, int, int]]:
        """Of each entry its number, and how many events and bytes it has."""
        return list(self._all("SELECT seq, events, length(data) FROM entry ORDER BY seq"))

    def entry(self, seq: int) -> bytes:
        """The bytes of an entry."""
        ((data,),) = self._all("SELECT data FROM entry WHERE seq = ?", (seq,))
        return bytes(data)

    def sources(self) -> dict[str, str]:
        """How far each source was read, as JSON."""
        return dict(self._all("SELECT stream, position FROM source"))

    def outputs(self) -> dict[str, int]:
        """How long each output is."""
        return dict(self._all("SELECT path, size FROM output"))

    def graphs(self) -> dict[str, str | None]:
        """The background graphs that had changed before the first entry, as N-Triples; None: it is gone."""
        return dict(self._all("SELECT iri, triples FROM graph"))

    def rejects(self) -> dict[tuple[str, str], int]:
        """How many events of a stream were bad, or late."""
        return {(s, kind): count for s, kind, count in self._all("SELECT * FROM reject")}

    def _all(self, text: str, values: Iterable[Any] = ()) -> list[Any]:
        with _failing(self.path, "cannot be read"):
            return self._connection.execute(text, tuple(values)).fetchall()


def reading(path: str | Path) -> sqlite3.Connection:
    """A connection that reads a state file, also one in use. Raises ``EngineError`` if it is none."""
    path = Path(path)
    if not path.exists():
        raise EngineError(f"{path}: no such state file (relative to {Path.cwd()})")
    connection = sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True, timeout=30)
    try:
        with _failing(path, "cannot be read"):
            _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _locked(path: Path) -> sqlite3.Connection:
    """What keeps others from the file as long as it is open, and as long as this process lives."""
    lock = sqlite3.connect(f"{path}-lock", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" in str(error):
            raise EngineError(
                f"{path}: another engine uses this state file: end that one, or use another file"
            ) from None
        raise EngineError(f"{path}: the state file cannot be opened: {error}") from None
    return lock


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    try:
        with _failing(path, "cannot be read"):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            with _failing(path, "cannot be written"), _transaction(connection):
                for statement in filter(str.strip, _ADDED[version].split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raises ``EngineError`` for what is no state file, or one of a version that is not read."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise EngineError(f"{path}: an SQLite file, but no state of spaseq's: name another file")
    if version not in _READ:
        age = "a newer" if version > VERSION else "an older"
        raise EngineError(
            f"{path}: written by {age} version of spaseq (layout {version}, this one reads {VERSION}): "
            "use that version, or begin anew with another file"
        )


@contextmanager
def _failing(path: Path, what: str) -> Iterator[None]:
    """SQLite's errors as ``EngineError``, which names the file and what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text:
            hint = (
                "make room; the next commit has what arrived since the last one; if the process ends, "
                "start it again: it goes on from the last commit"
            )
        elif "not a database" in text or "malformed" in text:
            hint = "it is damaged, or no state file: go on from a copy (spaseq state import), or begin anew"
        else:
            hint = "see that the file and its folder can be written to, or name another file"
        raise EngineError(f"{path}: the state file {what}: {text} ({hint})") from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def changed(now: Mapping[Any, Any], before: Mapping[Any, Any]) -> dict[Any, Any]:
    """What is new, or other than before."""
    return {key: value for key, value in now.items() if before.get(key) != value}

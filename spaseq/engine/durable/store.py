"""The SQLite file of a state: one writer, one transaction a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spaseq.connect.sinks import Record
from spaseq.engine.durable.wal import check_log
from spaseq.engine.durable.whole import APPLICATION, TABLES, VERSION, check, is_empty, sealed
from spaseq.errors import EngineError

#: No record has this number.
_LAST: Final = 2**62


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
            check_log(self.path)
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
            self._put("entry", commit.entries)
            run.execute("DELETE FROM entry WHERE seq < ?", (commit.first,))
            self._put("query", ((q.number, q.name, q.text, q.entry, q.base) for q in commit.queries))
            self._put("taken", ((query.number, query.given) for query in commit.queries))
            self._put("taken", commit.given)
            for number in commit.gone:
                run.execute("DELETE FROM query WHERE number = ?", (number,))
                run.execute("DELETE FROM taken WHERE number = ?", (number,))
            self._put("meta", commit.meta.items())
            self._put("source", commit.sources.items())
            self._put("output", commit.outputs.items())
            self._put("reject", ((*key, count) for key, count in commit.rejects.items()))
            self._put("graph", commit.graphs.items())
            self._put_records(commit.records)

    def add_records(self, records: Iterable[tuple[int, Record]]) -> None:
        """Writes records that are part of the next commit."""
        with _failing(self.path, "cannot be written"), _transaction(self._connection):
            self._put_records(records)

    def _put_records(self, records: Iterable[tuple[int, Record]]) -> None:
        self._put("record", ((seq, r.query, r.number, r.value) for seq, r in records))

    def _put(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Writes rows with their checksums, in place of those with the same keys."""
        written = [sealed(table, row) for row in rows]
        if written:
            places = ", ".join("?" * len(written[0]))
            self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", written)

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
        text = "SELECT number, name, text, entry, given, base FROM query JOIN taken USING (number) ORDER BY 1"
        return [Query(*row) for row in self._all(text)]

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
        return {(s, kind): count for s, kind, count in self._all("SELECT stream, kind, count FROM reject")}

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
            check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _locked(path: Path) -> sqlite3.Connection:
    """What keeps others from the file as long as it is open, and as long as this process lives."""
    lock = sqlite3.connect(f"{path}-lock", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
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
            if not (is_new := is_empty(connection)):
                check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            with _failing(path, "cannot be written"), _transaction(connection):
                for statement in filter(str.strip, TABLES.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _failing(path: Path, what: str) -> Iterator[None]:
    """SQLite's errors as ``EngineError``, which names the file and what to do."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # UnicodeDecodeError: of damaged tables
        text = str(error)
        if "full" in text:
            hint = (
                "make room; the next commit has what arrived since the last one; if the process ends, "
                "start it again: it goes on from the last commit"
            )
        elif "not a database" in text or "malformed" in text or isinstance(error, UnicodeError):
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

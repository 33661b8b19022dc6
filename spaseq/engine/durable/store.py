"""The SQLite file of a state: one writer, one transaction per commit."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from spaseq.connect.sinks import SinkRecord
from spaseq.errors import EngineError

#: Larger than the number of any record.
_LAST: Final = 2**62


@dataclass(slots=True)
class StoredQuery:
    """A registered query. ``entry``: the number of the entry that has its registration.

    ``given``: how many of its matches were taken. ``base``: its state at the mark, as JSON.
    """

    number: int
    name: str
    text: str
    entry: int
    given: int = 0
    base: str | None = None


@dataclass(slots=True)
class Commit:
    """The changes of one transaction."""

    entries: list[tuple[int, int, bytes]] = field(default_factory=list)
    #: Entries before this one are removed.
    first: int = 0
    queries: list[StoredQuery] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    given: list[tuple[int, int]] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    rejects: dict[tuple[str, str], int] = field(default_factory=dict)
    #: Background graphs as they were before the first entry, where they had changed.
    graphs: dict[str, str | None] = field(default_factory=dict)
    #: Records to send, each with the number of records before it.
    records: list[tuple[int, SinkRecord]] = field(default_factory=list)


class Store:
    """An open state file. Not for several threads at once: the engine's turn has the lock."""

    def __init__(self, path: str | Path) -> None:
        """Open a state file, or create it. Raises ``EngineError`` for one in use, and for other files."""
        self.path = Path(path)
        self._lock = _locked(self.path)
        try:
            check_log(self.path)
            self._connection = _connected(self.path)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
        self._lock.close()

    def commit(self, commit: Commit) -> None:
        """Write everything or nothing. Raises ``EngineError`` if it cannot be written, as on a full disk."""
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

    def add_records(self, records: Iterable[tuple[int, SinkRecord]]) -> None:
        """Write records that are part of the next commit."""
        with _failing(self.path, "cannot be written"), _transaction(self._connection):
            self._put_records(records)

    def _put_records(self, records: Iterable[tuple[int, SinkRecord]]) -> None:
        self._put("record", ((seq, r.query, r.number, r.value) for seq, r in records))

    def _put(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Write rows with their checksums, in place of those with the same keys."""
        written = [sealed(table, row) for row in rows]
        if written:
            places = ", ".join("?" * len(written[0]))
            self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", written)

    def forget_records(self, *, before: int = 0, after: int | None = None) -> None:
        """Remove the records before a number, or from ``after`` on, if there are any."""
        ends = (before, _LAST if after is None else after)
        if self._all("SELECT 1 FROM record WHERE seq < ? OR seq >= ? LIMIT 1", ends):
            with _failing(self.path, "cannot be written"), _transaction(self._connection):
                self._connection.execute("DELETE FROM record WHERE seq < ? OR seq >= ?", ends)

    def records(self, most: int) -> list[tuple[int, SinkRecord]]:
        """Return the first records to send, each with the number of records before it."""
        rows = self._all("SELECT seq, query, number, value FROM record ORDER BY seq LIMIT ?", (most,))
        return [(seq, SinkRecord(query, number, value)) for seq, query, number, value in rows]

    # --- reading ----------------------------------------------------------------------------------

    def meta(self) -> dict[str, str]:
        """Return values by name."""
        return dict(self._all("SELECT key, value FROM meta"))

    def queries(self) -> list[StoredQuery]:
        """Return the queries, in the order of registration."""
        text = "SELECT number, name, text, entry, given, base FROM query JOIN taken USING (number) ORDER BY 1"
        return [StoredQuery(*row) for row in self._all(text)]

    def sizes(self) -> list[tuple[int, int, int]]:
        """Return the number of each entry, and how many events and bytes it has."""
        return list(self._all("SELECT seq, events, length(data) FROM entry ORDER BY seq"))

    def entry(self, seq: int) -> bytes:
        """Return the bytes of an entry."""
        ((data,),) = self._all("SELECT data FROM entry WHERE seq = ?", (seq,))
        return bytes(data)

    def sources(self) -> dict[str, str]:
        """Return how far each source was read, as JSON."""
        return dict(self._all("SELECT stream, position FROM source"))

    def outputs(self) -> dict[str, int]:
        """Return the length of each output."""
        return dict(self._all("SELECT path, size FROM output"))

    def graphs(self) -> dict[str, str | None]:
        """Return the background graphs that had changed before the first entry, as N-Triples;
        None: removed.
        """
        return dict(self._all("SELECT iri, triples FROM graph"))

    def rejects(self) -> dict[tuple[str, str], int]:
        """Return how many events of a stream were bad, or late."""
        return {(s, kind): count for s, kind, count in self._all("SELECT stream, kind, count FROM reject")}

    def _all(self, text: str, values: Iterable[Any] = ()) -> list[Any]:
        with _failing(self.path, "cannot be read"):
            return self._connection.execute(text, tuple(values)).fetchall()


def reading(path: str | Path) -> sqlite3.Connection:
    """Return a connection for reading a state file, even in use. Raises ``EngineError`` for other files."""
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
    """Return a lock on the file: until it is closed, and as long as this process lives."""
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
    """Convert SQLite's errors to ``EngineError``, which names the file and what to do."""
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
    """Return the entries that are new or changed."""
    return {key: value for key, value in now.items() if before.get(key) != value}


#: "SPSQ", the application id of these SQLite files.
APPLICATION: Final = 0x53505351
#: The version of the tables and their contents.
VERSION: Final = 6

#: The tables. The last column of a row is the checksum of the others (``sealed``).
TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE entry (seq INTEGER PRIMARY KEY, events INTEGER NOT NULL, data BLOB NOT NULL,
    checksum INTEGER NOT NULL) STRICT;
CREATE TABLE query (number INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL,
    entry INTEGER NOT NULL, base TEXT, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE taken (number INTEGER PRIMARY KEY, given INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE source (stream TEXT PRIMARY KEY, position TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE output (path TEXT PRIMARY KEY, size INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE reject (stream TEXT NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (stream, kind)) STRICT;
CREATE TABLE record (seq INTEGER PRIMARY KEY, query TEXT NOT NULL, number INTEGER NOT NULL,
    value BLOB NOT NULL, checksum INTEGER NOT NULL) STRICT;
CREATE TABLE graph (iri TEXT PRIMARY KEY, triples TEXT, checksum INTEGER NOT NULL) STRICT;
"""

#: SQLite's errors (their lowest 8 bits) that do not concern a file's content.
_ELSEWHERE: Final = frozenset(
    {
        sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH,
    }
)  # fmt: skip


def sealed(table: str, row: Iterable[object]) -> tuple[Any, ...]:
    """Return a row of a table with its checksum, which says of which table it is."""
    values = tuple(row)
    found = zlib.crc32(table.encode())
    for value in values:
        data = value if isinstance(value, bytes) else b"" if value is None else f"={value}".encode()
        found = zlib.crc32(data, zlib.crc32(b"%d " % len(data), found))
    return (*values, found)


def damaged(path: Path, what: object) -> EngineError:
    """Return the error for a damaged state file."""
    return EngineError(
        f"{path}: the state file is damaged: {what}: go on from a copy (spaseq state import), or begin anew "
        "with another file"
    )


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a file is new: no tables, and no application id."""
    asked = ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version")
    return not any(connection.execute(text).fetchone()[0] for text in asked)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise EngineError unless a file is an undamaged state of this version.

    Everything is read once; nothing is decoded.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise EngineError(f"{path}: an SQLite file, but not a state of spaseq: name another file")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise EngineError(
            f"{path}: written by {age} version of spaseq (layout {version}, this one reads {VERSION}): "
            "use that version, or begin anew with another file"
        )
    try:
        for what in _wrong(connection):
            raise damaged(path, what)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _ELSEWHERE:
            raise
        raise damaged(path, error) from error


def _wrong(connection: sqlite3.Connection) -> Iterable[str]:
    """Yield what is wrong, one problem at a time: continue only if nothing was yielded."""
    if _schema(connection) != _expected():
        yield "its tables are not those of a state"
    ((found,),) = connection.execute("PRAGMA integrity_check(1)")
    if found != "ok":
        yield found
    for _, table, _, _ in filter(lambda row: row[0] == "table", _expected()):
        for row in connection.execute(f"SELECT * FROM {table}"):
            if sealed(table, row[:-1]) != row:
                yield f"the checksum of a row of its table {table} is wrong"
    numbers = [seq for (seq,) in connection.execute("SELECT seq FROM entry ORDER BY seq")]
    if numbers and numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        yield "its log has a gap"


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


@cache
def _expected() -> list[tuple[str, str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        return _schema(connection)


#: The bytes of the log's header, and of the header before each page.
_HEADER: Final = 32
_FRAME: Final = 24
#: Page sizes; 65,536 bytes is written as 1.
_LEAST: Final = 512
_MOST: Final = 65_536

#: Two sums of 32 bits, as SQLite's checksums are.
Sums = tuple[int, int]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A page in the log. ``stored``: its checksum over the log so far; ``words``: the input of
    the checksum.
    """

    commits: bool
    salts: bytes
    stored: Sums
    words: Words

    def sums(self, before: Sums) -> Sums:
        """Return the right checksum, given the checksum before the frame."""
        return _summed(self.words, before)

    def follows(self, before: Sums) -> bool:
        """Return whether the frame is undamaged, and was written after the preceding one."""
        return self.sums(before) == self.stored


def check_log(path: Path) -> None:
    """Raise EngineError if the log of a state file is damaged before its last transaction.

    Must be called while no connection to the file is open: the first one removes what it cannot read.
    """
    log = path.with_name(f"{path.name}-wal")
    if not path.is_file() or not log.is_file():
        return
    with path.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
    with log.open("rb") as file:
        header = file.read(_HEADER)
        frames = [*_frames(file, _MOST if size == 1 else size)]
    if not frames:
        return
    salts, before = header[16:24], struct.unpack_from(">2I", header, 24)
    is_known = _summed(_words(header[:24]), (0, 0)) == before
    at = 0
    while is_known and at < len(frames) and frames[at].salts == salts and frames[at].follows(before):
        before = frames[at].stored
        at += 1
    for frame, following in pairwise(frames[at:]):
        # Frames with other salts belong to an older log in the same file.
        if (
            frame.commits
            and (following.salts == salts or not is_known)
            and (following.follows(frame.stored) or following.follows(frame.sums(before)))
        ):
            raise damaged(log, "a transaction before the last one cannot be read")
        before = frame.stored


def _frames(file: IO[bytes], size: int) -> Iterator[_Frame]:
    """Yield the frames of a log, behind its header."""
    if size < _LEAST or size & 7:
        return
    while len(data := file.read(_FRAME + size)) == _FRAME + size:
        _, pages, *stored = struct.unpack_from(">2I8x2I", data)
        yield _Frame(pages > 0, data[8:16], (stored[0], stored[1]), _words(data[:8] + data[_FRAME:]))


def _words(data: bytes) -> Words:
    """Return words in the byte order of this machine, which also wrote the log."""
    return np.frombuffer(data, np.uint32).astype(np.uint64)


def _summed(words: Words, before: Sums) -> Sums:
    """SQLite's checksum: for words ``a, b, …`` by two, ``s += a + t; t += b + s``, both modulo 2^32.

    A step is linear: ``(s, t)`` becomes ``M (s, t) + (a, a + b)`` with ``M = ((1, 1), (1, 2))``.
    """
    p, q, r = _powers(len(words) // 2)
    a, b = words[::2], words[::2] + words[1::2]
    s, t = before
    first = int(p[-1]) * s + int(q[-1]) * t + int((p[-2::-1] * a + q[-2::-1] * b).sum())
    second = int(q[-1]) * s + int(r[-1]) * t + int((q[-2::-1] * a + r[-2::-1] * b).sum())
    return first % 2**32, second % 2**32


@cache
def _powers(count: int) -> tuple[Words, Words, Words]:
    """Return the powers of M from 0 to ``count``, ``((p, q), (q, r))`` each."""
    powers = [(1, 0, 1)]
    for _ in range(count):
        p, q, r = powers[-1]
        powers.append(((p + q) % 2**32, (q + r) % 2**32, (q + 2 * r) % 2**32))
    p, q, r = np.array(powers, dtype=np.uint64).T
    return p, q, r

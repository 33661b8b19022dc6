"""What is in a state file, and whether it is whole: its tables, its pages, the checksum of every row."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Final

from spaseq.errors import EngineError

#: "SPSQ", by which SQLite files of this kind are known.
APPLICATION: Final = 0x53505351
#: The layout of the tables and of what is in them.
VERSION: Final = 5

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

#: SQLite's errors (their lowest 8 bits) that are not about what is in a file.
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
    """Whether a file is new: no tables, and no mark of what made it."""
    asked = ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version")
    return not any(connection.execute(text).fetchone()[0] for text in asked)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise EngineError unless a file is a state of this layout, and everything in it is whole.

    Everything is read once; nothing is decoded.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise EngineError(f"{path}: an SQLite file, but no state of spaseq's: name another file")
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
    """What is wrong; the next thing can be asked for if nothing is."""
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

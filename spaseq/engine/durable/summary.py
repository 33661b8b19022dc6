"""A description of a state file for people; and copies of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spaseq.engine.durable.horizon import keeps
from spaseq.engine.durable.store import check, reading
from spaseq.errors import EngineError, QueryError
from spaseq.language import checked
from spaseq.language.syntax import Query
from spaseq.limits import UNLIMITED


@dataclass(frozen=True, slots=True)
class QuerySummary:
    """A registered query: how many of its matches were taken; ``keeps``: why the log cannot be cut for it."""

    name: str
    text: str
    taken: int
    keeps: str | None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source: how many good and bad events of it were read."""

    stream: str
    location: str
    events: int
    bad: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of a state file. ``size``: of the file in bytes, ``log_bytes`` of the events kept in it.

    ``events``: how many arrived in all, by stream in ``arrived``; ``kept``: how many of them the log has.
    ``outputs``: the lengths of output files in bytes, and how many records URLs got; ``bad`` and ``late``:
    how many events were rejected.
    """

    path: str
    size: int
    events: int
    kept: int
    log_bytes: int
    bad: int
    late: int
    arrived: dict[str, int]
    queries: tuple[QuerySummary, ...]
    sources: tuple[SourceSummary, ...]
    outputs: dict[str, int]


_QUERIES: Final = "SELECT name, text, given FROM query JOIN taken USING (number) ORDER BY number"


def summary(path: str | Path) -> Summary:
    """Return the contents of a state file, which may be in use. Raises ``EngineError`` for other files."""
    path = Path(path)
    try:
        with closing(reading(path)) as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta"))
            rows = list(connection.execute(_QUERIES))
            # The newest query of a name counts: it replaced those before.
            queries = {name: (text, given) for name, text, given in rows}
            sources = list(connection.execute("SELECT stream, position FROM source ORDER BY stream"))
            rejects = dict(connection.execute("SELECT kind = 'late', sum(count) FROM reject GROUP BY 1"))
            ((kept, log_bytes),) = connection.execute(
                "SELECT ifnull(sum(events), 0), ifnull(sum(length(data)), 0) FROM entry"
            )
            outputs = dict(connection.execute("SELECT path, size FROM output ORDER BY path"))
    except sqlite3.DatabaseError as error:
        raise EngineError(f"{path}: the state file cannot be read: {error}") from error
    positions = [(stream, json.loads(position)) for stream, position in sources]
    prepared = {name: _prepared(text, name) for name, (text, _) in queries.items()}
    known = [q for q in prepared.values() if q is not None]
    return Summary(
        path=str(path),
        size=sum(p.stat().st_size for p in (path, Path(f"{path}-wal")) if p.exists()),
        events=int(meta.get("events", 0)),
        kept=kept,
        log_bytes=log_bytes,
        bad=rejects.get(0, 0),
        late=rejects.get(1, 0),
        arrived=json.loads(meta.get("arrivals", "{}")),
        queries=tuple(
            QuerySummary(name, text, given, None if (q := prepared[name]) is None else keeps(q, known))
            for name, (text, given) in queries.items()
        ),
        sources=tuple(
            SourceSummary(stream, at["location"], at["events"] + at.get("followed", 0), at["bad"])
            for stream, at in positions
        ),
        outputs=outputs,
    )


def _prepared(text: str, name: str) -> Query | None:
    try:
        return checked(text, name, UNLIMITED)
    except QueryError:  # of another version: the engine says more
        return None


def copy(source: str | Path, target: str | Path) -> None:
    """Copy a state file consistently, even in use. Raises ``EngineError`` if the target exists."""
    target = Path(target)
    if target.exists():
        raise EngineError(f"{target} is there already: remove it, or name another file")
    with closing(reading(source)) as connection:
        part = target.with_name(target.name + "-part")
        part.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(part)) as made:
                connection.backup(made)
                check(made, part)
            part.rename(target)
        except sqlite3.Error as error:
            raise EngineError(f"{target} cannot be written: {error}") from error
        finally:
            part.unlink(missing_ok=True)

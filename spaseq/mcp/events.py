"""The tools over an engine, as plain values in and out."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from spaseq.engine import Engine, Handle
from spaseq.errors import EngineError, LimitError, SpaseqError
from spaseq.language import checked
from spaseq.language.syntax import Query
from spaseq.matching.plan import explain as plan
from spaseq.mcp.bounds import Bounds
from spaseq.results.writers._json import line_of

#: At most this many reasons for refused events are returned.
_REASONS: Final = 5

QueryText = Annotated[
    str,
    Field(
        description="A SPAseq query, as: PREFIX : <http://example.org/> SELECT ?who ?p ?q WITHIN 10 SECONDS "
        "FROM STREAM S <http://example.org/trades> WHERE { SEQ(A ; B) "
        "DEFINE GPM A ON S { ?who :price ?p } "
        "DEFINE GPM B ON S { ?who :price ?q . FILTER(?q < ?p) } }"
    ),
]
Name = Annotated[str, Field(description="The query's name, as register gave it.")]
Stream = Annotated[str, Field(description="The stream's IRI, as in FROM STREAM.")]


class PushedEvent(TypedDict):
    """An event: its graph as Turtle, and its time, a tick or a text in ISO 8601."""

    graph: str
    time: int | str


class EventTools:
    """The tools over an engine. Each method is a tool, and a model reads its docstring as the description."""

    def __init__(self, engine: Engine, bounds: Bounds) -> None:
        self._engine = engine
        self._bounds = bounds
        self._lock = threading.Lock()
        self._handles: dict[str, Handle] = {}
        self._number = 0

    def check(self, query: QueryText) -> dict[str, Any]:
        """Say whether a query over streams of events is well-formed, what is doubtful, and how it runs."""
        prepared = checked(query)
        return {"plan": str(plan(prepared)), "warnings": [*prepared.warnings]}

    def register(self, query: QueryText) -> dict[str, Any]:
        """Start a query over streams of events. It sees events from now on; read its matches with matches."""
        prepared = checked(query)
        with self._lock:
            if len(self._handles) >= self._bounds.queries:
                raise LimitError(
                    f"{len(self._handles):,} queries are registered, and more are not allowed: cancel one",
                    limit="queries",
                )
            handle = self._engine.register(prepared)
            self._number += 1
            name = f"q{self._number}"
            self._handles[name] = handle
        return {"name": name, "streams": _streams(prepared), "warnings": [*prepared.warnings]}

    def push(self, stream: Stream, events: list[PushedEvent]) -> dict[str, Any]:
        """Add events to a stream, in order of time. All times of a stream are ticks, or all are ISO 8601."""
        given = [(event["graph"], _time(event["time"])) for event in events]
        with self._engine.turn.lock:
            before = self._engine.bad, self._engine.late
            self._engine.push_many(stream, given)
            bad, late = self._engine.bad - before[0], self._engine.late - before[1]
            refused = self._engine.rejected[-min(bad + late, _REASONS) :] if bad + late else []
        return {
            "added": len(given) - bad - late,
            "bad": bad,
            "late": late,
            "reasons": [f"{event.position}: {event.reason}" for event in refused],
        }

    def matches(
        self,
        name: Name,
        rows: Annotated[
            int | None, Field(description="At most so many; the server has a limit, too.")
        ] = None,
    ) -> dict[str, Any]:
        """Return the matches that a query has found and that no earlier call has returned."""
        handle = self._handle(name)
        most = self._bounds.most(rows)
        found, error = list[Any](), None
        several = handle.matches()
        try:
            while len(found) < most and (match := next(several, None)) is not None:
                found.append(json.loads(line_of(match)))
        except SpaseqError as raised:  # after the last match of a query that has failed
            error = str(raised)
        stats = handle.stats
        return {
            "matches": found,
            "may_have_more": len(found) == most,
            "found_in_all": stats.matches,
            "is_over": handle.done,
            "error": error,
        }

    def cancel(self, name: Name) -> dict[str, Any]:
        """End a query. Return its unread matches, for the last time."""
        handle = self._handle(name)
        handle.cancel()
        left = self.matches(name)
        with self._lock:
            self._handles.pop(name, None)
        return left

    def _handle(self, name: str) -> Handle:
        with self._lock:
            handle = self._handles.get(name)
            known = [*self._handles]
        if handle is not None:
            return handle
        alike = get_close_matches(name, known, 1)
        hint = f"did you mean {alike[0]}?" if alike else f"there are {', '.join(known) or 'none'}"
        raise EngineError(f"no query is called {name}: {hint}")


def _streams(query: Query) -> list[str]:
    return [stream.iri.value for stream in query.streams]


def _time(given: int | str) -> int | datetime:
    if isinstance(given, int):
        return given
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise EngineError(
            f"{given!r} is no time: write a tick, or ISO 8601 as 2026-01-31T12:00:00Z"
        ) from None

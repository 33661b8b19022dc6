"""The state of an engine: everything is recorded, committed, and repeated by the next engine."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import RLock
from typing import IO, Any, Final

from spaseq.engine.durable import journal as taken
from spaseq.engine.durable.horizon import keeps, unneeded
from spaseq.engine.durable.journal import Cancelled, Journal, Orders, Registered
from spaseq.engine.durable.outbox import Outbox
from spaseq.engine.durable.replay import Position, Replay, Restored
from spaseq.engine.durable.store import Commit, Store, StoredQuery, changed
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.engine.pipelines.pipeline import Pipeline
from spaseq.engine.pipelines.stats import COUNTS
from spaseq.engine.rejects import Rejects
from spaseq.errors import EngineError
from spaseq.events import BEGINNING
from spaseq.language import syntax
from spaseq.terms.dictionary import Dictionary

#: At most this many events wait in memory between two commits by time.
MOST: Final = 100_000
#: The log is cut only if this many events per query can be removed: a cut records the state of all queries.
PER_QUERY: Final = 4


class EngineState:
    """A state file, and what an engine has done since the last commit. Used in the engine's turn."""

    def __init__(
        self,
        path: str | Path,
        every: int | timedelta | None,
        settings: Mapping[str, str],
        dispatcher: Dispatcher,
        rejects: Rejects,
        dictionary: Dictionary,
    ) -> None:
        """``every``: the number of events, or the time, after which a commit is due; None: never.

        ``settings``: those of an engine that must be the same each time, as text.

        Raises ``EngineError`` for a file that is not a state, or in use.
        """
        self.handles: dict[str, Handle] = {}
        self.positions: dict[str, Position] = {}
        self.outputs: dict[str, int] = {}
        #: The outbox, if there is one.
        self._outbox: Outbox | None = None
        # Identifies the destination of its records.
        self._identity = uuid.uuid4().hex
        #: Called in the engine's turn when everything that happened is in the file.
        self.on_commit: list[Callable[[], None]] = []
        self._every = every
        self._settings = settings
        self._dispatcher, self._rejects, self._dictionary = dispatcher, rejects, dictionary
        self._journal = Journal(dictionary, self._orders, self._joins, self._mixes)
        # All queries registered in an entry, or in the base; and their handles.
        self._queries: dict[int, StoredQuery] = {}
        self._of: dict[int, Handle] = {}
        # By a query's rank in the engine, its permanent number.
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._cancelled: set[int] = set()
        # Queries that end by themselves, and count the events up to that point.
        self._ending: list[Handle] = []
        # The contents of the file.
        self._given: dict[int, int] = {}
        self._rejected: Mapping[tuple[str, str], int] = {}
        self._read: dict[str, str] = {}
        self._meta: dict[str, str] = {}
        self._new: list[StoredQuery] = []
        self._events = 0
        self._at = time.monotonic()
        self.store = Store(path)

    def open(self, engine: Restored) -> None:
        """Restore the last engine."""
        self._meta = self.store.meta()
        self._identity = self._meta.get("id", self._identity)
        for name, value in self._settings.items():
            if (before := self._meta.get(name, value)) != value:
                raise EngineError(
                    f"{self.store.path}: this state is of an engine with {name}={before}, not {value}: what "
                    "arrived would be another thing. Say the same, or begin anew with another file"
                )
        Replay(self.store, self._journal, engine, self._added).run(self._meta)
        self._next = int(self._meta.get("next", 0))
        self._rejected = self.store.rejects()
        self._rejects.resume(self._rejected)
        self._read = self.store.sources()
        self.positions = {stream: Position.of(text) for stream, text in self._read.items()}
        self.outputs = self.store.outputs()
        self._events = self._dispatcher.events
        self._dispatcher.journal = self._journal
        self._dispatcher.unhold()
        self.commit({})

    def close(self) -> None:
        """Close the file and the outbox."""
        self._dispatcher.journal = None
        if self._outbox is not None:
            self._outbox.close()
        self.store.close()

    def send_to(self, url: str, media: str, lock: RLock) -> Outbox:
        """See ``Engine.outbox``."""
        if self._outbox is not None:
            raise EngineError(f"the records of this engine go to {self._outbox.name}: a state has one outbox")
        self._outbox = Outbox(url, media, self._identity, self.store, self.outputs, lock)
        self.on_commit.append(self._outbox.send)
        return self._outbox

    # --- queries ------------------------------------------------------------------------------------

    def register(self, name: str, query: syntax.Query, add: Callable[[], Handle]) -> Handle:
        """Register a query with a name."""
        number, rank = self._next, self._dispatcher.registered
        self._journal.begin()
        self._numbers[rank] = number
        handle = add()
        if self._dispatcher.registered == rank:
            del self._numbers[rank]  # it joined a query set
        said = StoredQuery(number, name, query.text or str(query), self._journal.seq)
        self._journal.note(Registered(number))
        self._next += 1
        self._new.append(said)
        self._added(said, handle, None)
        return handle

    def _added(self, query: StoredQuery, handle: Handle, rank: int | None) -> None:
        """Note a new query's handle; ``rank``: its place in the engine, if it has one of its own."""
        if rank is not None:
            self._numbers[rank] = query.number
        self.handles[query.name] = handle
        self._queries[query.number] = query
        self._of[query.number] = handle
        self._given[query.number] = query.given
        if handle.query.modifiers.limit is not None or isinstance(handle.query.form, syntax.Ask):
            self._ending.append(handle)
        handle.on_cancel = partial(self._cancel, query.number)

    def _joins(self) -> bool:
        """Return whether events that came one by one may be replayed in larger batches."""
        ending = self._ending
        while ending and ending[-1].is_over:
            ending.pop()
        return not ending

    def _mixes(self) -> bool:
        """Return whether a query reads a derived stream beside a stream that it may be derived from."""
        return any(
            stream_set.layer and len(stream_set.streams) > 1 for stream_set in self._dispatcher.stream_sets
        )

    def _cancel(self, number: int) -> None:
        """Record that a query was removed."""
        if number in self._of and number not in self._cancelled:
            self._cancelled.add(number)
            if self._dispatcher.journal is not None:
                self._journal.note(Cancelled(number))
            name = self._queries[number].name
            if self.handles.get(name) is self._of[number]:
                del self.handles[name]

    # --- commits ------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether a commit is due."""
        if isinstance(self._every, int):
            return self._dispatcher.events - self._events >= self._every
        if self._every is None:
            return False
        passed = time.monotonic() - self._at
        return passed >= self._every.total_seconds() or self._journal.events >= MOST

    def commit(self, outputs: Mapping[str, IO[Any]]) -> None:
        """Write everything since the last commit, in one transaction. See ``Engine.commit``."""
        journal, commit = self._journal, Commit()
        with self._rejects.still():
            rejects = self._rejects.counts
            read = {stream: position.text() for stream, position in self.positions.items()}
            sizes = {path: _size(file) for path, file in outputs.items()}
        if self._outbox is not None:
            sizes[self._outbox.name] = self._outbox.count
        given = {number: handle.delivered for number, handle in self._of.items()}
        mark = self._mark()
        commit.first = first = 0 if not mark else mark[0]
        commit.entries = journal.unwritten(first)
        commit.queries = list(self._new)
        if mark:
            commit.queries, commit.gone = mark[1], list(self._cancelled)
            for entry in journal.kept:
                if entry.seq < first:
                    commit.graphs |= entry.graphs
        commit.given = list(changed(given, self._given).items())
        commit.rejects = changed(rejects, self._rejected)
        commit.outputs = changed(sizes, self.outputs)
        commit.sources = changed(read, self._read)
        arrivals = {self._dictionary.term(s).value: n for s, n in self._dispatcher.arrivals.items()}
        meta = {
            "next": str(self._next),
            "events": str(self._dispatcher.events),
            "arrivals": json.dumps(arrivals),
            "id": self._identity,
            **self._settings,
        }
        if mark:
            meta["mark"] = json.dumps({"seq": journal.seq - 1, "orders": self._orders()})
        commit.meta = changed(meta, self._meta)
        if self._outbox is not None:
            commit.records = self._outbox.waiting
        if commit != Commit(first=first):
            self.store.commit(commit)
        if self._outbox is not None:
            self._outbox.written()
        journal.written(first)
        self._new, self._given, self._rejected, self._read = [], given, rejects, read
        self._meta, self.outputs = {**self._meta, **meta}, {**self.outputs, **sizes}
        if mark:
            for number in commit.gone:
                self._cancelled.discard(number)
                del self._queries[number], self._of[number], self._given[number]
        self._events, self._at = self._dispatcher.events, time.monotonic()
        for told in self.on_commit:
            told()

    def _mark(self) -> tuple[int, list[StoredQuery]] | None:
        """Return the first entry still needed, and the state of the queries; None to cut nothing."""
        live = {n: h for n, h in self._of.items() if n not in self._cancelled}
        if not all(handle.is_taken for handle in live.values()):
            return None
        going = [handle.query for handle in live.values() if not handle.is_over]
        if any(keeps(query, going) for query in going):
            return None
        journal = self._journal
        entries = [*journal.kept, journal.unfinished]
        count = unneeded(self._dispatcher, entries, self._orders(), self._gone())
        gone = sum(entry.events for entry in entries[:count])
        if gone < max(taken.BLOCK, PER_QUERY * len(live), sum(entry.events for entry in entries[count:])):
            return None
        journal.close()
        seq = entries[count].seq if count < len(entries) else journal.seq
        places = self._places()
        begun = entries[count].begun if count < len(entries) else self._orders()
        since = {order["first"]: int(order["watermark"]) for order in begun}
        return seq, [
            self._based(self._queries[n], handle, places.get(n), since) for n, handle in live.items()
        ]

    def _gone(self) -> set[int]:
        """Return the streams of queries that are over, which a replay cannot derive again."""
        over = [handle.query.register for handle in self._of.values() if handle.is_over]
        return {self._dictionary.pin(made.iri) for made in over if made is not None}

    def _places(self) -> dict[int, tuple[int, int]]:
        """Return, for the queries that are not over, their order and how many events it has released."""
        numbers = {id(handle): number for number, handle in self._of.items()}
        return {
            numbers[id(handle)]: (
                self._numbers[stream_set.members[0].rank],
                stream_set.before + stream_set.position,
            )
            for stream_set in self._dispatcher.stream_sets
            for query in stream_set.live
            for handle in query.handle.members
        }

    def _based(
        self, query: StoredQuery, handle: Handle, place: tuple[int, int] | None, since: Mapping[int, int]
    ) -> StoredQuery:
        """Return the state of a query. ``since``: by order, the time from which events are kept."""
        pipeline = handle.pipeline
        cuts = pipeline.answers.cuts if isinstance(pipeline, Pipeline) and place is not None else None
        counts = handle.query.window.unit == "EVENTS"
        base = {
            "stats": {k: v for k, v in asdict(handle.stats).items() if k in COUNTS},
            "gpms": {name: asdict(counts) for name, counts in handle.stats.gpms.items()},
            "begin": handle.pipeline.beginning,
            "left": handle.pipeline.left,
            "over": handle.is_over,
            "error": None if handle.error is None else str(handle.error),
            "found": handle.delivered,
            "of": place if counts else None,
            "cuts": [] if cuts is None or place is None else cuts.state(since.get(place[0], BEGINNING)),
        }
        query.base, query.given = json.dumps(base), handle.delivered
        return query

    def _orders(self) -> Orders:
        """Return the state of all orders; each is identified by its oldest query."""
        return [
            {
                "first": self._numbers[stream_set.members[0].rank],
                "of": sorted(self._dictionary.term(stream).value for stream in stream_set.streams),
                "fresh": stream_set.is_fresh,
                "position": stream_set.before + stream_set.position,
                "made": {
                    self._dictionary.term(made).value: self._dispatcher.arrivals[made]
                    for made in sorted({q.output for q in stream_set.members if q.output is not None})
                },
                **stream_set.order.state(),
            }
            for stream_set in self._dispatcher.stream_sets
            if stream_set.members
        ]


def _size(file: IO[Any]) -> int:
    """Return a file's length in bytes, after making its content durable."""
    file.flush()
    os.fsync(file.fileno())
    return os.fstat(file.fileno()).st_size

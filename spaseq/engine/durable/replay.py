"""Restore an engine: repeat everything that happened, without delivering matches."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from spaseq.connect import LiveSource, Location
from spaseq.connect.again import Count, Place
from spaseq.engine.durable.journal import (
    Arrived,
    Cancelled,
    Changed,
    Happening,
    Held,
    Journal,
    JournalEntry,
    Moved,
    Orders,
    Promised,
    Registered,
    decode,
    orders_of,
)
from spaseq.engine.durable.store import Store, StoredQuery
from spaseq.engine.handle import Handle
from spaseq.engine.pipelines.dispatcher import Dispatcher
from spaseq.engine.pipelines.stats import Stats
from spaseq.errors import EngineError, QueryError
from spaseq.events import EventBatch
from spaseq.language import checked, syntax
from spaseq.language.syntax import WindowKind
from spaseq.limits import UNLIMITED
from spaseq.sources import BadEvent
from spaseq.sources.columns.table import Table
from spaseq.terms.dictionary import Dictionary
from spaseq.why.diagnosis import GpmStats

#: Called with a restored handle: its query, and its rank in the engine, if it has one of its own.
Added = Callable[[StoredQuery, Handle, int | None], None]


@dataclass(frozen=True, slots=True)
class Restored:
    """The engine that a replay fills.

    ``add`` registers a query; the number is when its first window began, if that matters. ``tidy`` forgets
    old terms. ``change`` changes a background graph.
    """

    dispatcher: Dispatcher
    dictionary: Dictionary
    add: Callable[[syntax.Query, int | None], Handle]
    tidy: Callable[[], None]
    change: Callable[[Changed], None]


class Replay:
    """Repeats what a state file has in an engine without queries."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        engine: Restored,
        added: Added,
    ) -> None:
        self._store, self._journal, self._engine, self._added = store, journal, engine, added
        self._dispatcher, self._dictionary = engine.dispatcher, engine.dictionary
        self._queries = {query.number: query for query in store.queries()}
        self._handles: dict[int, Handle] = {}
        self._bases: dict[int, dict[str, Any]] = {
            number: json.loads(query.base) for number, query in self._queries.items() if query.base
        }
        self._is_warming = False

    def run(self, meta: Mapping[str, str]) -> None:
        """Restore the engine. Raises ``EngineError`` for unreadable data, and what the queries raise."""
        mark = json.loads(meta["mark"]) if "mark" in meta else None
        entries = self._store.sizes()
        self._dispatcher.is_replayed = True
        try:
            for graph, triples in self._store.graphs().items():
                self._engine.change(Changed(graph, triples))
            if mark is not None:
                self._is_warming = True
                first = entries[0][0] if entries else mark["seq"] + 1
                orders = self._orders(first) if entries else mark["orders"]
                self._restore(orders, first)
            for seq, _, _ in entries:
                if mark is not None and self._is_warming and seq > mark["seq"]:
                    self._resume(mark["orders"])
                if self._is_warming:
                    self._number(orders := self._orders(seq))
                    self._count(orders)
                self._redo(seq)
                self._engine.tidy()
            if mark is not None and self._is_warming:
                self._resume(mark["orders"])
            if mark is not None and not entries:
                self._journal.known(JournalEntry(mark["seq"]))
                self._journal.kept.clear()
        finally:
            self._dispatcher.is_replayed = False
        for iri, count in json.loads(meta.get("arrivals", "{}")).items():
            self._dispatcher.arrivals[self._dictionary.pin(NamedNode(iri))] = count
        self._dispatcher.events = int(meta.get("events", 0))

    def _orders(self, seq: int) -> Orders:
        """Return the state of the orders before an entry."""
        with self._naming(seq):
            return orders_of(self._store.entry(seq))

    @contextmanager
    def _naming(self, seq: int) -> Iterator[None]:
        """Name the entry in errors of the block."""
        try:
            yield
        except EngineError as error:
            raise EngineError(f"{self._store.path}: entry {seq}: {error}") from error

    def _redo(self, seq: int) -> None:
        """Repeat the happenings of an entry."""
        kept = JournalEntry(seq, begun=self._orders(seq))
        with self._naming(seq):
            happenings = decode(self._store.entry(seq), self._dictionary)
        for what in happenings:
            if isinstance(what, Arrived):
                kept.saw(what.stream, what.batches[0])
            elif isinstance(what, Changed):
                kept.graphs[what.graph] = what.triples
            self._do(what)
        self._journal.known(kept)

    def _do(self, what: Happening) -> None:
        dispatcher = self._dispatcher
        match what:
            case Arrived(stream, first, [batch]):
                dispatcher.arrivals[stream] = first
                dispatcher.enter(stream, batch)
            case Moved():
                dispatcher.move()
            case Promised(clock, time, stream):
                dispatcher.promise(clock, time, stream)
            case Held(stream, holds):
                dispatcher.hold(stream, holds)
            # Unknown queries were cancelled before the mark.
            case Registered(number) if number in self._queries:
                self._register(self._queries[number])
            case Cancelled(number) if number in self._handles:
                self._handles[number].cancel()
            case Changed():
                self._engine.change(what)

    def _register(self, query: StoredQuery, prepared: syntax.Query | None = None) -> None:
        base = self._bases.get(query.number) if self._is_warming else None
        prepared = prepared or self._prepared(query)
        tumbling = prepared.window.kind is WindowKind.TUMBLING
        rank = self._dispatcher.registered
        handle = self._engine.add(prepared, base["begin"] if base is not None and tumbling else None)
        is_alone = self._dispatcher.registered > rank
        if is_alone and base is not None:
            self._dispatcher.queries[-1].pipeline.answers.warm(base.get("cuts", ()))
        self._handles[query.number] = handle
        self._added(query, handle, rank if is_alone else None)
        if base is None:
            handle.recount(query.given, query.given)
        elif base["over"]:
            handle.end(_stats(base), base["error"])
            handle.recount(query.given, 0)

    def _prepared(self, query: StoredQuery) -> syntax.Query:
        try:
            return checked(query.text, f"query {query.name} of {self._store.path}", UNLIMITED)
        except QueryError as error:
            raise EngineError(
                f"{self._store.path}: this version cannot read a query of it:\n{error}"
            ) from None

    # --- from a mark on -----------------------------------------------------------------------------

    def _number(self, orders: Orders) -> None:
        """Give derived events the numbers that they had at this state of the orders.

        Some were derived from events that are no longer in the log.
        """
        arrivals = self._dispatcher.arrivals
        for order in orders:
            for iri, count in order.get("made", {}).items():
                stream = self._dictionary.pin(NamedNode(iri))
                arrivals[stream] = max(count, arrivals[stream])

    def _count(self, orders: Orders) -> None:
        """Let windows of EVENTS count on from this state of the orders.

        At the mark a query had seen ``stats.events``, and its order was at ``of``. It had seen fewer, by as
        many events as the order was behind that. Some events that are no longer in the log came later: a
        number that is higher already stays.
        """
        positions = {order["first"]: order["position"] for order in orders if "position" in order}
        counts = {
            number: (base["stats"]["events"] - base["of"][1], positions[base["of"][0]])
            for number, base in self._bases.items()
            if base.get("of") and not base["over"] and base["of"][0] in positions
        }
        if not counts:
            return
        numbers = {id(handle): number for number, handle in self._handles.items()}
        for query in self._dispatcher.queries:
            seen = [counts[n] for h in query.handle.members if (n := numbers.get(id(h))) in counts]
            if seen:
                more, position = seen[0]
                query.saw(more + position)
                query.stream_set.before = position - query.stream_set.position

    def _restore(self, orders: Orders, first: int) -> None:
        """Restore the queries that began before the first entry, with their orders in the state before it."""
        # For each set of streams, the order of the newest query.
        places: dict[frozenset[int], int] = {}
        for query in self._queries.values():
            if query.entry >= first or query.number not in self._bases:
                continue
            prepared = self._prepared(query)
            streams = frozenset(self._dictionary.pin(declared.iri) for declared in prepared.streams)
            iris = sorted({declared.iri.value for declared in prepared.streams})
            alike = [i for i, o in enumerate(orders) if o["of"] == iris and o["first"] <= query.number]
            if alike:  # otherwise the query was over
                place = max(alike, key=lambda i: int(orders[i]["first"]))
                if streams in places and places[streams] != place:
                    self._place(streams, orders[places[streams]])
                places[streams] = place
            self._register(query, prepared)
        for streams, place in places.items():
            self._place(streams, orders[place])

    def _place(self, streams: frozenset[int], order: Mapping[str, Any]) -> None:
        """Restore the order of the newest queries of these streams."""
        stream_set = self._dispatcher.newest(streams)
        stream_set.order.restore(order)
        stream_set.is_fresh = order["fresh"]

    def _resume(self, orders: Orders) -> None:
        """Treat matches before the mark as known; those from now on are new."""
        self._is_warming = False
        self._dispatcher.move()
        self._number(orders)
        self._count(orders)
        for number, base in self._bases.items():
            handle, given = self._handles[number], self._queries[number].given
            if not base["over"]:
                handle.resume(base["left"], _stats(base))
                handle.recount(given, given - base["found"])
        for query in self._dispatcher.queries:
            query.pipeline.answers.is_warming = False


def _stats(base: Mapping[str, Any]) -> Stats:
    gpms = {name: GpmStats(**counts) for name, counts in base["gpms"].items()}
    return Stats(**base["stats"], gpms=gpms)


@dataclass(slots=True)
class Position(Count):
    """How far a source was read: good and bad events of a finite source, and the latest time.

    ``live``: the place after which a live source continues, if it has come so far; ``followed``: how many
    events of the live source came.
    """

    location: str = ""
    bad: int = 0
    newest: int | None = None
    live: Place | None = None
    followed: int = 0

    @classmethod
    def of(cls, text: str) -> Position:
        """Parse what ``text`` returned."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Return the position as JSON."""
        return json.dumps(asdict(self))

    def goes_on(self, batch: EventBatch, live: Place | None) -> None:
        """Add the events of a batch; ``live``: the place after them in a live source."""
        if len(batch):
            newest = int(batch.time.max())
            self.newest = newest if self.newest is None else max(newest, self.newest)
        if live is None:
            self.took(batch)
        else:
            self.live = live
            self.followed += len(batch)


def where(location: Location) -> str:
    """Return the name of a source in a state, without credentials."""
    if isinstance(location, LiveSource):
        return str(location.address)
    return str(location) if isinstance(location, str | Path) else "table"


def position(known: dict[str, Position], stream: str, location: Location) -> Position:
    """Return how far a stream's source was read; from ``known``, if it is there.

    Raises ``EngineError`` for a source that cannot be continued, or was of another kind.
    """
    check(location)
    found = known.setdefault(stream, Position(location=where(location)))
    # A history is read to its end before its live source, which has no end.
    if isinstance(location, LiveSource):
        is_other = found.live is None and bool(found.events) and not location.history
    else:
        is_other = found.live is not None
    if is_other:
        raise EngineError(
            f"{where(location)}: this stream was read of {found.location} before: give the same source "
            "again, or begin anew with another state file"
        )
    return found


def check(location: Location) -> None:
    """Raise ``EngineError`` for a source that the next engine cannot continue."""
    if isinstance(location, LiveSource):
        for past, _ in location.history:
            check(past)
        return
    why = None
    if not isinstance(location, str | Path | Table):
        why = "an open file"
    elif str(location) == "-":
        why = "standard input"
    elif isinstance(location, str | Path) and _is_special(Path(location)):
        why = "a pipe"
    if why is not None:
        raise EngineError(
            f"{location}: {why} cannot be read again from its start, as a restart must: with a state, give a "
            "file, a folder or a live URL, or push the events and go on after engine.arrived"
        )


def _is_special(path: Path) -> bool:
    return path.exists() and not (path.is_dir() or stat.S_ISREG(path.stat().st_mode))


def again(
    refuse: Callable[[BadEvent], None], position: Position, still: Callable[[], AbstractContextManager[None]]
) -> Callable[[BadEvent], None]:
    """Count and report bad events, except the first ones, which were reported before the restart.

    ``still``: a context in which no commit happens, so that the count and the report stay together.
    """
    left = position.bad

    def tell(letter: BadEvent) -> None:
        nonlocal left
        if left:
            left -= 1
            return
        with still():
            refuse(letter)
            position.bad += 1

    return tell

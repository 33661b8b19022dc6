"""Live datasets: named graphs added to a dataset are events, matches of CONSTRUCT become named graphs of it.

A graph is an event when the default graph has its ``prov:generatedAtTime``. If that is added last, the event
is pushed, and matches that it completes are delivered, before ``add`` returns. If it is added before the
graph, it announces the event, which is pushed when the next one is announced. ``flush``, and the end of
``with connection:``, push events that still wait, and events that the store did not report (Oxigraph's does
not when it loads a file). ``with connection.event(…)`` does everything in order.

rdflib's Result keeps every row that it ever returned. Live results come from ``Results``, which forgets them.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from rdflib.graph import Graph
from rdflib.store import TripleAddedEvent, TripleRemovedEvent
from rdflib.term import BNode, Node, URIRef

from spaseq.engine import Engine, Handle
from spaseq.errors import EngineError, SpaseqWarning
from spaseq.language import as_query
from spaseq.language.syntax import Construct, Query, RegisterKind
from spaseq.rdf.description import GENERATED_AT, PART_OF, about_match, time_literal
from spaseq.rdf.recorded import Name, default_graph, named_graph
from spaseq.results.batch import Match
from spaseq.sources import BadEvent
from spaseq.sources.times import read_time
from spaseq.terms.interop import from_rdflib


class Results:
    """The matches of a query, each returned once: iteration takes the matches that are there, and then ends.

    Iteration raises the handle's ``error`` if the query failed. It holds the newest ``keep`` matches;
    ``dropped`` counts older ones that were never read.
    """

    def __init__(self, keep: int) -> None:
        self.dropped = 0
        self.handle: Handle | None = None
        self._found: deque[Match] = deque(maxlen=keep)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Match]:
        while True:
            if not self._found:
                break
            match = self._found[0]
            try:
                self._found.popleft()
            except BaseException:  # an interrupt: the match is lost
                if not self._found or self._found[0] is not match:
                    self._found.appendleft(match)
                raise
            yield match
        if self.handle is not None and self.handle.error is not None:
            raise self.handle.error

    def add(self, match: Match) -> None:
        """Hold a match until it is read."""
        self.dropped += len(self._found) == self._found.maxlen
        self._found.append(match)


class Connection:
    """A dataset and an engine; a context manager that closes itself. ``connect`` makes one.

    Several connections may share an engine, each used by its own thread: each works in a turn of the engine.
    The dataset itself is as thread-safe as its store, and rdflib's stores are for one thread at a time.

    ``pushed`` counts the events; ``rejected`` holds the newest named graphs that could not become events.
    """

    def __init__(self, graph: Graph, engine: Engine, stream: str | None, keep: int) -> None:
        if not graph.store.context_aware:
            raise EngineError(f"{type(graph.store).__name__} holds no named graphs: use a Dataset")
        if keep < 1:
            raise EngineError(f"keep={keep}: a connection keeps one event at least")
        self.pushed = 0
        self.rejected: deque[BadEvent] = deque(maxlen=keep)
        self._graph = graph
        self._times = default_graph(graph)
        self._engine = engine
        # The engine's own lock, because callbacks run with it held.
        self._turn = engine.turn
        self._stream = stream
        self._keep = keep
        # Names of graphs that are not new events: graphs that were there, events, and matches, oldest first.
        self._old = frozenset(self._times.subjects(GENERATED_AT, None))
        self._events: dict[Node, None] = {}
        self._matches: dict[Node, None] = {}
        # Announced events, the graph of which is still missing.
        self._announced: dict[Name, Node] = {}
        self._writing = 0
        # Events to be pushed, each with its time, and the number of its streams that already have it.
        self._waiting: dict[Name, tuple[Node, int]] = {}
        self._pushing = False
        self._warned = False
        # rdflib raises for a kind of event without a subscriber, once another kind has one.
        for kind in (TripleAddedEvent, TripleRemovedEvent):
            graph.store.dispatcher.subscribe(kind, self._changed)  # type: ignore[no-untyped-call]

    # --- events

    @contextmanager
    def event(self, name: Name | str, time: datetime | int, stream: str | None = None) -> Iterator[Graph]:
        """Yield the graph ``name`` to be filled; at the end push it as an event of the stream."""
        node = name if isinstance(name, URIRef | BNode) else URIRef(name)
        graph = named_graph(self._graph, node)
        yield graph
        self._turn.check()
        with self._turn.lock:
            with self._own():
                if stream is not None:
                    self._times.add((node, PART_OF, URIRef(stream)))
                self._times.add((node, GENERATED_AT, time_literal(time)))
            self._take(node, time_literal(time))

    def flush(self) -> None:
        """Push complete events that were not pushed, in the order of their times."""
        self._turn.check()
        with self._turn.lock:
            known = self._events.keys() | self._matches.keys() | self._old
            found = [
                (name, time) for name, time in self._times.subject_objects(GENERATED_AT) if name not in known
            ]
            for name, time in sorted(found, key=lambda pair: (_order(pair[1]), pair[0])):
                if isinstance(name, URIRef | BNode):
                    self._take(name, time)
            self._push_waiting()

    def _changed(self, event: TripleAddedEvent | TripleRemovedEvent) -> None:
        """Handle rdflib's report that a triple was added to, is being added to, or was removed from a graph
        of the store.
        """
        with self._turn.lock:
            if self._writing or isinstance(event, TripleRemovedEvent):
                return
            # rdflib's events have attributes that they do not declare.
            name = getattr(event.context, "identifier", event.context)  # type: ignore[attr-defined]
            subject, predicate, time = event.triple  # type: ignore[attr-defined]
            if name == self._times.identifier:
                if predicate == GENERATED_AT and subject not in self._matches:
                    self._announced[subject] = time
                    for found in self._due(time):
                        self._take(*found)
            elif name in self._events and not self._warned:
                self._warned = True
                message = f"graph <{name}> goes on after it was pushed: say its {GENERATED_AT} last"
                warnings.warn(message, SpaseqWarning, stacklevel=4)

    def _due(self, time: Node) -> list[tuple[Name, Node]]:
        """Return the complete events that were announced up to this time, in the order of their times."""
        due = [
            (name, said)
            for name, said in self._announced.items()
            if _order(said) <= _order(time) and len(named_graph(self._graph, name))
        ]
        return sorted(due, key=lambda pair: (_order(pair[1]), pair[0]))

    def _take(self, name: Name, time: Node) -> None:
        """Push an event; events that callbacks add meanwhile come after it.

        An event that an interrupt kept from the engine is pushed before the next one.
        """
        self._announced.pop(name, None)
        if name in self._events:
            return
        self._waiting.setdefault(name, (time, 0))
        self._push_waiting()

    def _push_waiting(self) -> None:
        if self._pushing:
            return
        self._pushing = True
        try:
            while self._waiting:
                first, (said, done) = next(iter(self._waiting.items()))
                self._push(first, said, done)
                self._events[first] = None
                self._waiting.pop(first, None)
                self._forget(self._events)
        finally:
            self._pushing = False

    def _push(self, name: Name, time: Node, done: int) -> None:
        """Push an event on its streams, of which ``done`` already have it; see ``_waiting``."""
        graph = named_graph(self._graph, name)
        streams = [str(stream) for stream in self._times.objects(name, PART_OF)]
        if not streams and self._stream is not None:
            streams = [self._stream]
        try:
            if not streams:
                raise ValueError(f"it is in no stream: say its <{PART_OF}> first, or connect(…, stream=…)")
            clock, value, *_ = read_time(from_rdflib(time))
        except (TypeError, ValueError) as error:
            self._reject(BadEvent("".join(streams[:1]), f"graph {name}", str(error), str(time)))
            return
        shown = clock.show(value)
        for stream in sorted(streams)[done:]:
            before = self._engine.arrived.get(stream, 0)
            try:
                self._engine.push(stream, graph, shown, name=name)
            except BaseException as error:
                if isinstance(error, Exception) or self._engine.arrived.get(stream, 0) > before:
                    self._waiting[name] = time, done + 1
                raise
            done += 1
            self._waiting[name] = time, done
        self.pushed += 1

    def _reject(self, event: BadEvent) -> None:
        self.rejected.append(event)
        message = (
            f"{event.position} is not an event: {event.reason} (the newest are in the connection's rejected)"
        )
        warnings.warn(message, SpaseqWarning, stacklevel=5)

    # --- queries

    def register(self, query: Query | str, on_match: Callable[[Match], None] | None = None) -> Results:
        """Register a query with the engine. Its matches go to ``on_match``, or, without it, into the Results.

        Before that, a match of CONSTRUCT becomes a named graph of the dataset, with its time and its events
        in the default graph. Raises what ``Engine.register`` does.
        """
        prepared = as_query(query)
        results = Results(self._keep)
        deliver = results.add if on_match is None else on_match

        def found(match: Match) -> None:
            if isinstance(prepared.form, Construct):
                self._show(match)
            deliver(match)

        results.handle = self._engine.register(prepared, on_match=found)
        return results

    def _show(self, match: Match) -> None:
        name = BNode()
        register = match.query.register
        with self._own():
            graph = named_graph(self._graph, name)
            for triple in match.graph():
                graph.add(triple)
            for triple in about_match(match, name):
                self._times.add(triple)
            if register is not None and register.kind is RegisterKind.STREAM:
                self._times.add((name, PART_OF, URIRef(register.iri.value)))
        self._matches[name] = None
        self._forget(self._matches)

    # --- the dataset

    def _forget(self, names: dict[Node, None]) -> None:
        """Remove the oldest graphs, and their descriptions in the default graph."""
        while len(names) > self._keep:
            name = next(iter(names))
            del names[name]
            with self._own():
                self._times.remove((name, None, None))
                graph = named_graph(self._graph, name)
                graph.remove((None, None, None))
                if self._graph.store.graph_aware:
                    self._graph.store.remove_graph(graph)

    @contextmanager
    def _own(self) -> Iterator[None]:
        """Mark what is written inside the block: it is not an event of the user."""
        self._writing += 1
        try:
            yield
        finally:
            self._writing -= 1

    def close(self) -> None:
        """Push waiting events, and detach from the dataset. The engine stays open."""
        listening = False
        for handlers in self._graph.store.dispatcher.get_map().values():  # type: ignore[no-untyped-call]
            if self._changed in handlers:
                handlers.remove(self._changed)
                listening = True
        if listening:
            self.flush()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()


def connect(graph: Graph, engine: Engine, *, stream: str | None = None, keep: int = 1000) -> Connection:
    """Push named graphs that are added to a dataset from now on, as events.

    The default graph has an event's ``prov:generatedAtTime``, and its stream (``dcterms:isPartOf``) if that
    is not ``stream``. A single graph serves as the default graph of its store. The newest ``keep`` events and
    ``keep`` matches stay in the dataset: older ones are removed from it.
    """
    return Connection(graph, engine, stream, keep)


def _order(time: Node) -> int:
    try:
        return read_time(from_rdflib(time)).value
    except (TypeError, ValueError):
        return 0  # pushing it reports the error

"""The process that answers SPARQL queries: reads changes of its datasets, writes answers.

It imports nothing of the server, so that it starts quickly. It ends when the server does, for any reason,
also during a query.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Final, cast

import pyoxigraph as ox

ROWS: Final = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}
TRIPLES: Final = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}

#: The part of a dataset with the events of a window.
EVENTS: Final = "events"

#: The exit status after MemoryError.
NO_MEMORY: Final = 70

#: The stack of a query. Oxigraph parses by recursion, with some 4 kB per bracket. The memory is reserved, and
#: used only by nested queries.
_STACK_BYTES: Final = 512 << 20

#: The place of an error, as Oxigraph reports it.
_PLACE: Final = re.compile(r"error at (\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop a dataset with all its contents."""

    dataset: str | None


@dataclass(frozen=True, slots=True)
class Background:
    """Create a background graph, and add these triples (N-Triples)."""

    dataset: str | None
    graph: str
    triples: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """Remove the keys ``gone`` from a part, and add ``keys``.

    ``quads`` are the N-Quads of all added keys in order, ``counts[i]`` of them for key i.
    """

    dataset: str | None
    part: str
    gone: Sequence[Hashable] = ()
    keys: Sequence[Hashable] = ()
    counts: Sequence[int] = ()
    quads: bytes = b""


@dataclass(frozen=True, slots=True)
class GraphChange:
    """Create graphs, which may be empty, if ``there`` is true; remove them if it is false."""

    dataset: str | None
    names: Sequence[str]
    there: bool = True


#: A change of the datasets.
Message = Drop | Background | Change | GraphChange


@dataclass(frozen=True, slots=True)
class DatasetQuery:
    """A query of a dataset. The reply is an ``Answer`` or a ``Refusal``.

    ``plain`` is the text to parse for the place of an error. ``default`` and ``named``: the graphs of the
    query, None for all. ``services``: the graphs of matches that the query uses; ``are_all``: the dataset has
    no other graphs of matches. ``rows`` and ``triples``: the media type of a result, None if the client
    accepts none. A result may have ``most_rows`` rows or triples, and ``most_bytes``. The query may use
    ``memory`` bytes.
    """

    dataset: str | None
    text: str
    plain: str
    default: Sequence[str] | None
    named: Sequence[str] | None
    services: Sequence[str]
    are_all: bool
    rows: str | None
    triples: str | None
    most_rows: int
    most_bytes: int
    memory: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query."""

    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no result. ``limit``: the limit of the server that it exceeds.

    ``unacceptable``: the client accepts none of the media types for ``rows`` or ``triples``.
    """

    kind: str
    message: str = ""
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    limit: str | None = None


class _KeyedStore:
    """Quads in a store, by key; a quad with several keys stays until all are removed."""

    def __init__(self, store: ox.Store) -> None:
        self._store = store
        self._of: dict[Hashable, list[ox.Quad]] = {}
        self._count: Counter[ox.Quad] = Counter()
        #: How many quads each graph has.
        self.graphs: Counter[Any] = Counter()

    def change(self, change: Change) -> None:
        for key in change.gone:
            for quad in self._of.pop(key):
                self._count[quad] -= 1
                self.graphs[quad.graph_name] -= 1
                if not self._count[quad]:
                    del self._count[quad]
                    self._store.remove(quad)
                if not self.graphs[quad.graph_name]:
                    del self.graphs[quad.graph_name]
        quads = list(ox.parse(change.quads, format=ox.RdfFormat.N_QUADS, lenient=True))
        rest = iter(quads)
        self._of |= {
            key: list(islice(rest, count)) for key, count in zip(change.keys, change.counts, strict=True)
        }
        self._store.extend(quads)
        self._count.update(quads)
        self.graphs.update(quad.graph_name for quad in quads)


@dataclass(slots=True)
class _Dataset:
    store: ox.Store = field(default_factory=ox.Store)
    background: dict[str, ox.NamedNode] = field(default_factory=dict)
    parts: dict[str, _KeyedStore] = field(default_factory=dict)

    def named(self, services: Sequence[str]) -> list[Any]:
        """Return the named graphs that a query may use."""
        events = self.parts[EVENTS].graphs.keys() - {ox.DefaultGraph()} if EVENTS in self.parts else ()
        return [*self.background.values(), *events, *map(ox.NamedNode, services)]


class DatasetWorker:
    """The datasets, and answers to queries about them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._datasets: OrderedDict[str | None, _Dataset] = OrderedDict()
        self._memory = _used()

    def run(self) -> None:
        """Process messages of the server, until it ends."""
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)  # also during a query
            if isinstance(message, DatasetQuery):
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
                continue
            before = _used()
            self._apply(message)
            # Memory that queries left behind is not data.
            self._memory += max(0, _used() - before)

    def _apply(self, message: Message) -> None:
        if isinstance(message, Drop):
            self._datasets.pop(message.dataset, None)
            return
        dataset = self._datasets.setdefault(message.dataset, _Dataset())
        match message:
            case Background(_, graph, triples):
                name = dataset.background.setdefault(graph, ox.NamedNode(graph))
                dataset.store.add_graph(name)
                found = ox.parse(triples, format=ox.RdfFormat.N_TRIPLES, lenient=True)
                dataset.store.bulk_extend(ox.Quad(t.subject, t.predicate, t.object, name) for t in found)
            case Change(_, part):
                dataset.parts.setdefault(part, _KeyedStore(dataset.store)).change(message)
            case GraphChange(_, names, there):
                for graph in names:
                    if there:
                        dataset.store.add_graph(ox.NamedNode(graph))
                    else:
                        dataset.store.remove_graph(ox.NamedNode(graph))
                        dataset.parts.pop(graph, None)

    def _answer(self, question: DatasetQuery) -> None:
        """Answer a query, in a thread with a large stack."""
        limit = self._memory + _STACK_BYTES + question.memory if self._memory else None
        try:
            _limit_memory(limit)
            answer: Answer | Refusal = self._asked(question)
            _limit_memory(None)
        except MemoryError:
            os._exit(NO_MEMORY)
        except BaseException as error:  # a panic of Oxigraph is one
            _limit_memory(None)
            answer = Refusal("internal", type(error).__name__)
        with suppress(OSError):
            self._connection.send(answer)

    def _asked(self, question: DatasetQuery) -> Answer | Refusal:
        dataset = self._datasets.get(question.dataset) or _Dataset()
        default: list[Any]
        if question.default is None:
            default = [*dataset.background.values(), *([ox.DefaultGraph()] if question.dataset else [])]
            # Naming no graphs means all of them, which is faster if there are very many.
            named = None if question.are_all else dataset.named(question.services)
        else:
            known = {name.value: name for name in dataset.named(question.services)}
            for iri in chain(question.default, question.named or ()):
                if iri not in known:
                    message = f"there is no background graph <{iri[:200]}>, and no other can be read"
                    return Refusal("meaning", message, "GET /graphs lists them")
            default = [known[iri] for iri in question.default]
            named = [known[iri] for iri in chain(question.named or (), question.services)]
        try:
            found = dataset.store.query(question.text, default_graph=default, named_graphs=named)
        except SyntaxError as error:
            return _misread(question, error)
        except (ValueError, OSError):
            return Refusal("meaning", "the query cannot be answered")
        return _serialized(question, found)


def _serialized(question: DatasetQuery, found: Any) -> Answer | Refusal:
    if isinstance(found, ox.QueryTriples):
        if question.triples is None:
            return Refusal("unacceptable", "triples")
        triples = list(islice(found, question.most_rows + 1))
        if len(triples) > question.most_rows:
            return Refusal("limit", "the answer is too long; use LIMIT", limit="rows")
        return Answer(question.triples, ox.serialize(triples, format=TRIPLES[question.triples]) or b"")
    if question.rows is None:
        return Refusal("unacceptable", "rows")
    if isinstance(found, ox.QuerySolutions):
        answer = _Bounded(question.most_bytes)
        try:
            found.serialize(cast("IO[bytes]", answer), format=ROWS[question.rows])
        except OverflowError:
            return Refusal("limit", "the answer is too long; use LIMIT", limit="body_bytes")
        return Answer(question.rows, b"".join(answer.parts))
    return Answer(question.rows, found.serialize(format=ROWS[question.rows]) or b"")


def _misread(question: DatasetQuery, error: SyntaxError) -> Refusal:
    """Return the refusal of a query that Oxigraph cannot parse, with the place in the original text."""
    try:
        ox.Store().query(question.plain)
    except SyntaxError as as_asked:
        error = as_asked
    message = str(error.msg or error)
    place = _PLACE.search(message)
    line, column = (int(place[1]), int(place[2])) if place else (error.lineno, error.offset)
    return Refusal("syntax", message, line=line, column=column)


class _Bounded(io.RawIOBase):
    """A buffer of limited size. Raises OverflowError beyond it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self._left = most

    def write(self, data: Any) -> int:
        """Append a part."""
        self._left -= len(data)
        if self._left < 0:
            raise OverflowError
        self.parts.append(bytes(data))
        return len(data)


def _used() -> int:
    """Return the bytes of address space that this process uses; 0 on systems other than Linux."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf(
            "SC_PAGESIZE"
        )
    except OSError:
        return 0


def _limit_memory(most: int | None) -> None:
    """Limit the address space of this process; None: as far as the system allows."""
    with suppress(ImportError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if most is None or resource.RLIM_INFINITY != hard < most:
            most = hard
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main(descriptor: int) -> None:
    """Answer messages from a socket."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # running out of memory must not dump core
    threading.stack_size(_STACK_BYTES)
    DatasetWorker(Connection(descriptor)).run()

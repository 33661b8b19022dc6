"""The process that answers questions of SPARQL: changes of its datasets come in, answers go out.

It imports nothing of the server, so that it starts in a moment. It ends when the server does, however that
ends, and during a question, too.
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

#: The part of a dataset that has the events of a window.
EVENTS: Final = "events"

#: The status of the process at the end of its memory, where Python notices that first.
NO_MEMORY: Final = 70

#: The stack of a question. Oxigraph parses by recursion, and takes some 4 kB of the stack a bracket. The
#: stack is reserved, and used only as far as something is nested.
_STACK_BYTES: Final = 512 << 20

#: Where Oxigraph found an error.
_PLACE: Final = re.compile(r"error at (\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Drop:
    """A dataset goes, with all that is in it."""

    dataset: str | None


@dataclass(frozen=True, slots=True)
class Background:
    """A background graph is there, and has these triples, too, as N-Triples."""

    dataset: str | None
    graph: str
    triples: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """What some keys of a part stood for goes; other keys come, with ``counts`` quads each of N-Quads."""

    dataset: str | None
    part: str
    gone: Sequence[Hashable] = ()
    keys: Sequence[Hashable] = ()
    counts: Sequence[int] = ()
    quads: bytes = b""


@dataclass(frozen=True, slots=True)
class Graphs:
    """Graphs are there although they may be empty, or, if not ``there``, go."""

    dataset: str | None
    names: Sequence[str]
    there: bool = True


#: What changes the datasets.
Message = Drop | Background | Change | Graphs


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of a dataset. The answer is an ``Answer`` or a ``Refusal``.

    ``plain`` is the text to parse for the place of an error. ``default`` and ``named``: the graphs that are
    asked, None for all. ``services``: the graphs of matches that are asked; ``are_all``: the dataset has no
    others. ``rows`` and ``triples``: the media type of an answer, None if the client takes none. An answer
    may have ``most_rows`` triples, or ``most_bytes``; the question may use ``memory`` bytes.
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
    """The answer to a question."""

    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer. ``limit``: the limit of the server that the answer exceeds.

    ``unacceptable``: the client takes none of the media types for ``rows`` or ``triples``.
    """

    kind: str
    message: str = ""
    hint: str | None = None
    line: int | None = None
    column: int | None = None
    limit: str | None = None


class _Part:
    """Quads in a store that come and go with their keys; a quad of several keys is there for each."""

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
    parts: dict[str, _Part] = field(default_factory=dict)

    def named(self, services: Sequence[str]) -> list[Any]:
        """The named graphs that a question may ask."""
        events = self.parts[EVENTS].graphs.keys() - {ox.DefaultGraph()} if EVENTS in self.parts else ()
        return [*self.background.values(), *events, *map(ox.NamedNode, services)]


class Worker:
    """The datasets, and the answers of questions about them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._datasets: OrderedDict[str | None, _Dataset] = OrderedDict()
        self._memory = _used()

    def run(self) -> None:
        """Do what the server sends, until it ends."""
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)  # in the middle of a question, too
            if isinstance(message, Ask):
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
                continue
            before = _used()
            self._apply(message)
            # What questions left behind is not the data's.
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
                dataset.parts.setdefault(part, _Part(dataset.store)).change(message)
            case Graphs(_, names, there):
                for graph in names:
                    if there:
                        dataset.store.add_graph(ox.NamedNode(graph))
                    else:
                        dataset.store.remove_graph(ox.NamedNode(graph))
                        dataset.parts.pop(graph, None)

    def _answer(self, question: Ask) -> None:
        """Send the answer of a question, in a thread that has the stack."""
        limit = self._memory + _STACK_BYTES + question.memory if self._memory else None
        try:
            _limit_memory(limit)
            answer: Answer | Refusal = self._asked(question)
            _limit_memory(None)
        except MemoryError:
            os._exit(NO_MEMORY)
        except BaseException as error:  # as a panic of Oxigraph is
            _limit_memory(None)
            answer = Refusal("internal", type(error).__name__)
        with suppress(OSError):
            self._connection.send(answer)

    def _asked(self, question: Ask) -> Answer | Refusal:
        dataset = self._datasets.get(question.dataset) or _Dataset()
        default: list[Any]
        if question.default is None:
            default = [*dataset.background.values(), *([ox.DefaultGraph()] if question.dataset else [])]
            # All of them if they are not named, which is faster where they are very many.
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


def _serialized(question: Ask, found: Any) -> Answer | Refusal:
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


def _misread(question: Ask, error: SyntaxError) -> Refusal:
    """What is reported of a question that Oxigraph cannot read: where, in the question as it was asked."""
    try:
        ox.Store().query(question.plain)
    except SyntaxError as as_asked:
        error = as_asked
    message = str(error.msg or error)
    place = _PLACE.search(message)
    line, column = (int(place[1]), int(place[2])) if place else (error.lineno, error.offset)
    return Refusal("syntax", message, line=line, column=column)


class _Bounded(io.RawIOBase):
    """Takes an answer of so many bytes; OverflowError if it is longer."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self._left = most

    def write(self, data: Any) -> int:
        """Take one part more."""
        self._left -= len(data)
        if self._left < 0:
            raise OverflowError
        self.parts.append(bytes(data))
        return len(data)


def _used() -> int:
    """How many bytes of addresses this process uses; 0 where the system does not say so, as Linux does."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf(
            "SC_PAGESIZE"
        )
    except OSError:
        return 0


def _limit_memory(most: int | None) -> None:
    """Let this process use so many bytes of addresses, or with None as many as the system allows."""
    with suppress(ImportError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if most is None or resource.RLIM_INFINITY != hard < most:
            most = hard
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main(descriptor: int) -> None:
    """Answer what comes through a socket."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the end of memory is no reason for a core dump
    threading.stack_size(_STACK_BYTES)
    Worker(Connection(descriptor)).run()

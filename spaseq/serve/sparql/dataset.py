"""The store that a question is asked of: background graphs, a window's events, matches of queries.

Two stores differ in whose window is in them. What is in one is kept up from question to question.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

import pyoxigraph as ox
from rdflib.term import Node, URIRef

from spaseq.gpm.kb import KnowledgeBase
from spaseq.language.syntax import Construct, Query, Select
from spaseq.results.writers._columns import columns
from spaseq.serve.errors import beyond
from spaseq.serve.newest.history import Numbered
from spaseq.serve.newest.recent import Kept
from spaseq.terms.interop import from_rdflib

#: So many stores are kept, of so many services each.
_STORES: Final = 3
SERVICES: Final = 8

#: So many events or matches are put into a store at once, between which it may be too late.
_AT_ONCE: Final = 500

#: The IRI of a registered query as a service: this, and its name or id.
SCHEME: Final = "urn:x-spaseq:"

#: From a row to its match, and to its value of a column (this and the column's name).
OF_MATCH: Final = f"{SCHEME}row#of"
_COLUMN: Final = f"{SCHEME}row?"

_OF_MATCH: Final = ox.NamedNode(OF_MATCH)

Name = ox.NamedNode | ox.BlankNode | ox.DefaultGraph


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches that the server keeps of a registered query, as a service has them.

    ``id`` is the query's, which no other has; ``name`` is what it is called.
    """

    id: str
    name: str
    query: Query
    kept: Sequence[Numbered] = ()
    #: Whether they are described, too: their rows alone are there in a fifth of the time.
    described: bool = True

    @property
    def graph(self) -> str:
        """The IRI of the query, and of the graph that describes its matches."""
        return SCHEME + quote(self.name)

    @property
    def graphs(self) -> list[ox.NamedNode]:
        """That one, and the one with its rows."""
        return [ox.NamedNode(self.graph), ox.NamedNode(f"{self.graph}#rows")]

    @property
    def columns(self) -> Sequence[str]:
        """The variables of its rows."""
        return tuple(columns(self.query)) if isinstance(self.query.form, Select) else ()


class _Described:
    """Quads in a store that come and go with what they are said of; one said of several is there for each."""

    def __init__(self, store: ox.Store) -> None:
        self._store = store
        self._of: dict[object, list[ox.Quad]] = {}
        self._count: Counter[ox.Quad] = Counter()

    def replace(
        self, wanted: Iterable[tuple[object, Any]], quads: Callable[[Any], list[ox.Quad]], end: float
    ) -> None:
        """Exactly what is wanted, by key, from now on. Raises ``TimeoutError`` at the end of time."""
        items = dict(wanted)
        for key in [key for key in self._of if key not in items]:
            for quad in self._of.pop(key):
                self._count[quad] -= 1
                if not self._count[quad]:
                    del self._count[quad]
                    self._store.remove(quad)
        new = [key for key in items if key not in self._of]
        for begin in range(0, len(new), _AT_ONCE):
            if time.monotonic() > end:
                raise TimeoutError
            said = {key: quads(items[key]) for key in new[begin : begin + _AT_ONCE]}
            every = list(chain.from_iterable(said.values()))
            self._store.extend(every)
            self._count.update(every)
            self._of |= said

    def graphs(self) -> set[Name]:
        """The names of the graphs that it has quads in."""
        return {quad.graph_name for quad in self._count}


@dataclass(slots=True)
class Dataset:
    """One store, with what is in it."""

    version: int
    background: list[ox.NamedNode]
    store: ox.Store = field(default_factory=ox.Store)
    events: _Described = field(init=False)
    services: OrderedDict[str, tuple[str, _Described, _Described]] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.events = _Described(self.store)

    def show_matches(self, matches: Matches, end: float) -> list[ox.NamedNode]:
        """Has exactly these matches of a query from now on; the graphs that they are in."""
        key, of_rows, of_graph = self.services.pop(matches.graph, ("", None, None))
        if of_rows is not None and of_graph is not None and key != matches.id:  # another query had the name
            of_rows.replace([], _nothing, end)
            of_graph.replace([], _nothing, end)
        of_rows, of_graph = of_rows or _Described(self.store), of_graph or _Described(self.store)
        self.services[matches.graph] = matches.id, of_rows, of_graph
        while len(self.services) > SERVICES:
            graph, (_, *oldest) = self.services.popitem(last=False)
            for described, name in zip(oldest, (f"{graph}#rows", graph), strict=True):
                described.replace([], _nothing, end)
                self.store.remove_graph(ox.NamedNode(name))
        for one_of_two in matches.graphs:
            self.store.add_graph(one_of_two)  # a graph that there is has a solution of {}
        kept = [(one.number, one) for one in matches.kept]
        of_rows.replace(kept, partial(_rows, matches), end)
        if matches.described:
            of_graph.replace([(0, None), *kept], partial(_description, matches), end)
        return matches.graphs


class Datasets:
    """The stores of a server. Several threads may ask for one."""

    def __init__(self) -> None:
        self._stores: OrderedDict[str | None, Dataset] = OrderedDict()
        self._lock = Lock()

    def ready(
        self,
        kb: KnowledgeBase,
        window: tuple[str, Sequence[Kept]] | None,
        services: Sequence[Matches],
        seconds: float,
    ) -> tuple[Dataset, list[Any], bool]:
        """The store that has the background graphs, a query's window and the matches of some.

        Beside it, which of its named graphs may be asked, and whether these are all. ``window`` is the id of
        a query with its events.
        """
        end = time.monotonic() + seconds
        with self._lock:
            key = None if window is None else window[0]
            found = self._stores.pop(key, None)
            if found is None or found.version != kb.version:
                found = _with_background(kb)
            try:
                names: list[Any] = list(found.background)
                if window is not None:
                    found.events.replace(
                        ((_key(kept), kept) for kept in window[1]), partial(_event, found.background), end
                    )
                    names += found.events.graphs() - {ox.DefaultGraph()}
                for matches in services:
                    names += found.show_matches(matches, end)
            except TimeoutError:  # the next question goes on from here
                self._keep(key, found)
                raise beyond("seconds", int(seconds), "the question took too long", 503) from None
            # Only now: what any other exception left half-done is dropped.
            self._keep(key, found)
            asked = {matches.graph for matches in services}
            return found, names, found.services.keys() <= asked

    def _keep(self, key: str | None, dataset: Dataset) -> None:
        self._stores[key] = dataset
        if len(self._stores) > _STORES:
            self._stores.popitem(last=False)


def column(name: str) -> str:
    """The predicate from a row to its value of a column."""
    return _COLUMN + name


def _with_background(kb: KnowledgeBase) -> Dataset:
    made = Dataset(kb.version, list(kb.graphs))
    for name, triples in kb.graphs.items():
        made.store.add_graph(name)
        made.store.bulk_extend(ox.Quad(t.subject, t.predicate, t.object, name) for t in triples)
    return made


def _nothing(_: object) -> list[ox.Quad]:
    return []


def _key(kept: Kept) -> object:
    return kept.stream, kept.batch.n.item(kept.index)


def _event(background: Sequence[ox.NamedNode], kept: Kept) -> list[ox.Quad]:
    """An event as rdflib's store ``spaseq-window`` has it, but never with the name of a background graph."""
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    from spaseq.rdf.window import event_quads

    quads = []
    for triple, name in event_quads(kept.batch, kept.index):
        graph = ox.DefaultGraph() if name == DATASET_DEFAULT_GRAPH_ID else _term(name)
        quads.append(_of(triple, graph))
    if quads[-1].subject not in background:
        return quads
    other = ox.BlankNode()
    return [
        ox.Quad(other, q.predicate, q.object, q.graph_name)
        if q.graph_name == ox.DefaultGraph()
        else ox.Quad(q.subject, q.predicate, q.object, other)
        for q in quads
    ]


def _rows(matches: Matches, one: Numbered) -> list[ox.Quad]:
    """The rows of a match: a node each, with its match and its values."""
    rows = matches.graphs[1]
    match, quads = ox.NamedNode(_name(matches, one)), []
    for row in one.match.bindings if isinstance(matches.query.form, Select) else [{}]:
        at = ox.BlankNode()
        quads.append(ox.Quad(at, _OF_MATCH, match, rows))
        quads += [ox.Quad(at, _predicate(name), _term(term), rows) for name, term in row.items()]
    return quads


def _description(matches: Matches, one: Numbered | None) -> list[ox.Quad]:
    """What is said of a match; without one, of the query."""
    # Here, because rdflib's SPARQL takes a while to import.
    from spaseq.rdf.description import about_choices, about_match, about_query

    service, graph = URIRef(matches.graph), matches.graphs[0]
    if one is None:
        return [_of(triple, graph) for triple in about_query(matches.query, service)]
    node = URIRef(_name(matches, one))
    said: list[tuple[Node, Node, Node]] = [*about_match(one.match, node)]
    said += about_choices(one.match, node, service)
    if isinstance(matches.query.form, Construct):
        said += one.match.graph()
    return [_of(triple, graph) for triple in said]


def _name(matches: Matches, one: Numbered) -> str:
    return f"{matches.graph}/matches/{one.number}"


@lru_cache(maxsize=1 << 10)
def _predicate(name: str) -> ox.NamedNode:
    return ox.NamedNode(column(name))


def _term(term: Node) -> Any:
    return _iri(term) if isinstance(term, URIRef) else from_rdflib(term)


# Cached, because descriptions repeat a few.
_iri = lru_cache(maxsize=1 << 12)(from_rdflib)


def _of(triple: tuple[Node, Node, Node], name: Any) -> ox.Quad:
    s, p, o = map(_term, triple)
    return ox.Quad(s, p, o, name)

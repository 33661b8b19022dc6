"""Datasets of SPARQL queries: background graphs, a window's events, matches.

There is a dataset per window. Datasets live in another process (``worker``) and stay there between queries:
only changes are sent.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final
from urllib.parse import quote

import pyoxigraph as ox
from rdflib.term import Node, URIRef

from spaseq.language.syntax import Construct, Query, Select
from spaseq.patterns.kb import KnowledgeBase
from spaseq.results.writers._base import columns
from spaseq.serve.newest.history import NumberedMatch
from spaseq.serve.newest.recent import KeptEvent
from spaseq.serve.sparql.worker import EVENTS, Background, Change, Drop, GraphChange, Message
from spaseq.terms.interop import from_rdflib

#: How many datasets are kept, and the matches of how many queries in each.
_DATASETS: Final = 3
SERVICES: Final = 8

#: How many events or matches, and how many triples of a background graph, are sent at once. The deadline is
#: checked between two messages.
_AT_ONCE: Final = 500
_TRIPLES: Final = 20_000

#: The IRI of a registered query as a service: this, and its name or id.
SCHEME: Final = "urn:x-spaseq:"

#: The predicates from a row to its match, and to its value of a column (with the column's name appended).
OF_MATCH: Final = f"{SCHEME}row#of"
_COLUMN: Final = f"{SCHEME}row?"

_OF_MATCH: Final = ox.NamedNode(OF_MATCH)


@dataclass(frozen=True, slots=True)
class Matches:
    """The kept matches of a registered query, for a service.

    ``id`` is unique to the query; ``name`` is its name in requests.
    """

    id: str
    name: str
    query: Query
    kept: Sequence[NumberedMatch] = ()
    #: Whether descriptions are needed, too: rows alone take a fifth of the time.
    described: bool = True

    @property
    def graph(self) -> str:
        """Return the IRI of the query, which is also that of the graph describing its matches."""
        return SCHEME + quote(self.name)

    @property
    def graphs(self) -> list[ox.NamedNode]:
        """Return the graph that describes the matches, and the graph with their rows."""
        return [ox.NamedNode(self.graph), ox.NamedNode(_rows_of(self.graph))]

    @property
    def columns(self) -> Sequence[str]:
        """Return the variables of its rows."""
        return tuple(columns(self.query)) if isinstance(self.query.form, Select) else ()


@dataclass(slots=True)
class _Sent:
    """The contents of a dataset in the other process.

    ``version``: the version of the background graphs. ``background``: how many triples of each were sent.
    ``services``: graph of matches → id of its query, the graph used last at the end. ``parts``: the keys of
    each part.
    """

    version: int
    background: dict[ox.NamedNode, int] = field(default_factory=dict)
    services: OrderedDict[str, str] = field(default_factory=OrderedDict)
    parts: defaultdict[str, set[Hashable]] = field(default_factory=lambda: defaultdict(set))


class Datasets:
    """The contents of the other process. Each message from ``changes`` must be sent, in order.

    The caller may stop at any point: the next call continues from there.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[str | None, _Sent] = OrderedDict()

    def changes(
        self, key: str | None, kb: KnowledgeBase, events: Sequence[KeptEvent], services: Sequence[Matches]
    ) -> Iterator[Message]:
        """Yield the messages after which a dataset has the background graphs, these events, and these
        matches.

        ``key``: the id of the query that the window belongs to; None without a window.
        """
        version, graphs = kb.version, kb.graphs
        if key not in self._sent or self._sent[key].version != version:
            self._sent[key] = _Sent(version)
            yield Drop(key)
        sent = self._sent[key]
        self._sent.move_to_end(key)
        if len(self._sent) > _DATASETS:
            oldest, _ = self._sent.popitem(last=False)
            yield Drop(oldest)
        for name, triples in graphs.items():
            for begin in range(sent.background.get(name, 0), max(len(triples), 1), _TRIPLES):
                sent.background[name] = end = begin + _TRIPLES
                yield Background(key, name.value, _serialized(triples[begin:end], ox.RdfFormat.N_TRIPLES))
        if key is not None:
            wanted = {_key(kept): kept for kept in events}
            yield from _changes(key, sent, EVENTS, wanted, partial(_event, graphs))
        for matches in services:
            yield from _shown(key, sent, matches)

    def are_all(self, key: str | None, services: Sequence[Matches]) -> bool:
        """Return whether a dataset has no matches other than those of some queries."""
        return self._sent[key].services.keys() <= {matches.graph for matches in services}


def _shown(key: str | None, sent: _Sent, matches: Matches) -> Iterator[Message]:
    """Yield the messages after which a dataset has exactly these matches of a query."""
    graph = matches.graph
    known = sent.services.get(graph)
    if known is not None and known != matches.id:  # another query had the name
        yield _forgotten(key, sent, graph)
    sent.services[graph] = matches.id
    sent.services.move_to_end(graph)
    if len(sent.services) > SERVICES:
        yield _forgotten(key, sent, next(iter(sent.services)))
    yield GraphChange(
        key, [name.value for name in matches.graphs]
    )  # even if it stays empty: {} has a solution in an existing graph
    kept = {one.number: one for one in matches.kept}
    yield from _changes(key, sent, _rows_of(graph), kept, partial(_rows, matches))
    if matches.described:
        yield from _changes(key, sent, graph, {0: None, **kept}, partial(_description, matches))


def _forgotten(key: str | None, sent: _Sent, graph: str) -> GraphChange:
    del sent.services[graph]
    names = [graph, _rows_of(graph)]
    for name in names:
        sent.parts.pop(name, None)
    return GraphChange(key, names, there=False)


def _changes(
    key: str | None, sent: _Sent, part: str, wanted: dict[Any, Any], quads: Callable[[Any], list[ox.Quad]]
) -> Iterator[Change]:
    """Yield the changes after which a part has exactly the keys that are wanted."""
    has = sent.parts[part]
    gone = [one for one in has if one not in wanted]
    new = [one for one in wanted if one not in has]
    if gone:
        has.difference_update(gone)
        yield Change(key, part, gone)
    for begin in range(0, len(new), _AT_ONCE):
        some = new[begin : begin + _AT_ONCE]
        of = [quads(wanted[one]) for one in some]
        has.update(some)
        every = _serialized(chain.from_iterable(of), ox.RdfFormat.N_QUADS)
        yield Change(key, part, (), some, [len(one) for one in of], every)


def _serialized(statements: Iterable[Any], form: ox.RdfFormat) -> bytes:
    return ox.serialize(statements, format=form) or b""


def _rows_of(graph: str) -> str:
    """Return the graph with the rows of matches, given the graph that describes the matches."""
    return f"{graph}#rows"


def column(name: str) -> str:
    """Return the predicate from a row to its value of a column."""
    return _COLUMN + name


def _key(kept: KeptEvent) -> object:
    return kept.stream, kept.batch.n.item(kept.index)


def _event(background: Container[ox.NamedNode], kept: KeptEvent) -> list[ox.Quad]:
    """Return an event as the store ``spaseq-window`` has it, but never named as a background graph."""
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


def _rows(matches: Matches, one: NumberedMatch) -> list[ox.Quad]:
    """Return the rows of a match: a node each, with its match and its values."""
    rows = matches.graphs[1]
    match, quads = ox.NamedNode(_name(matches, one)), []
    for row in one.match.bindings if isinstance(matches.query.form, Select) else [{}]:
        at = ox.BlankNode()
        quads.append(ox.Quad(at, _OF_MATCH, match, rows))
        quads += [ox.Quad(at, _predicate(name), _term(term), rows) for name, term in row.items()]
    return quads


def _description(matches: Matches, one: NumberedMatch | None) -> list[ox.Quad]:
    """Return the description of a match; if ``one`` is None, that of the query."""
    # Imported here: rdflib's SPARQL takes a while to import.
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


def _name(matches: Matches, one: NumberedMatch) -> str:
    return f"{matches.graph}/matches/{one.number}"


@lru_cache(maxsize=1 << 10)
def _predicate(name: str) -> ox.NamedNode:
    return ox.NamedNode(column(name))


def _term(term: Node) -> Any:
    return _iri(term) if isinstance(term, URIRef) else from_rdflib(term)


# Cached: descriptions repeat a few.
_iri = lru_cache(maxsize=1 << 12)(from_rdflib)


def _of(triple: tuple[Node, Node, Node], name: Any) -> ox.Quad:
    s, p, o = map(_term, triple)
    return ox.Quad(s, p, o, name)

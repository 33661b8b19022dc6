"""Registered queries as SPARQL services: ``SERVICE <urn:x-spaseq:NAME> { … }``.

What a service is evaluated over: a graph that describes the matches found so far (``description``), and
their rows. The block ``{ … }`` means what it means when it begins with ``VALUES (?match ?a ?b …) { … }``, one
line for each row of each match, under the names of the query's SELECT; ``?match`` is the match in the graph.
So ``{ }`` gives all rows, FILTER and BIND see them, and ``?match spaseq:matchedEvent ?event`` asks on.
The matches of CONSTRUCT and ASK have no rows: of them there is ``?match`` alone, and what CONSTRUCT made.
Matches are described when a block is asked for the first time since they were found, or their events have
become many to keep: those that make room for newer ones before cost nothing.

One thing of rdflib's to know: when its parser meets SERVICE, it takes what follows a ``#`` in the same line
for a comment, in an IRI too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from rdflib.graph import Graph
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.evaluate import evalPart
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import AlreadyBound, QueryContext
from rdflib.term import BNode, Literal, Node, URIRef, Variable

from spaseq.engine import Engine, Handle
from spaseq.errors import EngineError
from spaseq.events import EventBatch
from spaseq.language import as_query
from spaseq.language.syntax import Construct, Query, Select
from spaseq.rdf._quads import Quad, QuadStore, Triple
from spaseq.rdf.description import about_choices, about_match, about_query
from spaseq.rdf.services import PARSER, SCHEME, SERVICES, unknown
from spaseq.rdf.window import Recent
from spaseq.results.match import Match
from spaseq.results.writers._columns import columns
from spaseq.terms.interop import from_rdflib

Row = Mapping[Variable, Node]

_MATCH: Final = Variable("match")

#: Stands in a block's VALUES for the rows, until it is asked.
_HERE: Final = URIRef("urn:x-spaseq:rows")

#: How many blocks a service keeps translated.
_BLOCKS: Final = 16

#: A match keeps its events' batches. It is described, which frees them, once so many triples came since.
_TRIPLES: Final = 500_000


@dataclass(slots=True, eq=False)
class _Kept:
    """A match, until it is described: then its rows alone are kept here, and not its events' graphs.

    ``came``: how many triples had come when it was found.
    """

    came: int
    match: Match | None
    described: _Described | None = None


@dataclass(frozen=True, slots=True)
class _Described:
    """The rows of a match, and its description."""

    rows: Sequence[Row]
    quads: Sequence[Quad]


class Service:
    """A registered query and the newest of its matches; a context manager that closes it.

    ``register`` makes one. It keeps the ``keep`` newest matches: when one more is found, the oldest goes.
    """

    def __init__(self, name: str, engine: Engine, query: Query, keep: int) -> None:
        if keep < 1:
            raise EngineError(f"keep={keep}: a service keeps one match at least")
        self.name = name
        self.iri = URIRef(SCHEME + name)
        self.engine = engine
        self.query = query
        self.keep = keep
        self.variables = tuple(map(Variable, columns(query)))
        self.handle: Handle | None = None
        self.on_match: Callable[[Match], None] | None = None
        # The last of them are not described, since nobody has asked for them; ``_since``: when the first
        # of those was found.
        self._kept: deque[_Kept] = deque()
        self._since: int | None = None
        self._came = 0
        self._store = QuadStore()
        self._store.put(None, [(triple, self.iri) for triple in about_query(query, self.iri)])
        self._graph = Graph(store=self._store, identifier=self.iri)
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        self.recent = Recent(query.window)
        # Of what it keeps, and of its blocks, which rdflib changes while it evaluates them.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many matches it keeps now."""
        with self._lock:
            return min(len(self._kept), self.keep)

    def close(self) -> None:
        """Ends the query, and frees the name."""
        if SERVICES.get(self.name) is self:
            del SERVICES[self.name]
        if self.handle is not None:
            self.handle.cancel()
        self.recent.clear()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def follow(self, batch: EventBatch) -> None:
        """Takes notice of the query's next events."""
        self.recent.add(batch)
        self._came += len(batch.s)

    def add(self, match: Match) -> None:
        """Keeps a match."""
        with self._lock:
            self._kept.append(_Kept(self._came, match))
            if self._since is None:
                self._since = self._came
            self._make_room()
            if self._came - self._since > _TRIPLES:
                self._describe()
        if self.on_match is not None:
            self.on_match(match)

    def _make_room(self) -> None:
        while len(self._kept) > self.keep:
            self._store.take(self._kept[0])
            self._kept.popleft()
            if self._kept[0].match is not None:
                self._since = self._kept[0].came

    def _describe(self) -> None:
        """Puts the matches found since somebody asked into the graph, in order.

        Wherever an interrupt comes, those that it left are described by the next call, none of them twice.
        """
        self._store.mend()
        for kept in reversed(list(takewhile(lambda kept: kept.match is not None, reversed(self._kept)))):
            if kept.described is None and kept.match is not None:
                kept.described = self._described(kept.match)
            if kept.described is not None:
                self._store.put(kept, kept.described.quads)
            kept.match = None
        self._since = None

    def _described(self, match: Match) -> _Described:
        node = BNode()
        triples: list[Triple] = [*about_match(match, node), *about_choices(match, node, self.iri)]
        if isinstance(self.query.form, Construct):
            triples += match.graph()
        rows: list[dict[Variable, Node]] = [{}]
        if isinstance(self.query.form, Select):
            rows = [{Variable(v): term for v, term in row.items()} for row in match.bindings]
        return _Described([row | {_MATCH: node} for row in rows], [(triple, self.iri) for triple in triples])

    def ask(self, part: CompValue, ctx: QueryContext) -> list[Mapping[Variable, Node]]:
        """The solutions of the block of a SERVICE that can go with what ``ctx`` has bound.

        If the query has failed, so that its matches are not all, raises why, unless SILENT.
        """
        if self.handle is not None and self.handle.error is not None and not part.silent:
            raise self.handle.error
        with self._lock:
            self._make_room()
            self._describe()
            block = self._block(part)
            seen = {*self.variables, _MATCH} - block.hidden
            known = {v: ctx[v] for v in seen if ctx[v] is not None}
            block.rows[:] = [
                dict(row)
                for kept in self._kept
                for row in (kept.described.rows if kept.described is not None else ())
                if all(_same(row.get(v, term), term) for v, term in known.items())
            ]
            inner = QueryContext(self._graph, initBindings=ctx.initBindings)
            inner.prologue = ctx.prologue
            found = evalPart(inner, block.algebra)
            return [{v: t for v, t in solution.items() if v not in block.hidden} for solution in found]

    def _block(self, part: CompValue) -> _Block:
        """The block, translated once; the last few are kept, since a join may ask for each of its rows."""
        block = self._blocks.get(id(part))
        if block is None or block.part is not part:
            block = self._blocks[id(part)] = _translated(part, self.variables)
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return block


@dataclass(frozen=True, slots=True)
class _Block:
    """A SERVICE's block in SPARQL's algebra; ``rows`` are those of its VALUES, filled in when it is asked."""

    part: CompValue
    hidden: frozenset[Variable]
    algebra: CompValue
    rows: list[dict[Variable, Node]]


def register(
    engine: Engine,
    query: Query | str,
    name: str | None = None,
    *,
    keep: int = 1000,
    on_match: Callable[[Match], None] | None = None,
) -> Service:
    """Registers a query with the engine, and as the service ``urn:x-spaseq:NAME`` with rdflib's SPARQL.

    Without ``name``, that is the IRI of the query's REGISTER (what follows ``urn:x-spaseq:``, if it begins
    so). The service keeps the ``keep`` newest matches. Raises what ``Engine.register`` does, and
    EngineError for a name that is taken, or a query without one.
    """
    prepared = as_query(query)
    if name is None:
        if prepared.register is None:
            raise EngineError("the query has no name: give one, or begin it with REGISTER QUERY <iri> AS")
        name = prepared.register.iri.value.removeprefix(SCHEME)
    service = Service(name, engine, prepared, keep)
    if _MATCH in service.variables:
        raise EngineError("a service's ?match is the match itself: give that variable another name")
    service.on_match = on_match
    if SERVICES.setdefault(name, service) is not service:  # in one step: another thread may want the name
        raise EngineError(f"there is a service {name!r} already: close it first, or take another name")
    try:
        with engine.turn.lock:  # so that the window has what the query has
            service.handle = engine.register(prepared, on_match=service.add)
            service.handle.follow(service.follow)
    except BaseException:
        del SERVICES[name]
        raise
    return service


def solutions(ctx: QueryContext, part: CompValue, iri: str | None) -> Iterator[Any]:
    """The solutions of a SERVICE; EngineError if no query is registered under its name, unless SILENT.

    Without an IRI, it is a variable that is not bound: those of all services, each with its IRI.
    """
    if iri is None:
        return _of_all(ctx, part)
    service = SERVICES.get(iri.removeprefix(SCHEME))
    if service is None:
        if part.silent:
            return iter([ctx.solution()])
        raise EngineError(unknown(iri.removeprefix(SCHEME)))
    return _joined(ctx, service.ask(part, ctx))


def _of_all(ctx: QueryContext, part: CompValue) -> Iterator[Any]:
    for service in list(SERVICES.values()):
        inside = ctx.push()
        inside[part.term] = service.iri
        yield from _joined(inside, service.ask(part, inside))


def _told(part: CompValue, values: CompValue, columns: Sequence[Variable]) -> bool:
    """Tells all around the VALUES that it binds these columns; whether it is in this part."""
    inside = [_told(child, values, columns) for child in part.values() if isinstance(child, CompValue)]
    if found := part is values or any(inside):
        part["_vars"] = {*columns, *(part._vars or ())}
    return found


def _joined(ctx: QueryContext, found: Sequence[Mapping[Variable, Node]]) -> Iterator[Any]:
    for solution in found:
        joined = ctx.push()
        try:
            for variable, term in solution.items():
                if not _same(joined[variable], term):
                    joined[variable] = term  # type: ignore[assignment]  # rdflib says str, and means terms
        except AlreadyBound:
            continue
        yield joined.solution()


def _same(one: object, other: object) -> bool:
    """Whether both are one RDF term: to rdflib "a" and "a"^^xsd:string, as Oxigraph gives it, are two."""
    if one == other:
        return True
    both = isinstance(one, Literal) and isinstance(other, Literal)
    return both and from_rdflib(one) == from_rdflib(other)  # type: ignore[arg-type]  # it is a literal


def _translated(part: CompValue, variables: Sequence[Variable]) -> _Block:
    # The block is rdflib's parse tree, and translating changes it. Its text would be easier to use, but of
    # two SERVICEs rdflib gives the first one's text for both.
    given = _copied(part.graph)
    columns_ = (*variables, _MATCH)
    names = " ".join(variable.n3() for variable in columns_)
    line = " ".join(_HERE.n3() for _ in columns_)
    with PARSER:
        parsed = parseQuery(f"SELECT * {{ VALUES ({names}) {{ ({line}) }} }}")
    subselect = given.name == "SubSelect"
    more = [CompValue("GroupOrUnionGraphPattern", graph=[given])] if subselect else given.part or []
    parsed[1].where.part.extend(more)
    algebra = translateQuery(parsed).algebra.p
    values = next(p for p in _parts(algebra) if p.name == "values" and _HERE in p.res[0].values())
    rows: list[dict[Variable, Node]] = []
    values["res"] = rows
    _told(algebra, values, columns_)
    # Every solution has a match. It is seen only where the block speaks of it: another service has its own.
    hidden = frozenset() if _mentions(part.graph, _MATCH) else frozenset([_MATCH])
    return _Block(part, hidden, algebra, rows)


def _copied(part: Any) -> Any:
    """A parse tree of one's own; CompValues cannot be copied by ``copy``."""
    if isinstance(part, Expr):
        function = None if part._evalfn is None else part._evalfn.__func__
        return Expr(part.name, function, **{name: _copied(child) for name, child in part.items()})
    if isinstance(part, CompValue):
        return CompValue(part.name, **{name: _copied(child) for name, child in part.items()})
    return [_copied(child) for child in part] if isinstance(part, list) else part


def _mentions(part: Any, variable: Variable) -> bool:
    if isinstance(part, CompValue):
        return any(_mentions(child, variable) for child in part.values())
    if isinstance(part, list | tuple):
        return any(_mentions(child, variable) for child in part)
    return bool(part == variable)


def _parts(part: CompValue) -> Iterator[CompValue]:
    yield part
    for child in part.values():
        if isinstance(child, CompValue):
            yield from _parts(child)

"""Registered queries as SPARQL services: ``SERVICE <urn:x-spaseq:NAME> { … }``.

A service is evaluated over a graph that describes the matches found so far (``description``), and over their
rows. The block ``{ … }`` is evaluated as if it began with ``VALUES (?match ?a ?b …) { … }``, with one line
for each row of each match, under the names of the query's SELECT; ``?match`` is the match in the graph. So
``{ }`` returns all rows, FILTER and BIND see them, and ``?match spaseq:matchedEvent ?event`` queries the
description. The matches of CONSTRUCT and ASK have no rows: only ``?match``, and the graph of CONSTRUCT.
Matches are described when a block is first evaluated after they were found, or when their events take much
memory. Matches that are dropped before that cost nothing.

Known limitation of rdflib: after SERVICE its parser takes a ``#`` as the start of a comment, even in an IRI.
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
from spaseq.rdf.services import PARSER, SCHEME, SERVICES, ServiceEntry, hint
from spaseq.rdf.window import Recent
from spaseq.results.batch import Match
from spaseq.results.writers._base import columns
from spaseq.terms.interop import from_rdflib

Row = Mapping[Variable, Node]

_MATCH: Final = Variable("match")

#: Stands for the rows in a block's VALUES, until the block is evaluated.
_HERE: Final = URIRef("urn:x-spaseq:rows")

#: How many translated blocks a service keeps.
_BLOCKS: Final = 16

#: A match keeps its events' batches. It is described, which frees them, once this many triples arrived since.
_TRIPLES: Final = 500_000


@dataclass(slots=True, eq=False)
class _HeldMatch:
    """A match until it is described; then only its rows are kept, not its events' graphs.

    ``came``: how many triples had arrived when it was found.
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

    ``register`` makes one. It keeps the ``keep`` newest matches: each further match removes the oldest.
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
        self.entry = ServiceEntry(self.iri, self.variables, self.ask, self._window)
        self.handle: Handle | None = None
        self.on_match: Callable[[Match], None] | None = None
        # The newest matches are not described until a block needs them; ``_since``: when the first of the
        # undescribed matches was found.
        self._kept: deque[_HeldMatch] = deque()
        self._since: int | None = None
        self._came = 0
        self._store = QuadStore()
        self._store.put(None, [(triple, self.iri) for triple in about_query(query, self.iri)])
        self._graph = Graph(store=self._store, identifier=self.iri)
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        self.recent = Recent(query.window)
        # Protects the matches, and the blocks, which rdflib changes during evaluation.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many matches it keeps now."""
        with self._lock:
            return min(len(self._kept), self.keep)

    def close(self) -> None:
        """End the query, and free the name."""
        if SERVICES.get(self.name) is self.entry:
            del SERVICES[self.name]
        if self.handle is not None:
            self.handle.cancel()
        self.recent.clear()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def follow(self, batch: EventBatch) -> None:
        """Add the query's next events to the window."""
        self.recent.add(batch)
        self._came += len(batch.p)

    def _window(self) -> Sequence[tuple[int, EventBatch, int]]:
        return self.recent.now(None if self.handle is None else self.handle.stats.watermark)

    def add(self, match: Match) -> None:
        """Keep a match."""
        with self._lock:
            self._kept.append(_HeldMatch(self._came, match))
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
        """Add the matches found since the last evaluation to the graph, in order.

        After an interrupt at any point, the next call describes the matches that are left, none of them
        twice.
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
        """Return the solutions of a SERVICE's block that are compatible with the bindings of ``ctx``.

        If the query has failed, so that matches are missing, raises its error, unless SILENT.
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
        """Return the translated block; the last few are cached, since a join may evaluate it for each of its
        rows.
        """
        block = self._blocks.get(id(part))
        if block is None or block.part is not part:
            block = self._blocks[id(part)] = _translated(part, self.variables)
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return block


@dataclass(frozen=True, slots=True)
class _Block:
    """A SERVICE's block in SPARQL's algebra; ``rows`` are the rows of its VALUES, filled in at evaluation."""

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
    """Register a query with the engine, and as the service ``urn:x-spaseq:NAME`` with rdflib's SPARQL.

    By default ``name`` is the IRI of the query's REGISTER (without ``urn:x-spaseq:``, if it begins so). The
    service keeps the ``keep`` newest matches. Raises what ``Engine.register`` does, and EngineError for a
    name in use, or a query without a name.
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
    if (
        SERVICES.setdefault(name, service.entry) is not service.entry
    ):  # atomic: another thread may claim the name
        raise EngineError(f"there is a service {name!r} already: close it first, or take another name")
    try:
        with engine.turn.lock:  # so that the window has the same events as the query
            service.handle = engine.register(prepared, on_match=service.add)
            service.handle.follow(service.follow)
    except BaseException:
        del SERVICES[name]
        raise
    return service


def solutions(ctx: QueryContext, part: CompValue, iri: str | None) -> Iterator[Any]:
    """Yield the solutions of a SERVICE. Raises EngineError for an unknown name, unless SILENT.

    Without an IRI, the service is an unbound variable: yield the solutions of all services, each with its
    IRI.
    """
    if iri is None:
        return _of_all(ctx, part)
    service = SERVICES.get(iri.removeprefix(SCHEME))
    if service is None:
        if part.silent:
            return iter([ctx.solution()])
        raise EngineError(f"no query is registered for SERVICE <{iri}>: {hint(iri.removeprefix(SCHEME))}")
    return _joined(ctx, service.ask(part, ctx))


def _of_all(ctx: QueryContext, part: CompValue) -> Iterator[Any]:
    for service in list(SERVICES.values()):
        inside = ctx.push()
        inside[part.term] = service.iri
        yield from _joined(inside, service.ask(part, inside))


def _told(part: CompValue, values: CompValue, columns: Sequence[Variable]) -> bool:
    """Enter the columns that the VALUES block ``values`` binds into all parts of the algebra around it.

    Return whether ``values`` is in this part.
    """
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
    """Return whether two terms are the same RDF term. rdflib distinguishes "a" from "a"^^xsd:string, the form
    that Oxigraph returns.
    """
    if one == other:
        return True
    both = isinstance(one, Literal) and isinstance(other, Literal)
    return both and from_rdflib(one) == from_rdflib(other)  # type: ignore[arg-type]  # it is a literal


def _translated(part: CompValue, variables: Sequence[Variable]) -> _Block:
    # The block is rdflib's parse tree, which translation changes. Its text would be easier to use, but rdflib
    # gives the text of the first SERVICE for every one.
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
    # Every solution binds ?match. It is visible only if the block mentions it, so that the ?match of several
    # services do not join.
    hidden = frozenset() if _mentions(part.graph, _MATCH) else frozenset([_MATCH])
    return _Block(part, hidden, algebra, rows)


def _copied(part: Any) -> Any:
    """Copy a parse tree; ``copy`` cannot copy a CompValue."""
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

"""An immutable state of a knowledge graph, as one path query sees it: its terms, their numbers, its edges."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from spaseq.limits import Limits
from spaseq.paths.graph.numbering import Numbering, no_node
from spaseq.paths.graph.provenance import Sources, sources_of_file
from spaseq.paths.graph.provenance import changed as with_sources
from spaseq.paths.graph.relations import Relations
from spaseq.paths.graph.saved.contents import Contents
from spaseq.paths.graph.saved.file import KeptFile
from spaseq.paths.graph.updates.merging import Edge, merged
from spaseq.paths.language.compile import Compiled, compile_path
from spaseq.paths.language.expression import Condition, Expression, Step
from spaseq.paths.language.parser import parse
from spaseq.paths.language.transitions import Automaton, automaton_of
from spaseq.paths.search._kernel import Flags, Ids, Nodes
from spaseq.paths.search.product import Product
from spaseq.paths.search.running import Memory
from spaseq.paths.search.workspace import Workspaces
from spaseq.patterns.expressions.comparison import NUMERIC
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm, shown_all, to_rdflib
from spaseq.terms.values import DECIMAL, DOUBLE, INTEGER, NO_NUMBER, decode

_Made = TypeVar("_Made")

_KEPT: Final = 256

_MOST_SHOWN: Final = 1 << 20

#: Numbers of a smaller absolute value become doubles without overflow.
_EXACT: Final = 1e300


class Terms(ABC):
    """The terms of a graph and their numbers, as the graph is now."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The graph as it is now, as an object that does not change."""

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}: {len(self):,} edges, {self.nodes:,} nodes, {self.predicates:,} predicates>"

    def __len__(self) -> int:
        """Return the number of edges, that is, of distinct triples."""
        return self.snapshot.contents.size

    def __contains__(self, value: Any) -> bool:
        """Return whether a term is a node of the graph."""
        return self.node(value) is not None

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.snapshot.contents.nodes

    @property
    def predicates(self) -> int:
        """The number of predicates."""
        return self.snapshot.contents.predicates

    def edges(self) -> tuple[Nodes, Nodes, Nodes]:
        """Return all edges as arrays of subjects, predicates and objects (numbers), sorted by (p, s, o)."""
        edges = self.snapshot.contents.edges
        return edges.s, edges.p, edges.o

    def term(self, node: int) -> RdflibTerm:
        """Return the term of a node."""
        return to_rdflib(self.ox_term(node))

    def terms(self, nodes: Ids | Nodes) -> list[RdflibTerm]:
        """Return the terms of many nodes. About a million terms are cached."""
        return self.snapshot.kept_terms(nodes)

    def ox_term(self, node: int) -> Term:
        """Return the term of a node as a pyoxigraph term."""
        contents = self.snapshot.contents
        if not 0 <= node < contents.nodes:
            raise no_node(node, contents.nodes)
        return contents.dictionary.term(int(contents.node_ids[node]))

    def glance(self, nodes: Ids | Nodes) -> Iterator[Term]:
        """Yield the terms of many nodes; the objects are not cached."""
        contents = self.snapshot.contents
        return contents.dictionary.glance(contents.node_ids[nodes])

    def predicate(self, number: int) -> RdflibTerm:
        """Return the IRI of a predicate."""
        return to_rdflib(self.ox_predicate(number))

    def ox_predicate(self, number: int) -> NamedNode:
        """Return the IRI of a predicate as a pyoxigraph term."""
        contents = self.snapshot.contents
        if not 0 <= number < contents.predicates:
            raise KeyError(number)
        found = contents.dictionary.term(int(contents.predicate_ids[number]))
        assert isinstance(found, NamedNode)
        return found

    def node(self, value: Any) -> int | None:
        """Return the number of a node, by its term; None if the graph has no such node."""
        graph = self.snapshot
        return graph.find(graph.read(value), graph.contents.node_of)

    def predicate_number(self, value: Any) -> int | None:
        """Return the number of a predicate, by its IRI; None if no edge has it."""
        graph = self.snapshot
        return graph.find(graph.read(value), graph.contents.predicate_of)

    @property
    def file(self) -> KeptFile | None:
        """The file that the graph was opened from; None if it was loaded, or has changed."""
        return self.snapshot.contents.file


class Snapshot(Terms):
    """An RDF graph that does not change, in the form that searches read. Threads may share it.

    Its nodes are all subjects and objects, numbered from 0; its predicates have numbers of their own.
    """

    def __init__(
        self,
        contents: Contents,
        prefixes: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        compiled: Callable[[str | Expression], Compiled] | None = None,
        sources: Sources | None = None,
    ) -> None:
        """Make a graph of arrays.

        ``compiled`` compiles expressions and caches their automata; it can be shared with graphs that have
        the same prefixes. ``sources`` are the sources of edges; None means those in the file of ``contents``.
        """
        self.limits = limits or Limits()
        self.prefixes: Mapping[str, str] = MappingProxyType({**contents.prefixes, **(prefixes or {})})
        self.contents = contents
        self._sources = sources
        self._relations: Relations | None = None
        self._lock = threading.Lock()
        self.workspaces = Workspaces(contents.nodes, self.limits)
        self._shown: tuple[npt.NDArray[np.object_], Flags] | None = None
        self._numbering = Numbering(contents, self.prefixes)
        self.compile = compiled or lru_cache(_KEPT)(partial(_compile, self.prefixes))
        self._product = lru_cache(_KEPT)(self._bind)
        self._derived: dict[Callable[[Snapshot], Any], Any] = {}

    @property
    def snapshot(self) -> Snapshot:
        """This graph."""
        return self

    @property
    def sources(self) -> Sources:
        """The sources of edges, by the ids of their terms."""
        if self._sources is None:
            self._sources = sources_of_file(self.contents.file)
        return self._sources

    def sources_of(self, edge: tuple[int, int, int]) -> tuple[str, ...]:
        """Return the sources of an edge, given as the numbers of subject, predicate and object."""
        if not self.sources:
            return ()
        s, p, o = edge
        nodes, predicates = self.contents.node_ids, self.contents.predicate_ids
        return self.sources.get((int(nodes[s]), int(predicates[p]), int(nodes[o])), ())

    def changed(self, changes: Mapping[Edge, bool], more: Sources) -> Snapshot:
        """Return the graph with changes: edges to add (``True``) or remove (``False``), and more sources."""
        ways = None if self._relations is None else self._relations.ways
        contents = merged(self.contents, ways, changes)
        if contents is self.contents and not more:
            return self
        sources = self.sources
        gone = [edge for edge, wanted in changes.items() if not wanted and edge in sources]
        if more or gone:
            sources = with_sources(sources, more, gone)
        after = Snapshot(contents, self.prefixes, self.limits, self.compile, sources)
        if contents is self.contents:
            after._relations, after._derived = self._relations, self._derived
        return after

    def derived(self, make: Callable[[Snapshot], _Made]) -> _Made:
        """Return ``make(self)``, computed once and then cached."""
        found = self._derived.get(make)
        if found is None:
            found = self._derived.setdefault(make, make(self))
        return cast("_Made", found)

    def kept_terms(self, nodes: Ids | Nodes) -> list[RdflibTerm]:
        """Return the terms of nodes from a cache; see ``terms``."""
        if self._shown is None:
            self._shown = self._nothing_shown()
        found, known = self._shown
        there = known.take(nodes)
        if np.count_nonzero(there) < len(nodes):
            if np.count_nonzero(known) > _MOST_SHOWN:
                self._shown = self._nothing_shown()
            new = np.sort(nodes[~there])
            new = new[np.flatnonzero(np.diff(new, prepend=-1))]
            texts = self.contents.dictionary.texts(self.contents.node_ids[new])
            found[new] = np.fromiter(shown_all(texts), dtype=np.object_)
            known[new] = True
        terms: list[RdflibTerm] = found.take(nodes).tolist()
        return terms

    def _nothing_shown(self) -> tuple[npt.NDArray[np.object_], Flags]:
        return np.empty(self.nodes, dtype=np.object_), np.zeros(self.nodes, dtype=np.bool_)

    def read(self, value: Any) -> Term:
        """Return ``value`` as a term; text is read with the graph's prefixes."""
        return self._numbering.term(value)

    def find(self, found: Term, numbers: Nodes) -> int | None:
        """Return the number of a term, by ``numbers``, which has a number for each id; None without one."""
        identifier = self.contents.dictionary.find(found)
        number = int(numbers[identifier]) if identifier < len(numbers) else -1
        return None if number < 0 else number

    def predicates_of(self, step: Step) -> list[int]:
        """Return the numbers of the predicates that a step matches."""
        given = {n for p in step.predicates if (n := self.predicate_number(p)) is not None}
        return [p for p in range(self.predicates) if p not in given] if step.negated else sorted(given)

    @property
    def relations(self) -> Relations:
        """The edges as CSR arrays, a row per relation."""
        relations = self._relations
        if relations is None or self._is_too_large(relations):
            with self._lock:
                relations = self._relations
                if relations is None or self._is_too_large(relations):
                    relations = self._relations = Relations(
                        self.contents.edges,
                        self.contents.both_ways(),
                        lambda predicate: self.find(predicate, self.contents.predicate_of),
                        lambda node: self.find(node, self.contents.node_of),
                        self._admitted,
                    )
                    self._product.cache_clear()  # running queries keep their products
        return relations

    def _admitted(self, condition: Condition, nodes: Nodes) -> Flags:
        """Return which nodes a condition with an operator admits as values."""
        admitted = np.zeros(len(nodes), dtype=np.bool_)
        unsure = np.arange(len(nodes))
        constant = decode(cast("Term", condition.value))
        if constant.kind in (INTEGER, DECIMAL, DOUBLE) and abs(constant.data) < _EXACT:
            dictionary = self.contents.dictionary
            with dictionary.lock:
                numbers, ranks = dictionary.numbers(self.contents.node_ids[nodes])
            admitted = cast("Flags", NUMERIC[condition.operator](numbers, float(constant.data)))
            unsure = np.flatnonzero((ranks == NO_NUMBER) | (numbers == float(constant.data)))
        for place, term in zip(unsure.tolist(), self.glance(nodes[unsure]), strict=True):
            admitted[place] = condition.admits(term)
        return admitted

    def _is_too_large(self, relations: Relations) -> bool:
        """Return whether the rows that queries have added take more than ``limits.query_bytes``."""
        most = self.limits.query_bytes
        return most is not None and relations.added > most

    def product(self, expression: str | Expression, *, backwards: bool = False) -> Product:
        """Return an expression's automaton, bound to this graph's CSR arrays; the latest are cached."""
        return self._product(expression, backwards)

    def _bind(self, expression: str | Expression, backwards: bool) -> Product:
        found: Automaton = automaton_of(self.compile(expression))
        found = found.reversed() if backwards else found
        return Product(self.relations, found, self.nodes, self.memory(expression))

    def memory(self, query: str | Expression) -> Memory:
        """Return the memory that a query may take."""
        return Memory(self.limits, query)

    def numbers(self, values: Any) -> tuple[Ids, tuple[Term, ...]]:
        """Return terms, or one term, as distinct numbers of nodes, and the terms that are not nodes."""
        return self._numbering.numbers(values)


def _compile(prefixes: Mapping[str, str], expression: str | Expression) -> Compiled:
    """Compile an expression; text is read with ``prefixes``."""
    if isinstance(expression, str):
        expression = parse(expression, prefixes)
    elif not isinstance(expression, Expression):
        raise TypeError(f"not a path expression: {expression!r}")
    return compile_path(expression)

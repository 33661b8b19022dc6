"""A knowledge graph as it is at one time: what one path query sees of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from os import PathLike
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from spaseq.interop import RdflibTerm, to_rdflib
from spaseq.language.printer import print_term
from spaseq.limits import Limits
from spaseq.paths._kernel import Flags, Ids, Nodes
from spaseq.paths.compile import Compiled, compile_path
from spaseq.paths.expression import Expression, NodeTest, read, show
from spaseq.paths.kept.contents import Contents
from spaseq.paths.kept.file import KeptFile
from spaseq.paths.kept.graph import kept_index, kept_linker, pickled, save
from spaseq.paths.linking.candidates import Candidate, Linker, label_predicates
from spaseq.paths.memory import Memory
from spaseq.paths.moves import Moves, moves
from spaseq.paths.names import Names, local_name
from spaseq.paths.neighbourhood import Neighbourhood, neighbourhood
from spaseq.paths.numbering import Numbering, no_node
from spaseq.paths.pairs import Pairs, find_batches, find_pairs
from spaseq.paths.parser import parse
from spaseq.paths.product import Product
from spaseq.paths.relations import Relations
from spaseq.paths.search import Paths, find_paths
from spaseq.paths.updates.merging import Edge, merged
from spaseq.paths.workspace import Workspaces
from spaseq.terms import Term

_KEPT: Final = 256
_KEPT_LINKERS: Final = 4

_MOST_SHOWN: Final = 1 << 20


class Snapshot:
    """An RDF graph that does not change: what a ``KnowledgeGraph`` is ``now``.

    Its nodes are all subjects and objects, numbered from 0; its predicates have numbers of their own. Threads
    may share it.
    """

    def __init__(
        self,
        contents: Contents,
        prefixes: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        compiled: Callable[[str | Expression], Compiled] | None = None,
    ) -> None:
        """``compiled`` keeps the automata of expressions: those of any graph with these prefixes."""
        self.limits = limits or Limits()
        self.prefixes: Mapping[str, str] = MappingProxyType({**contents.prefixes, **(prefixes or {})})
        self.contents = contents
        self._relations: Relations | None = None
        self._lock = threading.Lock()
        self.workspaces = Workspaces(contents.nodes, self.limits)
        self._shown = self._nothing_shown()
        self._numbering = Numbering(contents, self.prefixes)
        self.compile = compiled or lru_cache(_KEPT)(partial(_compile, self.prefixes))
        self._product = lru_cache(_KEPT)(self._bind)
        self._linker_by = lru_cache(_KEPT_LINKERS)(lambda labels: Linker.of(self, labels))

    def __repr__(self) -> str:
        return f"<Snapshot: {len(self):,} edges, {self.nodes:,} nodes, {self.predicates:,} predicates>"

    def __len__(self) -> int:
        """The number of edges, that is of distinct triples."""
        return self.contents.size

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.contents.nodes

    @property
    def predicates(self) -> int:
        """The number of predicates."""
        return self.contents.predicates

    @property
    def now(self) -> Snapshot:
        """This is what it is."""
        return self

    def changed(self, changes: Mapping[Edge, bool]) -> Snapshot:
        """The graph with the edges that are ``True`` and without those that are ``False``."""
        ways = None if self._relations is None else self._relations.ways
        contents = merged(self.contents, ways, changes)
        if contents is self.contents:
            return self
        return Snapshot(contents, self.prefixes, self.limits, self.compile)

    # --- numbers and terms

    def edges(self) -> tuple[Nodes, Nodes, Nodes]:
        """All edges as numbers: subjects, predicates, objects, sorted by (p, s, o); each ``(len(self),)``."""
        edges = self.contents.edges
        return edges.s, edges.p, edges.o

    def term(self, node: int) -> RdflibTerm:
        """The term of a node."""
        return to_rdflib(self.ox_term(node))

    def terms(self, nodes: Ids | Nodes) -> list[RdflibTerm]:
        """The terms of many nodes. They are kept, about a million of them."""
        found, known = self._shown
        there = known.take(nodes)
        if np.count_nonzero(there) < len(nodes):
            if np.count_nonzero(known) > _MOST_SHOWN:
                self._shown = self._nothing_shown()
            for node in dict.fromkeys(nodes[~there].tolist()):
                found[node] = self.term(node)
                known[node] = True
        terms: list[RdflibTerm] = found.take(nodes).tolist()
        return terms

    def _nothing_shown(self) -> tuple[npt.NDArray[np.object_], Flags]:
        return np.empty(self.nodes, dtype=np.object_), np.zeros(self.nodes, dtype=np.bool_)

    def ox_term(self, node: int) -> Term:
        """The term of a node, as pyoxigraph has it."""
        if not 0 <= node < self.nodes:
            raise no_node(node, self.nodes)
        return self.contents.dictionary.term(int(self.contents.node_ids[node]))

    def glance(self, nodes: Ids | Nodes) -> Iterator[Term]:
        """The terms of many nodes, for who looks at each once: no object is kept."""
        return self.contents.dictionary.glance(self.contents.node_ids[nodes])

    def predicate(self, number: int) -> RdflibTerm:
        """The IRI of a predicate."""
        return to_rdflib(self.ox_predicate(number))

    def ox_predicate(self, number: int) -> NamedNode:
        """The IRI of a predicate, as pyoxigraph has it."""
        if not 0 <= number < self.predicates:
            raise KeyError(number)
        found = self.contents.dictionary.term(int(self.contents.predicate_ids[number]))
        assert isinstance(found, NamedNode)
        return found

    def node(self, value: Any) -> int | None:
        """The number of a node, by its term; None if the graph has no such node."""
        return self._find(self._numbering.term(value), self.contents.node_of)

    def predicate_number(self, value: Any) -> int | None:
        """The number of a predicate, by its IRI; None if no edge has it."""
        return self._find(self._numbering.term(value), self.contents.predicate_of)

    def _find(self, found: Term, numbers: Nodes) -> int | None:
        identifier = self.contents.dictionary.find(found)
        number = int(numbers[identifier]) if identifier < len(numbers) else -1
        return None if number < 0 else number

    # --- files

    @property
    def file(self) -> KeptFile | None:
        """What the graph was opened from; None if it was loaded."""
        return self.contents.file

    def save(self, file: str | PathLike[str]) -> None:
        """Into one file, which ``spaseq.paths.open`` maps: ``spaseq.paths.kept.graph.save``."""
        save(self, file)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickled(self)

    # --- names

    @cached_property
    def names(self) -> Names:
        """What terms are called, and predicates by their names."""
        return Names(self, kept_index(self.file))

    @cached_property
    def linker(self) -> Linker:
        """The nodes by their names; made when it is first needed, and saved with the graph."""
        return kept_linker(self.file) or Linker.of(self)

    def linker_by(self, labels: tuple[int, ...]) -> Linker:
        """The nodes by the values of these predicates, too. Those asked for last are kept."""
        return self._linker_by(labels) if labels else self.linker

    def link(self, name: str, k: int = 10, labels: Any = ()) -> list[Candidate]:
        """The nodes that may be meant by a name, the best first, at most ``k``.

        A name is a label (``rdfs:label``, ``skos:prefLabel``, ``schema:name``, then ``skos:altLabel``,
        ``foaf:name``), the last segment of an IRI, or a short literal; letters and digits count. Where
        no node has it, those whose names are spelled most like it are given, ``by="spelling"``. Of equal
        scores, the node with more edges comes first. ``labels`` are more predicates (or one) whose values are
        names; the index that they make is kept, those of a few. Raises QueryError for one that no edge has.
        """
        _not_negative("k", k)
        return self.linker_by(label_predicates(self, labels)).link(self, name, k)

    def relations_of(
        self, topic: Any, hops: int = 2, k: int = 100, examples: int = 3, labels: Any = ()
    ) -> Neighbourhood:
        """The relations that leave a topic (a term, a name, or several), for a language model's planner.

        All that one relation leads to, then two of them, up to ``hops``; of each length the ``k`` that lead
        to most nodes, and on only from these. Each has the number of distinct nodes that it leads to, the
        topics aside, and ``examples`` of them, evenly spread. Names are those that ``retrieve`` takes, each
        of one predicate only; what nodes are labelled by (``rdfs:label``, …) is left out. Each hop looks once
        at every edge of the graph. ``labels`` are as for ``link``.

        Raises QueryError for a topic that is a name of no node, ValueError for numbers that make no sense,
        LimitError for more memory than a query may take.
        """
        return neighbourhood(self, topic, hops, k, examples, labels)

    # --- queries

    def pairs(
        self, expression: str | Expression, sources: Any = None, targets: Any = None, limit: int | None = None
    ) -> Pairs:
        """The distinct pairs of nodes that a path joins; see ``spaseq.paths.pairs.find_pairs``."""
        _not_negative("limit", limit)
        return find_pairs(self, expression, sources, targets, limit)

    def batches(
        self, expression: str | Expression, sources: Any = None, targets: Any = None
    ) -> Iterator[Pairs]:
        """The same pairs in batches, as they are found, however many: ``spaseq.paths.pairs.find_batches``."""
        return find_batches(self, expression, sources, targets)

    def paths(
        self,
        expression: str | Expression,
        sources: Any = None,
        targets: Any = None,
        mode: str = "WALK",
        shortest: int | None = None,
        max_paths: int | None = None,
    ) -> Paths:
        """The paths, as an iterator that looks for them when asked: ``spaseq.paths.search.find_paths``."""
        _not_negative("max_paths", max_paths)
        return find_paths(self, expression, sources, targets, mode, shortest, max_paths)

    def check(
        self, expression: str | Expression, sources: Any = None, targets: Any = None
    ) -> tuple[str, ...]:
        """What is doubtful about a query on this graph: predicates without edges, ends that are no nodes."""
        compiled = self.compile(expression)
        prefixes = compiled.expression.prefixes
        used = [p for symbol in read(compiled.expression.root)
                for p in ([c.predicate for c in symbol.conditions] if isinstance(symbol, NodeTest)
                          else symbol.predicates)]  # fmt: skip
        missing = [p for p in dict.fromkeys(used) if self._find(p, self.contents.predicate_of) is None]
        doubts = [self._unknown(p, prefixes) for p in missing]
        for ends in (sources, targets):
            strangers = () if ends is None else self.numbers(ends)[1]
            doubts += [f"the graph has no node {print_term(term, prefixes)}" for term in strangers]
        return tuple(doubts)

    def _unknown(self, predicate: NamedNode, prefixes: Mapping[str, str]) -> str:
        alike = self.names.alike(local_name(predicate))
        hint = f": did you mean {print_name(alike, prefixes)}?" if alike else ""
        return f"no edge has the predicate {print_name(predicate, prefixes)}{hint}"

    # --- what the backends stand on

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
                        lambda predicate: self._find(predicate, self.contents.predicate_of),
                        lambda node: self._find(node, self.contents.node_of),
                    )
                    self._product.cache_clear()  # what is being asked keeps its own
        return relations

    def _is_too_large(self, relations: Relations) -> bool:
        """Whether what queries have added to the edges is better forgotten."""
        most = self.limits.query_bytes
        return most is not None and relations.added > most

    def product(self, expression: str | Expression, *, backwards: bool = False) -> Product:
        """The moves of an expression's automaton bound to this graph's CSR arrays. Kept."""
        return self._product(expression, backwards)

    def _bind(self, expression: str | Expression, backwards: bool) -> Product:
        found: Moves = moves(self.compile(expression))
        found = found.reversed() if backwards else found
        return Product(self.relations, found, self.nodes, self.memory(expression))

    def memory(self, query: str | Expression) -> Memory:
        """What a query may take of memory."""
        return Memory(self.limits, query)

    def numbers(self, values: Any) -> tuple[Ids, tuple[Term, ...]]:
        """Terms, or one term, as distinct numbers of nodes; and those that are no nodes of the graph."""
        return self._numbering.numbers(values)


def _compile(prefixes: Mapping[str, str], expression: str | Expression) -> Compiled:
    """The automaton of an expression, with the graph's prefixes."""
    if isinstance(expression, str):
        expression = parse(expression, prefixes)
    elif not isinstance(expression, Expression):
        raise TypeError(f"not a path expression: {expression!r}")
    return compile_path(expression)


def print_name(predicate: NamedNode, prefixes: Mapping[str, str]) -> str:
    """A predicate as an expression writes it."""
    from spaseq.paths.expression import Step

    return show(Step((predicate,)), prefixes)


def _not_negative(name: str, number: int | None) -> None:
    if number is not None and number < 0:
        raise ValueError(f"{name}={number}: ask for at least 0, or None for all")

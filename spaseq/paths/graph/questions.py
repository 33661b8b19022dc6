"""What can be asked of a knowledge graph, whether it changes or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from pyoxigraph import NamedNode

from spaseq.language.syntax.printing import print_term
from spaseq.paths.graph.linking.candidates import Candidate, label_predicates
from spaseq.paths.graph.names import local_name
from spaseq.paths.graph.numbering import no_node
from spaseq.paths.graph.saved.file import KeptFile
from spaseq.paths.graph.saved.graph import save
from spaseq.paths.language.expression import Expression, NodeTest, Step, read, show
from spaseq.paths.retrieval.neighbourhood import Neighbourhood, neighbourhood
from spaseq.paths.search._kernel import Ids, Nodes
from spaseq.paths.search.enumeration.paths import Paths, find_paths
from spaseq.paths.search.pairs import Pairs, find_batches, find_pairs
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm, to_rdflib

if TYPE_CHECKING:
    from spaseq.paths.graph.snapshot import Snapshot
    from spaseq.paths.retrieval.budget import Budget


class Questions(ABC):
    """The questions: each is answered by what the graph is ``now``, from its beginning to its end."""

    @property
    @abstractmethod
    def now(self) -> Snapshot:
        """The graph as it is now; it does not change."""

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}: {len(self):,} edges, {self.nodes:,} nodes, {self.predicates:,} predicates>"

    def __len__(self) -> int:
        """The number of edges, that is of distinct triples."""
        return self.now.contents.size

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.now.contents.nodes

    @property
    def predicates(self) -> int:
        """The number of predicates."""
        return self.now.contents.predicates

    # --- numbers and terms

    def edges(self) -> tuple[Nodes, Nodes, Nodes]:
        """All edges as numbers: subjects, predicates, objects, sorted by (p, s, o); each ``(len(self),)``."""
        edges = self.now.contents.edges
        return edges.s, edges.p, edges.o

    def term(self, node: int) -> RdflibTerm:
        """The term of a node."""
        return to_rdflib(self.ox_term(node))

    def terms(self, nodes: Ids | Nodes) -> list[RdflibTerm]:
        """The terms of many nodes. They are kept, about a million of them."""
        return self.now.kept_terms(nodes)

    def ox_term(self, node: int) -> Term:
        """The term of a node, as pyoxigraph has it."""
        contents = self.now.contents
        if not 0 <= node < contents.nodes:
            raise no_node(node, contents.nodes)
        return contents.dictionary.term(int(contents.node_ids[node]))

    def glance(self, nodes: Ids | Nodes) -> Iterator[Term]:
        """The terms of many nodes, for who looks at each once: no object is kept."""
        contents = self.now.contents
        return contents.dictionary.glance(contents.node_ids[nodes])

    def predicate(self, number: int) -> RdflibTerm:
        """The IRI of a predicate."""
        return to_rdflib(self.ox_predicate(number))

    def ox_predicate(self, number: int) -> NamedNode:
        """The IRI of a predicate, as pyoxigraph has it."""
        contents = self.now.contents
        if not 0 <= number < contents.predicates:
            raise KeyError(number)
        found = contents.dictionary.term(int(contents.predicate_ids[number]))
        assert isinstance(found, NamedNode)
        return found

    def node(self, value: Any) -> int | None:
        """The number of a node, by its term; None if the graph has no such node."""
        now = self.now
        return now.find(now.read(value), now.contents.node_of)

    def predicate_number(self, value: Any) -> int | None:
        """The number of a predicate, by its IRI; None if no edge has it."""
        now = self.now
        return now.find(now.read(value), now.contents.predicate_of)

    # --- files

    @property
    def file(self) -> KeptFile | None:
        """What the graph was opened from; None if it was loaded, or has changed."""
        return self.now.contents.file

    def save(self, file: str | PathLike[str]) -> None:
        """Into one file, which ``spaseq.paths.open`` maps: ``spaseq.paths.graph.saved.graph.save``."""
        save(self.now, file)

    # --- names

    def link(self, name: str, k: int = 10, labels: Any = ()) -> list[Candidate]:
        """The nodes that may be meant by a name, the best first, at most ``k``.

        A name is a label (``rdfs:label``, ``skos:prefLabel``, ``schema:name``, then ``skos:altLabel``,
        ``foaf:name``), the last segment of an IRI, or a short literal; letters and digits count. Where
        no node has it, those whose names are spelled most like it are given, ``by="spelling"``. Of equal
        scores, the node with more edges comes first. ``labels`` are more predicates (or one) whose values are
        names; the index that they make is kept, those of a few. Raises QueryError for one that no edge has.
        """
        _not_negative("k", k)
        now = self.now
        return now.linker_by(label_predicates(now, labels)).link(now, name, k)

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
        return neighbourhood(self.now, topic, hops, k, examples, labels)

    # --- queries

    def pairs(
        self, expression: str | Expression, sources: Any = None, targets: Any = None, limit: int | None = None
    ) -> Pairs:
        """The distinct pairs of nodes that a path joins; see ``spaseq.paths.search.pairs.find_pairs``."""
        _not_negative("limit", limit)
        return find_pairs(self.now, expression, sources, targets, limit)

    def batches(
        self, expression: str | Expression, sources: Any = None, targets: Any = None
    ) -> Iterator[Pairs]:
        """The same pairs in batches, as they are found: ``spaseq.paths.search.pairs.find_batches``."""
        return find_batches(self.now, expression, sources, targets)

    def paths(
        self,
        expression: str | Expression,
        sources: Any = None,
        targets: Any = None,
        mode: str = "WALK",
        shortest: int | None = None,
        max_paths: int | None = None,
        budget: Budget | None = None,
    ) -> Paths:
        """The paths, looked for when they are asked for: see ``find_paths``."""
        from spaseq.paths.retrieval.budget import budget_given

        _not_negative("max_paths", max_paths)
        budget_given(budget)
        return find_paths(self.now, expression, sources, targets, mode, shortest, max_paths, budget)

    def check(
        self, expression: str | Expression, sources: Any = None, targets: Any = None
    ) -> tuple[str, ...]:
        """What is doubtful about a query on this graph: predicates without edges, ends that are no nodes."""
        now = self.now
        compiled = now.compile(expression)
        prefixes = compiled.expression.prefixes
        used = [p for symbol in read(compiled.expression.root)
                for p in ([c.predicate for c in symbol.conditions] if isinstance(symbol, NodeTest)
                          else symbol.predicates)]  # fmt: skip
        missing = [p for p in dict.fromkeys(used) if now.find(p, now.contents.predicate_of) is None]
        doubts = [_unknown(now, p, prefixes) for p in missing]
        for ends in (sources, targets):
            strangers = () if ends is None else now.numbers(ends)[1]
            doubts += [f"the graph has no node {print_term(term, prefixes)}" for term in strangers]
        return tuple(doubts)


def _unknown(now: Snapshot, predicate: NamedNode, prefixes: Mapping[str, str]) -> str:
    alike = now.names.alike(local_name(predicate))
    hint = f": did you mean {print_name(alike, prefixes)}?" if alike else ""
    return f"no edge has the predicate {print_name(predicate, prefixes)}{hint}"


def print_name(predicate: NamedNode, prefixes: Mapping[str, str]) -> str:
    """A predicate as an expression writes it."""
    return show(Step((predicate,)), prefixes)


def _not_negative(name: str, number: int | None) -> None:
    if number is not None and number < 0:
        raise ValueError(f"{name}={number}: ask for at least 0, or None for all")

"""A path, as it was found."""

from __future__ import annotations

from dataclasses import dataclass, field

from spaseq.language.syntax.printing import print_term
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm, to_rdflib


@dataclass(frozen=True, slots=True)
class Path:
    """Nodes and the edges between them, as numbers of ``graph``; ``len`` is the number of edges.

    ``cost``: the sum of the weights of its edges, if the path was found by weights.

    ``forward[i]`` says whether edge ``i`` leads from ``nodes[i]`` to ``nodes[i + 1]`` or back. A path of no
    edges may stand at a ``stranger``, a term that is no node of the graph; its node is then
    ``graph.nodes``.
    """

    graph: Snapshot = field(repr=False, compare=False)
    nodes: tuple[int, ...]
    predicates: tuple[int, ...]
    forward: tuple[bool, ...]
    stranger: Term | None = None
    cost: float | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.predicates)

    def __bool__(self) -> bool:
        return True

    @property
    def edges(self) -> tuple[tuple[int, int, int], ...]:
        """The edges as the graph has them: subject, predicate, object."""
        ends = zip(self.nodes, self.nodes[1:], self.predicates, self.forward, strict=False)
        return tuple((a, p, b) if ahead else (b, p, a) for a, b, p, ahead in ends)

    @property
    def terms(self) -> tuple[RdflibTerm, ...]:
        """The nodes as terms."""
        if self.stranger is not None:
            return (to_rdflib(self.stranger),)
        return tuple(map(self.graph.term, self.nodes))

    @property
    def start(self) -> RdflibTerm:
        """The node where it begins."""
        return self.terms[0]

    @property
    def end(self) -> RdflibTerm:
        """The node where it ends."""
        return self.terms[-1]

    @property
    def triples(self) -> tuple[tuple[RdflibTerm, RdflibTerm, RdflibTerm], ...]:
        """The edges as the triples of the graph."""
        term, predicate = self.graph.term, self.graph.predicate
        return tuple((term(s), predicate(p), term(o)) for s, p, o in self.edges)

    def __str__(self) -> str:
        prefixes = self.graph.prefixes
        if self.stranger is not None:
            return print_term(self.stranger, prefixes)
        names = [print_term(self.graph.ox_term(node), prefixes) for node in self.nodes]
        text = names[0]
        for name, p, ahead in zip(names[1:], self.predicates, self.forward, strict=True):
            label = print_term(self.graph.ox_predicate(p), prefixes)
            text += f" -{label}-> {name}" if ahead else f" <-{label}- {name}"
        return text

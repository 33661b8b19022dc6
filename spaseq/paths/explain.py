"""The plan of a path query: its automaton and, with a graph, where the search begins and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spaseq.automaton.draw import as_json
from spaseq.automaton.nfa import NFA
from spaseq.automaton.show import label
from spaseq.automaton.show import show as show_sequence
from spaseq.paths.graph.doubts import doubts
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.compile import Compiled, compile_path
from spaseq.paths.language.expression import Step, endless, show
from spaseq.paths.language.parser import parse
from spaseq.paths.search.pairs import rare_cut


@dataclass(frozen=True, slots=True)
class PathPlan:
    """A path query's plan. ``str`` shows it to people, ``as_json`` to programs.

    ``edges`` maps each step to the number of edges that it can take. ``first`` and ``middle`` are for a
    search without given ends. ``first``: how many edges the first transitions can take from the sources and
    from the targets. ``middle``: the steps in the middle that the search begins with, and how many edges they
    can take; None if it begins at an end. Without a graph, ``edges`` is empty, and both are None.
    """

    path: str
    sequence: str
    nfa: NFA
    bounded: bool
    edges: Mapping[str, int]
    first: tuple[int, int] | None
    middle: tuple[tuple[str, ...], int] | None
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "path": self.path,
            "sequence": self.sequence,
            "automaton": as_json(self.nfa),
            "bounded": self.bounded,
            "edges": dict(self.edges),
            "first": self.first and {"sources": self.first[0], "targets": self.first[1]},
            "middle": self.middle and {"steps": list(self.middle[0]), "edges": self.middle[1]},
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"path       {self.path}"
        yield f"sequence   SEQ({self.sequence})"
        yield f"automaton  {_number(self.nfa.size, 'state')}, {_number(len(self.nfa.edges), 'edge')}"
        for edge in self.nfa.edges:
            yield f"    {edge.source} → {edge.target}  {label(edge)}"
        for accept in self.nfa.accepts:
            yield f"    {accept.state} ends a path"
        length = "bounded" if self.bounded else "unbounded: all walks cannot be asked for, but all trails"
        yield f"length     {length}"
        for step, count in self.edges.items():
            yield f"step       {step}: {_number(count, 'edge')}"
        if self.first is not None and self.middle is not None:
            steps, count = self.middle
            why = f"every path takes 1 of {count:,}, first edges are {min(self.first):,}"
            yield f"search     from the middle, {' and '.join(steps)}, unless few ends are given ({why})"
        elif self.first is not None:
            ahead, behind = self.first
            end, why = ("targets", f"{behind:,} < {ahead:,}") if behind < ahead else ("sources", "")
            why = why or f"{ahead:,} ≤ {behind:,}"
            yield f"search     from the {end} unless one end is given ({why} first edges)"
        for warning in self.warnings:
            yield f"warning    {warning}"


def explain(
    path: str, graph: KnowledgeGraph | None = None, prefixes: Mapping[str, str] | None = None
) -> PathPlan:
    """Return the plan of an expression; with a graph, on this graph and with its prefixes.

    >>> print(explain("<urn:p>+"))
    path       <urn:p>+
    sequence   SEQ(<urn:p>+[,])
    automaton  2 states, 2 edges
        0 → 1  <urn:p>
        1 → 1  <urn:p>
        1 ends a path
    length     unbounded: all walks cannot be asked for, but all trails
    """
    known = None if graph is None else graph.snapshot
    compiled = compile_path(parse(path, prefixes)) if known is None else known.compile(path)
    expression = compiled.expression
    return PathPlan(
        path=str(expression),
        sequence=show_sequence(compiled.nfa.root),
        nfa=compiled.nfa,
        bounded=endless(expression.root) is None,
        edges={} if known is None else _edges(compiled, known),
        first=None if known is None else _first(path, known),
        middle=None if known is None else _middle(compiled, path, known),
        warnings=() if known is None else doubts(known, path),
    )


def _edges(compiled: Compiled, graph: Snapshot) -> dict[str, int]:
    return {
        name: graph.relations.size(graph.relations.step(symbol))
        for name, symbol in compiled.symbols.items()
        if isinstance(symbol, Step)
    }


def _first(path: str, graph: Snapshot) -> tuple[int, int]:
    products = (graph.product(path), graph.product(path, backwards=True))
    ahead, behind = (product.first_edges(None) for product in products)
    return ahead, behind


def _middle(compiled: Compiled, path: str, graph: Snapshot) -> tuple[tuple[str, ...], int] | None:
    product = graph.product(path)
    cut = rare_cut(product, min(_first(path, graph)))
    if cut is None:
        return None
    relations = {
        product.relations.row(transition.relation): transition.relation
        for transition in product.automaton.transitions
    }
    steps = (show(relations[row].step, compiled.expression.prefixes) for _, row, _ in cut.transitions)
    return tuple(dict.fromkeys(steps)), cut.edges


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"

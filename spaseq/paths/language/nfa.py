"""The automaton of a path expression as that of a sequence.

An edge of the graph is an event, a step of the expression a GPM of one triple pattern, and the node between
two steps the variable that joins them: ``:a/(:b|:c)+`` is ``SEQ(:a , (:b | :c)+[,])``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.automaton.nfa import NFA, Accept, Edge, Predicate
from spaseq.automaton.pattern import Atom, Chain, Either, Empty, GpmPart, Kleene, Node, SequencePattern
from spaseq.language import syntax as s
from spaseq.paths.language.expression import (
    Alternative,
    Concatenation,
    Expression,
    NodeTest,
    Path,
    Repetition,
    Step,
    Symbol,
)
from spaseq.paths.language.states import States
from spaseq.terms.dictionary import Term

#: The graph, as the stream that the steps' GPMs read.
GRAPH: Final = NamedNode("urn:spaseq:graph")

#: A query has a window; nothing looks at this one.
_EVENTS: Final = 4_096

_HERE: Final = s.Var("here")
_NEXT: Final = s.Var("next")


def as_nfa(expression: Expression, states: States, symbols: Mapping[str, Symbol]) -> NFA:
    """The same states and edges; ``symbols`` are the steps and tests by the names of their GPMs."""
    names = {symbol: name for name, symbol in symbols.items()}
    atoms = {name: Atom(i, name, (), ()) for i, name in enumerate(symbols, 1)}
    read = [atoms[names[symbol]] for symbol in states.symbols]
    root = _node(expression.root, atoms, names)
    edges = tuple(
        Edge(
            source,
            target,
            (),
            Predicate(frozenset([GRAPH]), None, read[symbol], (), ()),
            (),
        )
        for source, symbol, target in states.edges
    )
    accepts = tuple(Accept(state, ()) for state in sorted(states.accepting))
    return NFA(_pattern(expression, root, symbols), root, states.size, edges, accepts, {})


def _node(path: Path, atoms: Mapping[str, Atom], names: Mapping[Symbol, str]) -> Node:
    """The expression as a sequence in normal form."""

    def inside(part: Path) -> Node:
        return _node(part, atoms, names)

    match path:
        case Step() | NodeTest():
            return atoms[names[path]]
        case Concatenation(parts):
            return Chain(0, tuple(map(inside, parts)), (s.Strategy.STRICT,) * (len(parts) - 1))
        case Alternative(parts):
            return Either(0, tuple(map(inside, parts)))
        case Repetition(part, minimum, maximum):
            repeated = inside(part)
            if maximum != 1:
                repeated = Kleene(0, repeated, max(minimum, 1), maximum, s.Strategy.STRICT, frozenset())
            return Either(0, (repeated, Empty(0)), apart=True) if minimum == 0 else repeated


def _pattern(expression: Expression, root: Node, symbols: Mapping[str, Symbol]) -> SequencePattern:
    stream = s.StreamDeclaration("G", GRAPH)
    gpms = [s.Gpm(name, (stream.name,), _group(symbol)) for name, symbol in symbols.items()]
    query = s.Query(
        form=s.Select(None),
        window=s.Window(_EVENTS, "EVENTS", s.WindowKind.SLIDING),
        streams=(stream,),
        sequence=_sequence([gpm.name for gpm in gpms]),
        gpms=tuple(gpms),
        prefixes=tuple(expression.prefixes.items()),
        text=expression.source.text,
        filename=expression.source.filename,
    )
    variables = frozenset([_HERE.name, _NEXT.name])
    parts = {gpm.name: GpmPart(gpm, frozenset([GRAPH]), gpm.pattern, (), variables) for gpm in gpms}
    return SequencePattern(query, root, parts, {}, {}, frozenset(), (), frozenset(), (GRAPH,))


def _sequence(names: Sequence[str]) -> s.Seq:
    return s.Sequence(tuple(map(s.Ref, names)), (s.Strategy.STRICT,) * (len(names) - 1))


def _group(symbol: Symbol) -> s.Group:
    """The graph pattern of a step: one triple. Of a test: its conditions at the node."""
    if isinstance(symbol, NodeTest):
        conditions = [*zip(symbol.conditions, (s.Var(f"v{i}") for i in count()), strict=False)]
        triples = [
            _triple(_HERE, c.predicate, v if c.value is None or c.operator else c.value, c.inverse)
            for c, v in conditions
        ]
        filters = [
            s.Filter(s.Binary(c.operator, v, s.Constant(c.value)))
            for c, v in conditions
            if c.operator and isinstance(c.value, NamedNode | Literal)
        ]
        return s.Group((s.Triples(tuple(triples)), *filters))
    if symbol.negated:
        triples = [_triple(_HERE, s.PathNegated(symbol.predicates, ()), _NEXT, symbol.inverse)]
    else:
        triples = [_triple(_HERE, symbol.predicates[0], _NEXT, symbol.inverse)]
    return s.Group((s.Triples(tuple(triples)),))


def _triple(
    here: s.Var, predicate: NamedNode | s.PathNegated, there: s.Var | Term, inverse: bool
) -> s.TriplePattern:
    subject, object_ = (there, here) if inverse else (here, there)
    return s.TriplePattern(subject, predicate, object_)

"""Compiles a path expression to its position automaton (Glushkov's), as for SEQ.

There are two differences from SEQ. Kleene bounds are unrolled, because a node of the product with the graph
has no counters. And ``?`` means "or nothing". A node test is a position that takes no edge.

The automaton is also that of a sequence. Each edge of the graph is an event, and each step of the expression
is a GPM with one triple pattern. The node between two steps is the variable that joins them: ``:a/(:b|:c)+``
is ``SEQ(:a , (:b | :c)+[,])``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from spaseq.automaton.nfa import NFA, Accept, Edge, Predicate
from spaseq.automaton.pattern import Atom, Chain, Either, Empty, GpmPart, Kleene, Node, SequencePattern
from spaseq.errors import QueryMeaningError
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
    read,
    show,
)
from spaseq.terms.dictionary import Term

#: The most positions of an automaton, a guess; memory grows with states × nodes.
MOST_PLACES: Final = 4_096

#: The most edges of an automaton; if parts are optional, edges grow with the square of the positions.
MOST_EDGES: Final = 1 << 16

#: The graph as a stream, which the GPMs of steps read.
GRAPH: Final = NamedNode("urn:spaseq:graph")

#: The window that a query must have; it is not used.
_EVENTS: Final = 4_096

_HERE: Final = s.Var("here")
_NEXT: Final = s.Var("next")


@dataclass(frozen=True, slots=True)
class States:
    """An automaton: state 0 is the initial one; edges are (source, number of a symbol, target)."""

    size: int
    symbols: tuple[Symbol, ...]
    edges: tuple[tuple[int, int, int], ...]
    accepting: frozenset[int]


@dataclass(frozen=True)
class Compiled:
    """An expression and its automaton."""

    expression: Expression
    states: States

    @cached_property
    def symbols(self) -> Mapping[str, Symbol]:
        """The steps and tests of the expression, by their text."""
        prefixes = self.expression.prefixes
        return {show(symbol, prefixes): symbol for symbol in read(self.expression.root)}

    @cached_property
    def nfa(self) -> NFA:
        """The automaton as that of a sequence, with a GPM for each symbol."""
        return _as_nfa(self.expression, self.states, self.symbols)


def compile_path(expression: Expression) -> Compiled:
    """Compile an expression to its automaton, with equivalent states merged.

    Raises QueryMeaningError if its bounds make it too large.

    >>> from spaseq.paths.language.parser import parse
    >>> compiled = compile_path(parse(":a/(:b|:c)*/:d", {"": "http://e.org/"}))
    >>> compiled.nfa.size, len(compiled.nfa.edges)
    (3, 4)
    """
    places = _Places(expression)
    try:
        whole = places.add(expression.root)
    except RecursionError:
        raise expression.source.error(QueryMeaningError, "this path is nested too deeply", 0) from None
    return Compiled(expression, _merge(places.automaton(whole)))


def too_large(expression: Expression, what: str) -> QueryMeaningError:
    """Return the error for an expression with too large an automaton."""
    culprit = _longest(expression.root)
    return expression.source.error(
        QueryMeaningError,
        f"with its bounds written out this path has {what}",
        culprit.span.start if culprit and culprit.span else 0,
        "make the bounds smaller, or leave the upper one out: {n,}",
    )


def _size(path: Path) -> int:
    match path:
        case Step() | NodeTest():
            return 1
        case Concatenation(parts) | Alternative(parts):
            return sum(map(_size, parts))
        case Repetition(part, minimum, maximum):
            return _size(part) * (max(minimum, 1) if maximum is None else maximum)


def _longest(path: Path) -> Repetition | None:
    """Return the outermost repetition that makes the path longest."""
    match path:
        case Repetition():
            return path
        case Concatenation(parts) | Alternative(parts):
            return max(filter(None, map(_longest, parts)), key=_size, default=None)
        case _:
            return None


# --- the position automaton


class _Part(NamedTuple):
    """A part of the expression: whether it may be empty, and its first and last positions."""

    empty: bool
    first: tuple[int, ...]
    last: tuple[int, ...]


_NOTHING: Final = _Part(True, (), ())


class _Places:
    """Numbers the positions (places) of an expression from 1, and records which may follow which."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._symbols: dict[Symbol, int] = {}
        self._read: list[int] = []
        self._follow: list[dict[int, None]] = [{}]
        self._links = 0

    def automaton(self, whole: _Part) -> States:
        follow = [dict.fromkeys(whole.first), *self._follow[1:]]
        edges = [(i, self._read[j - 1], j) for i, after in enumerate(follow) for j in after]
        accepting = frozenset(whole.last) | ({0} if whole.empty else frozenset())
        return States(len(follow), tuple(self._symbols), tuple(edges), accepting)

    def add(self, path: Path) -> _Part:
        match path:
            case Step() | NodeTest():
                return self._place(path)
            case Concatenation(parts):
                whole = _NOTHING
                for part in parts:
                    whole = self._then(whole, self.add(part))
                return whole
            case Alternative(parts):
                added = [self.add(part) for part in parts]
                return _Part(
                    any(part.empty for part in added),
                    tuple([place for part in added for place in part.first]),
                    tuple([place for part in added for place in part.last]),
                )
            case Repetition(part, minimum, None):
                loop = self.add(part)
                if not loop.first:
                    return _NOTHING
                whole = _NOTHING
                for _ in range(minimum - 1):
                    whole, loop = self._then(whole, loop), self.add(part)
                self._link(loop.last, loop.first)
                if minimum == 0:
                    loop = _Part(True, loop.first, loop.last)
                return self._then(whole, loop)
            case Repetition(part, minimum, int(maximum)):
                copies = [self.add(part)] if maximum else []
                if not any(copy.first for copy in copies):
                    return _NOTHING
                copies += [self.add(part) for _ in range(maximum - 1)]
                optional = _NOTHING
                for copy in reversed(copies[minimum:]):  # (e(e(e)?)?)?
                    longer = self._then(copy, optional)
                    optional = _Part(True, longer.first, longer.last)
                whole = _NOTHING
                for copy in copies[:minimum]:
                    whole = self._then(whole, copy)
                return self._then(whole, optional)
        raise TypeError(path)

    def _place(self, symbol: Symbol) -> _Part:
        number = len(self._follow)
        if number > MOST_PLACES:
            size = _size(self._expression.root)
            raise too_large(self._expression, f"{size:,} steps, more than {MOST_PLACES:,}")
        self._read.append(self._symbols.setdefault(symbol, len(self._symbols)))
        self._follow.append({})
        return _Part(False, (number,), (number,))

    def _then(self, before: _Part, after: _Part) -> _Part:
        if before is _NOTHING:
            return after
        self._link(before.last, after.first)
        return _Part(
            before.empty and after.empty,
            (*before.first, *after.first) if before.empty else before.first,
            (*after.last, *before.last) if after.empty else after.last,
        )

    def _link(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        self._links += len(before) * len(after)
        if self._links > MOST_EDGES:
            raise too_large(self._expression, f"more than {MOST_EDGES:,} ways from step to step")
        new = dict.fromkeys(after)
        for place in before:
            self._follow[place].update(new)


# --- equal states merged


def _merge(states: States) -> States:
    """Merge the states from which the same words are accepted (Moore's refinement)."""
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(states.size)]
    for source, symbol, target in states.edges:
        leaving[source].append((symbol, target))
    followers = [[target for _, target in some] for some in leaving]
    before = _turned(followers)
    # Equal states accept shortest words of the same length, and longest ones. Beginning with these lengths
    # separates all copies of a part with bounds at once, not one in each round.
    lengths = zip(_nearest(before, states.accepting), _farthest(followers, before), strict=True)
    block, count = _classes(lengths)
    while count < states.size:
        keys = [
            (block[state], frozenset([(symbol, block[target]) for symbol, target in some]))
            for state, some in enumerate(leaving)
        ]
        block, refined = _classes(keys)
        if refined == count:
            break
        count = refined
    edges = dict.fromkeys([(block[source], symbol, block[target]) for source, symbol, target in states.edges])
    return States(
        count, states.symbols, tuple(edges), frozenset([block[state] for state in states.accepting])
    )


def _classes(keys: Iterable[Hashable]) -> tuple[list[int], int]:
    """Return a number for each key, the same for equal keys, from 0 on; and how many numbers there are."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys], len(numbers)


def _nearest(before: Sequence[Sequence[int]], accepting: Iterable[int]) -> list[int]:
    """Return for each state how many edges an accepting state is away."""
    distance = [-1] * len(before)
    reached = list(accepting)
    for state in reached:
        distance[state] = 0
    for state in reached:  # which grows
        for previous in before[state]:
            if distance[previous] < 0:
                distance[previous] = distance[state] + 1
                reached.append(previous)
    return distance


def _farthest(followers: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> list[int]:
    """Return for each state how many edges can follow at most; -1 if there is no limit."""
    left = [len(some) for some in followers]
    height = [-1] * len(followers)
    done = [state for state, count in enumerate(left) if count == 0]
    length = 0
    while done:
        further = []
        for state in done:
            height[state] = length
            for previous in before[state]:
                left[previous] -= 1
                if left[previous] == 0:
                    further.append(previous)
        done, length = further, length + 1
    return height


def _turned(followers: Sequence[Sequence[int]]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in followers]
    for state, some in enumerate(followers):
        for after in some:
            before[after].append(state)
    return before


# --- the automaton as that of a sequence


def _as_nfa(expression: Expression, states: States, symbols: Mapping[str, Symbol]) -> NFA:
    """Return an NFA with the same states and edges; ``symbols`` maps names of GPMs to steps and tests."""
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
    """Return the expression as a sequence in normal form."""

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
    """Return the graph pattern of a step, which is one triple, or of a test: its conditions at the node."""
    if isinstance(symbol, NodeTest):
        conditions = [(c, s.Var(f"v{i}")) for i, c in enumerate(symbol.conditions)]
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

"""NFA → moves: the automaton without its node tests, which become part of the edges beside them.

What every backend runs. It can be read from either end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spaseq.automaton.nfa import Edge
from spaseq.paths.compile import MOST_EDGES, Compiled, too_large
from spaseq.paths.expression import NodeTest, Step, inverse

#: Tests that a node must pass, all of them.
Tests = frozenset[NodeTest]


@dataclass(frozen=True, slots=True)
class Relation:
    """The edges of a step between nodes that pass ``before`` and nodes that pass ``after``."""

    step: Step
    before: Tests
    after: Tests

    def inverse(self) -> Relation:
        """The same edges, backwards."""
        turned = inverse(self.step)
        assert isinstance(turned, Step)
        return Relation(turned, self.after, self.before)


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a run: from a state, along an edge of the relation, to a state."""

    source: int
    relation: Relation
    target: int


@dataclass(frozen=True, slots=True)
class Moves:
    """A path begins in ``initial``, makes moves, and may end whenever a move has led to ``accepting``.

    ``empty``: a path of no edges is an answer at the nodes that pass one of these sets of tests. States are
    0 … ``size`` - 1; each lies on some way from ``initial`` to ``accepting``.
    """

    size: int
    initial: tuple[int, ...]
    moves: tuple[Move, ...]
    accepting: frozenset[int]
    empty: tuple[Tests, ...]

    def reversed(self) -> Moves:
        """What reads the same paths from their end."""
        moves = (Move(move.target, move.relation.inverse(), move.source) for move in self.moves)
        return replace(
            self,
            initial=tuple(sorted(self.accepting)),
            moves=tuple(moves),
            accepting=frozenset(self.initial),
        )

    def only(self, useful: Iterable[Move]) -> Moves:
        """With these moves alone, and the states that are still of use."""
        moves = tuple(useful)
        forward = _reached(self.initial, ((move.source, move.target) for move in moves))
        backward = _reached(self.accepting, ((move.target, move.source) for move in moves))
        number = {state: i for i, state in enumerate(sorted(forward & backward))}
        return Moves(
            len(number),
            tuple(number[state] for state in self.initial if state in number),
            tuple(
                replace(move, source=number[move.source], target=number[move.target])
                for move in moves
                if move.source in number and move.target in number
            ),
            frozenset(number[state] for state in self.accepting if state in number),
            self.empty,
        )


def moves(compiled: Compiled) -> Moves:
    """The moves of an expression's automaton.

    >>> from spaseq.paths.compile import compile_path
    >>> from spaseq.paths.parser import parse
    >>> found = moves(compile_path(parse("[a :F]/:a+", {"": "http://e.org/"})))
    >>> found.size, len(found.moves), [len(move.relation.before) for move in found.moves]
    (2, 2, [1, 0])
    """
    nfa = compiled.nfa
    leaving: list[list[Edge]] = [[] for _ in range(nfa.size)]
    for edge in nfa.edges:
        leaving[edge.source].append(edge)
    ends = {accept.state for accept in nfa.accepts}
    made: dict[Move, None] = {}
    ways = [tuple(_minimal(_passing(compiled, leaving, state))) for state in range(nfa.size)]
    accepted = [[tests for tests, state in ways[start] if state in ends] for start in range(nfa.size)]
    for start in range(nfa.size):
        for tests, state in ways[start]:
            for edge in leaving[state]:
                symbol = compiled.symbol(edge)
                if isinstance(symbol, Step):
                    made[Move(start, Relation(symbol, tests, frozenset()), edge.target)] = None
        if len(made) > MOST_EDGES:
            raise too_large(compiled.expression, f"more than {MOST_EDGES:,} ways from step to step")
    # A path that may end at a node only if it passes tests ends in a state of its own.
    final = nfa.size
    for move in tuple(made):
        for tests in accepted[move.target]:
            if tests:
                relation = replace(move.relation, after=tests)
                made[Move(move.source, relation, final)] = None
    accepting = frozenset(state for state in range(nfa.size) if frozenset() in accepted[state])
    whole = Moves(final + 1, (0,), tuple(made), accepting | {final}, tuple(accepted[0]))
    shared = _shared_start(whole)
    return shared.only(shared.moves)


def _shared_start(found: Moves) -> Moves:
    """Begin in a state that is left as the initial one is, if there is one: ``:a+`` needs one state only.

    Whether the initial state accepts does not matter where no move leads to it: ``empty`` says it.
    """
    (start,) = found.initial
    if any(move.target == start for move in found.moves):
        return found

    leaving: list[set[tuple[Relation, int]]] = [set() for _ in range(found.size)]
    for move in found.moves:
        leaving[move.source].add((move.relation, move.target))
    for state in range(found.size):
        if state != start and leaving[state] == leaving[start]:
            return replace(found, initial=(state,))
    return found


def _passing(
    compiled: Compiled, leaving: Sequence[Sequence[Edge]], start: int
) -> Iterator[tuple[Tests, int]]:
    """The states that are reached from ``start`` without an edge, and the tests on the way."""
    seen = {(frozenset[NodeTest](), start)}
    waiting = list(seen)
    while waiting:
        tests, state = waiting.pop()
        yield tests, state
        for edge in leaving[state]:
            symbol = compiled.symbol(edge)
            if isinstance(symbol, NodeTest):
                reached = (tests | {symbol}, edge.target)
                if reached not in seen:
                    seen.add(reached)
                    waiting.append(reached)


def _minimal(ways: Iterable[tuple[Tests, int]]) -> Iterator[tuple[Tests, int]]:
    """Without those that ask for more tests than another way to the same state."""
    kept: dict[int, list[Tests]] = {}
    for tests, state in sorted(ways, key=lambda way: len(way[0])):
        others = kept.setdefault(state, [])
        if not any(fewer <= tests for fewer in others):
            others.append(tests)
            yield tests, state


def _reached(starts: Iterable[int], links: Iterable[tuple[int, int]]) -> set[int]:
    followers: dict[int, list[int]] = {}
    for source, target in links:
        followers.setdefault(source, []).append(target)
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        for state in followers.get(waiting.pop(), ()):
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return seen

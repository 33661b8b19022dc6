"""The automaton without node tests, which become part of the transitions before and after them.

All searches run this automaton. It can be read from either end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from spaseq.paths.language.compile import MOST_EDGES, Compiled, States, too_large
from spaseq.paths.language.expression import Expression, NodeTest, Step, Symbol, inverse

#: Tests that a node must pass, all of them.
Tests = frozenset[NodeTest]

_NONE: Final[Tests] = frozenset()


@dataclass(frozen=True, slots=True)
class Relation:
    """The edges of a step between nodes that pass ``before`` and nodes that pass ``after``."""

    step: Step
    before: Tests
    after: Tests

    def inverse(self) -> Relation:
        """Return the same edges, read backwards."""
        turned = inverse(self.step)
        assert isinstance(turned, Step)
        return Relation(turned, self.after, self.before)


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition from a state, along an edge of the relation, to a state."""

    source: int
    relation: Relation
    target: int


@dataclass(frozen=True, slots=True)
class Automaton:
    """An automaton: a path begins in ``initial`` and may end after a transition to ``accepting``.

    ``empty``: a path without edges is a result at the nodes that pass all tests of one of these sets. States
    are 0 to ``size`` - 1; each is on some path from ``initial`` to ``accepting``.
    """

    size: int
    initial: tuple[int, ...]
    transitions: tuple[Transition, ...]
    accepting: frozenset[int]
    empty: tuple[Tests, ...]

    def reversed(self) -> Automaton:
        """Return the automaton that reads the same paths from their end."""
        transitions = (
            Transition(transition.target, transition.relation.inverse(), transition.source)
            for transition in self.transitions
        )
        return replace(
            self,
            initial=tuple(sorted(self.accepting)),
            transitions=tuple(transitions),
            accepting=frozenset(self.initial),
        )

    def only(self, useful: Iterable[Transition]) -> Automaton:
        """Return the automaton with only these transitions, and only the states still needed."""
        transitions = tuple(useful)
        forward = _reached(
            self.initial, ((transition.source, transition.target) for transition in transitions)
        )
        backward = _reached(
            self.accepting, ((transition.target, transition.source) for transition in transitions)
        )
        number = {state: i for i, state in enumerate(sorted(forward & backward))}
        return Automaton(
            len(number),
            tuple(number[state] for state in self.initial if state in number),
            tuple(
                Transition(number[transition.source], transition.relation, number[transition.target])
                for transition in transitions
                if transition.source in number and transition.target in number
            ),
            frozenset(number[state] for state in self.accepting if state in number),
            self.empty,
        )


def automaton_of(compiled: Compiled) -> Automaton:
    """Return the automaton of an expression, without node tests.

    >>> from spaseq.paths.language.compile import compile_path
    >>> from spaseq.paths.language.parser import parse
    >>> found = automaton_of(compile_path(parse("[a :F]/:a+", {"": "http://e.org/"})))
    >>> found.size, len(found.transitions), [len(some.relation.before) for some in found.transitions]
    (2, 2, [1, 0])
    """
    states = compiled.states
    tested = any(isinstance(symbol, NodeTest) for symbol in states.symbols)
    found = _with_tests(compiled.expression, states) if tested else _without_tests(states)
    start = _shared_start(found)
    made = tuple(
        [Transition(source, found.relations[number], target) for source, number, target in found.edges]
    )
    whole = Automaton(found.size, (start,), made, found.accepting, found.empty)
    return whole.only(made) if tested or start else whole


class _Numbered(NamedTuple):
    """An automaton as numbers: edges are (source, number of a relation, target), state 0 is initial."""

    size: int
    relations: Sequence[Relation]
    edges: Collection[tuple[int, int, int]]
    accepting: frozenset[int]
    empty: tuple[Tests, ...]


def _without_tests(states: States) -> _Numbered:
    relations = [Relation(symbol, _NONE, _NONE) for symbol in states.symbols if isinstance(symbol, Step)]
    empty = (_NONE,) if 0 in states.accepting else ()
    return _Numbered(states.size, relations, states.edges, states.accepting, empty)


def _with_tests(expression: Expression, states: States) -> _Numbered:
    """Make tests part of the transitions before and after them."""
    leaving: list[list[tuple[Symbol, int]]] = [[] for _ in range(states.size)]
    for source, number, target in states.edges:
        leaving[source].append((states.symbols[number], target))
    ways = [tuple(_minimal(_passing(leaving, state))) for state in range(states.size)]
    accepted = [[tests for tests, state in some if state in states.accepting] for some in ways]
    made: dict[tuple[int, Relation, int], None] = {}
    for start in range(states.size):
        for tests, state in ways[start]:
            for symbol, target in leaving[state]:
                if isinstance(symbol, Step):
                    made[start, Relation(symbol, tests, _NONE), target] = None
        if len(made) > MOST_EDGES:
            raise too_large(expression, f"more than {MOST_EDGES:,} ways from step to step")
    # If a path may end at a node only if the node passes tests, it ends in a separate state.
    final = states.size
    for source, relation, target in tuple(made):
        for tests in accepted[target]:
            if tests:
                made[source, replace(relation, after=tests), final] = None
    numbers: dict[Relation, int] = {}
    edges = [(source, numbers.setdefault(r, len(numbers)), target) for source, r, target in made]
    accepting = frozenset([state for state in range(states.size) if _NONE in accepted[state]] + [final])
    return _Numbered(final + 1, list(numbers), edges, accepting, tuple(accepted[0]))


def _shared_start(found: _Numbered) -> int:
    """Return a state to begin in: another state with the same transitions as state 0, or 0 without one.

    With the other state, ``:a+`` needs only one state. If no transition leads to state 0, it does not matter
    whether state 0 accepts, because ``empty`` says so.
    """
    leaving: list[set[tuple[int, int]]] = [set() for _ in range(found.size)]
    for source, number, target in found.edges:
        if target == 0:
            return 0
        leaving[source].add((number, target))
    return next((state for state in range(1, found.size) if leaving[state] == leaving[0]), 0)


def _passing(leaving: Sequence[Sequence[tuple[Symbol, int]]], start: int) -> Iterator[tuple[Tests, int]]:
    """Yield the states reached from ``start`` without an edge, each with the tests passed on the way."""
    seen = {(_NONE, start)}
    waiting = list(seen)
    while waiting:
        tests, state = waiting.pop()
        yield tests, state
        for symbol, target in leaving[state]:
            if isinstance(symbol, NodeTest):
                reached = (tests | {symbol}, target)
                if reached not in seen:
                    seen.add(reached)
                    waiting.append(reached)


def _minimal(ways: Iterable[tuple[Tests, int]]) -> Iterator[tuple[Tests, int]]:
    """Leave out ways with more tests than another way to the same state."""
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

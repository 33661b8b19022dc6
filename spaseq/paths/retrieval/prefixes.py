"""Several expressions walked together, so that common prefixes of their paths are walked once.

The automata are combined into one. Its states are *sets* of their states (the subset construction), made when
the walk reaches them. Two expressions stay in the same state as long as they read the same edges. So the
paths walked form one tree: a common prefix of several expressions or paths is one node. For lists of
relations, the automaton is their trie.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.transitions import Tests, Transition, automaton_of

#: A set of (number of an automaton, state of this automaton).
_States = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PrefixStep:
    """A kind of edge that states read: a predicate, a direction, and the tests of both nodes."""

    predicate: int
    inverse: bool
    before: Tests
    after: Tests


class Prefixes:
    """The automata of several expressions as one. State 0 is initial; others are made when needed."""

    def __init__(
        self,
        graph: Snapshot,
        expressions: Sequence[str | Expression],
        plain: Collection[int] = (),
        *,
        pruned: bool = True,
    ) -> None:
        """Combine the automata of expressions.

        ``plain`` are the numbers of the expressions that are walked, whatever the mode of the others. If
        ``pruned``, transitions that no edge of the graph can take are left out.
        """
        self.graph = graph
        self._plain = frozenset(plain)
        automata = [
            graph.product(expression).automaton if pruned else automaton_of(graph.compile(expression))
            for expression in expressions
        ]
        self._accepting = {(i, q) for i, automaton in enumerate(automata) for q in automaton.accepting}
        self._transitions: dict[tuple[int, int], list[Transition]] = {}
        for i, automaton in enumerate(automata):
            for transition in automaton.transitions:
                self._transitions.setdefault((i, transition.source), []).append(transition)
        first = frozenset((i, q) for i, automaton in enumerate(automata) for q in automaton.initial)
        self._sets: list[_States] = [first]
        self._numbers: dict[_States, int] = {first: 0}
        self._leaving: dict[int, tuple[tuple[PrefixStep, int], ...]] = {}

    def __len__(self) -> int:
        """Return how many states there are so far."""
        return len(self._sets)

    def leaving(self, state: int) -> tuple[tuple[PrefixStep, int], ...]:
        """Return the kinds of edges that a state reads, sorted, each with the state that it leads to."""
        found = self._leaving.get(state)
        if found is None:
            found = self._leaving[state] = tuple(self._make(state))
        return found

    def accepts(self, state: int) -> tuple[int, ...]:
        """Return the numbers of the expressions that accept a path in this state."""
        return tuple(sorted({i for i, q in self._sets[state] if (i, q) in self._accepting}))

    def walked(self, state: int) -> int:
        """Return the state that remains for a path that repeats an edge; -1 if no expression allows it."""
        return self._number(frozenset((i, q) for i, q in self._sets[state] if i in self._plain))

    def wanted(self, state: int) -> tuple[int, ...]:
        """Return the numbers of the expressions that a path in this state may still match."""
        return tuple({i for i, _ in self._sets[state]})

    def predicates(self, number: int) -> list[int]:
        """Return the distinct predicates that an expression names, except excluded ones."""
        transitions = [
            transition
            for (i, _), transitions in self._transitions.items()
            if i == number
            for transition in transitions
        ]
        steps = [transition.relation.step for transition in transitions]
        found = [
            self.graph.predicate_number(p) for step in steps if not step.negated for p in step.predicates
        ]
        return [p for p in dict.fromkeys(found) if p is not None]

    def _make(self, state: int) -> Iterator[tuple[PrefixStep, int]]:
        reached: dict[PrefixStep, set[tuple[int, int]]] = {}
        for i, q in self._sets[state]:
            for transition in self._transitions.get((i, q), ()):
                for reading in self._readings(transition):
                    reached.setdefault(reading, set()).add((i, transition.target))
        for reading in sorted(reached, key=_order):
            yield reading, self._number(frozenset(reached[reading]))

    def _number(self, states: _States) -> int:
        """Return the number of a set of states, a new one if needed; -1 for the empty set."""
        if not states:
            return -1
        number = self._numbers.setdefault(states, len(self._sets))
        if number == len(self._sets):
            self._sets.append(states)
        return number

    def _readings(self, transition: Transition) -> Iterator[PrefixStep]:
        step = transition.relation.step
        for predicate in self.graph.predicates_of(step):
            yield PrefixStep(predicate, step.inverse, transition.relation.before, transition.relation.after)


def _order(reading: PrefixStep) -> tuple[int, bool, list[str], list[str]]:
    before, after = (sorted(map(repr, tests)) for tests in (reading.before, reading.after))
    return reading.predicate, reading.inverse, before, after

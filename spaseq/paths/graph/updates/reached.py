"""The pairs of nodes that paths join, updated as edges are added: an automaton over edges with times.

The time of a path is that of its oldest edge, and the time of a pair that of the youngest path that joins it.
A pair counts until its time leaves the window, so nothing needs to be done when an edge expires. This is the
widest-path problem with times as widths, for all sources at once (after A. Pacaci, A. Bonifati, M. T. Özsu:
Regular Path Query Evaluation on Streaming Graphs, SIGMOD 2020, which keeps such times per node of a tree).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from spaseq.paths.graph.updates.merging import Edge
from spaseq.paths.language.expression import Condition, Step
from spaseq.paths.language.transitions import Automaton, Tests, Transition
from spaseq.terms.dictionary import Term

#: Two nodes, by the ids of their terms.
Pair = tuple[int, int]

#: The times of edges and pairs that always count, and of edges and pairs that never did.
ALWAYS: Final = math.inf
NEVER: Final = -math.inf

#: A place of a partial match: a node and a state of the automaton.
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PairQuery:
    """A query: an automaton, the ids of its terms, a function from ids to terms, and the ends (None: all)."""

    automaton: Automaton
    ids: Mapping[object, int]
    term: Callable[[int], Term]
    sources: frozenset[int] | None
    targets: frozenset[int] | None


class Reached:
    """The pairs that are joined, each with its time. Edges must be entered in order of their times."""

    def __init__(
        self, asked: PairQuery, on_pair: Callable[[Pair, float, float], None], take: Callable[[int], None]
    ) -> None:
        """``on_pair`` gets each pair with its new time and its old one, ``take`` the number of new places."""
        self._asked = asked
        self._on_pair = on_pair
        self._take = take
        steps: dict[Step, list[Transition]] = defaultdict(list)
        self._leaving: dict[int, list[Transition]] = defaultdict(list)
        for transition in asked.automaton.transitions:
            steps[transition.relation.step].append(transition)
            self._leaving[transition.source].append(transition)
        self._steps = [
            (step, frozenset(asked.ids[p] for p in step.predicates), found) for step, found in steps.items()
        ]
        self._conditions = [
            (c, asked.ids[c.predicate], None if c.value is None else asked.ids[c.value])
            for c in _conditions(asked.automaton)
        ]
        self._links: dict[Step, dict[int, dict[int, float]]] = {step: defaultdict(dict) for step in steps}
        self._passing: dict[Condition, dict[int, float]] = {c: {} for c, _, _ in self._conditions}
        self._at: dict[_Place, dict[int, float]] = defaultdict(dict)
        self.pairs: dict[Pair, float] = {}
        for node in asked.sources or ():
            for state in asked.automaton.initial:
                self._at[node, state][node] = ALWAYS
        for node in self._always_joined():
            self._join((node, node), ALWAYS)

    def wants(self, edge: Edge) -> bool:
        """Return whether the edge can change the result."""
        return (
            bool(self._asked.automaton.empty)
            or any((edge[1] in ids) is not step.negated for step, ids, _ in self._steps)
            or any(predicate == edge[1] for _, predicate, _ in self._conditions)
        )

    def enter(self, edge: Edge, time: float) -> bool:
        """Enter an edge; return False if a node passes a test by it: then all pairs must be found again."""
        s, p, o = edge
        if self._passes(edge, time):
            return False
        self._join_empty((s, o), time)
        for step, ids, found in self._steps:
            if (p in ids) is step.negated:
                continue
            begin, end = (o, s) if step.inverse else (s, o)
            followers = self._links[step][begin]
            if time <= followers.get(end, NEVER):
                continue
            followers[end] = time
            for transition in found:
                if self._asked.sources is None and transition.source in self._asked.automaton.initial:
                    self._at[begin, transition.source].setdefault(begin, ALWAYS)
                for source, age in [*self._at.get((begin, transition.source), {}).items()]:
                    self._go_on(transition, begin, end, source, min(age, time))
        return True

    def enter_all(self, edges: Collection[tuple[Edge, float]]) -> None:
        """Enter the first edges, of any times; tests first, so that no pairs need to be found again."""
        for edge, time in edges:
            self._passes(edge, time)
        for edge, time in edges:
            self.enter(edge, time)

    # --- extending partial matches

    def _go_on(self, transition: Transition, begin: int, end: int, source: int, time: float) -> None:
        """Extend a partial match by a transition along an edge, and then by all that can follow."""
        waiting = [(transition, begin, end, source, time)]
        accepting, fresh = self._asked.automaton.accepting, 0
        while waiting:
            transition, begin, end, source, time = waiting.pop()
            time = min(
                time,
                self._passed(begin, transition.relation.before),
                self._passed(end, transition.relation.after),
            )
            if time == NEVER:
                continue
            state = transition.target
            if state in accepting:
                self._join((source, end), time)
            known = self._at[end, state]
            last = known.get(source, NEVER)
            if time <= last:
                continue
            fresh += last == NEVER
            known[source] = time
            for further in self._leaving[state]:
                for follower, age in self._links[further.relation.step].get(end, {}).items():
                    waiting.append((further, end, follower, source, min(time, age)))
        self._take(fresh)

    def _join(self, pair: Pair, time: float) -> None:
        targets = self._asked.targets
        before = self.pairs.get(pair, NEVER)
        if time > before and (targets is None or pair[1] in targets):
            self.pairs[pair] = time
            self._on_pair(pair, time, before)

    # --- paths without edges

    def _always_joined(self) -> Iterator[int]:
        """Yield the given ends that are joined with themselves, whatever the edges."""
        given = [ends for ends in (self._asked.sources, self._asked.targets) if ends is not None]
        if frozenset() in self._asked.automaton.empty and given:
            yield from frozenset.intersection(*given)

    def _join_empty(self, nodes: tuple[int, int], time: float) -> None:
        for tests in self._asked.automaton.empty:
            for node in nodes:
                if self._asked.sources is None or node in self._asked.sources:
                    self._join((node, node), self._passed(node, tests) if tests else time)

    # --- tests of nodes

    def _passes(self, edge: Edge, time: float) -> bool:
        """Record which tests nodes pass by an edge; return whether this has changed anything."""
        s, p, o = edge
        changed = False
        for condition, predicate, value in self._conditions:
            node, other = (o, s) if condition.inverse else (s, o)
            if p == predicate and (
                condition.admits(self._asked.term(other)) if condition.operator else value in (None, other)
            ):
                passing = self._passing[condition]
                if time > passing.get(node, NEVER):
                    passing[node] = time
                    changed = True
        return changed

    def _passed(self, node: int, tests: Tests) -> float:
        """Return the time of passing all tests: the oldest of the youngest edges for each condition."""
        times = [self._passing[c].get(node, NEVER) for test in tests for c in test.conditions]
        return min(times, default=ALWAYS)


def _conditions(automaton: Automaton) -> set[Condition]:
    tests = [
        test
        for transition in automaton.transitions
        for test in transition.relation.before | transition.relation.after
    ]
    tests += [test for some in automaton.empty for test in some]
    return {condition for test in tests for condition in test.conditions}

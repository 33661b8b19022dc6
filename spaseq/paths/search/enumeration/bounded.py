"""Best effort: of all paths in the making those nearest to an end go on, as far as a bound lets them.

Which places an end can be reached from is found first, in time linear in the edges; of that nothing is shed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush, nsmallest
from math import inf
from typing import Final

import numpy as np

from spaseq.bounds import Policy, Shed, WorkClock
from spaseq.errors import warn
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.modes import Mode
from spaseq.paths.path import Path
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.search.enumeration.expansion import TAKEN_BYTES, TRACE_BYTES, Expansion, Trace, allowed
from spaseq.paths.search.running import Memory, current

#: What an edge takes, in seconds, until it was measured.
_EDGE: Final = 1e-6
#: To a clock that counts work: what a place is that is reached, by compiled code; a look at an edge is 1.
_PLACE: Final = 1 / 32
#: Of what a bound of memory has room for, paths in the making take such a part, and edges looked at the rest.
_WAITING: Final = 0.5
#: Where there are more paths in the making, such a part of them goes on.
_KEPT: Final = 0.5

#: What is given up, as ``Shed.by_state`` calls it.
UNFINISHED: Final = "paths not walked on"
UNSEARCHED: Final = "ends not searched"


class Allowance:
    """What a search may take under a budget. ``shed``: what it has given up.

    Its time goes on only while a caller waits for a path. ``paths`` in the making may be kept, and ``edges``
    of a node looked at; None is no bound.
    """

    def __init__(self, budget: Budget, about: str) -> None:
        self._about = about
        self._latency = inf if budget.latency is None else budget.latency.total_seconds()
        self._clock = budget.clock
        self._spent, self._since = 0.0, 0.0
        # To a clock that counts work, every edge is as long.
        self._edge = budget.clock.unit if isinstance(budget.clock, WorkClock) else _EDGE
        self._looked, self._looking = 0, 0.0
        self.policy = Policy(budget.policy)
        self.shed = Shed()
        self.paths: int | None = None
        self.edges: int | None = None
        if budget.memory is not None:
            self.paths = max(1, int(_WAITING * budget.memory / TRACE_BYTES))
            self.edges = max(1, int((1 - _WAITING) * budget.memory / TAKEN_BYTES))

    def timed(self, found: Iterator[Path]) -> Iterator[Path]:
        """The same paths."""
        while True:
            self._since = self._clock()
            path = next(found, None)
            self._spent += self._clock() - self._since
            self.shed.latency = self._spent
            if path is None:
                return
            yield path

    def reached(self, places: int) -> None:
        """So many places were found that an end can be reached from: now paths are walked."""
        self._work(_PLACE * places)
        self._looked, self._looking = 0, self._now()

    def look(self, edges: int) -> None:
        """So many edges were looked at."""
        self._work(edges)
        self._looked += edges

    def room(self) -> float:
        """So many edges may still be looked at, about."""
        now = self._now()
        each = (now - self._looking) / self._looked if self._looked else self._edge
        return (self._latency - now) / max(each, 1e-12)

    def give_up(self, count: int, what: str) -> None:
        """Add to the count of what was shed."""
        if not count:
            return
        shed = self.shed
        if not shed.active:
            warn(f"{self._about}: not all paths are walked, as that would break the bound")
        shed.active = True
        # What lies behind edges that were not looked at is unknown.
        shed.recall = None
        shed.partial_matches += count
        shed.by_state[what] = shed.by_state.get(what, 0) + count

    def _now(self) -> float:
        return self._spent + self._clock() - self._since

    def _work(self, units: float) -> None:
        if isinstance(self._clock, WorkClock):
            self._clock.add(units)


#: What is expected of a path in the making, less is better; a number, where it begins, and the path.
_Waiting = tuple[tuple[float, float], int, int, Trace]


def some_paths(
    graph: Snapshot,
    expansion: Expansion,
    sources: Sequence[int],
    empty: frozenset[int],
    wanted: frozenset[int] | None,
    mode: Mode,
    memory: Memory,
    allowance: Allowance,
) -> Iterator[Path]:
    """Of all paths from some nodes to those ``wanted`` as many as the allowance lets; no others.

    At those of ``empty`` a path of no edges is one.
    """
    order = _Order(expansion, allowance)
    waiting: list[_Waiting] = []
    number = 0
    for done, source in enumerate(sources):
        if allowance.room() < 1:
            allowance.give_up(len(sources) - done, UNFINISHED)
            break
        allowance.look(1)
        if source in empty and (wanted is None or source in wanted):
            yield Path(graph, (source,), (), ())
        number += 1
        states = expansion.useful(source, expansion.initial)
        order.add(waiting, number, source, Trace(source, states, None, 0, True))
    most = memory.left // TRACE_BYTES
    stop = current()
    while waiting:
        stop.check()
        _, _, source, trace = heappop(waiting)
        degree, room = expansion.degree(trace.node, trace.states), allowance.room()
        if room < 1:
            allowance.give_up(1 + len(waiting), UNFINISHED)
            return
        allowance.look(1)
        if degree > room - 1 or (allowance.edges is not None and degree > allowance.edges):
            allowance.give_up(1, UNFINISHED)
            continue
        allowance.look(degree)
        for taken in expansion.take(trace.node, trace.states):
            may, closes = allowed(trace, taken, source, mode)
            if not may:
                continue
            predicate, forward, node, states = taken
            further = Trace(node, states, trace, predicate, forward)
            if states & expansion.accepting and (wanted is None or node in wanted):
                yield further.path(graph)
            if not closes:
                number += 1
                order.add(waiting, number, source, further)
        if allowance.paths is not None and len(waiting) > allowance.paths:
            best = nsmallest(max(1, int(_KEPT * allowance.paths)), waiting)
            allowance.give_up(len(waiting) - len(best), UNFINISHED)
            waiting = best
            heapify(waiting)
        if len(waiting) > most:
            raise memory.error(len(waiting) * TRACE_BYTES, f"{len(waiting):,} paths in the making")


class _Order:
    """The order in which unfinished paths go on.

    ``sharp``: the fewest edges to an end first, then the fewest edges to look at.
    """

    def __init__(self, expansion: Expansion, allowance: Allowance) -> None:
        self._expansion = expansion
        self._policy = allowance.policy
        self._lots = np.random.default_rng(1)

    def add(self, waiting: list[_Waiting], number: int, source: int, trace: Trace) -> None:
        """One more, if it can go on at all."""
        degree = self._expansion.degree(trace.node, trace.states)
        if not degree:
            return
        if self._policy is Policy.RANDOM_STATE:
            worth = (float(self._lots.random()), 0.0)
        elif self._policy is Policy.SELECTIVE:
            worth = (float(degree), 0.0)
        else:
            worth = (float(max(1, self._expansion.remaining(trace.node, trace.states))), float(degree))
        heappush(waiting, (worth, number, source, trace))

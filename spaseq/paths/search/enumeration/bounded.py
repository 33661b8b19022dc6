"""Best-effort search: under a bound, the unfinished paths nearest to an end are extended first.

The search first finds the places from which an end can be reached, in time linear in the edges. This part is
never shed.
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

#: Seconds that a look at an edge takes, a guess until it is measured.
_EDGE: Final = 1e-6
#: Work units of a place reached by compiled code, for a clock that counts work; a look at an edge is 1.
_PLACE: Final = 1 / 32
#: The part of a memory bound for unfinished paths; the rest is for edges looked at.
_WAITING: Final = 0.5
#: If there are more unfinished paths than allowed, this part of the allowed number is kept.
_KEPT: Final = 0.5

#: The keys of ``Shed.by_state``.
UNFINISHED: Final = "paths not walked on"
UNSEARCHED: Final = "ends not searched"


class Allowance:
    """The time and memory that a search may use under a budget. ``shed`` counts what it has dropped.

    Time counts only while the caller waits for a path. At most ``paths`` unfinished paths are kept, and nodes
    with more than ``edges`` edges are skipped; None means no bound.
    """

    def __init__(self, budget: Budget, about: str) -> None:
        self._about = about
        self._latency = inf if budget.latency is None else budget.latency.total_seconds()
        self._clock = budget.clock
        self._spent, self._since = 0.0, 0.0
        # For a clock that counts work, every edge takes one unit.
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
        """Yield the same paths, and measure the time that finding them takes."""
        while True:
            self._since = self._clock()
            path = next(found, None)
            self._spent += self._clock() - self._since
            self.shed.latency = self._spent
            if path is None:
                return
            yield path

    def reached(self, places: int) -> None:
        """Count the ``places`` from which an end can be reached; from now on, paths are walked."""
        self._work(_PLACE * places)
        self._looked, self._looking = 0, self._now()

    def look(self, edges: int) -> None:
        """Count edges that were looked at."""
        self._work(edges)
        self._looked += edges

    def room(self) -> float:
        """Return about how many edges may still be looked at."""
        now = self._now()
        each = (now - self._looking) / self._looked if self._looked else self._edge
        return (self._latency - now) / max(each, 1e-12)

    def give_up(self, count: int, what: str) -> None:
        """Add ``count`` to what was shed, under the key ``what``; warn the first time."""
        if not count:
            return
        shed = self.shed
        if not shed.active:
            warn(f"{self._about}: not all paths are walked, as that would break the bound")
        shed.active = True
        # The number of paths over edges that were not looked at is unknown.
        shed.recall = None
        shed.partial_matches += count
        shed.by_state[what] = shed.by_state.get(what, 0) + count

    def _now(self) -> float:
        return self._spent + self._clock() - self._since

    def _work(self, units: float) -> None:
        if isinstance(self._clock, WorkClock):
            self._clock.add(units)


#: An unfinished path: its priority (lowest first), a number, its first node, and the path.
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
    """Yield paths from ``sources`` to the nodes ``wanted``, as many as the allowance lets the search find.

    At the nodes of ``empty``, a path without edges is one of them.
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
    """The order in which unfinished paths are extended.

    For the policy ``sharp``, fewest edges to an end come first, then fewest edges to look at.
    """

    def __init__(self, expansion: Expansion, allowance: Allowance) -> None:
        self._expansion = expansion
        self._policy = allowance.policy
        self._lots = np.random.default_rng(1)

    def add(self, waiting: list[_Waiting], number: int, source: int, trace: Trace) -> None:
        """Add an unfinished path, if it can be extended at all."""
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

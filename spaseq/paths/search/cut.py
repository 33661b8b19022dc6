"""Cuts of an automaton: sets of transitions of which every path takes exactly one.

A *cut* divides the states into two parts so that no transition leads back. The cheapest is a minimum cut,
where the weight of a transition is the number of its edges in the graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

#: Larger automata are not searched for cuts, because that takes states × transitions several times.
_MOST_STATES: Final = 64

#: A transition: state, CSR row, state reached.
Transition = tuple[int, int, int]

#: An arc: two states.
_Arc = tuple[int, int]

#: How each state was reached: by an arc, along or against it.
_Ways = dict[int, tuple[_Arc, bool] | None]


@dataclass(frozen=True, slots=True)
class Cut:
    """Transitions of which every path takes exactly one; ``edges`` is the number of their edges."""

    transitions: tuple[Transition, ...]
    edges: int


def cheapest_cut(
    states: int,
    transitions: Sequence[Transition],
    size: Callable[[int], int],
    starts: Collection[int],
    ends: frozenset[int],
) -> Cut | None:
    """Return the cut with the fewest edges; None without one or for a large automaton (Edmonds and Karp).

    ``size`` returns the number of edges of a row.

    >>> cheapest_cut(4, [(0, 7, 1), (1, 8, 1), (1, 9, 2), (2, 8, 3)], {7: 9, 8: 99, 9: 2}.get, [0], {3})
    Cut(transitions=((1, 9, 2),), edges=2)
    """
    if states > _MOST_STATES or not starts or ends.intersection(starts):
        return None
    room: dict[_Arc, int] = {}
    for state, row, reached in transitions:
        if state != reached:
            room[state, reached] = room.get((state, reached), 0) + size(row)
    while True:
        before = _spread(room, starts)
        end = next((state for state in ends if state in before), None)
        if end is None:
            break
        arcs = list(_way(before, end))
        narrow = [room[arc] for arc, ahead in arcs if ahead]
        if not narrow:
            return None  # an end leads to a start
        for (state, reached), ahead in arcs:
            room[state, reached] += -min(narrow) if ahead else min(narrow)
    across = tuple(
        transition for transition in transitions if transition[0] in before and transition[2] not in before
    )
    return Cut(across, sum(size(row) for _, row, _ in across))


def _spread(room: dict[_Arc, int], starts: Collection[int]) -> _Ways:
    """Return the states reached along arcs with room left or against any arc, and how each was reached."""
    ways: dict[int, list[tuple[int, _Arc, bool]]] = {}
    for (before, after), left in room.items():
        if left > 0:
            ways.setdefault(before, []).append((after, (before, after), True))
        ways.setdefault(after, []).append((before, (before, after), False))
    found: _Ways = dict.fromkeys(starts)
    waiting = deque(found)
    while waiting:
        for other, arc, ahead in ways.get(waiting.popleft(), ()):
            if other not in found:
                found[other] = arc, ahead
                waiting.append(other)
    return found


def _way(found: _Ways, end: int) -> list[tuple[_Arc, bool]]:
    """Return the arcs from a start to a state, last first, each with True if it is taken forwards."""
    arcs = []
    step = found[end]
    while step is not None:
        arcs.append(step)
        (before, after), ahead = step
        step = found[before if ahead else after]
    return arcs

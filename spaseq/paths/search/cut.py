"""Where a path must pass: the transitions of an automaton that every path makes exactly one of.

A *cut* parts the states so that no transition leads back. The cheapest is a minimum cut, each transition
weighing as many edges as the graph has for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

#: In larger automata no cut is looked for: it takes states × transitions, some times.
_MOST_STATES: Final = 64

#: From a state, along an edge of a row, to a state.
Transition = tuple[int, int, int]

#: From state to state.
_Arc = tuple[int, int]

#: How each state was reached: by an arc, along or against it.
_Ways = dict[int, tuple[_Arc, bool] | None]


@dataclass(frozen=True, slots=True)
class Cut:
    """Transitions of which every path makes exactly one; ``edges``: how many they can take."""

    transitions: tuple[Transition, ...]
    edges: int


def cheapest_cut(
    states: int,
    transitions: Sequence[Transition],
    size: Callable[[int], int],
    starts: Collection[int],
    ends: frozenset[int],
) -> Cut | None:
    """The cut with the fewest edges; None if there is none, or the automaton is large (Edmonds and Karp).

    ``size`` says of a row how many edges it has.

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
    """The states reached along arcs with room, or against any arc; for each, how it was reached."""
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
    """The arcs from a start to a state, last first; whether each was gone along or against."""
    arcs = []
    step = found[end]
    while step is not None:
        arcs.append(step)
        (before, after), ahead = step
        step = found[before if ahead else after]
    return arcs

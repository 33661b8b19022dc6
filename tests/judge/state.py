"""What the second judge has in hand: a match so far, what is still to be asked of it, its window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.judge.pattern import Event, Node, Query, Times

Values = dict[str, object]
Iteration = tuple[tuple[tuple[str, object], ...], ...]


@dataclass(frozen=True)
class Row:
    """A solution of a match so far.

    ``past``: the iterations that each Kleene has completed, those of an inner one over all of the outer.
    """

    values: Values
    past: dict[Node, tuple[Iteration, ...]]


@dataclass(frozen=True)
class Entry:
    """How an element is reached: by which operator, and beside which other sides of ``|``.

    ``op`` is None at the beginning of a match.
    """

    op: str | None
    beside: tuple[tuple[Node, State], ...] = ()


@dataclass(frozen=True)
class Mark:
    """An absent ``X?`` or a ``!X``, asked when the next element is there; ``steps``: what happened since."""

    node: Node
    negation: bool
    at: State
    entry: Entry
    limit: object = None
    steps: tuple[tuple[str, object], ...] = ()
    free: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Leading:
    """A mark at the beginning of a match: asked when its window is known."""

    mark: Mark
    op: str
    element: Node
    before: State
    after: State


@dataclass(frozen=True)
class State:
    """A match so far. ``key`` are its choices, for SKIP; ``deaf`` the variables that filters cannot hear."""

    events: tuple[tuple[str, Event], ...]
    rows: tuple[Row, ...]
    inside: tuple[Times, ...] = ()
    marks: tuple[Mark, ...] = ()
    leading: tuple[Leading, ...] = ()
    key: tuple[object, ...] = ()
    deaf: frozenset[str] | None = None
    starts: tuple[tuple[Node, State], ...] = ()

    @property
    def chosen(self) -> list[Event]:
        return [e for _, e in self.events]


@dataclass(frozen=True)
class Match:
    """A complete match."""

    events: frozenset[tuple[str, Event]]
    rows: tuple[Row, ...]
    key: tuple[object, ...]

    @property
    def first(self) -> Event:
        return min((e for _, e in self.events), key=lambda e: e.order)

    @property
    def last(self) -> Event:
        return max((e for _, e in self.events), key=lambda e: e.order)


class Window:
    """Places of events on the axis that WITHIN measures; ``ticks``: a second is one."""

    def __init__(self, query: Query, everything: Sequence[Event]) -> None:
        self._sliding = query.sliding
        self._size = query.size
        if query.unit == "EVENTS":
            self._place = {e: i for i, e in enumerate(everything)}
            self._start = 0
        else:
            self._size = query.length(query.size, query.unit)
            self._place = {e: e.time for e in everything}
            self._start = everything[0].time if everything else 0

    def _number(self, e: Event) -> int:
        return int((self._place[e] - self._start) // self._size)

    def together(self, events: Iterable[Event]) -> bool:
        """Whether a match may have all of these."""
        places = sorted(events, key=self._place.__getitem__)
        first, last = places[0], places[-1]
        if self._sliding:
            return self._place[last] - self._place[first] <= self._size
        return self._number(first) == self._number(last)

    def sees(self, e: Event, chosen: Sequence[Event]) -> bool:
        """Whether an event is in the window of a match: since last - ω, until first + ω."""
        first = min(chosen, key=self._place.__getitem__)
        last = max(chosen, key=self._place.__getitem__)
        if self._sliding:
            return self._place[last] - self._size <= self._place[e] <= self._place[first] + self._size
        return self._number(e) == self._number(first)


def follow(earlier: Iterable[Event], later: Iterable[Event]) -> bool:
    later = list(later)
    return all(e.precedes(f) for e in earlier for f in later)

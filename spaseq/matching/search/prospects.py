"""Prospects: a search that also chooses future events.

A match waits as long as there is a continuation that may withdraw it (``X?`` or ``!X`` at its end), or one
that AFTER MATCH SKIP prefers. A continuation is possible if there is time left for it and no event in between
has excluded it. Future events may meet any condition of a GPM, on any stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spaseq.automaton.nfa import Leave
from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Kleene,
    Maybe,
    Node,
    SequencePattern,
    units,
    walk,
)
from spaseq.events import Stamp
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.search.partials import Entry, Events, Mark, Partial, Start, follow
from spaseq.matching.search.search import SequenceSearch

#: Arrival numbers of events that have not arrived.
_COMING = 1 << 62


def horizon(context: Context, window: StreamWindow, newest: Occurrence, at: int, time: int) -> Events:
    """Return the first events that may still come on each stream.

    All events up to ``at`` on the window's axis, and all before ``time``, have come. Events one time unit
    later are returned, too, for elements that follow simultaneous events.
    """
    # An event beyond a window of EVENTS shows that it has ended.
    position = max(newest.position, at + 1) if window.counted else newest.position
    time = max(newest.time, time)
    return [
        Occurrence(Stamp(time + later, stream, _COMING), position, {})
        for later in (0, 1)
        for stream in context.streams
    ]


def coming(event: Occurrence) -> bool:
    """Return whether an event is a future one."""
    return event.stamp.n == _COMING


class Prospects(SequenceSearch):
    """A search among events, and the future ones of a ``horizon``."""

    def __init__(
        self,
        pattern: SequencePattern,
        context: Context,
        window: StreamWindow,
        events: Events,
        horizon: Events,
    ) -> None:
        super().__init__(pattern, context, window, events)
        self._horizon = horizon
        self._parts = pattern.gpms
        self._positive = pattern.positive
        self._of = {name: frozenset(map(context.stream_id, g.streams)) for name, g in pattern.gpms.items()}

    def prospects(self) -> Iterator[Partial]:
        """Yield the partial matches that need future events."""
        for m in self.partials([*self._events, *self._horizon]):
            if len(set(map(coming, m.chosen))) == 2 and not self._over(m):
                yield m

    def _over(self, m: Partial) -> bool:
        """Return whether an event at the beginning of a partial match's window already excludes the match."""
        known = [leading for leading in m.leading if not any(map(coming, leading.after.chosen))]
        if self._window.sliding or not known:
            return False  # a later end makes the window begin later, too
        opening = self._window.opening(m.chosen[0], m.chosen[0])
        seen = [e for e in self._events if self._window.measure(e) >= opening]
        return any(self._was_there(leading, seen) for leading in known)

    def open(self, m: Partial) -> bool:
        """Return whether what must be absent at a complete match's end may still come."""
        first = min(m.chosen, key=lambda event: (event.time, event.position))
        closing = self._window.closing(first)
        soon = [e for e in self._horizon if self._window.measure(e) <= closing]
        for mark in m.marks:
            if isinstance(mark.node, Absent):
                if self._gap(mark, soon):
                    return True
                continue
            before = replace(mark.at, pool=[*self._events, *soon])
            if any(any(map(coming, x.since(before))) for x in self._missing(mark, before)):
                return True
        return False

    # --- future events ----------------------------------------------------------------------------

    def _atom(self, node: Atom, m: Partial) -> Iterator[Partial]:
        past = [event for event in m.chosen if not coming(event)]
        if len(past) == len(m.chosen):
            yield from super()._atom(node, m)
        of = self._of[node.gpm]
        soon = [e for e in m.pool if coming(e) and e.stamp.stream in of and follow(past, [e])]
        # After a future event, one later event stands for all.
        for event in soon if len(past) == len(m.chosen) else soon[:1]:
            key = (*m.key, self._context.order(event.stamp))
            yield replace(m, events=(*m.events, (node.gpm, event)), key=key)

    def _joined(self, parts: Sequence[Partial], node: Both, m: Partial) -> Rows:
        if any(coming(event) for part in parts for event in part.since(m)):
            return m.rows
        return super()._joined(parts, node, m)

    def _apart(self, new: Events) -> bool:
        return super()._apart([event for event in new if not coming(event)])

    def _strictly(self, m: Partial, new: Events) -> bool:
        return super()._strictly(m, new) and not any(map(coming, new))

    def _rows_of(self, node: AnyOrder, m: Partial, parts: Sequence[Partial], strictly: bool) -> Rows:
        if any(coming(event) for part in parts for event in part.since(m)):
            return m.rows
        return super()._rows_of(node, m, parts, strictly)

    def _leave(self, m: Partial, node: Kleene) -> Partial:
        if not any(map(coming, m.chosen)):
            return super()._leave(m, node)
        # A filter of WHERE may hold for future events.
        inside = m.inside[:-1]
        return replace(self._step(m, Leave(node.id, node.minimum, inside)), inside=inside)

    def _complete(self, m: Partial) -> Rows:
        return m.rows if any(map(coming, m.chosen)) else super()._complete(m)

    def _admits(self, m: Partial, new: Events, entry: Entry, starts: Start) -> bool:
        if any(map(coming, m.chosen)):
            past = [event for event in m.chosen if not coming(event)]
            first = min(past or m.chosen, key=lambda event: event.time)
            return all(self._window.together(first, event) for event in new)
        return super()._admits(m, new, entry, starts)

    def _goes_on(self, node: Kleene, count: int, before: Partial, after: Partial) -> bool:
        if any(map(coming, after.since(before))):
            return count < node.minimum
        return super()._goes_on(node, count, before, after)

    def _respected(
        self, mark: Mark, operator: Strategy | None, node: Node, before: Partial, after: Partial
    ) -> bool:
        if not any(map(coming, after.since(before))):
            return super()._respected(mark, operator, node, before, after)
        if isinstance(mark.node, Maybe) or self._depends(mark):
            return True
        return super()._respected(mark, operator, node, before, after)

    def _depends(self, mark: Mark) -> bool:
        """Return whether a mark's condition depends on values of future events."""
        gpms = {a.gpm for unit in units(mark.node.element) for a in atoms(unit)}
        bound = [row.binding.keys() for row in mark.at.rows]
        later = {v for name in self._positive for v in self._parts[name].variables}
        asked = {v for name in gpms for v in self._context.speaks_of(name)}
        own = {v for name in gpms for v in self._parts[name].variables} - {
            v for name in self._positive if name not in gpms for v in self._parts[name].variables
        }
        return any(not (asked & later) - own <= names for names in bound)


def atoms(node: Node) -> Iterator[Atom]:
    """Yield the GPMs in a node."""
    return (inner for inner in walk(node) if isinstance(inner, Atom))

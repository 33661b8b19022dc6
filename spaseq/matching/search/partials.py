"""Partial matches of a search, and the conditions of section 4 for extending them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spaseq.automaton.nfa import Again, Enter, Leave
from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Chain,
    Either,
    Empty,
    Kleene,
    Maybe,
    Node,
    Within,
    units,
)
from spaseq.events import precedes
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Choice, Occurrence, StreamWindow

# The partial matches of a search: events so far, how they were reached, and what is undecided.

Events = Sequence[Occurrence]


@dataclass(frozen=True, slots=True)
class Entry:
    """How an element is reached: the operator before it, and what else that operator must not skip.

    ``operator`` is None for the first element of the sequence. ``beside`` are the other sides of the ``|``s
    around it, each with the partial match before it.
    """

    operator: Strategy | None
    beside: tuple[tuple[Node, Partial], ...] = ()


#: An element that may be matched anywhere: its place is judged later, or does not matter.
FREE = Entry(None)


@dataclass(frozen=True, slots=True)
class Join:
    """The other operands of a completed ``ALL``: their events, and the rows of all."""

    events: tuple[Choice, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class Mark:
    """An absent X, of ``X?`` or ``!X``: decided when the next element is there.

    ``at`` is the match before it, ``entry`` how X would have been reached; ``steps`` are the steps of Kleenes
    and ``ALL``s since.
    """

    node: Absent | Maybe
    at: Partial
    entry: Entry
    steps: tuple[Enter | Again | Leave | Join, ...] = ()


@dataclass(frozen=True, slots=True)
class Leading:
    """A mark before the first element, which its match's window bounds: decided when the match is complete.

    ``node`` is the element that followed it, after the operator ``operator``.
    """

    mark: Mark
    operator: Strategy
    node: Node
    before: Partial
    after: Partial


@dataclass(frozen=True, slots=True)
class Partial:
    """A match so far. ``inside`` are the Kleenes in progress, ``pool`` the events it chooses from.

    ``starts``: what ``;`` before its first event must not have skipped (as ``Entry.beside``; None before the
    first event). ``loose`` ignores what depends on other operands of an ``ALL``: its filters, ``;``, marks.
    ``key`` are its choices from the start, smaller ones preferred (AFTER MATCH SKIP).
    """

    events: tuple[Choice, ...]
    rows: Rows
    pool: Events
    inside: tuple[int, ...] = ()
    marks: tuple[Mark, ...] = ()
    leading: tuple[Leading, ...] = ()
    starts: tuple[tuple[Node, Partial], ...] | None = None
    loose: bool = False
    key: tuple[object, ...] = ()

    @property
    def chosen(self) -> Events:
        return tuple(event for _, event in self.events)

    def since(self, earlier: Partial) -> Events:
        """Return the events that this match has chosen and an earlier one has not."""
        return self.chosen[len(earlier.events) :]


def follow(earlier: Iterable[Occurrence], later: Events) -> bool:
    """Return whether each of ``earlier`` precedes each of ``later``."""
    for e in earlier:
        for f in later:
            if not precedes(e.stamp, f.stamp):
                return False
    return True


# Whether an event may extend a match, and whether absent elements are absent (section 4).

#: What an element may begin with: units, each with the partial match before it.
Start = tuple[tuple[Node, Partial], ...]


def whole(unit: Node) -> Node:
    """Return a unit with all sides of its ``|``s, also sides not taken here."""
    match unit:
        case Both(operands=operands):
            return replace(unit, operands=tuple(map(whole, operands)))
        case Either(operands=operands, closed=closed):
            return replace(unit, operands=tuple(map(whole, (*operands, *closed))), closed=(), places=())
        case _:
            return unit


class Conditions(ABC):
    """The conditions of a search, evaluated over all its events."""

    def __init__(self, context: Context, window: StreamWindow, events: Events) -> None:
        self._context = context
        self._window = window
        self._events = events

    @abstractmethod
    def _element(
        self, node: Node, m: Partial, entry: Entry, operator: Strategy | None
    ) -> Iterator[Partial]: ...

    @abstractmethod
    def _unit(self, unit: Node, m: Partial) -> Iterator[Partial]: ...

    # --- solutions ----------------------------------------------------------------------------

    def _atom(self, node: Atom, m: Partial) -> Iterator[Partial]:
        before = m.chosen
        for event in m.pool:
            if node.gpm in event.solutions and follow(before, [event]):
                rows = self._context.extend(m.rows, node, event, m.inside, m.loose)
                if rows:
                    key = (*m.key, self._context.order(event.stamp))
                    yield replace(m, events=(*m.events, (node.gpm, event)), rows=rows, key=key)

    def _joined(self, parts: Sequence[Partial], node: Both, m: Partial) -> Rows:
        """Return the rows of an ``&``, given those of its operands."""
        return self._context.join([part.rows for part in parts], node, m.inside, m.loose)

    def _rows_of(self, node: AnyOrder, m: Partial, parts: Sequence[Partial], strictly: bool) -> Rows:
        """Return the rows of an ``ALL``. ``strictly``: its operands were matched in each other's context."""
        found = [part.rows for part in parts]
        if strictly:
            return self._context.join([self._context.common(found)], node, m.inside)
        return self._context.join(found, node, m.inside, True)

    def _apart(self, new: Events) -> bool:
        """Return whether the operands of an ``ALL`` chose distinct events, at least one each."""
        return len({event.stamp for event in new}) == len(new)

    def _strictly(self, m: Partial, new: Events) -> bool:
        """Return whether the operands of an ``ALL`` must be matched again in each other's context."""
        return not m.loose and bool(new)

    def _complete(self, m: Partial) -> Rows:
        return self._context.complete(m.rows)

    # --- extending ---------------------------------------------------------------------------------

    def _admits(self, m: Partial, new: Events, entry: Entry, starts: Start) -> bool:
        """Return whether these events may extend ``m``: order, window, and the operator's condition.

        ``starts``: the elements that ``;`` must not skip, any of them.
        """
        before = m.chosen
        if not follow(before, new):
            return False
        span = sorted((*before, *new), key=lambda event: (event.time, event.position))
        if not self._window.together(span[0], span[-1]):
            return False
        if entry.operator is Strategy.STRICT:
            return not self._between(m, new)
        if entry.operator is Strategy.NEXT and not m.loose:
            between = self._between(m, new)
            # Optional parts of the other sides of a `|` may be present or not, whichever makes this true.
            return all(
                any(not self._skips(way, between) for way in self._ways(node, at)) for node, at in starts
            )
        return True

    def _skips(self, start: Start, between: Events) -> bool:
        """Return whether an event in between is relevant for what an element may begin with."""
        return any(self._relevant(whole(unit), at, between) for unit, at in start)

    def _between(self, m: Partial, new: Events) -> Events:
        before = m.chosen
        return [g for g in self._events if follow([g], new) and follow(before, [g])]

    def _relevant(self, unit: Node, at: Partial, among: Events) -> bool:
        """Return whether one of some events is relevant for a unit, in the context of a match."""
        return any(True for _ in self._unit(unit, replace(at, pool=among)))

    def _ways(self, node: Node, m: Partial) -> list[Start]:
        """Return the units an element may begin with, for each choice of its optional parts; ()
        for no event.
        """
        match node:
            case Atom() | Both():
                return [((node, m),)]
            case Empty() | Absent():
                return [()]
            case Maybe(element=element):
                return [(), *self._ways(element, m)]
            case Within(element=element):
                return self._ways(element, m)
            case Kleene(id=identity, element=element):
                rows = self._context.enter(m.rows, identity)
                return self._ways(element, replace(m, rows=rows, inside=(*m.inside, identity)))
            case Chain(items=items):
                ways: list[Start] = [()]
                for item in items:
                    ways = [way for way in ways if way] + (self._ways(item, m) if () in ways else [])
                return ways
            case Either(operands=operands, apart=True):
                return [way for operand in operands for way in self._ways(operand, m)]
            case Either(operands=operands, closed=closed):
                return self._all_ways((*operands, *closed), m)
            case AnyOrder(operands=operands):
                return self._all_ways(operands, m)

    def _all_ways(self, nodes: tuple[Node, ...], m: Partial) -> list[Start]:
        several = itertools.product(*(self._ways(node, m) for node in nodes))
        return [tuple(itertools.chain.from_iterable(way)) for way in several]

    # --- what is absent -----------------------------------------------------------------------

    def broken(self, m: Partial) -> bool:
        """Return whether a match's window contains what must be absent at its beginning or end."""
        chosen = sorted(m.chosen, key=lambda event: (event.time, event.position))
        opening = self._window.opening(chosen[0], chosen[-1])
        closing = self._window.closing(chosen[0])
        seen = [e for e in self._events if opening <= self._window.measure(e) <= closing]
        return any(self._was_there(leading, seen) for leading in m.leading) or any(
            self._is_there(mark, m, seen) for mark in m.marks
        )

    def _was_there(self, leading: Leading, seen: Events) -> bool:
        """Return whether it was there at the beginning."""
        mark, new = leading.mark, leading.after.since(leading.before)
        if isinstance(mark.node, Maybe):
            wanted = leading.after.events[len(leading.before.events) :]
            return self._could(mark, leading.operator, leading.node, wanted, seen)
        gap = [g for g in seen if follow([g], new)]
        if leading.operator is Strategy.STRICT:
            gap = [g for g in gap if not any(follow([g], [h]) and follow([h], new) for h in self._events)]
        if mark.node.limit is not None:
            begins = min(event.time for event in new)
            gap = [g for g in gap if begins - g.time <= self._window.lasts(mark.node.limit)]
        return self._bars(mark, gap, leading.after)

    def _is_there(self, mark: Mark, m: Partial, seen: Events) -> bool:
        """Return whether it is there at the end."""
        if isinstance(mark.node, Absent):
            return self._bars(mark, self._gap(mark, seen), m)
        before = replace(mark.at, pool=seen)
        return any(self._complete(self._replay(x, mark)) for x in self._missing(mark, before))

    def _respected(
        self, mark: Mark, operator: Strategy | None, node: Node, before: Partial, after: Partial
    ) -> bool:
        """Return whether a marked X is absent before an element that extended ``before`` to ``after``."""
        new = after.since(before)
        if isinstance(mark.node, Absent):
            return not self._bars(mark, self._gap(mark, [g for g in self._events if follow([g], new)]), after)
        assert operator is not None
        return not self._could(mark, operator, node, after.events[len(before.events) :], self._events)

    def _gap(self, mark: Mark, among: Events) -> Events:
        """Return the events that a negation is about, among those before the next element."""
        assert isinstance(mark.node, Absent)
        before = mark.at.chosen
        gap = [g for g in among if follow(before, [g])]
        if mark.entry.operator is Strategy.STRICT:
            gap = [g for g in gap if not any(follow(before, [h]) and follow([h], [g]) for h in self._events)]
        if mark.node.limit is not None:
            begins = max(event.time for event in before)
            gap = [g for g in gap if g.time - begins <= self._window.lasts(mark.node.limit)]
        return gap

    def _bars(self, mark: Mark, gap: Events, after: Partial) -> bool:
        """Return whether one of some events is relevant for a negated element, in the context of all around
        it.

        For a group, it is if it is relevant for one of the group's GPMs (or conjunctions as a whole).
        """
        assert isinstance(mark.node, Absent)
        if not gap:
            return False
        ended = [step.kleene for step in mark.steps if isinstance(step, Again | Leave)]
        rows = self._context.around(mark.at.rows, after.rows, ended, mark.node.free)
        at = Partial((), rows, gap, mark.at.inside)
        return any(self._relevant(unit, at, gap) for unit in units(mark.node.element))

    def _could(
        self, mark: Mark, operator: Strategy | None, node: Node, wanted: Sequence[Choice], among: Events
    ) -> bool:
        """Return whether there is an X between a match and the choices of the next element: the same events
        per GPM.
        """
        new = [event for _, event in wanted]
        before = replace(mark.at, pool=among)
        for x in self._missing(mark, before):
            if follow(x.since(before), new):
                x = replace(self._replay(x, mark), marks=(), pool=new)
                again = self._element(node, x, Entry(operator), operator)
                if any(set(y.events[len(x.events) :]) == set(wanted) for y in again):
                    return True
        return False

    def _missing(self, mark: Mark, before: Partial) -> Iterator[Partial]:
        """Yield the matches of an X? where it is absent."""
        assert isinstance(mark.node, Maybe)
        for reading in mark.node.readings or (mark.node.element,):
            for x in self._element(reading, replace(before, marks=()), mark.entry, None):
                if len(x.events) > len(before.events):
                    yield x

    def _replay(self, m: Partial, mark: Mark) -> Partial:
        """Repeat the steps since a mark, after a match that has its X."""
        for step in mark.steps:
            match step:
                case Join(events, rows):
                    m = replace(m, events=m.events + events, rows=self._context.compatible([m.rows, rows]))
                case Enter() | Again():
                    m = replace(m, rows=self._context.act(m.rows, [step]))
                case Leave(inside=inside):
                    m = replace(m, rows=self._context.act(m.rows, [step]), inside=inside)
        return m

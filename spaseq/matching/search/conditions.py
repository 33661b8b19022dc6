"""What a search has in hand, and whether it may go on with an event, or with what is absent (section 4)."""

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

# What a search has in hand: a match so far, how it got there, and what is still to be asked of it.

Events = Sequence[Occurrence]


@dataclass(frozen=True, slots=True)
class Entry:
    """How an element is reached: the operator before it, and what else that operator must not skip.

    ``operator`` is None for the first element of the sequence. ``beside`` are the other sides of the ``|``s
    around it, each with the partial match that stands before it.
    """

    operator: Strategy | None
    beside: tuple[tuple[Node, Partial], ...] = ()


#: An element that may be matched anywhere: its place is judged later, or does not matter.
FREE = Entry(None)


@dataclass(frozen=True, slots=True)
class Join:
    """The other operands of an ``ALL`` that ends: their events, and the rows of all."""

    events: tuple[Choice, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class Mark:
    """An X that is absent, of ``X?`` or ``!X``: asked when the next element is there.

    ``at`` is the match before it, ``entry`` how X would have been reached; ``steps`` are what Kleenes and
    ``ALL``s did to the match since.
    """

    node: Absent | Maybe
    at: Partial
    entry: Entry
    steps: tuple[Enter | Again | Leave | Join, ...] = ()


@dataclass(frozen=True, slots=True)
class Leading:
    """A mark before everything else, which its match's window bounds: asked when the match is complete.

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

    ``starts`` is what its first event must not have skipped after ``;`` (as ``Entry.beside``; None before
    there is one). ``loose`` leaves out what depends on other operands of an ``ALL``: its filters, ``;``,
    marks. ``key`` are its choices from the start, smaller ones preferred (AFTER MATCH SKIP).
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
        """The events that it has chosen and an earlier one has not."""
        return self.chosen[len(earlier.events) :]


def follow(earlier: Iterable[Occurrence], later: Events) -> bool:
    """Whether each of ``earlier`` precedes each of ``later``."""
    for e in earlier:
        for f in later:
            if not precedes(e.stamp, f.stamp):
                return False
    return True


# Whether a match may go on with an event, and whether what is absent from it is absent (section 4).

#: What an element may begin with: units, each in the partial match that stands before it.
Start = tuple[tuple[Node, Partial], ...]


def whole(unit: Node) -> Node:
    """A unit with all sides of its ``|``s, also those that are not taken here."""
    match unit:
        case Both(operands=operands):
            return replace(unit, operands=tuple(map(whole, operands)))
        case Either(operands=operands, closed=closed):
            return replace(unit, operands=tuple(map(whole, (*operands, *closed))), closed=(), places=())
        case _:
            return unit


class Conditions(ABC):
    """The questions that a search asks of all events."""

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
        """The rows of an ``&``, after those of its operands."""
        return self._context.join([part.rows for part in parts], node, m.inside, m.loose)

    def _rows_of(self, node: AnyOrder, m: Partial, parts: Sequence[Partial], strictly: bool) -> Rows:
        """The rows of an ``ALL``. ``strictly``: its operands were found in each other's context."""
        found = [part.rows for part in parts]
        if strictly:
            return self._context.join([self._context.common(found)], node, m.inside)
        return self._context.join(found, node, m.inside, True)

    def _apart(self, new: Events) -> bool:
        """Whether the operands of an ``ALL`` chose some events, and distinct ones."""
        return len({event.stamp for event in new}) == len(new)

    def _strictly(self, m: Partial, new: Events) -> bool:
        """Whether the operands of an ``ALL`` are to be matched again in the context of each other."""
        return not m.loose and bool(new)

    def _complete(self, m: Partial) -> Rows:
        return self._context.complete(m.rows)

    # --- going on -----------------------------------------------------------------------------

    def _admits(self, m: Partial, new: Events, entry: Entry, starts: Start) -> bool:
        """Whether ``m`` may go on with these events: order, window, and the operator's condition.

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
            # What is optional in the other sides of a `|` may be there or not, whichever lets this pass.
            return all(
                any(not self._skips(way, between) for way in self._ways(node, at)) for node, at in starts
            )
        return True

    def _skips(self, start: Start, between: Events) -> bool:
        """Whether something between is relevant for what an element may begin with."""
        return any(self._relevant(whole(unit), at, between) for unit, at in start)

    def _between(self, m: Partial, new: Events) -> Events:
        before = m.chosen
        return [g for g in self._events if follow([g], new) and follow(before, [g])]

    def _relevant(self, unit: Node, at: Partial, among: Events) -> bool:
        """Whether one of some events is relevant for a unit, in the context of a match."""
        return any(True for _ in self._unit(unit, replace(at, pool=among)))

    def _ways(self, node: Node, m: Partial) -> list[Start]:
        """What an element may begin with, by which of its optional parts are there; () if it has no event."""
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
        """Whether in a match's window something is there that it says is absent at its beginning or end."""
        chosen = sorted(m.chosen, key=lambda event: (event.time, event.position))
        opening = self._window.opening(chosen[0], chosen[-1])
        closing = self._window.closing(chosen[0])
        seen = [e for e in self._events if opening <= self._window.measure(e) <= closing]
        return any(self._was_there(leading, seen) for leading in m.leading) or any(
            self._is_there(mark, m, seen) for mark in m.marks
        )

    def _was_there(self, leading: Leading, seen: Events) -> bool:
        """The same of the beginning."""
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
        """The same of the end."""
        if isinstance(mark.node, Absent):
            return self._bars(mark, self._gap(mark, seen), m)
        before = replace(mark.at, pool=seen)
        return any(self._complete(self._replay(x, mark)) for x in self._missing(mark, before))

    def _respected(
        self, mark: Mark, operator: Strategy | None, node: Node, before: Partial, after: Partial
    ) -> bool:
        """Whether what is absent before an element is absent: the element took ``before`` to ``after``."""
        new = after.since(before)
        if isinstance(mark.node, Absent):
            return not self._bars(mark, self._gap(mark, [g for g in self._events if follow([g], new)]), after)
        assert operator is not None
        return not self._could(mark, operator, node, after.events[len(before.events) :], self._events)

    def _gap(self, mark: Mark, among: Events) -> Events:
        """The events that a negation looks at, of those before what follows it."""
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
        """Whether one of some events is relevant for a negated element, in the context of all around it.

        For a group it is if it is for one of the group's GPMs (or conjunctions as a whole).
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
        """Whether there is an X between a match and what the next element chose: the same events per GPM."""
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
        """The matches of an X? that would stand where it is absent."""
        assert isinstance(mark.node, Maybe)
        for reading in mark.node.readings or (mark.node.element,):
            for x in self._element(reading, replace(before, marks=()), mark.entry, None):
                if len(x.events) > len(before.events):
                    yield x

    def _replay(self, m: Partial, mark: Mark) -> Partial:
        """What happened since a mark, after a match that has its X."""
        for step in mark.steps:
            match step:
                case Join(events, rows):
                    m = replace(m, events=m.events + events, rows=self._context.compatible([m.rows, rows]))
                case Enter() | Again():
                    m = replace(m, rows=self._context.act(m.rows, [step]))
                case Leave(inside=inside):
                    m = replace(m, rows=self._context.act(m.rows, [step]), inside=inside)
        return m

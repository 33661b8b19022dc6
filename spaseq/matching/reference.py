"""The slow, executable form of the semantics page: the judge of every other evaluator.

``matches`` reads a finite list of events and enumerates, element by element, every choice of events
that section 4 allows, asking each condition by looking at all events. Nothing is indexed, nothing
is remembered between two questions. ``Reference`` wraps it as an evaluator that can be pushed to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
    SequencePattern,
    Within,
    starts,
    units,
)
from spaseq.events import precedes
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Bounds, Choice, Found, Occurrence, distinct

#: What ``;`` must not skip: units an element can start with, and the Kleenes entered on the way.
_Rivals = tuple[tuple[tuple[int, ...], Atom | Both], ...]

Events = Sequence[Occurrence]


#: A negation whose gap is still open at its end, and the events that it comes after.
_Open = tuple[Absent, Events]


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a search may choose: places on the window's axis, and events that must come later."""

    opening: float = -math.inf
    closing: float = math.inf
    before: Events = ()


@dataclass(frozen=True, slots=True)
class _Leading:
    """A negation at the beginning, which its match's window bounds: decided when the match is complete."""

    negation: Absent
    context: Partial
    before: Events


@dataclass(frozen=True, slots=True)
class Partial:
    """A match so far. ``inside`` are the Kleenes in progress, ``gap`` where it may still choose.

    ``loose`` leaves out what depends on other operands of an ``ALL``: its filters, ``;``, negation.
    """

    events: tuple[Choice, ...]
    rows: Rows
    inside: tuple[int, ...] = ()
    pending: tuple[_Open, ...] = ()
    leading: tuple[_Leading, ...] = ()
    gap: Gap = Gap()
    loose: bool = False

    @property
    def chosen(self) -> Events:
        return tuple(event for _, event in self.events)


@dataclass(frozen=True, slots=True)
class Entry:
    """How an element is reached: the operator before it, and what that operator must not skip.

    ``operator`` is None for the first element of the sequence.
    """

    operator: Strategy | None
    rivals: _Rivals = ()


_FREE = Entry(Strategy.ANY)


def matches(pattern: SequencePattern, context: Context, bounds: Bounds, events: Events) -> list[Found]:
    """All matches among ``events``, given in processing order, each once; in order of their last event.

    Includes those that a trailing negation holds back: all of them lie in windows taken as ended.
    """
    search = Search(pattern, context, bounds, events)
    found = distinct(found_of(m) for m in search.partials() if not search.broken(m))
    return sorted(found, key=lambda match: match.last.position)


class Reference:
    """The reference as an evaluator: searches its whole window again at every event."""

    def __init__(self, pattern: SequencePattern, context: Context, bounds: Bounds) -> None:
        self._pattern, self._context, self._bounds = pattern, context, bounds
        self._events: list[Occurrence] = []
        self._waiting: list[Partial] = []
        self._seen: dict[object, int] = {}
        self._dropped = -1

    @property
    def kept(self) -> tuple[int, int]:
        """See ``Evaluator.kept``; nothing is kept but events and what waits."""
        return len(self._waiting), 0

    def drop(self) -> None:
        """See ``Evaluator.drop``. The events stay: negations at a match's beginning must see them."""
        self._waiting = []
        self._dropped = self._events[-1].position if self._events else -1

    def push(self, occurrence: Occurrence) -> list[Found]:
        """See ``Evaluator.push``."""
        self._forget(occurrence)
        self._events.append(occurrence)
        search = Search(self._pattern, self._context, self._bounds, self._events)
        found = []
        for m in search.partials():
            if occurrence not in m.chosen or found_of(m).first.position <= self._dropped:
                continue
            if m.pending:
                self._waiting.append(m)
            elif not search.broken(m):
                found.append(m)
        return self._emit(found)

    def advance(self, at: int) -> list[Found]:
        """See ``Evaluator.advance``."""
        search = Search(self._pattern, self._context, self._bounds, self._events)
        due = [m for m in self._waiting if self._closing(m) <= at]
        self._waiting = [m for m in self._waiting if self._closing(m) > at]
        return self._emit([m for m in due if not search.broken(m)])

    def _emit(self, partials: Iterable[Partial]) -> list[Found]:
        new = [found for found in distinct(map(found_of, partials)) if found.chosen not in self._seen]
        self._seen.update((found.chosen, self._bounds.closing(found.first)) for found in new)
        return sorted(new, key=lambda found: found.last.position)

    def _closing(self, m: Partial) -> int:
        return self._bounds.closing(found_of(m).first)

    def _forget(self, now: Occurrence) -> None:
        """Drops events that no match can see any more."""
        at = self._bounds.measure(now)
        oldest = self._bounds.opening(now, now)
        for m in self._waiting:
            first = found_of(m)
            oldest = min(oldest, self._bounds.opening(first.first, first.last))
        self._events = [e for e in self._events if self._bounds.measure(e) >= oldest]
        self._seen = {chosen: closing for chosen, closing in self._seen.items() if closing >= at}


def found_of(m: Partial) -> Found:
    """A complete match, its events in order."""
    return Found(tuple(sorted(m.events, key=lambda choice: choice[1].position)), m.rows)


class Search:
    """Tries everything: ``partials`` are the matches among some events, but for what ``broken`` tells."""

    def __init__(self, pattern: SequencePattern, context: Context, bounds: Bounds, events: Events) -> None:
        self._root = pattern.root
        self._context = context
        self._bounds = bounds
        self._events = events

    def partials(self) -> Iterator[Partial]:
        """Complete matches, but for the negations at their beginning and end (see ``broken``)."""
        for m in self._element(self._root, Partial((), self._context.start), Entry(None)):
            rows = self._context.complete(m.rows)
            if m.events and rows:
                yield replace(m, rows=rows)

    def broken(self, m: Partial) -> bool:
        """Whether a negation at the beginning or end of a match finds something in its window."""
        found = found_of(m)
        opening = self._bounds.opening(found.first, found.last)
        closing = self._bounds.closing(found.first)
        return any(
            self._occurs(item.negation, (), Gap(opening=opening, before=item.before), item.context)
            for item in m.leading
        ) or any(self._occurs(negation, after, Gap(opening, closing), m) for negation, after in m.pending)

    # --- elements -----------------------------------------------------------------------------

    def _element(self, node: Node, m: Partial, entry: Entry) -> Iterator[Partial]:
        """Extends ``m`` by a match of ``node``, and decides the negations that waited for it."""
        for extended in self._node(node, replace(m, pending=()), entry):
            new = extended.chosen[len(m.events) :]
            if not new:
                yield replace(extended, pending=m.pending + extended.pending)
                continue
            leading = tuple(_Leading(n, extended, new) for n, after in m.pending if not after)
            if m.loose or not any(
                after and self._occurs(n, after, Gap(before=new), extended) for n, after in m.pending
            ):
                yield replace(extended, leading=extended.leading + leading)

    def _node(self, node: Node, m: Partial, entry: Entry) -> Iterator[Partial]:
        match node:
            case Atom():
                yield from self._atom(node, m, entry)
            case Chain(items=items, operators=operators):
                own = [Entry(op, starts(item)) for op, item in zip(operators, items[1:], strict=True)]
                yield from self._chain(items, [entry, *own], True, m)
            case Maybe() | Absent():
                yield from self._chain((node,), [entry], True, m)
            case Either(operands=operands):
                for operand in operands:
                    yield from self._node(operand, m, entry)
            case Both():
                yield from self._both(node, m, entry)
            case AnyOrder():
                yield from self._any_order(node, m, entry)
            case Empty() | Within():
                raise NotImplementedError(type(node))
            case Kleene(id=identity):
                rows = self._context.enter(m.rows, identity)
                entered = replace(m, rows=rows, inside=(*m.inside, identity))
                yield from self._iterate(node, 1, entered, entry)

    def _atom(self, node: Atom, m: Partial, entry: Entry) -> Iterator[Partial]:
        for event in self._events:
            if node.gpm in event.solutions and self._admits(m, [event], entry):
                rows = self._context.extend(m.rows, node, event, m.inside, m.loose)
                if rows:
                    yield replace(m, events=(*m.events, (node.gpm, event)), rows=rows)

    def _chain(
        self, items: Sequence[Node], entries: Sequence[Entry], inherited: bool, m: Partial
    ) -> Iterator[Partial]:
        """``entries[i]`` leads to item i; the first one is ``inherited`` from before the group.

        What follows a negation is reached by the operator right before it, but the first positive
        element of a group always by the operator before the group.
        """
        if not items:
            yield m
            return
        item, *rest = items
        if isinstance(item, Maybe | Absent):
            after = [entries[0], *entries[2:]] if inherited else entries[1:]
            absent = Absent(item.id, item.element)
            waiting = replace(m, pending=(*m.pending, (absent, m.chosen)))
            yield from self._chain(rest, after, inherited, waiting)
        if isinstance(item, Absent):
            return
        element = item.element if isinstance(item, Maybe) else item
        for extended in self._element(element, m, entries[0]):
            yield from self._chain(rest, entries[1:], False, extended)

    def _iterate(self, node: Kleene, count: int, m: Partial, entry: Entry) -> Iterator[Partial]:
        for done in self._element(node.element, m, entry):
            if count >= node.minimum:
                rows = self._context.leave(done.rows, node.id, done.inside[:-1])
                if rows:
                    yield replace(done, rows=rows, inside=done.inside[:-1])
            grew = len(done.events) > len(m.events)
            if grew and (node.maximum is None or count < node.maximum):
                again = replace(done, rows=self._context.again(done.rows, node.id))
                reached = Entry(node.strategy, starts(node.element))
                yield from self._iterate(node, count + 1, again, reached)

    def _both(self, node: Both, m: Partial, entry: Entry) -> Iterator[Partial]:
        """One match of each operand, all at the same time; one event may serve several."""
        marked = replace(m, rows=self._context.mark(m.rows))
        operands = [list(self._element(operand, marked, _FREE)) for operand in node.operands]
        for parts in itertools.product(*operands):
            added = [choice for part in parts for choice in part.events[len(m.events) :]]
            new = [event for _, event in added]
            if len({event.time for event in new}) == 1 and self._admits(m, new, entry):
                rows = self._context.join([part.rows for part in parts], node, m.inside, m.loose)
                if rows:
                    yield replace(m, events=(*m.events, *dict.fromkeys(added)), rows=rows)

    def _any_order(self, node: AnyOrder, m: Partial, entry: Entry) -> Iterator[Partial]:
        """One match of each operand, of distinct events, each under its own operators.

        They are first found loosely; then each must be a match in the context of all the others, since
        the filters of one may need what another one binds, in whatever order they occur.
        """
        marked = replace(m, rows=self._context.mark(m.rows))
        free = replace(marked, loose=True)
        operands = [list(self._element(operand, free, _FREE)) for operand in node.operands]
        for parts in itertools.product(*operands):
            added = [choice for part in parts for choice in part.events[len(m.events) :]]
            new = [event for _, event in added]
            if len({event.stamp for event in new}) < len(new) or not self._admits(m, new, entry):
                continue
            for given in [parts] if m.loose else self._in_context(node, marked, parts):
                if m.loose:
                    rows = self._context.join([part.rows for part in given], node, m.inside, True)
                else:
                    common = self._context.common([part.rows for part in given])
                    rows = self._context.join([common], node, m.inside)
                if rows:
                    yield replace(
                        m,
                        events=(*m.events, *added),
                        rows=rows,
                        pending=tuple(itertools.chain.from_iterable(p.pending for p in given)),
                        leading=m.leading
                        + tuple(itertools.chain.from_iterable(p.leading[len(m.leading) :] for p in given)),
                    )

    def _in_context(
        self, node: AnyOrder, marked: Partial, parts: tuple[Partial, ...]
    ) -> Iterator[tuple[Partial, ...]]:
        """The ways in which each operand matches the same events, given the others."""
        strict = []
        for i, (operand, part) in enumerate(zip(node.operands, parts, strict=True)):
            others = self._context.compatible([p.rows for j, p in enumerate(parts) if j != i])
            given = replace(marked, rows=others)
            strict.append([p for p in self._element(operand, given, _FREE) if p.events == part.events])
        return itertools.product(*strict)

    # --- conditions ---------------------------------------------------------------------------

    def _admits(self, m: Partial, new: Events, entry: Entry) -> bool:
        """Whether ``m`` may go on with these events: order, window, and the operator's condition."""
        if not _follow(m.chosen, new) or not _follow(new, m.gap.before):
            return False
        if not all(m.gap.opening <= self._bounds.measure(x) <= m.gap.closing for x in new):
            return False
        span = sorted((*m.chosen, *new), key=lambda event: (event.time, event.position))
        if not self._bounds.together(span[0], span[-1]):
            return False
        if entry.operator is Strategy.STRICT:
            return not any(_follow(m.chosen, [g]) and _follow([g], new) for g in self._events)
        if entry.operator is Strategy.NEXT and not m.loose:
            return not any(self._relevant(unit, entered, m, new) for entered, unit in entry.rivals)
        return True

    def _relevant(self, unit: Atom | Both, entered: tuple[int, ...], m: Partial, new: Events) -> bool:
        """Whether something between ``m`` and ``new`` is relevant for ``unit`` in the context of ``m``."""
        rows, inside = m.rows, m.inside
        for kleene in entered:
            rows, inside = self._context.enter(rows, kleene), (*inside, kleene)
        between = replace(m, rows=rows, inside=inside, gap=replace(m.gap, before=(*m.gap.before, *new)))
        return any(True for _ in self._node(unit, between, _FREE))

    def _occurs(self, negation: Absent, after: Events, gap: Gap, m: Partial) -> bool:
        """Whether something after ``after`` and in a gap is relevant for the negated element, given ``m``.

        It is relevant for a group iff it is for one of the group's GPMs (or conjunctions as a whole).
        """
        earlier = tuple(choice for choice in m.events if choice[1] in after)
        search = Partial(earlier, m.rows, m.inside, gap=gap)
        return any(True for unit in units(negation.element) for _ in self._node(unit, search, _FREE))


def _follow(earlier: Events, later: Events) -> bool:
    """Whether each of ``earlier`` precedes each of ``later``."""
    return all(precedes(e.stamp, f.stamp) for e in earlier for f in later)

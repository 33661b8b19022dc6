"""Every way to choose events for a sequence: sections 4 and 5 of the semantics, element by element."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

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
    SequencePattern,
    Within,
    units,
)
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Order, Rows
from spaseq.matching.model import Choice, Found, StreamWindow
from spaseq.matching.search.partials import (
    FREE,
    Entry,
    Events,
    Join,
    Leading,
    Mark,
    Partial,
    Start,
    follow,
    whole,
)


def found_of(m: Partial) -> Found:
    """Return a complete match, its events in order."""
    return Found(tuple(sorted(m.events, key=lambda choice: choice[1].position)), m.rows)


class SequenceSearch:
    """Tries everything: ``partials`` are the matches among some events, unless ``broken``."""

    def __init__(
        self, pattern: SequencePattern, context: Context, window: StreamWindow, events: Events
    ) -> None:
        self._context = context
        self._window = window
        self._events = events
        self._root = pattern.root

    def partials(self, pool: Events | None = None) -> Iterator[Partial]:
        """Yield the complete matches of events of ``pool`` (by default all events).

        Absences at their beginning and end, which windows bound, are not tested: see ``broken``.
        """
        start = Partial((), self._context.start, self._events if pool is None else pool)
        for m in self._element(self._root, start, FREE, None):
            rows = self._complete(m)
            if m.events and rows:
                yield replace(m, rows=rows)

    # --- elements -----------------------------------------------------------------------------

    def _element(self, node: Node, m: Partial, entry: Entry, operator: Strategy | None) -> Iterator[Partial]:
        """Extend ``m`` by a match of ``node``, and decide the marks that waited for it.

        ``operator`` is right before the element; ``entry`` may be that of a group which it begins.
        """
        for t in self._node(node, replace(m, marks=()), entry):
            if len(t.events) == len(m.events):
                yield replace(t, marks=m.marks + t.marks)
            elif m.loose or not m.marks:
                yield t
            elif all(self._respected(mark, operator, node, m, t) for mark in m.marks if mark.at.events):
                first = [mark for mark in m.marks if not mark.at.events]
                assert operator is not None
                yield replace(t, leading=(*t.leading, *(Leading(f, operator, node, m, t) for f in first)))

    def _node(self, node: Node, m: Partial, entry: Entry) -> Iterator[Partial]:
        match node:
            case Atom() | Both():
                for t in self._unit(node, m):
                    starts = ((node, m), *entry.beside)
                    if self._admits(m, t.since(m), entry, starts):
                        yield replace(t, starts=starts) if m.starts is None else t
            case Chain():
                yield from self._chain(node, 0, m, m, entry)
            case Either(operands=operands, apart=True):
                for i, operand in enumerate(operands):
                    yield from self._node(operand, replace(m, key=(*m.key, node.place(i))), entry)
            case Either(operands=operands, closed=closed):
                for i, operand in enumerate(operands):
                    others = tuple((other, m) for other in (*operands, *closed) if other is not operand)
                    beside = replace(entry, beside=entry.beside + others)
                    yield from self._node(operand, replace(m, key=(*m.key, node.place(i))), beside)
            case Empty():
                yield m
            case Maybe(element=element):
                yield from self._node(element, m, entry)
                yield replace(m, marks=(*m.marks, Mark(node, m, entry)))
            case Absent():
                yield replace(m, marks=(*m.marks, Mark(node, m, entry)))
            case Within(element=element, limit=limit):
                for t in self._node(element, m, entry):
                    times = [event.time for event in t.since(m)]
                    if not times or max(times) - min(times) <= self._window.lasts(limit):
                        yield t
            case AnyOrder():
                yield from self._any_order(node, m, entry)
            case Kleene(id=identity):
                rows = self._context.enter(m.rows, identity)
                entered = replace(m, rows=rows, inside=(*m.inside, identity))
                yield from self._iterate(node, 1, entered, entry, entry.operator)

    def _chain(self, node: Chain, i: int, begin: Partial, m: Partial, entry: Entry) -> Iterator[Partial]:
        """Yield the matches of items from the i-th on. The operator before the group leads to its first
        event.
        """
        if i == len(node.items):
            yield m
            return
        operator = node.operators[i - 1] if i else entry.operator
        reached = entry if len(m.events) == len(begin.events) else Entry(operator)
        for t in self._element(node.items[i], m, reached, operator):
            yield from self._chain(node, i + 1, begin, t, entry)

    def _iterate(
        self, node: Kleene, count: int, m: Partial, entry: Entry, operator: Strategy | None
    ) -> Iterator[Partial]:
        more, enough = (1, 0) if node.reluctant else (0, 1)
        for done in self._element(node.element, m, entry, operator):
            goes_on = self._goes_on(node, count, m, done)
            decides = count >= node.minimum and (node.maximum is None or count < node.maximum)
            if count >= node.minimum:
                left = self._leave(done, node)
                if left.rows:
                    yield replace(left, key=(*left.key, enough)) if decides else left
            if goes_on:
                again = self._step(done, Again(node.id, node.maximum))
                again = replace(again, rows=self._context.again(done.rows, node.id))
                if decides:
                    again = replace(again, key=(*again.key, more))
                yield from self._iterate(node, count + 1, again, Entry(node.strategy), node.strategy)

    def _goes_on(self, node: Kleene, count: int, before: Partial, after: Partial) -> bool:
        """Return whether there may be another iteration."""
        return len(after.events) > len(before.events) and (node.maximum is None or count < node.maximum)

    def _leave(self, m: Partial, node: Kleene) -> Partial:
        inside = m.inside[:-1]
        rows = self._context.leave(m.rows, node.id, inside)
        return replace(self._step(m, Leave(node.id, node.minimum, inside)), rows=rows, inside=inside)

    @staticmethod
    def _step(m: Partial, step: Enter | Again | Leave | Join) -> Partial:
        """Record a step in the open marks: it will be repeated when they are decided."""
        return replace(m, marks=tuple(replace(mark, steps=(*mark.steps, step)) for mark in m.marks))

    # --- several events --------------------------------------------------------------------------

    def _unit(self, unit: Node, m: Partial) -> Iterator[Partial]:
        """Extend ``m`` by an event of its pool that is relevant for a GPM, or simultaneous ones
        for an ``&``.
        """
        match unit:
            case Atom():
                yield from self._atom(unit, m)
            case Either(operands=operands):
                for i, operand in enumerate(operands):
                    yield from self._unit(operand, replace(m, key=(*m.key, unit.place(i))))
            case Both(operands=operands):
                marked = replace(m, rows=self._context.mark(m.rows), key=())
                for parts in itertools.product(*(list(self._unit(o, marked)) for o in operands)):
                    added = [choice for part in parts for choice in part.events[len(m.events) :]]
                    if len({event.time for _, event in added}) == 1:
                        rows = self._joined(parts, unit, m)
                        if rows:
                            step = tuple(itertools.chain.from_iterable(part.key for part in parts))
                            events = (*m.events, *dict.fromkeys(added))
                            yield replace(m, events=events, rows=rows, key=(*m.key, step))
            case _:
                raise TypeError(f"{type(unit).__name__} is not matched at one time")

    def _any_order(self, node: AnyOrder, m: Partial, entry: Entry) -> Iterator[Partial]:
        """Yield one match of each operand, of distinct events, each under its own operators.

        They are first found loosely; then each must be a match in the context of all the others, since the
        filters of one may need variables of another, in any order of events.
        """
        rows = self._context.mark(m.rows)
        marked = replace(m, rows=rows, marks=(), leading=(), starts=None, key=())
        free = replace(marked, loose=True)
        operands = [list(self._element(operand, free, FREE, None)) for operand in node.operands]
        for parts in itertools.product(*operands):
            added = [choice for part in parts for choice in part.events[len(m.events) :]]
            new = [event for _, event in added]
            if not new or not self._apart(new):
                continue
            starts = tuple(itertools.chain.from_iterable(part.starts or () for part in parts))
            if not self._admits(m, new, entry, starts + entry.beside):
                continue
            strictly = self._strictly(m, new)
            for given in self._in_context(node, marked, parts) if strictly else [parts]:
                rows = self._rows_of(node, m, given, strictly)
                if rows:
                    yield self._together(m, given, rows, starts + entry.beside)

    def _in_context(
        self, node: AnyOrder, marked: Partial, parts: tuple[Partial, ...]
    ) -> Iterator[tuple[Partial, ...]]:
        """Yield the ways in which each operand matches the same events, given the others."""
        strict = []
        for i, (operand, part) in enumerate(zip(node.operands, parts, strict=True)):
            others = self._context.compatible([p.rows for j, p in enumerate(parts) if j != i])
            given = replace(marked, rows=others)
            found = self._element(operand, given, FREE, None)
            strict.append([p for p in found if p.events == part.events and p.key == part.key])
        return itertools.product(*strict)

    def _together(self, m: Partial, parts: Sequence[Partial], rows: Rows, starts: Start) -> Partial:
        """Return the match of an ``ALL`` that consists of these matches of its operands."""
        events = [part.events[len(m.events) :] for part in parts]
        marks = []
        for i, part in enumerate(parts):
            rest = tuple(choice for j, others in enumerate(events) if j != i for choice in others)
            join = Join(rest, rows)
            marks += [replace(mark, steps=(*mark.steps, join)) for mark in part.marks]
        return replace(
            m,
            events=(*m.events, *itertools.chain.from_iterable(events)),
            rows=rows,
            marks=tuple(marks),
            leading=m.leading + tuple(itertools.chain.from_iterable(part.leading for part in parts)),
            starts=starts if m.starts is None else m.starts,
            key=m.key + _interleaved(parts),
        )

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

        ``starts``: the elements that ``;`` must not skip.
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
        """Return the units an element may begin with, for each choice of its optional parts; () if it has no
        event then.
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
        """Return whether the element of a leading mark was there before the match's beginning."""
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
        """Return whether a mark's element is there at the match's end."""
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
        """Return whether one of some events is relevant for a negated element, in the context of the match
        around it.

        An event is relevant for a group if it is relevant for one of the group's GPMs, or for a conjunction
        as a whole.
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
        """Return whether there is an X between a match and the next element. With the X, the next element
        must choose the same events for the same GPMs.
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
        """Yield the matches of the X of an ``X?`` that was left out."""
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


def _interleaved(parts: Sequence[Partial]) -> tuple[object, ...]:
    """Return the choices of an ``ALL``: its steps in time order, ties by operand.

    A step is an event, or the events of an ``&``, and the decisions after it, up to the next step of its
    operand.
    """
    steps = []
    for operand, part in enumerate(parts):
        at = [i for i, token in enumerate(part.key) if isinstance(token, tuple)]
        begins = [0, *(i for i in at[1:])]
        for i, begin, end in zip(at, begins, [*at[1:], len(part.key)], strict=True):
            steps.append((_earliest(part.key[i]), operand, part.key[begin:end]))
    steps.sort(key=lambda step: step[:2])
    return tuple(itertools.chain.from_iterable((order, operand, *tokens) for order, operand, tokens in steps))


def _earliest(step: Any) -> Order:
    """Return the place of a step's event, or of the first event of an ``&``."""
    inner = [_earliest(part) for part in step if isinstance(part, tuple)]
    return min(inner) if inner else step

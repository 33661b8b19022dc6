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
)
from spaseq.language.syntax import Strategy
from spaseq.matching.context import Context, Order, Rows
from spaseq.matching.model import Found, StreamWindow
from spaseq.matching.search.conditions import (
    FREE,
    Conditions,
    Entry,
    Events,
    Join,
    Leading,
    Mark,
    Partial,
    Start,
)


def found_of(m: Partial) -> Found:
    """Return a complete match, its events in order."""
    return Found(tuple(sorted(m.events, key=lambda choice: choice[1].position)), m.rows)


class SequenceSearch(Conditions):
    """Tries everything: ``partials`` are the matches among some events, unless ``broken``."""

    def __init__(
        self, pattern: SequencePattern, context: Context, window: StreamWindow, events: Events
    ) -> None:
        super().__init__(context, window, events)
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
        """Record a step since the marks, for their decision."""
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
        """Return an ``ALL`` of these matches of its operands."""
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
    """Return the time of a step: of its event, or of an ``&`` the first one."""
    inner = [_earliest(part) for part in step if isinstance(part, tuple)]
    return min(inner) if inner else step

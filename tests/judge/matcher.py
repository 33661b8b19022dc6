"""The second judge: all matches of a query among a few events, straight from the semantics page.

It shares no code with the engine. It walks through the sequence with a partial match in hand, tries every
event for every name, and asks each condition by looking at all events again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.judge.pattern import (
    AllOf,
    And,
    Either,
    Event,
    In,
    Name,
    No,
    Node,
    Opt,
    Or,
    Query,
    Seq,
    Times,
)
from tests.judge.scope import names
from tests.judge.solutions import Kept, Solutions, popped, unique, units, whole
from tests.judge.state import Entry, Leading, Mark, Match, Row, State, Window, follow


class Matcher(Solutions):
    """Matches of one alternative of a query's sequence in one partition."""

    def __init__(self, query: Query, root: Node, events: Sequence[Event], window: Window) -> None:
        super().__init__(query, root)
        self.root, self.events, self.window = root, events, window
        self.skip = query.skip is not None

    def matches(self) -> Iterator[Match]:
        """Every complete match, as often as it is derived."""
        for s in self.element(self.root, State((), (Row({}, {}),)), Entry(None), None):
            rows = tuple(r for r in s.rows if all(self.keeps(f, r, ()) for f in self.query.where))
            if s.events and rows and self.lasting(replace(s, rows=rows)):
                yield Match(frozenset(s.events), rows, s.key)

    def lasting(self, s: State) -> bool:
        """Whether what stands at the beginning and the end of a match lets it be."""
        for leading in s.leading:
            mark = leading.mark
            seen = [e for e in self.events if self.window.sees(e, s.chosen)]
            if mark.negation:
                new = leading.after.chosen[len(leading.before.events) :]
                barred = [e for e in seen if follow([e], new)]
                if leading.op == ",":
                    barred = [
                        e
                        for e in barred
                        if not any(follow([e], [h]) and follow([h], new) for h in self.events)
                    ]
                if mark.limit is not None:
                    barred = [e for e in barred if min(n.time for n in new) - e.time <= mark.limit]
                if self.barred(mark, barred, leading.after):
                    return False
            elif self.could(mark, leading.op, leading.element, leading.before, leading.after, seen):
                return False
        for mark in s.marks:
            seen = [e for e in self.events if self.window.sees(e, s.chosen)]
            if mark.negation:
                if self.barred(mark, self.after(mark, seen), s):
                    return False
            else:
                for t in self.element(mark.node, replace(mark.at, marks=()), mark.entry, None):
                    if len(t.events) > len(mark.at.events) and all(e in seen for e in t.chosen):
                        rows = self.replay(t, mark.steps).rows
                        if any(all(self.keeps(f, r, ()) for f in self.query.where) for r in rows):
                            return False
        return True

    # --- elements ---------------------------------------------------------------------------------

    def element(self, node: Node, s: State, entry: Entry, op: str | None) -> Iterator[State]:
        """An element as a whole, which decides the marks before it; ``op`` stands right before it."""
        for t in self.node(node, replace(s, marks=()), entry):
            if len(t.events) == len(s.events):
                yield replace(t, marks=s.marks + t.marks)
                continue
            if s.deaf is None:
                if not all(self.agrees(m, op, node, s, t) for m in s.marks if m.at.events):
                    continue
                assert op is not None or not s.marks
                leading = tuple(Leading(m, op or "", node, s, t) for m in s.marks if not m.at.events)
                t = replace(t, leading=t.leading + leading)
            yield t

    def agrees(self, m: Mark, op: str | None, element: Node, before: State, after: State) -> bool:
        """Whether what is absent between a match and its next element is absent."""
        assert op is not None
        if m.negation:
            new = after.chosen[len(before.events) :]
            gap = [e for e in self.events if follow([e], new)]
            return not self.barred(m, self.after(m, gap), after)
        return not self.could(m, op, element, before, after, self.events)

    def after(self, m: Mark, gap: Sequence[Event]) -> list[Event]:
        """The events of a gap that a negation looks at."""
        before = m.at.chosen
        found = [e for e in gap if follow(before, [e])]
        if m.entry.op == ",":
            found = [
                e for e in found if not any(follow(before, [h]) and follow([h], [e]) for h in self.events)
            ]
        if m.limit is not None:
            found = [e for e in found if e.time - max(b.time for b in before) <= m.limit]
        return found

    def could(
        self, m: Mark, op: str, element: Node, before: State, after: State, seen: Sequence[Event]
    ) -> bool:
        """Whether there is an X between the match and the element chosen."""
        wanted = after.events[len(before.events) :]
        for t in self.element(m.node, replace(m.at, marks=()), m.entry, None):
            added = t.chosen[len(m.at.events) :]
            if not added or not all(e in seen for e in added) or not follow(added, (e for _, e in wanted)):
                continue
            t = self.replay(replace(t, marks=()), m.steps)
            for u in self.element(element, t, Entry(op), op):
                if u.events[len(t.events) :] == wanted:
                    return True
        return False

    def replay(self, s: State, steps: Sequence[tuple[str, object]]) -> State:
        for step, what in steps:
            if step == "enter":
                s = self.enter(s, what)
            elif step == "again":
                s = self.again(s, what)
            elif step == "leave":
                s = self.leave(s, what)
            else:
                assert isinstance(what, State)
                rows = tuple(r for r in (self.merged(a, b) for a in s.rows for b in what.rows) if r)
                s = replace(s, events=s.events + what.events, rows=rows)
        return s

    def barred(self, m: Mark, gap: Sequence[Event], after: State) -> bool:
        """Whether one of some events is relevant for a negated element, joined with what comes after it."""
        ended = {k for step, k in m.steps if step in ("again", "leave") for k in self.within(k)}
        # A Kleene on a side that is not taken binds nothing.
        bound = (self.own.get(k, frozenset()) for k in ended)
        apart = frozenset().union(*bound) | {self.mine(k) for k in ended}
        stale = {*ended, *(Kept.of(k) for k in ended)}
        contexts = []
        for r in m.at.rows:
            for t in after.rows:
                if all(r.values.get(v, x) == x for v, x in t.values.items() if v not in apart):
                    later = {v: x for v, x in t.values.items() if v not in apart}
                    past = {k: i for k, i in t.past.items() if k not in stale}
                    contexts.append(Row({**later, **r.values}, {**past, **r.past}))
        state = State((), tuple(contexts), m.at.inside)
        for unit in units(m.node):
            if m.free:
                loose = (
                    replace(r, values={v: x for v, x in r.values.items() if v not in m.free})
                    for r in contexts
                )
                state = replace(state, rows=tuple(loose))
            if any(True for _ in self.unit(unit, state, gap)):
                return True
        return False

    def free(self, node: No) -> frozenset[str]:
        """The variables of a negation that join nothing: those of the Kleene beside it."""
        kleene = self.exempt.get(node)
        return self.own[kleene] if kleene is not None else frozenset()

    def node(self, node: Node, s: State, entry: Entry) -> Iterator[State]:
        match node:
            case Name() | And():
                first = not s.starts
                for t in self.unit(node, s, self.events):
                    new = t.chosen[len(s.events) :]
                    if self.admits(s, new, entry, ((node, s),)):
                        yield replace(t, starts=((node, s), *entry.beside)) if first else t
            case Seq():
                yield from self.chain(node, 0, s, s, entry)
            case Or(operands=operands, take=take):
                for i, operand in enumerate(operands):
                    if take is None or take == i:
                        others = tuple((o, s) for o in operands if o is not operand)
                        way = replace(s, key=(*s.key, i))
                        yield from self.node(operand, way, replace(entry, beside=entry.beside + others))
            case Either(readings=readings):
                for reading in readings:
                    yield from self.node(reading, s, entry)
            case Times():
                yield from self.repeat(node, s, entry)
            case Opt(element=element, reluctant=reluctant):
                for t in self.node(element, replace(s, key=(*s.key, int(reluctant))), entry):
                    yield t
                absent = replace(s, key=(*s.key, int(not reluctant)))
                if not self.skip:
                    absent = replace(
                        absent, marks=(*s.marks, Mark(Either(node.readings or (element,)), False, s, entry))
                    )
                yield absent
            case No(element=element):
                yield replace(s, marks=(*s.marks, Mark(element, True, s, entry, free=self.free(node))))
            case In(element=No() as no, limit=limit, unit=unit):
                limit = self.query.length(limit, unit)
                mark = Mark(no.element, True, s, entry, limit, free=self.free(no))
                yield replace(s, marks=(*s.marks, mark))
            case In(element=element, limit=limit, unit=unit):
                limit = self.query.length(limit, unit)
                for t in self.node(element, s, entry):
                    times = [e.time for e in t.chosen[len(s.events) :]]
                    if not times or max(times) - min(times) <= limit:
                        yield t
            case AllOf():
                yield from self.any_order(node, s, entry)

    def chain(self, node: Seq, i: int, begin: State, s: State, entry: Entry) -> Iterator[State]:
        if i == len(node.items):
            yield s
            return
        op = node.ops[i - 1] if i else None
        reached = entry if len(s.events) == len(begin.events) or op is None else Entry(op)
        for t in self.element(node.items[i], s, reached, op if i else entry.op):
            yield from self.chain(node, i + 1, begin, t, entry)

    def repeat(self, node: Times, s: State, entry: Entry) -> Iterator[State]:
        more, enough = (1, 0) if node.reluctant else (0, 1)
        if node.least == 0:
            yield replace(s, key=(*s.key, enough))
            s = replace(s, key=(*s.key, more))
        if node.most == 0:
            return
        yield from self.iterate(node, 1, self.enter(s, node), entry, entry.op)

    def iterate(self, node: Times, count: int, s: State, entry: Entry, op: str | None) -> Iterator[State]:
        more, enough = (1, 0) if node.reluctant else (0, 1)
        for t in self.element(node.element, s, entry, op):
            may_go = node.most is None or count < node.most
            may_leave = count >= node.least
            if may_leave:
                left = self.leave(t, node)
                if left.rows:
                    yield replace(left, key=(*left.key, enough)) if may_go else left
            if may_go and len(t.events) > len(s.events):
                again = self.again(t, node)
                if may_leave:
                    again = replace(again, key=(*again.key, more))
                yield from self.iterate(node, count + 1, again, Entry(node.op), node.op)

    # --- conditions -------------------------------------------------------------------------------

    def admits(
        self, s: State, new: Sequence[Event], entry: Entry, starts: Sequence[tuple[Node, State]]
    ) -> bool:
        """Whether a match goes on with these events."""
        before = s.chosen
        if not follow(before, new) or not self.window.together([*before, *new]):
            return False
        between = [g for g in self.events if follow(before, [g]) and follow([g], new)]
        if entry.op == ",":
            return not between
        if entry.op == ";" and s.deaf is None:
            if any(self.relevant(whole(unit), state, between) for unit, state in starts):
                return False
            return all(
                any(
                    not any(self.relevant(whole(unit), state, between) for unit, state in way)
                    for way in self.starts(node, state)
                )
                for node, state in entry.beside
            )
        return True

    def relevant(self, unit: Node, s: State, gap: Sequence[Event]) -> bool:
        return any(True for _ in self.unit(unit, s, gap))

    def starts(self, node: Node, s: State) -> list[tuple[tuple[Node, State], ...]]:
        """What an element may start with, by which of its optional parts are there; () is nothing."""
        match node:
            case Name() | And():
                return [((node, s),)]
            case Seq(items=items):
                ways: list[tuple[tuple[Node, State], ...]] = [()]
                for item in items:
                    new = self.starts(item, s)
                    ways = [w for w in ways if w] + (new if () in ways else [])
                return ways
            case Or(operands=operands) | AllOf(operands=operands):
                return [sum(p, ()) for p in itertools.product(*(self.starts(o, s) for o in operands))]
            case Either(readings=readings):
                return self.starts(readings[0], s)
            case Times(element=element, least=least):
                return [()] * (least == 0) + self.starts(element, self.enter(s, node))
            case Opt(element=element):
                return [(), *self.starts(element, s)]
            case No():
                return [()]
            case In(element=element):
                return self.starts(element, s)

    # --- ALL --------------------------------------------------------------------------------------

    def any_order(self, node: AllOf, s: State, entry: Entry) -> Iterator[State]:
        """Matches of the operands found apart, then each asked again with the values of the others."""
        mark = " all"
        marked = tuple(
            replace(r, values={**r.values, mark: (*r.values.get(mark, ()), i)})
            for i, r in enumerate(s.rows)  # type: ignore[misc]
        )
        binds = [{v for n in names(o) for v in self.query.gpms[n.name].binds} for o in node.operands]
        loose = []
        for i, operand in enumerate(node.operands):
            deaf = frozenset().union(*(b for j, b in enumerate(binds) if j != i))
            begin = replace(
                s, rows=marked, marks=(), leading=(), key=(), starts=(), deaf=deaf | (s.deaf or frozenset())
            )
            loose.append(list(self.element(operand, begin, Entry(None), None)))
        n = len(s.events)
        for ways in itertools.product(*loose):
            added = [c for w in ways for c in w.events[n:]]
            new = [e for _, e in added]
            if not new or len(set(new)) < len(new):
                continue
            starts = [u for w in ways for u in w.starts]
            if not self.admits(s, new, entry, starts):
                continue
            options = []
            for i, (operand, way) in enumerate(zip(node.operands, ways, strict=True)):
                if s.deaf is not None:
                    options.append([way])
                    continue
                rows: list[Row] = list(marked)
                for j, other in enumerate(ways):
                    if j != i:
                        rows = [m for a in rows for b in other.rows if (m := self.merged(a, b))]
                begin = replace(s, rows=tuple(rows), marks=(), leading=(), key=(), starts=())
                options.append(
                    [
                        t
                        for t in self.element(operand, begin, Entry(None), None)
                        if t.events == way.events and t.key == way.key
                    ]
                )
            for given in itertools.product(*options):
                rows = list(given[0].rows)
                for other in given[1:]:
                    rows = [m for a in rows for b in other.rows if (m := self.merged(a, b))]
                rows = [replace(r, values=popped(r.values, mark)) for r in rows]
                rows = unique(rows)
                rows = self.early(rows, s.inside)
                if not rows:
                    continue
                marks = []
                for i, t in enumerate(given):
                    rest = tuple(c for j, g in enumerate(given) if j != i for c in g.events[n:])
                    others = State(rest, tuple(replace(r, values={**r.values}) for r in rows))
                    marks += [replace(m, steps=(*m.steps, ("join", others))) for m in t.marks]
                yield replace(
                    s,
                    events=s.events + tuple(added),
                    rows=tuple(rows),
                    marks=tuple(marks),
                    leading=s.leading + tuple(x for t in given for x in t.leading),
                    key=s.key + _interleaved(given),
                    starts=tuple(starts),
                )


def _interleaved(parts: Sequence[State]) -> tuple[object, ...]:
    """The choices of an ALL: its steps in time order, ties by operand.

    What an operand decides behind an event, before its next one, belongs to the step of that event. The
    events of an & are one step, at the first of them.
    """
    steps: list[tuple[tuple[object, int], list[object]]] = []
    for operand, part in enumerate(parts):
        ahead: list[object] = []
        first = True
        for token in part.key:
            if isinstance(token, tuple):
                several = [t for t in token if isinstance(t, tuple)]
                steps.append(((min(several) if several else token, operand), [*ahead, token]))
                ahead, first = [], False
            elif first:
                ahead.append(token)
            else:
                steps[-1][1].append(token)
    steps.sort(key=lambda step: step[0])  # type: ignore[arg-type,return-value]
    return tuple(t for (order, operand), tokens in steps for t in (order, operand, *tokens))

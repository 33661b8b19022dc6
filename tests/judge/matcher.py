"""The second judge: all matches of a query among a few events, straight from the semantics page.

It shares no code with the engine. It walks through the sequence with a partial match in hand, tries every
event for every name, and asks each condition by looking at all events again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tests.judge.pattern import (
    AllOf,
    And,
    Either,
    Env,
    Event,
    Expr,
    In,
    Name,
    No,
    Node,
    Opt,
    Or,
    Query,
    Seq,
    Times,
    holds,
    inside,
    mentioned,
    parts,
)
from tests.judge.scope import alternatives, beside, groups, names

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


class Matcher:
    """Matches of one alternative of a query's sequence in one partition."""

    def __init__(self, query: Query, root: Node, events: Sequence[Event], window: Window) -> None:
        self.query, self.root, self.events, self.window = query, root, events, window
        self.skip = query.skip is not None
        self.own = groups(root, query.gpms, frozenset(query.partition))
        self.exempt = beside(root)
        self.innermost: dict[str, Times] = {}
        for kleene, own in self.own.items():  # outer ones come first
            for v in own:
                assert isinstance(kleene, Times)
                self.innermost[v] = kleene

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
        apart = frozenset().union(*(self.own[k] for k in ended)) | {self.mine(k) for k in ended}
        stale = {*ended, *(_Kept.of(k) for k in ended)}
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

    def within(self, kleene: object) -> list[Node]:
        """A Kleene and those inside it."""
        out: list[Node] = []
        stack = [kleene]
        while stack:
            node = stack.pop()
            if isinstance(node, Times):
                out.append(node)
            stack.extend(inside(node))  # type: ignore[arg-type]
        return out

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

    # --- solutions --------------------------------------------------------------------------------

    def unit(self, unit: Node, s: State, events: Sequence[Event]) -> Iterator[State]:
        """One event that is relevant for a GPM, or simultaneous ones for an ``&``."""
        for key, wanted in simple(unit):
            choices: list[tuple[tuple[str, Event], ...]] = [()]
            for name in wanted:
                choices = [
                    (*c, (name, e))
                    for c in choices
                    for e in events
                    if e.solutions.get(name) and all(e.time == f.time for _, f in c)
                ]
            for choice in choices:
                rows = list(s.rows)
                for name, e in choice:
                    rows = [
                        replace(r, values={**r.values, **solution})
                        for r in rows
                        for solution in e.solutions[name]
                        if all(r.values.get(v, x) == x for v, x in solution.items())
                    ]
                filters = [f for name in wanted for f in self.query.gpms[name].filters]
                if s.deaf is not None:
                    filters = [f for f in filters if s.deaf.isdisjoint(mentioned(f))]
                rows = [r for r in rows if all(self.keeps(f, r, s.inside) for f in filters)]
                rows = self.early(rows, s.inside)
                if rows:
                    order = tuple(o for n, (_, e) in zip(key, choice, strict=True) for o in (*n, e.order))
                    new = tuple(dict.fromkeys(choice))
                    yield replace(s, events=s.events + new, rows=tuple(rows), key=s.key + order)

    def keeps(self, f: Expr, r: Row, now: Sequence[Node]) -> bool:
        def iterations(v: str) -> tuple[list[list[object]], bool] | None:
            kleene = self.innermost.get(v)
            if kleene is None or (kleene not in now and kleene not in r.past):
                return None
            found = [
                sorted((dict(solution).get(v) for solution in iteration), key=_rank)
                for iteration in r.past.get(kleene, ())
            ]
            if kleene in now:
                found.append([r.values.get(v)])
            return found, kleene in now

        return holds(f, Env(r.values, iterations))

    def early(self, rows: Sequence[Row], now: Sequence[Node]) -> list[Row]:
        """The rows that the filters of WHERE keep, so far as their variables are bound."""

        def due(f: Expr, r: Row) -> bool:
            for part in parts(f):
                for v in mentioned(part):
                    kleene = self.innermost.get(v)
                    if kleene in now or v not in r.values:
                        return False
            return True

        return [r for r in rows if all(not due(f, r) or self.keeps(f, r, now) for f in self.query.where)]

    def merged(self, left: Row, right: Row) -> Row | None:
        if any(left.values.get(v, x) != x for v, x in right.values.items()):
            return None
        return Row({**left.values, **right.values}, {**left.past, **right.past})

    # --- Kleenes ----------------------------------------------------------------------------------

    def mine(self, kleene: object) -> str:
        """A variable that no query has: which row it was that entered a Kleene."""
        return f" {id(kleene)}"

    def enter(self, s: State, kleene: object) -> State:
        assert isinstance(kleene, Times)
        rows = tuple(
            Row({**r.values, self.mine(kleene): i}, {k: p for k, p in r.past.items() if k is not kleene})
            for i, r in enumerate(s.rows)
        )
        return replace(s, rows=rows, inside=(*s.inside, kleene), marks=_then(s, "enter", kleene))

    def again(self, s: State, kleene: object) -> State:
        """An iteration ends: its solutions go to the past."""
        assert isinstance(kleene, Times)
        own = self.own[kleene]
        inner = [k for k in self.within(kleene) if k is not kleene]
        heads: dict[object, tuple[Row, list[tuple[tuple[str, object], ...]], list[Row]]] = {}
        for r in s.rows:
            shared = {v: x for v, x in r.values.items() if v not in own}
            outer = {k: p for k, p in r.past.items() if k not in inner}
            # The past of the Kleenes around is that of the row which entered this one.
            found = heads.setdefault(
                (frozenset(shared.items()), frozenset(outer.items())), (Row(shared, outer), [], [])
            )
            found[1].append(tuple(sorted((v, x) for v, x in r.values.items() if v in own)))
            found[2].append(r)
        rows = []
        for head, solutions, members in heads.values():
            past = {**head.past, kleene: (*head.past.get(kleene, ()), tuple(solutions))}
            for k in inner:
                # What inner Kleenes did in all iterations of this one, kept under another name meanwhile.
                histories = list(dict.fromkeys(m.past[k] for m in members if k in m.past))
                past[_Kept.of(k)] = head.past.get(_Kept.of(k), ()) + sum(histories, ())  # type: ignore[index]
            rows.append(Row(head.values, past))
        return replace(s, rows=tuple(rows), marks=_then(s, "again", kleene))

    def leave(self, s: State, kleene: object) -> State:
        assert isinstance(kleene, Times)
        inner = [k for k in self.within(kleene) if k is not kleene]
        rows = []
        for r in self.again(s, kleene).rows:
            past = dict(r.past)
            for k in inner:
                past[k] = past.pop(_Kept.of(k), ())  # type: ignore[arg-type]
            values = {v: x for v, x in r.values.items() if v != self.mine(kleene)}
            for iteration in past[kleene]:
                rows += [Row({**values, **dict(solution)}, past) for solution in iteration]
        now = s.inside[:-1]
        return replace(s, rows=tuple(self.early(rows, now)), inside=now, marks=_then(s, "leave", kleene))

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
            deaf = frozenset().union(*(b for j, b in enumerate(binds) if j != i)) - binds[i]
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
                rows = [replace(r, values=_popped(r.values, mark)) for r in rows]
                rows = _unique(rows)
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


class _Kept:
    """Stands for an inner Kleene whose past of all outer iterations is kept."""

    _known: ClassVar[dict[object, _Kept]] = {}

    @classmethod
    def of(cls, kleene: object) -> _Kept:
        return cls._known.setdefault(kleene, cls())


def _unique(rows: list[Row]) -> list[Row]:
    return list({(frozenset(r.values.items()), frozenset(r.past.items())): r for r in rows}.values())


def _popped(values: Values, mark: str) -> Values:
    stack = values[mark]
    assert isinstance(stack, tuple)
    rest = {v: x for v, x in values.items() if v != mark}
    return {**rest, mark: stack[:-1]} if len(stack) > 1 else rest


def _then(s: State, step: str, kleene: object) -> tuple[Mark, ...]:
    return tuple(replace(m, steps=(*m.steps, (step, kleene))) for m in s.marks)


def _rank(v: object) -> object:
    return (v is not None, v) if v is not None else (False,)


def _interleaved(parts: Sequence[State]) -> tuple[object, ...]:
    """The choices of an ALL: its steps in time order, ties by operand.

    What an operand decides behind an event, before its next one, belongs to the step of that event.
    """
    steps: list[tuple[tuple[object, int], list[object]]] = []
    for operand, part in enumerate(parts):
        ahead: list[object] = []
        first = True
        for token in part.key:
            if isinstance(token, tuple):
                steps.append(((token, operand), [*ahead, token]))
                ahead, first = [], False
            elif first:
                ahead.append(token)
            else:
                steps[-1][1].append(token)
    steps.sort(key=lambda step: step[0])  # type: ignore[arg-type,return-value]
    return tuple(t for (order, operand), tokens in steps for t in (order, operand, *tokens))


def whole(unit: Node) -> Node:
    """A conjunction with all sides of its ``|``s: nothing relevant for any of them is skipped."""
    match unit:
        case And(operands=operands):
            return And(tuple(map(whole, operands)))
        case Or(operands=operands):
            return Or(tuple(map(whole, operands)))
        case _:
            return unit


def units(node: Node) -> Iterator[Node]:
    """What an event can be relevant for inside a negated element."""
    if isinstance(node, Name | And):
        yield node
    else:
        for part in inside(node):
            yield from units(part)


def simple(unit: Node) -> Iterator[tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]]:
    """The names that are to hold at one time, by choice of a side of each ``|``; the choices before each."""
    match unit:
        case Name(name=name):
            yield ((),), (name,)
        case And(operands=operands):
            for ways in itertools.product(*(list(simple(o)) for o in operands)):
                yield sum((w[0] for w in ways), ()), sum((w[1] for w in ways), ())
        case Or(operands=operands, take=take):
            for i, operand in enumerate(operands):
                if take is None or take == i:
                    for keys, wanted in simple(operand):
                        yield ((i, *keys[0]), *keys[1:]), wanted
        case _:
            raise TypeError(unit)


# --- a whole query --------------------------------------------------------------------------------


def solve(query: Query, events: Sequence[Event]) -> list[tuple[tuple[object, ...], Match]]:
    """The matches of a query among events, with their partitions; EMIT, CONSUME and SKIP applied."""
    everything = sorted(events, key=lambda e: e.order)
    window = Window(query, everything)
    out = []
    for key in _keys(query, everything):
        part = everything if not query.partition else [p for e in everything if (p := _part(query, e, key))]
        found: dict[object, Match] = {}
        for root in alternatives(query.root):
            for m in Matcher(query, root, part, window).matches():
                same = found.get(m.events)
                if same is None:
                    found[m.events] = m
                elif query.skip is not None:
                    found[m.events] = min(m, same, key=lambda m: m.key)
                else:
                    found[m.events] = replace(m, rows=same.rows + m.rows)
        kept = _skipped(query, list(found.values())) if query.skip else _emitted(query, list(found.values()))
        out += [(key, m) for m in kept]
    return out


def _keys(query: Query, events: Sequence[Event]) -> list[tuple[object, ...]]:
    if not query.partition:
        return [()]
    found = {
        tuple(s[v] for v in query.partition)
        for e in events
        for solutions in e.unfiltered.values()
        for s in solutions
        if all(v in s for v in query.partition)
    }
    return sorted(found)  # type: ignore[type-var]


def _part(query: Query, e: Event, key: tuple[object, ...]) -> Event | None:
    """An event as a partition sees it; None if it is not of it."""
    wanted = dict(zip(query.partition, key, strict=True))

    def of(solutions: list[Values]) -> list[Values]:
        return [s for s in solutions if all(s.get(v, x) == x for v, x in wanted.items())]

    if not any(all(s.get(v) == x for v, x in wanted.items()) for ss in e.unfiltered.values() for s in ss):
        return None
    return replace(e, solutions={g: kept for g, ss in e.solutions.items() if (kept := of(ss))})


def _emitted(query: Query, found: list[Match]) -> list[Match]:
    out: list[Match] = []
    dropped: Event | None = None
    for last in sorted({m.last for m in found}, key=lambda e: e.order):
        here = [m for m in found if m.last == last]
        if query.consume and dropped is not None:
            here = [m for m in here if m.first.order > dropped.order]
        sets = [frozenset(e for _, e in m.events) for m in here]
        if query.emit == "MAX":
            here = [m for m, own in zip(here, sets, strict=True) if not any(own < o for o in sets)]
        elif query.emit in ("NEXT", "LAST"):
            here = [m for m, own in zip(here, sets, strict=True) if not _beaten(query.emit, own, sets)]
        out += here
        if here:
            dropped = last
    return out


def _beaten(emit: str, own: frozenset[Event], sets: Sequence[frozenset[Event]]) -> bool:
    pick = min if emit == "NEXT" else max
    return any(pick(own ^ other, key=lambda e: e.order) in other for other in sets if other != own)


def _skipped(query: Query, found: list[Match]) -> list[Match]:
    assert query.skip is not None
    out: list[Match] = []
    resume = None
    for first in sorted({m.first for m in found}, key=lambda e: e.order):
        if resume is not None and (first.order < resume[0] or resume == (first.order, True)):
            continue
        best = min((m for m in found if m.first == first), key=lambda m: m.key)
        out.append(best)
        # The place from which on matches may begin, and whether after it.
        mode = query.skip.mode
        if mode == "PAST":
            resume = (best.last.order, True)
        else:
            at = [e for g, e in best.events if g == query.skip.gpm] if mode in ("FIRST", "LAST") else []
            where = (min if mode == "FIRST" else max)(at, key=lambda e: e.order) if at else first
            resume = (where.order, where == first)
    return out

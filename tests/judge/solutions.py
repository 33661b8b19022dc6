"""The solutions of a match so far: joins, filters, and what an iteration of a Kleene makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from tests.judge.expressions import Agg, Env, Expr, holds, mentioned, parts
from tests.judge.pattern import And, Event, Name, Node, Or, Query, Times, inside
from tests.judge.scope import beside, groups, names, over
from tests.judge.state import Mark, Row, State, Values


class Solutions:
    """What one alternative of a query's sequence does to rows."""

    def __init__(self, query: Query, root: Node) -> None:
        self.query = query
        self.own = groups(root, query.gpms, frozenset(query.partition))
        self.exempt = beside(root)
        self.over, self.repeated = over(root, query.gpms)
        self.innermost: dict[str, Times] = {}
        for kleene, own in self.own.items():  # outer ones come first
            for v in own:
                assert isinstance(kleene, Times)
                self.innermost[v] = kleene

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
                over = self.over[next(names(unit))]
                rows = [r for r in rows if all(self.keeps(f, r, s.inside, over) for f in filters)]
                rows = self.early(rows, s.inside)
                if rows:
                    order = tuple(o for n, (_, e) in zip(key, choice, strict=True) for o in (*n, e.order))
                    new = tuple(dict.fromkeys(choice))
                    yield replace(
                        s,
                        events=s.events + new,
                        rows=tuple(rows),
                        key=s.key + (order if len(choice) == 1 else (order,)),
                    )

    def keeps(self, f: Expr, r: Row, now: Sequence[Node], over: frozenset[str] | None = None) -> bool:
        """``over``: the variables of Kleenes before this place; all if the match is complete."""
        left_out = self.repeated if over is None else over

        def iterations(v: str) -> tuple[list[list[Values]], bool] | None:
            kleene = self.innermost.get(v)
            if kleene is None or (kleene not in now and kleene not in r.past and v not in left_out):
                return None
            shared = {v: x for v, x in r.values.items() if v not in self.own[kleene]}
            found = [
                [{**shared, **dict(solution)} for solution in iteration]
                for iteration in r.past.get(kleene, ())
            ]
            if kleene in now:
                found.append([r.values])
            return found, kleene in now

        return holds(f, Env(r.values, iterations))

    def early(self, rows: Sequence[Row], now: Sequence[Node]) -> list[Row]:
        """The rows that the filters of WHERE keep, so far as their variables are bound."""

        def due(f: Expr, r: Row) -> bool:
            for part in parts(f):
                for v in mentioned(part):
                    kleene = self.innermost.get(v)
                    if kleene in now:
                        return False
                    if v not in r.values and not (isinstance(part, Agg) and kleene in r.past):
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
                past[Kept.of(k)] = head.past.get(Kept.of(k), ()) + sum(histories, ())  # type: ignore[index]
            rows.append(Row(head.values, past))
        return replace(s, rows=tuple(rows), marks=_then(s, "again", kleene))

    def leave(self, s: State, kleene: object) -> State:
        assert isinstance(kleene, Times)
        inner = [k for k in self.within(kleene) if k is not kleene]
        rows = []
        for r in self.again(s, kleene).rows:
            past = dict(r.past)
            for k in inner:
                past[k] = past.pop(Kept.of(k), ())  # type: ignore[arg-type]
            values = {v: x for v, x in r.values.items() if v != self.mine(kleene)}
            for iteration in past[kleene]:
                rows += [Row({**values, **dict(solution)}, past) for solution in iteration]
        now = s.inside[:-1]
        return replace(s, rows=tuple(self.early(rows, now)), inside=now, marks=_then(s, "leave", kleene))


class Kept:
    """Stands for an inner Kleene whose past of all outer iterations is kept."""

    _known: ClassVar[dict[object, Kept]] = {}

    @classmethod
    def of(cls, kleene: object) -> Kept:
        return cls._known.setdefault(kleene, cls())


def unique(rows: list[Row]) -> list[Row]:
    return list({(frozenset(r.values.items()), frozenset(r.past.items())): r for r in rows}.values())


def popped(values: Values, mark: str) -> Values:
    stack = values[mark]
    assert isinstance(stack, tuple)
    rest = {v: x for v, x in values.items() if v != mark}
    return {**rest, mark: stack[:-1]} if len(stack) > 1 else rest


def _then(s: State, step: str, kleene: object) -> tuple[Mark, ...]:
    return tuple(replace(m, steps=(*m.steps, (step, kleene))) for m in s.marks)


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

"""Random queries of the whole language, as the second judge speaks it, and random streams for them."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from tests.judge.expressions import (
    Agg,
    Bin,
    Bound,
    Coalesce,
    Env,
    Expr,
    Num,
    Prev,
    V,
    holds,
    mentioned,
    parts,
)
from tests.judge.pattern import (
    AllOf,
    And,
    Event,
    Gpm,
    In,
    Name,
    No,
    Node,
    Opt,
    Or,
    Query,
    Seq,
    Skip,
    Times,
    inside,
)

#: Each value is written in one way, so that equal values are equal terms.
VALUES = [Decimal(text) for text in ("0", "1", "2", "3", "1.5", "2.25")]
TYPES = "abc"
STREAMS = ("S1", "S2")


@dataclass(frozen=True)
class Case:
    """A query, its events as both judges take them, and how each is written: stream, Turtle, time."""

    query: Query
    events: tuple[Event, ...]
    written: tuple[tuple[str, str, int], ...]

    def __str__(self) -> str:
        lines = (f"{stream}@{time}  {text.partition(' . ')[2]}" for stream, text, time in self.written)
        return "\n".join((self.query.text, *lines))


class _Sequences:
    """Sequences of few GPMs; ``skip``: quantifiers may be reluctant, and ALL stays out.

    With an ``operator`` they have no other, and nothing in them is optional, negated or bounded in time.
    """

    def __init__(
        self, rng: random.Random, most: int, skip: bool, instants: bool, operator: str | None
    ) -> None:
        self._operator = operator
        self._rng = rng
        self._most = most
        self._skip = skip
        self._instants = instants
        self._names: list[str] = []
        self._all = rng.random() < 0.15

    def chain(self, depth: int, least: int = 1) -> Node:
        """A sequence that needs an event."""
        rng = self._rng
        count = rng.choice([0, 1, 1, 2, 2] if depth > 1 else [0, 0, 1])
        items = [self._element(depth)]
        for _ in range(max(count, least - 1)):
            items.insert(rng.randint(0, len(items)), self._item(depth))
        ops = tuple(self._operator or rng.choice(",,;;;:") for _ in items[1:])
        return Seq(tuple(items), ops) if ops else items[0]

    def _item(self, depth: int) -> Node:
        if self._operator is not None:
            return self._element(depth)
        kind = self._rng.random()
        if kind < 0.22:
            negated = self._negated()
            return self._bounded(No(negated)) if self._rng.random() < 0.25 else No(negated)
        if kind < 0.40:
            optional = Opt(self._element(depth - 1), self._reluctant())
            return self._bounded(optional) if self._rng.random() < 0.15 else optional
        if kind < 0.46:
            reluctant = self._reluctant()
            repeated = Times(self._element(depth - 1), 1, None, self._rng.choice(",;:"), reluctant)
            return Opt(repeated, reluctant)
        if kind < 0.54:
            most = self._rng.choice([1, 1, 2, None])
            op = self._rng.choice(",;:")
            return Times(self._element(depth - 1), 0, most, op, self._reluctant())
        return self._element(depth)

    def _negated(self) -> Node:
        kind = self._rng.random()
        if kind < 0.1:
            return Or((self._name(), self._name()))
        if kind < 0.2:
            return And((self._name(), self._name()))
        if kind < 0.27:
            return Seq((self._name(), self._name()), (self._rng.choice(",;:"),))
        return self._name(0.3)

    def _element(self, depth: int) -> Node:
        """Something that needs an event."""
        rng = self._rng
        if len(self._names) >= self._most or depth < 0:
            return self._name()
        kind = rng.random()
        if kind < 0.26:
            element = self._name() if rng.random() < 0.6 else self.chain(depth - 1)
            least, most = rng.choice([(1, None), (1, None), (2, None), (1, 2), (2, 2), (1, 3)])
            op = self._operator or rng.choice(",;:")
            repeated = Times(element, least, most, op, self._reluctant())
            return self._bounded(repeated) if rng.random() < 0.15 else repeated
        if kind < 0.34:
            second: Node = self._name()
            if rng.random() < 0.3:
                second = Or((second, self._name()))
            return And((self._name(), second))
        if kind < 0.47 and depth > 0:
            return Or((self.chain(depth - 1), self.chain(depth - 1)))
        if kind < 0.56 and depth > 0:
            group = self.chain(depth - 1, 2)
            return self._bounded(group) if rng.random() < 0.4 else group
        if kind < 0.63 and depth > 0 and self._all:
            return AllOf((self._operand(), self._operand()))
        return self._name()

    def _operand(self) -> Node:
        return self.chain(0) if self._rng.random() < 0.5 else self._name()

    def _bounded(self, node: Node) -> Node:
        if self._operator is not None:
            return node
        limit = Fraction(self._rng.choice(["1", "2", "3", "0.5", "2.5", "4"]))
        return In(node, limit, "MICROSECONDS" if self._instants else "SECONDS")

    def _reluctant(self) -> bool:
        return self._skip and self._rng.random() < 0.3

    def _name(self, again: float = 0.12) -> Name:
        if self._names and (len(self._names) >= self._most or self._rng.random() < again):
            return Name(self._rng.choice(self._names))
        self._names.append("ABCDEFG"[len(self._names)])
        return Name(self._names[-1])


class _Filters:
    """Filters that may be allowed: the static checks have the last word."""

    def __init__(self, rng: random.Random, root: Node, binds: dict[str, tuple[str, ...]]) -> None:
        self._rng = rng
        self._binds = binds
        positive = sorted(set(_names(root, False)))
        self._seen = sorted({v for name in positive for v in binds[name]})
        self._groups = sorted({v for name in _names(root, False, kleene=True) for v in binds[name]})

    def condition(self, name: str | None) -> Expr:
        kind = self._rng.random()
        if kind < 0.15:
            return Bin(self._rng.choice(["&&", "||"]), self._comparison(name), self._comparison(name))
        if kind < 0.2:
            bound = Bound(self._rng.choice(self._seen), self._rng.random() < 0.5)
            return Bin("||", bound, self._comparison(name))
        return self._comparison(name)

    def _comparison(self, name: str | None) -> Expr:
        left: Expr = V(f"v{name}") if name else self._operand(name)
        op = self._rng.choice(["<", ">", "<=", ">=", "!=", "="])
        return Bin(op, left, self._operand(name))

    def _operand(self, name: str | None) -> Expr:
        rng = self._rng
        mine = [v for v in self._binds.get(name or "", ()) if v in self._groups]
        kind = rng.random()
        if kind < 0.2 and mine:
            prev: Expr = Prev(rng.choice(mine), rng.choice([1, 1, 2]))
            return Coalesce(prev, self._plain(name)) if rng.random() < 0.3 else prev
        if kind < 0.55 and self._groups:
            return self._aggregate(mine)
        if kind < 0.62:
            return Bin(rng.choice("+-*"), self._plain(name), Num(rng.choice(VALUES[:3])))
        return self._plain(name)

    def _aggregate(self, mine: list[str]) -> Expr:
        """``mine``: the group variables of the GPM that asks."""
        rng = self._rng
        before = bool(mine) and rng.random() < 0.25
        function = rng.choice(["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "LAST", "SAMPLE"])
        n = rng.choice([0, 0, 1, 2]) if function in ("FIRST", "LAST") else 0
        v = V(rng.choice(mine if before else self._groups))
        if rng.random() < 0.75:
            return Agg(function, v, n, before, function == "COUNT" and rng.random() < 0.2)
        prev = Prev(v.name, rng.choice([1, 1, 2]))
        of = rng.choice([Bin("-", v, prev), Coalesce(prev, v), Bin("*", v, Num(rng.choice(VALUES[:3])))])
        return Agg(function, of, n, before)

    def _plain(self, name: str | None) -> Expr:
        numbers = [v for v in {*self._seen, *self._binds.get(name or "", ())} if v.startswith("v")]
        if self._rng.random() < 0.12:
            return Num(self._rng.choice(VALUES))
        return V(self._rng.choice(sorted(numbers)))


def _names(node: Node, negated: bool, kleene: bool = False) -> list[str]:
    """The names in a node but for its negations; ``kleene``: only those inside Kleenes."""
    if isinstance(node, No):
        return []
    if isinstance(node, Name):
        return [] if kleene else [node.name]
    inner = kleene and not isinstance(node, Times)
    return [name for part in inside(node) for name in _names(part, negated, inner)]


def _everything(node: Node) -> list[str]:
    if isinstance(node, Name):
        return [node.name]
    return [name for part in inside(node) for name in _everything(part)]


def trails(node: Node) -> bool:
    """Whether something is absent at the end of some match."""
    if isinstance(node, Seq):
        return trails(node.items[-1]) or (_may_be_empty(node.items[-1]) and trails(Seq(node.items[:-1], ())))
    if isinstance(node, Opt | No):
        return True
    if isinstance(node, Name | And):
        return False
    return any(map(trails, inside(node)))


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Opt | No):
        return True
    if isinstance(node, Times):
        return node.least == 0 or _may_be_empty(node.element)
    if isinstance(node, Name | And):
        return False
    some = any if isinstance(node, Or) else all
    return some(map(_may_be_empty, inside(node)))


def random_query(rng: random.Random, operator: str | None = None) -> Query:
    """A query that the static checks may still refuse; with an ``operator``, one for specialised matchers.

    These have that operator alone, and most of them one stream and no filters but those of one GPM.
    """
    skip = operator is None and rng.random() < 0.3
    simple = operator is not None and rng.random() < 0.7
    instants = rng.random() < 0.25
    root = _Sequences(rng, 5, skip, instants, operator).chain(2, 1 if operator is None else 2)
    streams = STREAMS[: 1 if simple else rng.choice([1, 1, 2])]
    positive = set(_names(root, False))
    partition = ("k",) if rng.random() < 0.3 else ()
    sharing = rng.choice([0.0, 0.25, 0.6])
    optional = 0.0 if simple else rng.choice([0.0, 0.0, 0.5])
    binds = {}
    for name in sorted(set(_everything(root))):
        mine = [f"v{name}"]
        if partition and (name in positive or rng.random() < 0.7):
            mine.append("k")
        mine += [
            v
            for v in ("k", "o")
            if v not in mine and (v, *partition) != ("k", "k") and rng.random() < sharing
        ]
        mine += [f"w{name}"] * (rng.random() < optional)
        binds[name] = tuple(mine)
    filters = _Filters(rng, root, binds)
    often = 0.0 if simple else rng.choice([0.1, 0.3, 0.6])
    gpms = {}
    for name, mine in binds.items():
        wanted = rng.choice([*TYPES, None])
        body = (
            f"[] :v ?v{name}"
            + "".join(f" ; :{v} ?{v}" for v in mine[1:] if v in ("k", "o"))
            + f" ; a :{wanted}" * (wanted is not None)
        )
        if f"w{name}" in mine:
            body += f" . OPTIONAL {{ [] :w ?w{name} }}"
        found = [filters.condition(name) for _ in range(rng.random() < often)]
        found += [Bin(rng.choice("<>"), V(f"v{name}"), Num(rng.choice(VALUES)))] * (rng.random() < 0.15)
        foreign = {
            v for other, theirs in binds.items() if other != name and other in positive for v in theirs
        }
        own = [f for f in found if not _correlated(f, set(mine), foreign)]
        reads = tuple(s for s in streams if rng.random() < 0.8) or streams[:1]
        gpms[name] = Gpm(name, reads, f"{body} .", mine, tuple(own), tuple(f for f in found if f not in own))
    where = tuple(filters.condition(None) for _ in range(0 if simple else rng.choice([0, 0, 0, 1])))
    unit = rng.choice(
        ["EVENTS", "MICROSECONDS", "MICROSECONDS"]
        if instants
        else ["EVENTS", "SECONDS", "SECONDS", "MILLISECONDS"]
    )
    size = Fraction(rng.choice([2, 3, 4, 6, 10]))
    sliding = rng.random() < 0.6
    if sliding and unit != "EVENTS" and rng.random() < 0.3:
        size -= Fraction(1, 2)
    if unit == "MILLISECONDS":
        size *= 1_000
    target = Skip(rng.choice(["PAST", "NEXT", "FIRST", "LAST"]), rng.choice(sorted(positive)))
    emit = rng.choice(["ALL", "ALL", "ALL", "NEXT", "LAST", "MAX"])
    consume = rng.random() < 0.15 and not trails(root)
    return Query(
        root,
        gpms,
        size,
        unit,
        sliding,
        streams,
        where,
        partition,
        "ALL" if skip else emit,
        consume and not skip,
        target if skip else None,
        instants,
    )


def _correlated(f: Expr, mine: set[str], foreign: set[str]) -> bool:
    """Whether a filter needs more than its GPM."""
    return any(isinstance(part, Agg | Prev) for part in parts(f)) or bool(
        (set(mentioned(f)) - mine) & foreign
    )


def random_case(rng: random.Random, query: Query, size: int) -> Case:
    """A stream of at most ``size`` events for a query: ties, several solutions and keys."""
    several = rng.choice([0.0, 0.0, 0.3])
    types = [found[1] for g in query.gpms.values() if (found := re.search(r" a :(\w)", g.body))] or [*TYPES]
    numbers = sorted(rng.sample(VALUES, 4))
    gaps = rng.choice([[0, 1, 1, 2], [1], [0, 0, 1], [1, 2, 4]])
    time = rng.choice([0, 0, 5, 1_000_000])
    counts = dict.fromkeys(query.streams, 0)
    drawn = []
    for i in range(rng.randint(size // 2, size)):
        time += rng.choice(gaps) if i else 0
        drawn.append((time, rng.choice(query.streams)))
    if len(query.streams) == 1:
        drawn = [(t, "S1") for t, _ in drawn]
    events, written = [], []
    # Simultaneous events are processed in the order of their streams' IRIs.
    for i, (at, stream) in enumerate(sorted(drawn)):
        facts = {
            "v": rng.sample(numbers, 1 + (rng.random() < several)),
            "k": rng.sample([Decimal(0), Decimal(1)], 1 + (rng.random() < several / 2)),
            "o": rng.sample([Decimal(0), Decimal(1)], 1 + (rng.random() < several)),
            "w": rng.sample(numbers, rng.choice([0, 1, 1 + (rng.random() < several)])),
        }
        kind = rng.choice([*types, rng.choice(TYPES)])
        unfiltered: dict[str, list[dict[str, object]]] = {}
        kept: dict[str, list[dict[str, object]]] = {}
        for name, gpm in query.gpms.items():
            if stream not in gpm.streams or (" a :" in gpm.body and f" a :{kind} ." not in gpm.body):
                continue
            columns = [facts[v[0]] or [None] for v in gpm.binds]
            found = [
                {v: x for v, x in zip(gpm.binds, values, strict=True) if x is not None}
                for values in itertools.product(*columns)
            ]
            unfiltered[name] = found
            kept[name] = [s for s in found if all(holds(f, Env(s, lambda _: None)) for f in gpm.own)]
        events.append(
            Event(i, at, stream, counts[stream], {g: ss for g, ss in kept.items() if ss}, unfiltered)
        )
        counts[stream] += 1
        lists = " ; ".join(f":{p} {', '.join(map(str, values))}" for p, values in facts.items() if values)
        written.append((stream, f"@prefix : <{query.prefix}> . [] a :{kind} ; {lists} .", at))
    return Case(query, tuple(events), tuple(written))

"""Reads the queries of the vectors, so that the second judge can be judged by them, too."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.judge.expressions import Bin, Expr, Num, V, mentioned
from tests.judge.pattern import AllOf, And, Event, Gpm, In, Name, No, Node, Opt, Or, Query, Seq, Skip, Times

_TOKEN = re.compile(r"\s*(ALL\(|WITHIN|SECONDS|G\d+|\d+|\[.\]|[^\s])")


class _Sequence:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str | None:
        if self._peek() in wanted:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def whole(self) -> Node:
        sides = [self._conjunction()]
        while self._take("|"):
            sides.append(self._conjunction())
        return sides[0] if len(sides) == 1 else Or(tuple(sides))

    def _conjunction(self) -> Node:
        sides = [self._chain()]
        while self._take("&"):
            sides.append(self._chain())
        return sides[0] if len(sides) == 1 else And(tuple(sides))

    def _chain(self) -> Node:
        items, ops = [self._element()], []
        while op := self._take(",", ";", ":"):
            ops.append(op)
            items.append(self._element())
        return items[0] if not ops else Seq(tuple(items), tuple(ops))

    def _element(self) -> Node:
        negated = self._take("!")
        node = self._unit()
        bounds = None
        if sign := self._take("+", "*", "?"):
            bounds = {"+": (1, None), "*": (0, None), "?": (0, 1)}[sign]
        elif self._take("{"):
            sign = "{"
            least = int(self._next())
            most: int | None = least
            if self._take(","):
                most = int(self._next()) if self._peek() != "}" else None
            self._at += 1
            bounds = (least, most)
        reluctant = bounds is not None and self._take("?") is not None
        op = ";"
        if re.fullmatch(r"\[.\]", self._peek()):
            op = self._next()[1]
        if sign == "?":
            node = Opt(node, reluctant)
        elif sign == "*":
            node = Opt(Times(node, 1, None, op, reluctant), reluctant)
        elif bounds is not None:
            node = Times(node, bounds[0], bounds[1], op, reluctant)
        if negated:
            node = No(node)
        if self._take("WITHIN"):
            node = In(node, Fraction(self._next()))
            self._at += 1
        return node

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _unit(self) -> Node:
        if self._take("("):
            node = self.whole()
            self._at += 1
            return node
        if self._take("ALL("):
            operands = [self._element()]
            while self._take(","):
                operands.append(self._element())
            self._at += 1
            return AllOf(tuple(operands))
        return Name(self._next())


def read(case: dict[str, Any]) -> tuple[Query, list[Event]]:
    """A vector's query and its events."""
    text = case["query"]
    seq = re.search(r"SEQ\((.*)\)\n", text)
    within = re.search(r"WITHIN (\d+) SECONDS (\w+)\n", text)
    assert seq
    assert within
    types, gpms, constants = {}, {}, {}
    for name, streams, body in re.findall(r"DEFINE GPM (\w+) ON ([\w, ]+) \{ (.*) \}", text):
        kind = re.search(r" a :(\w)", body)
        types[name] = kind[1] if kind else None
        binds = (name, f"v{name}", *["k"] * ("?k " in body))
        own: list[Expr] = []
        filters: list[Expr] = []
        for left, op, right in re.findall(r"FILTER\(\?(\w+) (\S+) (\S+)\)", body):
            bare = right.startswith("?")
            f = Bin(op, V(left), V(right[1:]) if bare else Num(Decimal(right)))
            (own if set(mentioned(f)) <= set(binds) else filters).append(f)
        constants[name] = own
        gpms[name] = Gpm(
            name, tuple(streams.split(", ")), body.split("FILTER")[0], binds, tuple(own), tuple(filters)
        )
    tail = text.rsplit("}", 1)[1]
    emit = re.search(r"EMIT (\w+)", tail)
    skip = None
    if "PAST LAST" in tail:
        skip = Skip("PAST")
    elif "NEXT EVENT" in tail:
        skip = Skip("NEXT")
    elif found := re.search(r"TO (FIRST|LAST) (\w+)", tail):
        skip = Skip(found[1], found[2])
    query = Query(
        _Sequence(seq[1]).whole(),
        gpms,
        Fraction(within[1]),
        sliding=within[2] == "SLIDING",
        streams=tuple(re.findall(r"FROM STREAM (\w+)", text)),
        emit=emit[1] if emit else "ALL",
        skip=skip,
    )
    events = []
    for e in case["events"]:
        unfiltered: dict[str, list[dict[str, object]]] = {}
        kept: dict[str, list[dict[str, object]]] = {}
        for name, gpm in gpms.items():
            if e["stream"] in gpm.streams and types[name] in (None, e["type"]):
                solution: dict[str, object] = {name: e["i"], f"v{name}": Decimal(e["v"])}
                if "k" in gpm.binds:
                    solution["k"] = e["k"]
                unfiltered[name] = [solution]
                if all(_holds(f, solution) for f in gpm.own):
                    kept[name] = [solution]
        events.append(Event(e["i"], e["time"], e["stream"], e["n"], kept, unfiltered))
    return query, events


def _holds(f: Expr, solution: dict[str, object]) -> bool:
    from tests.judge.expressions import Env, holds

    return holds(f, Env(solution, lambda _: None))

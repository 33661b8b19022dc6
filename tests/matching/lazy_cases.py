"""Random queries for the lazy matcher: sequences of ``:`` with filters, ALL, negation, closures."""

from __future__ import annotations

import random

from spaseq.matching.lazy.tables import fits
from tests.matching.random_sequences import Query, random_query


class _Sequences:
    """Random sequences that fit, but for what is rare."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = rng.sample("ABCDEF", 6)
        self._used: list[str] = []

    def whole(self) -> str:
        if self._rng.random() < 0.08:
            return f"{self.chain(1)} | {self.chain(1)}"
        return self.chain(2)

    def chain(self, depth: int) -> str:
        """A sequence that needs at least one event, and whose last element does."""
        rng = self._rng
        items = [self._element(depth)]
        for _ in range(rng.choice([0, 1, 1, 2, 2] if depth > 1 else [0, 0, 1, 1])):
            items.insert(0 if rng.random() < 0.5 else len(items) - 1, self._item(depth))
        return " : ".join(items)

    def _item(self, depth: int) -> str:
        kind = self._rng.random()
        if kind < 0.25:
            return "!" + self._negated()
        if kind < 0.35:
            return f"{self._name()}?"
        if kind < 0.4:
            return f"{self._name()}*[:]"
        return self._element(depth)

    def _negated(self) -> str:
        if self._rng.random() < 0.2:
            operator = self._rng.choice("&|:")
            return f"({self._name()} {operator} {self._name()})"
        return self._name()

    def _element(self, depth: int) -> str:
        kind = self._rng.random()
        if kind < 0.22:
            return self._name() + self._rng.choice(
                ["+[:]", "+[:]", "{2,}[:]", "{1,2}[:]", "{2}[:]", "{1,3}[:]"]
            )
        if depth and kind < 0.45:
            count = self._rng.choice([2, 2, 2, 3])
            return f"ALL({', '.join(self.chain(depth - 1) for _ in range(count))})"
        if depth and kind < 0.55:
            return f"({self.chain(depth - 1)} | {self.chain(depth - 1)})"
        if depth and kind < 0.6:
            return f"({self.chain(depth - 1)})"
        return self._name()

    def _name(self) -> str:
        if not self._names or (self._used and self._rng.random() < 0.1):
            return self._rng.choice(self._used)
        self._used.append(self._names.pop())
        return self._used[-1]


def random_lazy_query(rng: random.Random, rich: bool = False) -> Query:
    """A query that the lazy matcher runs, of at most six names; see ``random_query`` for ``rich``."""
    while True:
        some = (_Sequences(rng).whole() for _ in range(30))
        few = [one for one in some if sum(map(str.isupper, one.replace("ALL", ""))) <= 6]
        query = random_query(rng, sequences=few, rich=rich)
        if fits(query.pattern) is None:
            return query

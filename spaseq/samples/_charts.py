"""Share prices of a company, trade by trade, with planted chart patterns.

Prices are in cents. Ordinary prices stay within 0.6 percent of a level that only planted patterns move, so no
pattern of several percent appears by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random


@dataclass(frozen=True, slots=True)
class Trade:
    """A price in cents, and a number of shares."""

    price: int
    volume: int


class Chart:
    """The trades of one company in order, and the places of planted patterns."""

    def __init__(self, random: Random, price: int) -> None:
        self.random = random
        self.level = price
        self.noise = 0.0
        self.trades: list[Trade] = []
        self.bottoms: list[int] = []  # positions of the bottoms of V shapes
        self.heads: list[tuple[int, ...]] = []  # positions of A to G
        self.shocks: list[int] = []

    def _trade(self, price: float, volume: int | None = None) -> None:
        self.trades.append(Trade(round(price), volume or 100 * self.random.randint(1, 49)))

    def quiet(self, count: int) -> None:
        """Add ordinary trades: a step is at most a third of a percent."""
        for _ in range(count):
            self.noise = max(-0.006, min(0.006, 0.8 * self.noise + self.random.uniform(-0.002, 0.002)))
            self._trade(self.level * (1 + self.noise))

    def block(self) -> None:
        """Add a trade of an unusual volume, at the current price."""
        self.noise = 0.0
        self._trade(self.level, 10_000 + 100 * self.random.randint(0, 150))

    def shock(self) -> None:
        """Add a permanent drop of 1.3 to 2 percent in one trade."""
        self.noise = 0.0
        self._trade(self.level)
        self.level = round(self.level * self.random.uniform(0.98, 0.987))
        self.shocks.append(len(self.trades))
        self._trade(self.level)

    def v_shape(self) -> None:
        """Add a fall of about 4.5 percent in steps below one percent, and the rise to slightly above the
        start.
        """
        self.noise = 0.0
        self._trade(self.level)
        down = [0.0075 * (k + self.random.uniform(-0.1, 0.1)) for k in range(1, 7)]
        for depth in down:
            self._trade(self.level * (1 - depth))
        self.bottoms.append(len(self.trades) - 1)
        for depth in [*down[-2::-1], -0.001, -0.004]:
            self._trade(self.level * (1 - depth - 0.001))
        self._trade(self.level)

    def half_v(self) -> None:
        """Add the fall of a V without its rise: the way back fluctuates."""
        self.noise = 0.0
        for k in range(7):
            self._trade(self.level * (1 - 0.0075 * k))
        self._walk(1 - 0.045, 1.0)

    def _walk(self, start: float, goal: float) -> range:
        """Move between two multiples of the level, two steps forth and a small one back.

        Return the positions.
        """
        first = len(self.trades)
        step = 0.009 if goal > start else -0.009
        at, turn = start, 0
        while at != goal:
            at += -step / 3 if turn % 3 == 2 else step
            if (goal - at) * step < 0:
                at = goal
            turn += 1
            self._trade(self.level * at)
        return range(first, len(self.trades))

    def head_and_shoulders(self, fails: bool) -> None:
        """Add a block trade, and the legs of the pattern. ``fails``: the right shoulder exceeds the head."""
        start = len(self.trades)
        self.block()
        base = self.trades[-1].price
        turns = [1.0, 1.06, 0.995, 1.13, 1.0, 1.15 if fails else 1.065, 0.965]
        legs = [self._walk(origin, goal) for origin, goal in pairwise(turns)]

        def first(leg: int, hundredths: int, bound: int, above: bool) -> int:
            """Return the first trade of a leg beyond this many hundredths of a price."""
            for position in legs[leg]:
                difference = 100 * self.trades[position].price - hundredths * bound
                if difference and (difference > 0) == above:
                    return position
            raise AssertionError("the legs go further than the pattern asks for")

        def price(position: int) -> int:
            return self.trades[position].price

        b = first(0, 103, base, True)
        c = first(1, 98, price(b), False)
        d = first(2, 104, price(b), True)
        e = first(3, 96, price(d), False)
        f = first(4, 101, price(e), True)
        g = first(5, 99, price(e), False)
        if not fails:
            self.heads.append((start, b, c, d, e, f, g))
        self._walk(turns[-1], 1.0)

    def cut(self, length: int) -> None:
        """Remove the trades after ``length``, and the patterns that they complete."""
        del self.trades[length:]
        self.bottoms = [bottom for bottom in self.bottoms if bottom < length]
        self.heads = [head for head in self.heads if head[-1] < length]
        self.shocks = [shock for shock in self.shocks if shock < length]


def fill(chart: Chart, company: int, length: int) -> None:
    """Add V shapes, heads and shoulders, or drops and block trades, with ordinary trades between.

    Companies of one sector are three apart, so both of "materials" get the drops.
    """
    random, role, turn = chart.random, company % 3, company // 3
    while len(chart.trades) < length:
        chart.quiet(random.randint(20, 45))
        if role == 0:
            (chart.half_v if turn % 3 == 2 else chart.v_shape)()
        elif role == 1:
            chart.head_and_shoulders(fails=turn % 2 == 1)
        else:
            (chart.block if turn % 3 == 2 else chart.shock)()
        turn += 1
    chart.cut(length)

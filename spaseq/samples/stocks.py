"""Stocks: trades of six companies, on which chart patterns show (SPAseq paper, section 2, UC 4).

Prices are counted in cents. Ordinary prices stay within 0.6 percent of a level that only planted
patterns move, so no pattern of several percent appears by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Final

from pyoxigraph import Literal, NamedNode, Triple

from spaseq.samples._model import (
    EXAMPLE,
    RDF,
    SCHEMA,
    Match,
    SampleEvent,
    SampleStream,
    UseCase,
    about,
    cents,
    namespace,
    number,
)

STOCK: Final = namespace(f"{EXAMPLE}stock#")
ITEM: Final = namespace(f"{EXAMPLE}stock/")

_OPENING: Final = datetime(2026, 6, 4, 8, tzinfo=UTC)
_WINDOW: Final = timedelta(minutes=10)
#: Company, symbol, sector, opening price in cents. What is planted goes by position: see ``_fill``.
_COMPANIES: Final = (
    ("Alpine Rail", "ALPR", "transport", 8_400),
    ("Brightwell", "BRWL", "energy", 15_250),
    ("Cobalt Foundry", "CBFY", "materials", 20_300),
    ("Dune Airways", "DUNA", "transport", 12_780),
    ("Estuary Power", "ESTP", "energy", 9_960),
    ("Ferrous Works", "FERW", "materials", 17_120),
)

V_SHAPE: Final = """\
# A price falls trade after trade, by 3 percent or more, and rises trade after trade to where it was.
PREFIX schema: <https://schema.org/>
PREFIX stock: <https://w3id.org/spaseq/example/stock#>

SELECT ?company ?name ?sector ?p1 (MIN(?p2) AS ?bottom) (MAX(?p3) AS ?top)
WITHIN 5 MINUTES SLIDING
PARTITION BY ?company
FROM STREAM S <https://w3id.org/spaseq/example/stock/stream/trades>
FROM NAMED <https://w3id.org/spaseq/example/stock/kb>
WHERE {
  SEQ(A , B+[,] , C+[,])
  DEFINE GPM A ON S {
    ?trade1 a stock:Trade ; stock:company ?company ; schema:price ?p1 .
    GRAPH <https://w3id.org/spaseq/example/stock/kb> {
      ?company schema:name ?name ; stock:sector ?sector .
    }
  }
  DEFINE GPM B ON S {
    ?trade2 a stock:Trade ; stock:company ?company ; schema:price ?p2 .
    FILTER(?p2 < ?p1)
    FILTER(?p2 < PREV(?p2))
  }
  DEFINE GPM C ON S {
    ?trade3 a stock:Trade ; stock:company ?company ; schema:price ?p3 .
    FILTER(?p3 > LAST(?p2))
    FILTER(?p3 > PREV(?p3))
  }
  FILTER(MIN(?p2) <= 0.97 * ?p1)
  FILTER(LAST(?p3) >= ?p1)
}
GROUP BY ?company ?name ?sector ?p1
"""

HEAD_AND_SHOULDERS: Final = """\
# From a block trade on: up to a left shoulder, down, up to a head well above it, down to the neck
# line, up a little to a right shoulder, and down through the neck line without having passed the
# head. Local fluctuations between these trades are skipped.
PREFIX schema: <https://schema.org/>
PREFIX stock: <https://w3id.org/spaseq/example/stock#>

SELECT ?company ?name ?base ?shoulder ?head ?neckline ?exit
WITHIN 20 MINUTES SLIDING
PARTITION BY ?company
FROM STREAM S <https://w3id.org/spaseq/example/stock/stream/trades>
FROM NAMED <https://w3id.org/spaseq/example/stock/kb>
WHERE {
  SEQ(A ; B ; C ; D ; E ; F ; !H ; G)
  DEFINE GPM A ON S {
    ?trade1 stock:company ?company ; schema:price ?base ; stock:volume ?volume .
    FILTER(?volume >= 10000)
    GRAPH <https://w3id.org/spaseq/example/stock/kb> { ?company schema:name ?name }
  }
  DEFINE GPM B ON S {
    ?trade2 stock:company ?company ; schema:price ?shoulder .
    FILTER(?shoulder > 1.03 * ?base)
  }
  DEFINE GPM C ON S {
    ?trade3 stock:company ?company ; schema:price ?trough .
    FILTER(?trough < 0.98 * ?shoulder)
  }
  DEFINE GPM D ON S {
    ?trade4 stock:company ?company ; schema:price ?head .
    FILTER(?head > 1.04 * ?shoulder)
  }
  DEFINE GPM E ON S {
    ?trade5 stock:company ?company ; schema:price ?neckline .
    FILTER(?neckline < 0.96 * ?head)
  }
  DEFINE GPM F ON S {
    ?trade6 stock:company ?company ; schema:price ?right .
    FILTER(?right > 1.01 * ?neckline)
  }
  DEFINE GPM H ON S {
    ?trade7 stock:company ?company ; schema:price ?higher .
    FILTER(?higher > ?head)
  }
  DEFINE GPM G ON S {
    ?trade8 stock:company ?company ; schema:price ?exit .
    FILTER(?exit < 0.99 * ?neckline)
  }
}
"""

SECTOR: Final = """\
# Two companies of one sector drop by more than one percent, each in one trade, within ten minutes.
PREFIX stock: <https://w3id.org/spaseq/example/stock#>

SELECT ?sector ?company1 ?change1 ?company2 ?change2
WITHIN 10 MINUTES TUMBLING
PARTITION BY ?sector
FROM STREAM S <https://w3id.org/spaseq/example/stock/stream/trades>
FROM NAMED <https://w3id.org/spaseq/example/stock/kb>
WHERE {
  SEQ(A : B)
  DEFINE GPM A ON S {
    ?trade1 stock:company ?company1 ; stock:change ?change1 .
    FILTER(?change1 < -1)
    GRAPH <https://w3id.org/spaseq/example/stock/kb> { ?company1 stock:sector ?sector }
  }
  DEFINE GPM B ON S {
    ?trade2 stock:company ?company2 ; stock:change ?change2 .
    FILTER(?change2 < -1)
    GRAPH <https://w3id.org/spaseq/example/stock/kb> { ?company2 stock:sector ?sector }
    FILTER(?company2 != ?company1)
  }
}
"""


@dataclass(frozen=True, slots=True)
class _Trade:
    price: int  # cents
    volume: int


class _Chart:
    """The trades of one company in order, and the places where something was planted."""

    def __init__(self, random: Random, price: int) -> None:
        self.random = random
        self.level = price
        self.noise = 0.0
        self.trades: list[_Trade] = []
        self.bottoms: list[int] = []  # positions of the bottoms of V shapes
        self.heads: list[tuple[int, ...]] = []  # positions of A to G
        self.shocks: list[int] = []

    def _trade(self, price: float, volume: int | None = None) -> None:
        self.trades.append(_Trade(round(price), volume or 100 * self.random.randint(1, 49)))

    def quiet(self, count: int) -> None:
        """Ordinary trades: a step is at most a third of a percent."""
        for _ in range(count):
            self.noise = max(-0.006, min(0.006, 0.8 * self.noise + self.random.uniform(-0.002, 0.002)))
            self._trade(self.level * (1 + self.noise))

    def block(self) -> None:
        """A trade of an unusual volume, at the price of the day."""
        self.noise = 0.0
        self._trade(self.level, 10_000 + 100 * self.random.randint(0, 150))

    def shock(self) -> None:
        """A drop of 1.3 to 2 percent in one trade, for good."""
        self.noise = 0.0
        self._trade(self.level)
        self.level = round(self.level * self.random.uniform(0.98, 0.987))
        self.shocks.append(len(self.trades))
        self._trade(self.level)

    def v_shape(self) -> None:
        """A fall of about 4.5 percent in steps below one percent, and the rise back to a bit above."""
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
        """The fall of a V without its rise: the way back fluctuates."""
        self.noise = 0.0
        for k in range(7):
            self._trade(self.level * (1 - 0.0075 * k))
        self._walk(1 - 0.045, 1.0)

    def _walk(self, start: float, goal: float) -> range:
        """From one multiple of the level to another, two steps forth and a small one back; the positions."""
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
        """A block trade, and the legs of the pattern. ``fails``: the right shoulder passes the head."""
        start = len(self.trades)
        self.block()
        base = self.trades[-1].price
        turns = [1.0, 1.06, 0.995, 1.13, 1.0, 1.15 if fails else 1.065, 0.965]
        legs = [self._walk(origin, goal) for origin, goal in pairwise(turns)]

        def first(leg: int, hundredths: int, bound: int, above: bool) -> int:
            """The first trade of a leg beyond so many hundredths of a price."""
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
        """Forget the trades after so many, and what they would have completed."""
        del self.trades[length:]
        self.bottoms = [bottom for bottom in self.bottoms if bottom < length]
        self.heads = [head for head in self.heads if head[-1] < length]
        self.shocks = [shock for shock in self.shocks if shock < length]


def _fill(chart: _Chart, company: int, length: int) -> None:
    """V shapes, heads and shoulders, or drops and block trades, with quiet between.

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


def _v_matches(chart: _Chart, graphs: Sequence[str]) -> list[Match]:
    """All V shapes around the planted bottoms: every start that is high enough, every end that is."""
    matches: list[Match] = []
    price = [trade.price for trade in chart.trades]
    for bottom in chart.bottoms:
        left, right = bottom, bottom
        while left > 0 and price[left - 1] > price[left]:
            left -= 1
        while right + 1 < len(price) and price[right + 1] > price[right]:
            right += 1
        for start in range(left, bottom):
            for end in range(bottom + 1, right + 1):
                if 100 * price[bottom] <= 97 * price[start] and price[end] >= price[start]:
                    matches.append(
                        {
                            "A": (graphs[start],),
                            "B": tuple(graphs[start + 1 : bottom + 1]),
                            "C": tuple(graphs[bottom + 1 : end + 1]),
                        }
                    )
    return matches


def _sector_matches(shocks: Iterable[tuple[int, SampleEvent]], opening: datetime) -> list[Match]:
    """All pairs of drops of two companies of a sector in one window of ten minutes."""
    drops = sorted(shocks, key=lambda drop: drop[1].graph.value)
    return [
        {"A": (one.graph.value,), "B": (two.graph.value,)}
        for c, one in drops
        for d, two in drops
        if one.graph.value < two.graph.value
        and c != d
        and _COMPANIES[c][2] == _COMPANIES[d][2]
        and (one.time - opening) // _WINDOW == (two.time - opening) // _WINDOW
    ]


def _event(name: NamedNode, time: datetime, company: int, trade: _Trade, before: int) -> SampleEvent:
    return SampleEvent(
        name,
        time,
        about(
            NamedNode(f"{name.value}-report"),
            [
                (RDF("type"), STOCK("Trade")),
                (STOCK("company"), ITEM(_COMPANIES[company][1])),
                (SCHEMA("price"), cents(trade.price)),
                (STOCK("volume"), Literal(trade.volume)),
                (STOCK("change"), number(100 * (trade.price / before - 1), 2)),
            ],
        ),
    )


def _knowledge() -> tuple[Triple, ...]:
    triples: list[Triple] = []
    for name, symbol, sector, _ in _COMPANIES:
        triples += about(
            ITEM(symbol),
            [
                (RDF("type"), SCHEMA("Corporation")),
                (SCHEMA("name"), Literal(name)),
                (SCHEMA("tickerSymbol"), Literal(symbol)),
                (STOCK("sector"), ITEM(f"sector-{sector}")),
            ],
        )
    for sector in sorted({company[2] for company in _COMPANIES}):
        triples += about(
            ITEM(f"sector-{sector}"),
            [(RDF("type"), STOCK("Sector")), (SCHEMA("name"), Literal(sector))],
        )
    return tuple(triples)


def stocks(seed: int, events: int) -> UseCase:
    """About ``events`` trades of six companies, from 8 o'clock of 4 June 2026 on.

    They come in rounds: every company trades once in each, in any order, up to two seconds apart,
    so that some share an instant and arrival decides.
    """
    random = Random(f"stocks {seed}")
    charts = [_Chart(random, price) for *_, price in _COMPANIES]
    length = max(170, events // len(_COMPANIES))
    for company, chart in enumerate(charts):
        _fill(chart, company, length)
    time, n = _OPENING, 0
    trades: list[SampleEvent] = []
    of: list[list[SampleEvent]] = [[] for _ in charts]
    for position in range(length):
        for company in random.sample(range(len(charts)), len(charts)):
            trade = charts[company].trades[position]
            before = charts[company].trades[max(0, position - 1)].price
            event = _event(ITEM(f"trade-{n:06d}"), time, company, trade, before)
            trades.append(event)
            of[company].append(event)
            time += timedelta(seconds=random.randint(0, 2))
            n += 1
    graphs = [[event.graph.value for event in events] for events in of]
    planted: dict[str, tuple[Match, ...]] = {
        "stocks": tuple(
            match for chart, names in zip(charts, graphs, strict=True) for match in _v_matches(chart, names)
        ),
        "stocks-head-and-shoulders": tuple(
            {gpm: (names[position],) for gpm, position in zip("ABCDEFG", head, strict=True)}
            for chart, names in zip(charts, graphs, strict=True)
            for head in chart.heads
        ),
        "stocks-sector": tuple(
            _sector_matches(
                [(c, of[c][position]) for c, chart in enumerate(charts) for position in chart.shocks],
                trades[0].time,
            )
        ),
    }
    return UseCase(
        "stocks",
        {"stock": f"{EXAMPLE}stock#", "s": f"{EXAMPLE}stock/"},
        (SampleStream(f"{EXAMPLE}stock/stream/trades", "stocks.trig", tuple(trades)),),
        f"{EXAMPLE}stock/kb",
        _knowledge(),
        {"stocks": V_SHAPE, "stocks-head-and-shoulders": HEAD_AND_SHOULDERS, "stocks-sector": SECTOR},
        planted,
    )

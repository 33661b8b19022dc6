"""Stocks: trades of six companies with chart patterns (SPAseq paper, section 2, UC 4).

Prices are made in ``_charts``; the queries, their planted matches, and the RDF are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from pyoxigraph import Literal, NamedNode, Triple

from spaseq.samples._charts import Chart, Trade, fill
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
#: Company, symbol, sector, opening price in cents. The position decides what is planted: see
#: ``_charts.fill``.
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


def _v_matches(chart: Chart, graphs: Sequence[str]) -> list[Match]:
    """Return all V shapes around the planted bottoms: every start that is high enough, every end that is."""
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
    """Return all pairs of drops of two companies of a sector in one window of ten minutes."""
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


def _event(name: NamedNode, time: datetime, company: int, trade: Trade, before: int) -> SampleEvent:
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
    """Return about ``events`` trades of six companies, from 8 o'clock of 4 June 2026 on.

    Trades are in rounds: every company trades once in each, in any order, up to two seconds apart, so that
    some share an instant and arrival decides.
    """
    random = Random(f"stocks {seed}")
    charts = [Chart(random, price) for *_, price in _COMPANIES]
    length = max(170, events // len(_COMPANIES))
    for company, chart in enumerate(charts):
        fill(chart, company, length)
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

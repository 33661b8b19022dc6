"""Streams of trades for benchmarks: seeded prices, events as N-Quads bytes, and queries over them."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import spaseq

E = "http://example.org/"
STREAM = E + "trades"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"

#: Milliseconds between two events.
STEP = 10

_FURTHER = ("volume", "venue", "side", "sequence", "currency")


@dataclass(frozen=True, slots=True)
class Trade:
    """``company`` is a number; the price is in cents."""

    company: int
    price: int


def rising_and_falling(count: int, companies: int, falls: float = 0.03, seed: int = 7) -> list[Trade]:
    """Prices that mostly rise a little and now and then fall for a while.

    ``falls``: how probable the begin of a fall is. With 0.03, a V shape ends in every 19th event, with
    0.004 in every 140th; in the real trades of ``real`` it is every 470th.
    """
    rnd = random.Random(seed)
    price = [rnd.randrange(5_000, 20_000) for _ in range(companies)]
    falling = [0] * companies
    out = []
    for _ in range(count):
        company = rnd.randrange(companies)
        if falling[company]:
            falling[company] -= 1
            price[company] -= rnd.randrange(1, 40)
        else:
            price[company] += rnd.randrange(0, 25)
            if rnd.random() < falls:
                falling[company] = rnd.randrange(1, 4)
        out.append(Trade(company, price[company]))
    return out


def sinking(count: int, seed: int = 7) -> list[Trade]:
    """Prices that sink, with noise: nearly every trade waits for a higher one until its window ends."""
    rnd = random.Random(seed)
    return [Trade(0, 100 * (count - i) + rnd.randrange(400)) for i in range(count)]


def graph(trade: Trade, triples: int, number: int) -> list[str]:
    """The triples of one event, in N-Triples without the final dot."""
    subject = f"<{E}company/{trade.company}>"
    price = f'"{trade.price // 100}.{trade.price % 100:02d}"^^<{XSD}decimal>'
    found = [
        f"{subject} <{E}price> {price}",
        f'{subject} <{E}volume> "{100 * (number % 50 + 1)}"^^<{XSD}integer>',
    ]
    found += [f"{subject} <{E}{name}> <{E}{name}/{number % 20}>" for name in _FURTHER[1:]]
    return found[:triples]


def moment(number: int) -> str:
    """The time of an event."""
    minutes, milliseconds = divmod(number * STEP, 60_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"2024-01-{days + 1:02d}T{hours:02d}:{minutes:02d}:{milliseconds / 1000:06.3f}Z"


def n_quads(trades: Sequence[Trade], triples: int, first: int = 0) -> bytes:
    """The events as N-Quads: a named graph each, its time in the default graph. ``first`` numbers them."""
    lines = []
    for number, trade in enumerate(trades, first):
        name = f"<{E}event/{number}>"
        lines.append(f'{name} <{PROV}> "{moment(number)}"^^<{XSD}dateTime> .')
        lines += [f"{triple} {name} ." for triple in graph(trade, triples, number)]
    return "\n".join([*lines, ""]).encode()


def source(data: bytes) -> spaseq.Source:
    """N-Quads bytes as a stream's source."""
    return spaseq.Source(STREAM, io.BytesIO(data), spaseq.SourceOptions(format="nq"))


def v_shape(triples: int) -> str:
    """A trade, one or more lower ones, and a higher one, strictly one after the other per company."""

    def body(i: int) -> str:
        further = ["volume", *_FURTHER[1:]][: triples - 1]
        return f"?c :price ?p{i}" + "".join(f" ; :{name} ?{name}{i}" for name in further)

    return f"""PREFIX : <{E}>
SELECT ?c ?p1 ?p3 WITHIN 10 MINUTES SLIDING PARTITION BY ?c
FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A , B+[,] , C)
  DEFINE GPM A ON S {{ {body(1)} }}
  DEFINE GPM B ON S {{ {body(2)} FILTER(?p2 < ?p1) }}
  DEFINE GPM C ON S {{ {body(3)} FILTER(?p3 > ?p1) }} }}"""


def v_shapes(
    trades: Sequence[Trade], time: Callable[[int], int] = lambda number: number * STEP, window: int = 600_000
) -> int:
    """How many matches ``v_shape`` has, worked out without spaseq.

    ``time`` is that of the event with a number, ``window`` in its unit.
    """
    series: dict[int, list[tuple[int, int]]] = {}
    for number, trade in enumerate(trades):
        series.setdefault(trade.company, []).append((number, trade.price))
    found = 0
    for prices in series.values():
        for i, (begin, first) in enumerate(prices):
            end = i + 1
            while end < len(prices) and prices[end][1] < first:
                end += 1
            if i + 1 < end < len(prices) and prices[end][1] > first:
                found += time(prices[end][0]) - time(begin) <= window
    return found


def next_higher(window: int) -> str:
    """Each trade with the next one of a higher price, within so many events."""
    return f"""PREFIX : <{E}>
SELECT ?p1 ?p2 WITHIN {window} EVENTS SLIDING
FROM STREAM S <{STREAM}>
WHERE {{ SEQ(A ; B)
  DEFINE GPM A ON S {{ ?c :price ?p1 }}
  DEFINE GPM B ON S {{ ?c2 :price ?p2 . FILTER(?p2 > ?p1) }} }}"""


def higher(trades: Sequence[Trade], window: int) -> int:
    """How many matches ``next_higher`` has."""
    found = 0
    waiting: list[int] = []
    for number, trade in enumerate(trades):
        while waiting and trades[waiting[-1]].price < trade.price:
            found += number - waiting.pop() <= window
        waiting.append(number)
    return found

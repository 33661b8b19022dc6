"""Card fraud: payments with cards at terminals (SPAseq paper, section 2, UC 3).

Payments are at random seconds, more of them by day; several may share a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from pyoxigraph import Literal, Triple

from spaseq.samples._model import (
    EXAMPLE,
    GEO,
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

CARD: Final = namespace(f"{EXAMPLE}card#")
ITEM: Final = namespace(f"{EXAMPLE}card/")

_START: Final = datetime(2026, 6, 3, tzinfo=UTC)
_PERIOD: Final = timedelta(days=3)
#: Cards are in blocks; the place of a card in its block decides which patterns it gets.
_BLOCK: Final = 30
_PROBED: Final = range(9)
_TRAVELLING: Final = range(9, 18)
_STOLEN: Final = range(18, 26)
_PAYMENTS_PER_BLOCK: Final = 1000
_BANKS: Final = ("Banque du Rhône", "Kreditbank Ulm", "Banco del Mar")
#: City, country, latitude, longitude. Cards belong to the first six.
_CITIES: Final = (
    ("Lyon", "FR", 45.76, 4.84),
    ("Grenoble", "FR", 45.19, 5.72),
    ("Ulm", "DE", 48.40, 9.99),
    ("Augsburg", "DE", 48.37, 10.90),
    ("Valencia", "ES", 39.47, -0.38),
    ("Alicante", "ES", 38.35, -0.49),
    ("Osaka", "JP", 34.69, 135.50),
    ("Recife", "BR", -8.05, -34.88),
)
_FAR: Final = (6, 7)
_TERMINALS_PER_CITY: Final = 3
_TRADES: Final = ("grocery", "fuel", "electronics")

BIG_AFTER_SMALL: Final = """\
# Three or more payments of at most 5, and then one a hundred times as large, within an hour.
PREFIX card: <https://w3id.org/spaseq/example/card#>
PREFIX schema: <https://schema.org/>

SELECT ?card ?holderName ?bank (COUNT(?small) AS ?probes) (MAX(?small) AS ?largestProbe) ?large
WITHIN 1 HOUR SLIDING
PARTITION BY ?card
FROM STREAM S <https://w3id.org/spaseq/example/card/stream/payments>
FROM NAMED <https://w3id.org/spaseq/example/card/kb>
WHERE {
  SEQ(A{3,} ; B)
  DEFINE GPM A ON S {
    ?probe a card:Payment ; card:card ?card ; schema:price ?small .
    FILTER(?small <= 5)
  }
  DEFINE GPM B ON S {
    ?payment a card:Payment ; card:card ?card ; schema:price ?large .
    FILTER(?large >= 300)
    FILTER(?large >= 100 * MAX(?small))
    GRAPH <https://w3id.org/spaseq/example/card/kb> {
      ?card card:holder ?holder ; card:bank ?bank .
      ?holder schema:name ?holderName .
    }
  }
}
EMIT MAX
GROUP BY ?card ?holderName ?bank ?large
"""

TRAVEL: Final = """\
# Two payments in a row that the card was present at, within two hours, in cities of two countries
# and more than twenty degrees apart. Payments online say nothing of where the card is.
PREFIX card: <https://w3id.org/spaseq/example/card#>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX schema: <https://schema.org/>

SELECT ?card ?from ?to ?left ?arrived
WITHIN 2 HOURS SLIDING
PARTITION BY ?card
FROM STREAM S <https://w3id.org/spaseq/example/card/stream/payments>
FROM NAMED <https://w3id.org/spaseq/example/card/kb>
WHERE {
  SEQ(A , B)
  DEFINE GPM A ON S AT ?left {
    ?payment1 card:card ?card ; card:channel card:Present ; card:terminal ?terminal1 .
    GRAPH <https://w3id.org/spaseq/example/card/kb> {
      ?terminal1 card:city ?city1 .
      ?city1 schema:name ?from ; schema:addressCountry ?country1 ; geo:lat ?lat1 ; geo:long ?long1 .
    }
  }
  DEFINE GPM B ON S AT ?arrived {
    ?payment2 card:card ?card ; card:channel card:Present ; card:terminal ?terminal2 .
    GRAPH <https://w3id.org/spaseq/example/card/kb> {
      ?terminal2 card:city ?city2 .
      ?city2 schema:name ?to ; schema:addressCountry ?country2 ; geo:lat ?lat2 ; geo:long ?long2 .
    }
    FILTER(?country2 != ?country1)
    FILTER((?lat2 - ?lat1) * (?lat2 - ?lat1) + (?long2 - ?long1) * (?long2 - ?long1) > 400)
  }
}
"""

STOLEN: Final = """\
# A card is reported stolen, and then used for 200 or more, or outside its country, the same day.
PREFIX card: <https://w3id.org/spaseq/example/card#>
PREFIX schema: <https://schema.org/>

SELECT ?card ?amount ?country
WITHIN 1 DAY TUMBLING
PARTITION BY ?card
FROM STREAM S <https://w3id.org/spaseq/example/card/stream/payments>
FROM NAMED <https://w3id.org/spaseq/example/card/kb>
WHERE {
  SEQ(R ; (L | X))
  DEFINE GPM R ON S { ?report a card:TheftReport ; card:card ?card . }
  DEFINE GPM L ON S {
    ?payment a card:Payment ; card:card ?card ; schema:price ?amount .
    FILTER(?amount >= 200)
  }
  DEFINE GPM X ON S {
    ?abroad a card:Payment ; card:card ?card ; card:terminal ?terminal .
    GRAPH <https://w3id.org/spaseq/example/card/kb> {
      ?terminal card:city/schema:addressCountry ?country .
      ?card card:country ?home .
    }
    FILTER(?country != ?home)
  }
}
"""


@dataclass(frozen=True, slots=True)
class _Payment:
    """A payment; a theft report if it has no amount. ``tag`` is unique in a run of the generator."""

    time: datetime
    card: int
    amount: int | None  # cents
    city: int
    present: bool
    tag: int


class _Ledger:
    """Payments by tag: ordinary ones first, then planted ones."""

    def __init__(self, random: Random, payments: int) -> None:
        self.random = random
        blocks = max(1, payments // _PAYMENTS_PER_BLOCK)
        self.cards = range(_BLOCK * blocks)
        self.period = _PERIOD * (payments / (blocks * _PAYMENTS_PER_BLOCK))
        self.payments: dict[int, _Payment] = {}
        self.of: list[list[int]] = [[] for _ in self.cards]  # the tags of each card's payments
        while len(self.payments) < payments:
            offset = random.random()
            time = _START + timedelta(seconds=int(offset * self.period.total_seconds()))
            hour = time.hour + time.minute / 60
            if random.random() < 0.1 + 0.9 * math.exp(-(((hour - 14) / 4.5) ** 2)):
                card = random.choice(self.cards)
                self.add(time, card, self._ordinary(), self.near(card), random.random() < 0.7)

    def _ordinary(self) -> int:
        """Return cents: mostly 10 to 100, sometimes a coffee, never 300 or more."""
        if self.random.random() < 0.12:
            return self.random.randint(150, 500)
        return min(29_900, max(600, round(100 * math.exp(self.random.gauss(3.3, 0.8)))))

    def near(self, card: int) -> int:
        """Return a city of the card's country."""
        return 2 * (card % 3) + self.random.randrange(2)

    def add(self, time: datetime, card: int, amount: int | None, city: int, present: bool) -> int:
        """Add a payment; return its tag."""
        tag = len(self.payments)
        self.payments[tag] = _Payment(time, card, amount, city, present, tag)
        self.of[card].append(tag)
        return tag

    def around(self, card: int, time: datetime, reach: timedelta) -> list[_Payment]:
        """Return the card's payments nearer to ``time`` than ``reach``."""
        payments = (self.payments[tag] for tag in self.of[card])
        return [payment for payment in payments if abs(payment.time - time) < reach]

    def since(self, card: int, time: datetime) -> list[_Payment]:
        """Return the card's payments at ``time`` or after."""
        payments = (self.payments[tag] for tag in self.of[card])
        return [payment for payment in payments if payment.time >= time]

    def playing(self, part: range) -> list[int]:
        """Return the cards with a place in ``part`` of their block."""
        return [card for card in self.cards if card % _BLOCK in part]

    def moment(self, part: float) -> datetime:
        """Return a second of the period; ``part`` is from 0 to 1."""
        return _START + timedelta(seconds=int(part * self.period.total_seconds()))


# Each plant has cards of its own, so that plants do not affect each other.


def _plant_probes(ledger: _Ledger, cards: list[int]) -> list[dict[str, tuple[int, ...]]]:
    """Plant three to five small payments and a large one; every third plant is a near miss.

    A near miss has only two small payments, or a large one that is not large enough.
    """
    matches: list[dict[str, tuple[int, ...]]] = []
    for turn, card in enumerate(cards):
        start = ledger.moment((turn + 0.5) / len(cards))
        for payment in ledger.around(card, start, timedelta(hours=3)):
            if payment.amount is not None and payment.amount <= 500:
                ledger.payments[payment.tag] = replace(payment, amount=payment.amount + 600)
        count, smallest, amount = ledger.random.randint(3, 5), 100, ledger.random.randint(50_000, 90_000)
        if turn % 6 == 2:
            count = 2
        elif turn % 6 == 5:
            smallest, amount = 400, ledger.random.randint(30_000, 39_000)
        probes, time = [], start
        for _ in range(count):
            price = ledger.random.randint(smallest, 500)
            probes.append(ledger.add(time, card, price, ledger.near(card), False))
            time += timedelta(seconds=ledger.random.randint(20, 420))
        large = ledger.add(time, card, amount, ledger.near(card), False)
        if turn % 3 != 2:
            matches.append({"A": tuple(probes), "B": (large,)})
    return matches


def _plant_travel(ledger: _Ledger, cards: list[int]) -> list[dict[str, tuple[int, ...]]]:
    """Plant a payment at home, one online, one far away; every third plant leaves time for a flight."""
    matches: list[dict[str, tuple[int, ...]]] = []
    for turn, card in enumerate(cards):
        start = ledger.moment((turn + 0.5) / len(cards))
        for payment in ledger.around(card, start, timedelta(hours=5)):
            ledger.payments[payment.tag] = replace(payment, present=False)
        possible = turn % 3 == 2
        apart = timedelta(minutes=140 if possible else ledger.random.randint(20, 110))
        left = ledger.add(start, card, 2_350 + turn % 50, ledger.near(card), True)
        ledger.add(start + apart / 2, card, 1_990, ledger.near(card), False)
        arrived = ledger.add(start + apart, card, 9_900 + turn % 50, ledger.random.choice(_FAR), True)
        if not possible:
            matches.append({"A": (left,), "B": (arrived,)})
    return matches


def _plant_thefts(ledger: _Ledger, cards: list[int]) -> list[dict[str, tuple[int, ...]]]:
    """Plant a report, a small payment at home, and then a large one, one abroad, or one that is both.

    Only the first such payment counts; a fourth kind of plant delays it until another day.
    """
    matches: list[dict[str, tuple[int, ...]]] = []
    first = min(payment.time for payment in ledger.payments.values())
    days = max(1, ledger.period // timedelta(days=1))
    for turn, card in enumerate(cards):
        # The tumbling day begins at the first event's time of day; all of this lies in its first hours.
        start = first + timedelta(days=turn % days, hours=1, minutes=7 * (turn % 8))
        idle = card - card % _BLOCK + _BLOCK - 1
        for payment in ledger.since(card, start):
            # Blocked: other payments of this card are moved to a card that no plant uses.
            ledger.payments[payment.tag] = replace(payment, card=idle - card % 3, city=4, present=False)
        report = ledger.add(start, card, None, ledger.near(card), False)
        ledger.add(start + timedelta(minutes=4), card, 1_250, ledger.near(card), True)
        kind = turn % 4
        later = start + timedelta(days=1 if kind == 3 else 0, minutes=9)
        amount = 3_400 if kind == 1 else 24_000 + ledger.random.randint(0, 5_000)
        # Another city of the card's country, or one of a neighbouring country.
        city = ledger.near(card) if kind in (0, 3) else 2 * ((card + 1) % 3)
        used = ledger.add(later, card, amount, city, True)
        ledger.add(later + timedelta(minutes=5), card, 25_000, ledger.near(card), False)
        if kind in (0, 2):
            matches.append({"R": (report,), "L": (used,)})
        if kind in (1, 2):
            matches.append({"R": (report,), "X": (used,)})
    return matches


def _event(payment: _Payment, n: int) -> SampleEvent:
    name = f"payment-{n:06d}"
    if payment.amount is None:
        facts = about(
            ITEM(f"{name}-report"),
            [(RDF("type"), CARD("TheftReport")), (CARD("card"), ITEM(f"card-{payment.card + 1}"))],
        )
    else:
        terminal = 1 + payment.city * _TERMINALS_PER_CITY + payment.tag % _TERMINALS_PER_CITY
        facts = about(
            ITEM(f"{name}-receipt"),
            [
                (RDF("type"), CARD("Payment")),
                (CARD("card"), ITEM(f"card-{payment.card + 1}")),
                (CARD("terminal"), ITEM(f"terminal-{terminal}")),
                (CARD("channel"), CARD("Present" if payment.present else "Online")),
                (SCHEMA("price"), cents(payment.amount)),
            ],
        )
    return SampleEvent(ITEM(name), payment.time, facts)


def _knowledge(cards: range) -> tuple[Triple, ...]:
    triples: list[Triple] = []
    for city, (name, country, latitude, longitude) in enumerate(_CITIES):
        triples += about(
            ITEM(f"city-{city + 1}"),
            [
                (RDF("type"), SCHEMA("City")),
                (SCHEMA("name"), Literal(name)),
                (SCHEMA("addressCountry"), Literal(country)),
                (GEO("lat"), number(latitude, 2)),
                (GEO("long"), number(longitude, 2)),
            ],
        )
        for k in range(_TERMINALS_PER_CITY):
            triples += about(
                ITEM(f"terminal-{1 + city * _TERMINALS_PER_CITY + k}"),
                [
                    (RDF("type"), CARD("Terminal")),
                    (CARD("city"), ITEM(f"city-{city + 1}")),
                    (CARD("trade"), Literal(_TRADES[k])),
                ],
            )
    for card in cards:
        triples += about(
            ITEM(f"card-{card + 1}"),
            [
                (RDF("type"), CARD("Card")),
                (CARD("holder"), ITEM(f"person-{card + 1}")),
                (CARD("bank"), Literal(_BANKS[card % 3])),
                (CARD("country"), Literal(_CITIES[2 * (card % 3)][1])),
            ],
        )
        triples += about(
            ITEM(f"person-{card + 1}"),
            [(RDF("type"), SCHEMA("Person")), (SCHEMA("name"), Literal(f"Cardholder {card + 1}"))],
        )
    return tuple(triples)


def card_fraud(seed: int, events: int) -> UseCase:
    """About ``events`` payments with thirty cards for each thousand, from midnight of 3 June 2026 on."""
    ledger = _Ledger(Random(f"card fraud {seed}"), max(300, events - 60))
    planted = {
        "card-fraud": _plant_probes(ledger, ledger.playing(_PROBED)),
        "card-fraud-travel": _plant_travel(ledger, ledger.playing(_TRAVELLING)),
        "card-fraud-stolen": _plant_thefts(ledger, ledger.playing(_STOLEN)),
    }
    payments = sorted(ledger.payments.values(), key=lambda payment: payment.time)
    graph = {payment.tag: ITEM(f"payment-{n:06d}").value for n, payment in enumerate(payments)}

    def named(match: dict[str, tuple[int, ...]]) -> Match:
        return {gpm: tuple(graph[tag] for tag in tags) for gpm, tags in match.items()}

    return UseCase(
        "card-fraud",
        {"card": f"{EXAMPLE}card#", "c": f"{EXAMPLE}card/"},
        (
            SampleStream(
                f"{EXAMPLE}card/stream/payments",
                "card-fraud.jsonld",
                tuple(_event(payment, n) for n, payment in enumerate(payments)),
            ),
        ),
        f"{EXAMPLE}card/kb",
        _knowledge(ledger.cards),
        {"card-fraud": BIG_AFTER_SMALL, "card-fraud-travel": TRAVEL, "card-fraud-stolen": STOLEN},
        {query: tuple(named(match) for match in matches) for query, matches in planted.items()},
    )

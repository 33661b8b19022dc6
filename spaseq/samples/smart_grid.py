"""Smart grid: power, storage and weather of some houses (SPAseq paper, section 2, UC 1).

Power meters and batteries of all houses report every quarter of an hour, at the same instants; two
weather stations report 5 and 10 minutes after.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from pyoxigraph import BlankNode, Literal, Triple

from spaseq.samples._model import (
    EXAMPLE,
    QUDT,
    RDF,
    SCHEMA,
    SOSA,
    UNIT,
    Match,
    SampleEvent,
    SampleStream,
    UseCase,
    about,
    in_order,
    names,
    namespace,
    number,
)

GRID: Final = namespace(f"{EXAMPLE}grid#")
ITEM: Final = namespace(f"{EXAMPLE}grid/")

_START: Final = datetime(2026, 6, 1, tzinfo=UTC)
_STEP: Final = timedelta(minutes=15)
_READINGS: Final = (timedelta(minutes=5), timedelta(minutes=10))
_HOUSES: Final = 4
_STATIONS: Final = 2
_OWNERS: Final = ("Aurélie Blanc", "Bilal Demir", "Chiara Esposito", "Dov Feldman")
_STREETS: Final = ("Quai des Tisserands 3", "Quai des Tisserands 5", "Rue du Four 12", "Rue du Four 14")

SWITCH: Final = """\
# Fuel is dear, the weather then favours renewables for a while, and right after a reading of such
# weather the battery of the house offers power for less: switch to it.
PREFIX grid: <https://w3id.org/spaseq/example/grid#>
PREFIX qudt: <http://qudt.org/schema/qudt/>
PREFIX schema: <https://schema.org/>
PREFIX sosa: <http://www.w3.org/ns/sosa/>

SELECT ?house ?ownerName ?fuelPrice ?storagePrice
       (COUNT(?irradiance) AS ?readings) (MAX(?irradiance) AS ?brightest)
WITHIN 60 MINUTES SLIDING
PARTITION BY ?house
FROM STREAM S1 <https://w3id.org/spaseq/example/grid/stream/power>
FROM STREAM S2 <https://w3id.org/spaseq/example/grid/stream/weather>
FROM STREAM S3 <https://w3id.org/spaseq/example/grid/stream/storage>
FROM NAMED <https://w3id.org/spaseq/example/grid/kb>
WHERE {
  SEQ(A ; B+ , C)
  DEFINE GPM A ON S1 {
    ?reading a grid:PowerReading ; grid:house ?house ; grid:price ?fuelPrice .
    FILTER(?fuelPrice > 0.30)
    GRAPH <https://w3id.org/spaseq/example/grid/kb> {
      ?house grid:owner ?owner .
      ?owner schema:name ?ownerName .
    }
  }
  DEFINE GPM B ON S2 {
    ?observation sosa:madeBySensor ?station ; sosa:hasResult ?result .
    ?result qudt:numericValue ?irradiance .
    FILTER(?irradiance >= 450)
    GRAPH <https://w3id.org/spaseq/example/grid/kb> { ?house grid:nearestStation ?station }
  }
  DEFINE GPM C ON S3 {
    ?state a grid:StorageReading ; grid:house ?house ; grid:price ?storagePrice .
    FILTER(?storagePrice < ?fuelPrice)
  }
}
GROUP BY ?house ?ownerName ?fuelPrice ?storagePrice
"""

ADVICE: Final = """\
# A house draws much power at the instant at which its battery is full; it does so again within the
# same hour, and the battery has not discharged in between: advise to use the battery. The advice is
# a stream for other queries.
PREFIX grid: <https://w3id.org/spaseq/example/grid#>
PREFIX prov: <http://www.w3.org/ns/prov#>

REGISTER STREAM <https://w3id.org/spaseq/example/grid/stream/advice> AS
CONSTRUCT {
  ?later a grid:Advice ; grid:house ?house ; grid:demand ?demand ; prov:wasDerivedFrom ?drawing, ?full .
}
WITHIN 1 HOUR TUMBLING
PARTITION BY ?house
FROM STREAM S1 <https://w3id.org/spaseq/example/grid/stream/power>
FROM STREAM S3 <https://w3id.org/spaseq/example/grid/stream/storage>
WHERE {
  SEQ((P & S) ; !D ; Q)
  DEFINE GPM P ON S1 AS ?drawing {
    ?reading a grid:PowerReading ; grid:house ?house ; grid:demand ?before .
    FILTER(?before >= 4000)
  }
  DEFINE GPM S ON S3 AS ?full {
    ?state a grid:StorageReading ; grid:house ?house ; grid:charge ?charge .
    FILTER(?charge >= 90)
  }
  DEFINE GPM D ON S3 {
    ?discharge a grid:StorageReading ; grid:house ?house ; grid:discharge ?power .
    FILTER(?power > 0)
  }
  DEFINE GPM Q ON S1 {
    ?later a grid:PowerReading ; grid:house ?house ; grid:demand ?demand .
    FILTER(?demand >= 4000)
  }
}
"""


class _Days:
    """Readings of all houses and stations, per step: ordinary ones first, then planted ones."""

    def __init__(self, random: Random, steps: int) -> None:
        self.random = random
        self.steps = steps
        self.fuel = [[self._tariff(k) for k in range(steps)] for _ in range(_HOUSES)]
        self.demand = [[self._demand(k) for k in range(steps)] for _ in range(_HOUSES)]
        self.offer = [[40 + random.randint(0, 5) for _ in range(steps)] for _ in range(_HOUSES)]
        self.charge = [[self._charge(k) for k in range(steps)] for _ in range(_HOUSES)]
        self.discharge = [[0] * steps for _ in range(_HOUSES)]
        self.irradiance = [
            [[self._sun(k, offset) for offset in _READINGS] for k in range(steps)] for _ in range(_STATIONS)
        ]

    def _hour(self, step: int) -> float:
        return (step / 4) % 24

    def _tariff(self, step: int) -> int:
        """Return cents per kWh, higher in the evening, never above 29."""
        evening = math.exp(-(((self._hour(step) - 19) / 2.5) ** 2))
        return min(29, 20 + round(6 * evening) + self.random.randint(-1, 2))

    def _demand(self, step: int) -> int:
        """Return watts: a morning and an evening peak over a base load, never 4,000 or more."""
        morning = math.exp(-(((self._hour(step) - 7.5) / 1.2) ** 2))
        evening = math.exp(-(((self._hour(step) - 19.5) / 2) ** 2))
        return min(3900, round(350 + 1400 * morning + 2100 * evening + self.random.uniform(-120, 300)))

    def _charge(self, step: int) -> int:
        """Return percent: charged by day, discharged by night, never 90 or more."""
        return (
            55 + round(28 * math.sin((self._hour(step) - 11) / 24 * 2 * math.pi)) + self.random.randint(-4, 4)
        )

    def _sun(self, step: int, offset: timedelta) -> int:
        """Return watts per square metre, with passing clouds."""
        hour = self._hour(step) + offset / timedelta(hours=1)
        clear = max(0.0, math.sin((hour - 5.5) / 15 * math.pi)) * 870
        cloud = self.random.uniform(0.15, 0.5) if self.random.random() < 0.2 else self.random.uniform(0.9, 1)
        return round(clear * cloud)


def _station(house: int) -> int:
    return house * _STATIONS // _HOUSES


def _power(days: _Days, house: int, step: int) -> SampleEvent:
    name = f"power-{step:05d}-{house + 1}"
    return SampleEvent(
        ITEM(name),
        _START + step * _STEP,
        about(
            ITEM(f"{name}-reading"),
            [
                (RDF("type"), GRID("PowerReading")),
                (GRID("house"), ITEM(f"house-{house + 1}")),
                (GRID("price"), number(days.fuel[house][step] / 100, 2)),
                (GRID("demand"), Literal(days.demand[house][step])),
            ],
        ),
    )


def _storage(days: _Days, house: int, step: int) -> SampleEvent:
    name = f"storage-{step:05d}-{house + 1}"
    return SampleEvent(
        ITEM(name),
        _START + step * _STEP,
        about(
            ITEM(f"{name}-reading"),
            [
                (RDF("type"), GRID("StorageReading")),
                (GRID("house"), ITEM(f"house-{house + 1}")),
                (GRID("price"), number(days.offer[house][step] / 100, 2)),
                (GRID("charge"), Literal(days.charge[house][step])),
                (GRID("discharge"), Literal(days.discharge[house][step])),
            ],
        ),
    )


def _weather(days: _Days, station: int, step: int, reading: int) -> SampleEvent:
    name = f"weather-{step:05d}-{station + 1}-{reading + 1}"
    observation, result = ITEM(f"{name}-observation"), BlankNode(f"r{step}x{station}x{reading}")
    return SampleEvent(
        ITEM(name),
        _START + step * _STEP + _READINGS[reading],
        about(
            observation,
            [
                (RDF("type"), SOSA("Observation")),
                (SOSA("madeBySensor"), ITEM(f"station-{station + 1}")),
                (SOSA("observedProperty"), GRID("irradiance")),
                (SOSA("hasResult"), result),
            ],
        )
        + about(
            result,
            [
                (QUDT("numericValue"), Literal(days.irradiance[station][step][reading])),
                (QUDT("unit"), UNIT("W-PER-M2")),
            ],
        ),
    )


def _plant_switches(days: _Days) -> list[Match]:
    """Plant an expensive quarter of an hour every few hours in turn for each house, then cheap storage.

    Only here fuel costs at least 33 cents, and storage less than 40. Each house has at most one expensive
    quarter in two hours. By night, or under clouds, no match follows.
    """
    matches: list[Match] = []
    for step in range(6, days.steps - 5, 7):
        house = (step // 7) % _HOUSES
        days.fuel[house][step] = 33 + days.random.randint(0, 4)
        for cheap in sorted(days.random.sample(range(1, 5), 2 if step % 2 else 1)):
            days.offer[house][step + cheap] = 16 + days.random.randint(0, 8)
            station = _station(house)
            sunny = [
                (k, reading)
                for k in range(step, step + cheap)
                for reading in range(len(_READINGS))
                if days.irradiance[station][k][reading] >= 450
            ]
            # The offer counts only right after a sunny reading: any other is followed by a cloudy one, or
            # by its quarter's state of the battery.
            if sunny and sunny[-1] == (step + cheap - 1, len(_READINGS) - 1):
                readings = (_weather(days, station, k, reading) for k, reading in sunny)
                matches.append(
                    {
                        "A": names([_power(days, house, step)]),
                        "B": names(readings),
                        "C": names([_storage(days, house, step + cheap)]),
                    }
                )
    return matches


def _plant_waste(days: _Days) -> list[Match]:
    """Plant high demand and a full battery at once, then high demand two quarters later.

    It matches only if the second half lies in the same hour, without discharge between.
    """
    matches: list[Match] = []
    for turn, step in enumerate(range(9, days.steps - 3, 9)):
        house = (turn * 3) % _HOUSES
        discharging = turn % 3 == 2
        days.charge[house][step] = days.random.randint(90, 99)
        for k in (step, step + 2):
            days.demand[house][k] = 4000 + days.random.randint(0, 1500)
        if discharging:
            days.discharge[house][step + 1] = days.random.randint(300, 2000)
        if step % 4 < 2 and not discharging:
            matches.append(
                {
                    "P": names([_power(days, house, step)]),
                    "S": names([_storage(days, house, step)]),
                    "Q": names([_power(days, house, step + 2)]),
                }
            )
    for step in range(13, days.steps, 31):  # a full battery, or high demand, alone
        days.charge[step % _HOUSES][step] = max(90, days.charge[step % _HOUSES][step])
    return matches


def _knowledge() -> tuple[Triple, ...]:
    triples: list[Triple] = []
    for house in range(_HOUSES):
        beside = house ^ 1
        triples += about(
            ITEM(f"house-{house + 1}"),
            [
                (RDF("type"), GRID("House")),
                (GRID("owner"), ITEM(f"person-{house + 1}")),
                (GRID("neighbour"), ITEM(f"house-{beside + 1}")),
                (GRID("nearestStation"), ITEM(f"station-{_station(house) + 1}")),
                (SCHEMA("streetAddress"), Literal(_STREETS[house])),
                (SCHEMA("addressLocality"), Literal("Saint-Étienne")),
            ],
        )
        triples += about(
            ITEM(f"person-{house + 1}"),
            [(RDF("type"), SCHEMA("Person")), (SCHEMA("name"), Literal(_OWNERS[house]))],
        )
    for station in range(_STATIONS):
        triples += about(
            ITEM(f"station-{station + 1}"),
            [(RDF("type"), SOSA("Sensor")), (SOSA("observes"), GRID("irradiance"))],
        )
    return tuple(triples)


def smart_grid(seed: int, events: int) -> UseCase:
    """Return about ``events`` events of four houses, from midnight of 1 June 2026 on."""
    per_step = 2 * _HOUSES + 2 * _STATIONS
    days = _Days(Random(f"smart grid {seed}"), max(24, events // per_step))
    switches = _plant_switches(days)
    waste = _plant_waste(days)
    steps = range(days.steps)
    power = [_power(days, house, step) for step in steps for house in range(_HOUSES)]
    storage = [_storage(days, house, step) for step in steps for house in range(_HOUSES)]
    weather = [
        _weather(days, station, step, reading)
        for step in steps
        for reading in range(len(_READINGS))
        for station in range(_STATIONS)
    ]
    stream = f"{EXAMPLE}grid/stream/"
    return UseCase(
        "smart-grid",
        {"grid": f"{EXAMPLE}grid#", "g": f"{EXAMPLE}grid/"},
        (
            SampleStream(f"{stream}power", "smart-grid-power.trig", in_order(power)),
            SampleStream(f"{stream}weather", "smart-grid-weather.nq", in_order(weather)),
            SampleStream(f"{stream}storage", "smart-grid-storage.trig", in_order(storage)),
        ),
        f"{EXAMPLE}grid/kb",
        _knowledge(),
        {"smart-grid": SWITCH, "smart-grid-advice": ADVICE},
        {"smart-grid": tuple(switches), "smart-grid-advice": tuple(waste)},
    )

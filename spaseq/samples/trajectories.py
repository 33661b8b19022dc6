"""Trajectories: positions of vessels between harbours and fishing areas (SPAseq paper, section 2, UC 2).

Every vessel reports every ten minutes, all at the same instants. Geofencing is done: a position within a
known place names it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
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
    in_order,
    namespace,
    number,
)

TRAJ: Final = namespace(f"{EXAMPLE}trajectory#")
ITEM: Final = namespace(f"{EXAMPLE}trajectory/")

_START: Final = datetime(2026, 6, 2, 3, tzinfo=UTC)
_STEP: Final = timedelta(minutes=10)

#: Name, kind, latitude, longitude. From both harbours, the anchorage and the first fishing area are
#: about 2 to 3 hours away at 9 knots, the second 4.5 to 5.5, the third 6.5 to 7.5.
_PLACES: Final = (
    ("Port-Tudy", "Harbour", 47.644, -3.446),
    ("Lorient", "Harbour", 47.727, -3.370),
    ("Basse-Neuve", "FishingArea", 47.300, -3.600),
    ("Grand-Banc", "FishingArea", 46.950, -3.600),
    ("Plateau du Large", "FishingArea", 46.650, -3.750),
    ("Les Glénan", "Anchorage", 47.720, -3.990),
)
#: The destination of each kind of trip.
_GOALS: Final = {"fishing": 2, "turning": 2, "slow": 3, "far": 4, "leisure": 5}
#: Upper bounds of the steps of a trip, there and back and in harbour.
_LONGEST: Final = {"fishing": 64, "turning": 68, "slow": 90, "far": 115, "leisure": 64}
#: Vessel, owner, operator.
_VESSELS: Final = (
    ("Petite Ourse", "Maël Guéguen", "Armement de la Rade"),
    ("Skol an Avel", "Nolwenn Le Bris", "Armement de la Rade"),
    ("Santa Rita", "Iker Mendizabal", "Pesquera del Norte"),
    ("Blue Tern", "Fiona Ward", "Tern Charters"),
    ("Hirondelle", "Paul Kervella", "Tern Charters"),
)

TRIPS: Final = """\
# A vessel leaves a harbour, keeps steady speed and course, and stops in a fishing area: a fishing
# trip. The trips are a stream for other queries.
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX schema: <https://schema.org/>
PREFIX traj: <https://w3id.org/spaseq/example/trajectory#>

REGISTER STREAM <https://w3id.org/spaseq/example/trajectory/stream/trips> AS
CONSTRUCT {
  ?arrival a traj:FishingTrip ; traj:vessel ?vessel ; traj:operator ?operator ;
           traj:from ?harbour ; traj:to ?area .
}
WITHIN 6 HOURS SLIDING
PARTITION BY ?vessel
FROM STREAM S <https://w3id.org/spaseq/example/trajectory/stream/positions>
FROM NAMED <https://w3id.org/spaseq/example/trajectory/kb>
WHERE {
  SEQ(A , B+[,] , C)
  DEFINE GPM A ON S {
    ?departure traj:vessel ?vessel ; traj:place ?harbour ; traj:speed ?leaving .
    FILTER(?leaving > 3)
    GRAPH <https://w3id.org/spaseq/example/trajectory/kb> {
      ?harbour a traj:Harbour .
      ?vessel traj:operator ?operator .
    }
  }
  DEFINE GPM B ON S {
    ?position traj:vessel ?vessel ; traj:speed ?speed ; traj:course ?course .
    FILTER(?speed >= 6)
    FILTER(ABS(?course - PREV(?course)) <= 10 && ABS(?speed - PREV(?speed)) <= 2)
  }
  DEFINE GPM C ON S {
    ?arrival traj:vessel ?vessel ; traj:place ?area ; traj:speed ?still .
    FILTER(?still < 1)
    GRAPH <https://w3id.org/spaseq/example/trajectory/kb> { ?area a traj:FishingArea }
  }
}
"""

OVERDUE: Final = """\
# A vessel leaves a harbour and has stopped at no known place for four hours after.
PREFIX schema: <https://schema.org/>
PREFIX traj: <https://w3id.org/spaseq/example/trajectory#>

SELECT ?vesselName ?ownerName ?harbour ?since
WITHIN 4 HOURS SLIDING
PARTITION BY ?vessel
FROM STREAM S <https://w3id.org/spaseq/example/trajectory/stream/positions>
FROM NAMED <https://w3id.org/spaseq/example/trajectory/kb>
WHERE {
  SEQ(A ; !B)
  DEFINE GPM A ON S AT ?since {
    ?departure traj:vessel ?vessel ; traj:place ?harbour ; traj:speed ?leaving .
    FILTER(?leaving > 3)
    GRAPH <https://w3id.org/spaseq/example/trajectory/kb> {
      ?harbour a traj:Harbour .
      ?vessel schema:name ?vesselName ; schema:owner ?owner .
      ?owner schema:name ?ownerName .
    }
  }
  DEFINE GPM B ON S {
    ?arrival traj:vessel ?vessel ; traj:place ?stop ; traj:speed ?still .
    FILTER(?still < 1)
  }
}
"""


@dataclass(frozen=True, slots=True)
class _Report:
    latitude: float
    longitude: float
    speed: float
    course: float
    place: int | None


_Point = tuple[float, float]


def _miles(origin: _Point, goal: _Point) -> _Point:
    """Return nautical miles to the north and to the east, on a plane: the places are near each other."""
    north = (goal[0] - origin[0]) * 60
    return north, (goal[1] - origin[1]) * 60 * math.cos(math.radians(47.2))


class _Voyage:
    """One vessel's reports, step by step, and their planted matches."""

    def __init__(self, random: Random, vessel: int) -> None:
        self.random = random
        self.vessel = vessel
        self.reports: list[_Report] = []
        self.trips: list[Match] = []
        self.overdue: list[Match] = []
        self.harbour = vessel % 2

    def graph(self, step: int) -> str:
        return ITEM(f"position-{step:05d}-{self.vessel + 1}").value

    def stay(self, steps: int, place: int) -> None:
        """Add steps at rest, with a swell of less than half a knot."""
        latitude, longitude = _PLACES[place][2:]
        for _ in range(steps):
            speed, course = self.random.uniform(0, 0.4), self.random.uniform(0, 360)
            self.reports.append(_Report(latitude, longitude, speed, course, place))

    def leave(self) -> int:
        """Add a departure from the harbour; return its step."""
        latitude, longitude = _PLACES[self.harbour][2:]
        speed, course = self.random.uniform(3.5, 5), self.random.uniform(150, 210)
        self.reports.append(_Report(latitude, longitude, speed, course, self.harbour))
        return len(self.reports) - 1

    def cruise(self, points: Sequence[_Point]) -> None:
        """Add straight legs at 8.8 to 9.6 knots; reports err by up to 0.8 knots and 4 degrees."""
        pace = self.random.uniform(8.8, 9.6) / 6  # miles per step
        for origin, goal in pairwise(points):
            north, east = _miles(origin, goal)
            steps = round(math.hypot(north, east) / pace)
            for step in range(1, steps + 1):
                part = step / (steps + 1)
                self.reports.append(
                    _Report(
                        origin[0] + part * (goal[0] - origin[0]),
                        origin[1] + part * (goal[1] - origin[1]),
                        pace * 6 + self.random.uniform(-0.8, 0.8),
                        math.degrees(math.atan2(east, north)) + self.random.uniform(-4, 4),
                        None,
                    )
                )

    def trip(self, kind: str) -> None:
        """Add a departure from the harbour, a passage of the given kind, and the way home.

        The window of 6 hours is 36 steps, the one of 4 hours 24: every kind is clearly inside or outside.
        """
        departure = self.leave()
        place = _GOALS[kind]
        home, goal = _PLACES[self.harbour][2:], _PLACES[place][2:]
        # A detour by half the distance from the middle: the course changes by some 50 degrees there.
        aside = (
            (home[0] + goal[0]) / 2 + (goal[1] - home[1]) / 4,
            (home[1] + goal[1]) / 2 - (goal[0] - home[0]) / 4,
        )
        self.cruise([home, aside, goal] if kind == "turning" else [home, goal])
        arrival = len(self.reports)
        self.stay(self.random.randint(5, 8), place)
        if kind in ("fishing", "slow"):
            self.trips.append(
                {
                    "A": (self.graph(departure),),
                    "B": tuple(self.graph(step) for step in range(departure + 1, arrival)),
                    "C": (self.graph(arrival),),
                }
            )
        if kind in ("slow", "far"):
            self.overdue.append({"A": (self.graph(departure),)})
        self.cruise([goal, home])
        self.stay(self.random.randint(4, 11), self.harbour)


def _voyages(random: Random, steps: int) -> Iterator[_Voyage]:
    """Yield the vessels, each with all kinds of trips in turn as time allows."""
    kinds = list(_GOALS)
    for vessel in range(len(_VESSELS)):
        voyage = _Voyage(random, vessel)
        voyage.stay(random.randint(2, 7), voyage.harbour)
        turn = vessel
        while len(voyage.reports) + min(_LONGEST.values()) <= steps:
            kind = kinds[turn % len(kinds)]
            if len(voyage.reports) + _LONGEST[kind] <= steps:
                voyage.trip(kind)
            turn += 1
        voyage.stay(steps - len(voyage.reports), voyage.harbour)
        yield voyage


def _event(vessel: int, step: int, report: _Report) -> SampleEvent:
    name = f"position-{step:05d}-{vessel + 1}"
    place = [] if report.place is None else [(TRAJ("place"), ITEM(f"place-{report.place + 1}"))]
    return SampleEvent(
        ITEM(name),
        _START + step * _STEP,
        about(
            ITEM(f"{name}-report"),
            [
                (RDF("type"), TRAJ("Position")),
                (TRAJ("vessel"), ITEM(f"vessel-{vessel + 1}")),
                (GEO("lat"), number(report.latitude, 4)),
                (GEO("long"), number(report.longitude, 4)),
                (TRAJ("speed"), number(report.speed, 1)),
                (TRAJ("course"), Literal(round(report.course) % 360)),
                *place,
            ],
        ),
    )


def _knowledge() -> tuple[Triple, ...]:
    triples: list[Triple] = []
    for place, (name, kind, latitude, longitude) in enumerate(_PLACES):
        triples += about(
            ITEM(f"place-{place + 1}"),
            [
                (RDF("type"), TRAJ(kind)),
                (SCHEMA("name"), Literal(name)),
                (GEO("lat"), number(latitude, 3)),
                (GEO("long"), number(longitude, 3)),
            ],
        )
    for vessel, (name, owner, operator) in enumerate(_VESSELS):
        triples += about(
            ITEM(f"vessel-{vessel + 1}"),
            [
                (RDF("type"), TRAJ("Vessel")),
                (SCHEMA("name"), Literal(name)),
                (SCHEMA("owner"), ITEM(f"person-{vessel + 1}")),
                (TRAJ("operator"), Literal(operator)),
            ],
        )
        triples += about(
            ITEM(f"person-{vessel + 1}"),
            [(RDF("type"), SCHEMA("Person")), (SCHEMA("name"), Literal(owner))],
        )
    return tuple(triples)


def trajectories(seed: int, events: int) -> UseCase:
    """Return about ``events`` positions of five vessels, from 3 o'clock of 2 June 2026 on."""
    steps = max(120, events // len(_VESSELS))
    voyages = list(_voyages(Random(f"trajectories {seed}"), steps))
    positions = (
        _event(voyage.vessel, step, report)
        for voyage in voyages
        for step, report in enumerate(voyage.reports)
    )
    return UseCase(
        "trajectories",
        {"traj": f"{EXAMPLE}trajectory#", "t": f"{EXAMPLE}trajectory/"},
        (
            SampleStream(
                f"{EXAMPLE}trajectory/stream/positions", "trajectories.messages", in_order(positions)
            ),
        ),
        f"{EXAMPLE}trajectory/kb",
        _knowledge(),
        {"trajectories": TRIPS, "trajectories-overdue": OVERDUE},
        {
            "trajectories": tuple(match for voyage in voyages for match in voyage.trips),
            "trajectories-overdue": tuple(match for voyage in voyages for match in voyage.overdue),
        },
    )

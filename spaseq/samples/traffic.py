"""Traffic: speed sensors on the road segments of two districts (SPAseq paper, section 2, UC 5).

All sensors report every two minutes at the same instants: those of a district in one stream, in
any order, so arrival decides within a district and reports of two districts are simultaneous.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from pyoxigraph import Literal, NamedNode, Triple

from spaseq.samples._model import (
    EXAMPLE,
    GEO,
    RDF,
    SOSA,
    Match,
    SampleEvent,
    SampleStream,
    UseCase,
    about,
    namespace,
    number,
)

TRAFFIC: Final = namespace(f"{EXAMPLE}traffic#")
ITEM: Final = namespace(f"{EXAMPLE}traffic/")

_START: Final = datetime(2026, 6, 5, 6, 30, tzinfo=UTC)
_STEP: Final = timedelta(minutes=2)
_WITHIN: Final = timedelta(minutes=10)
_TUMBLE: Final = timedelta(minutes=30)
_CONGESTED: Final = 15
_SEGMENTS: Final = 12
_DISTRICTS: Final = ("north", "south")
_ROADS: Final = ("Ring", "Avenue", "Street")
#: Segment → the segments that flow into it; 0 to 5 are in the north, 6 to 11 in the south.
_UPSTREAM: Final = {0: (1, 2), 3: (4, 6), 5: (11,), 6: (7, 8), 9: (10,), 10: (2,)}

SPREADING: Final = """\
# A road segment is congested, and then one or more of the segments that flow into it.
PREFIX traffic: <https://w3id.org/spaseq/example/traffic#>

SELECT ?segment ?speed (COUNT(?neighbour) AS ?reports) (MIN(?speed2) AS ?slowest)
WITHIN 10 MINUTES SLIDING
FROM STREAM N <https://w3id.org/spaseq/example/traffic/stream/north>
FROM STREAM S <https://w3id.org/spaseq/example/traffic/stream/south>
FROM NAMED <https://w3id.org/spaseq/example/traffic/kb>
WHERE {
  SEQ(A ; B+)
  DEFINE GPM A ON N, S {
    ?report traffic:segment ?segment ; traffic:speed ?speed .
    FILTER(?speed < 15)
  }
  DEFINE GPM B ON N, S {
    ?report2 traffic:segment ?neighbour ; traffic:speed ?speed2 .
    FILTER(?speed2 < 15)
    GRAPH <https://w3id.org/spaseq/example/traffic/kb> { ?neighbour traffic:flowsInto ?segment }
  }
}
GROUP BY ?segment ?speed
"""

UNEXPLAINED: Final = """\
# Congestion on a segment gets worse, and no incident there has been reported in between.
PREFIX traffic: <https://w3id.org/spaseq/example/traffic#>

SELECT ?segment ?road ?since ?speed1 ?speed2
WITHIN 30 MINUTES TUMBLING
PARTITION BY ?segment
FROM STREAM N <https://w3id.org/spaseq/example/traffic/stream/north>
FROM STREAM S <https://w3id.org/spaseq/example/traffic/stream/south>
FROM STREAM I <https://w3id.org/spaseq/example/traffic/stream/incidents>
FROM NAMED <https://w3id.org/spaseq/example/traffic/kb>
WHERE {
  SEQ(A ; !X ; B)
  DEFINE GPM A ON N, S AT ?since {
    ?report1 traffic:segment ?segment ; traffic:speed ?speed1 .
    FILTER(?speed1 < 15)
    GRAPH <https://w3id.org/spaseq/example/traffic/kb> { ?segment traffic:road ?road }
  }
  DEFINE GPM X ON I { ?incident a traffic:Incident ; traffic:segment ?segment . }
  DEFINE GPM B ON N, S {
    ?report2 traffic:segment ?segment ; traffic:speed ?speed2 .
    FILTER(?speed2 < ?speed1)
  }
}
"""


def _district(segment: int) -> str:
    return _DISTRICTS[segment * len(_DISTRICTS) // _SEGMENTS]


class _City:
    """Speeds of all segments per step (kilometres an hour, one digit after the point), and incidents."""

    def __init__(self, random: Random, steps: int) -> None:
        self.random = random
        self.steps = steps
        self.speed = [[self._flowing(step) for _ in range(_SEGMENTS)] for step in range(steps)]
        #: The segments in the order in which they report at each step.
        self.order = [random.sample(range(_SEGMENTS), _SEGMENTS) for _ in range(steps)]
        self.incidents: set[tuple[int, int]] = set()  # (step, segment): a minute after the step

    def _flowing(self, step: int) -> float:
        """Return a speed: slower at the rush hour, never below 22."""
        hour = 6.5 + step * (_STEP / timedelta(hours=1))
        rush = math.exp(-((((hour % 24) - 8.2) / 0.9) ** 2))
        return round(max(22.0, 48 - 18 * rush + self.random.uniform(-5, 5)), 1)

    def slow(self, step: int, segment: int) -> None:
        """Mark one report as congested."""
        self.speed[step][segment] = round(self.random.uniform(3, 14), 1)

    def reports(self) -> Iterator[tuple[int, int]]:
        """Yield all (step, segment) in order of arrival."""
        return ((step, segment) for step in range(self.steps) for segment in self.order[step])

    def congested(self) -> list[tuple[int, int]]:
        """Return the congested (step, segment)."""
        return [(step, s) for step, s in self.reports() if self.speed[step][s] < _CONGESTED]

    def precedes(self, one: tuple[int, int], two: tuple[int, int]) -> bool:
        """Return whether a report precedes another: arrival decides within a district, not between two."""
        if one[0] != two[0]:
            return one[0] < two[0]
        order = self.order[one[0]]
        return _district(one[1]) == _district(two[1]) and order.index(one[1]) < order.index(two[1])


def _graph(step: int, segment: int) -> str:
    return ITEM(f"report-{step:05d}-{segment + 1}").value


def _report(city: _City, step: int, segment: int) -> SampleEvent:
    name = ITEM(f"report-{step:05d}-{segment + 1}")
    speed = city.speed[step][segment]
    return SampleEvent(
        name,
        _START + step * _STEP,
        about(
            NamedNode(f"{name.value}-observation"),
            [
                (RDF("type"), SOSA("Observation")),
                (TRAFFIC("segment"), ITEM(f"segment-{segment + 1}")),
                (TRAFFIC("speed"), number(speed, 1)),
                (TRAFFIC("vehicles"), Literal(round(speed * 0.8) + step % 5)),
            ],
        ),
    )


def _incident(step: int, segment: int) -> SampleEvent:
    name = f"incident-{step:05d}-{segment + 1}"
    return SampleEvent(
        ITEM(name),
        _START + step * _STEP + _STEP / 2,
        about(
            ITEM(f"{name}-notice"),
            [
                (RDF("type"), TRAFFIC("Incident")),
                (TRAFFIC("segment"), ITEM(f"segment-{segment + 1}")),
                (TRAFFIC("kind"), TRAFFIC(("Accident", "Breakdown", "RoadWorks")[step % 3])),
            ],
        ),
    )


def _plant(city: _City) -> None:
    """Plant jams that spread upstream or do not, and incidents: one plant every 16 minutes."""
    random = city.random
    for turn, step in enumerate(range(4, city.steps - 8, 8)):
        if turn % 4 == 3:  # congestion that lasts, and spreads nowhere
            alone = random.choice([1, 4, 7, 8])
            for k in range(3):
                city.slow(step + k, alone)
            if turn % 8 == 3:
                city.incidents.add((step, alone))
            continue
        segment = random.choice(list(_UPSTREAM))
        city.slow(step, segment)
        if random.random() < 0.5:
            city.slow(step + 1, segment)
        for upstream in _UPSTREAM[segment]:
            for k in random.sample(range(5), 2):
                city.slow(step + k, upstream)
        if random.random() < 0.4:
            city.incidents.add((step + random.randrange(3), segment))
    for step in range(7, city.steps, 19):  # incidents elsewhere
        city.incidents.add((step, random.randrange(_SEGMENTS)))


def _chains(
    city: _City, last: tuple[int, int], reports: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield all chains from a report to the next of these (two, if simultaneous), and so on."""
    after = [report for report in reports if city.precedes(last, report)]
    for report in after:
        if not any(city.precedes(between, report) for between in after):
            yield (report,)
            for rest in _chains(city, report, after):
                yield (report, *rest)


def _spreading(city: _City) -> Iterator[Match]:
    """Yield every congested report, with every chain of congested ones upstream that begins next to it."""
    congested = city.congested()
    for start in congested:
        reach = [
            (step, segment)
            for step, segment in congested
            if segment in _UPSTREAM.get(start[1], ()) and 0 <= step - start[0] <= _WITHIN // _STEP
        ]
        for chain in _chains(city, start, reach):
            yield {"A": (_graph(*start),), "B": tuple(_graph(*report) for report in chain)}


def _unexplained(city: _City) -> Iterator[Match]:
    """Yield every congested report with the next slower one, if there is no incident between."""
    for step, segment in city.congested():
        window = step // (_TUMBLE // _STEP)
        for later in range(step + 1, min(city.steps, (window + 1) * (_TUMBLE // _STEP))):
            if city.speed[later][segment] < city.speed[step][segment]:
                if not any((between, segment) in city.incidents for between in range(step, later)):
                    yield {"A": (_graph(step, segment),), "B": (_graph(later, segment),)}
                break


def _knowledge() -> tuple[Triple, ...]:
    triples: list[Triple] = []
    for segment in range(_SEGMENTS):
        downstream = [s for s, upstream in _UPSTREAM.items() if segment in upstream]
        triples += about(
            ITEM(f"segment-{segment + 1}"),
            [
                (RDF("type"), TRAFFIC("RoadSegment")),
                (TRAFFIC("road"), Literal(f"{_ROADS[segment % 3]} {1 + segment // 3}")),
                (TRAFFIC("district"), Literal(_district(segment))),
                (GEO("lat"), number(45.43 + 0.003 * (segment // 4), 4)),
                (GEO("long"), number(4.38 + 0.004 * (segment % 4), 4)),
                *((TRAFFIC("flowsInto"), ITEM(f"segment-{s + 1}")) for s in downstream),
            ],
        )
    return tuple(triples)


def traffic(seed: int, events: int) -> UseCase:
    """Return about ``events`` reports of twelve segments, from half past 6 of 5 June 2026 on."""
    city = _City(Random(f"traffic {seed}"), max(60, events // _SEGMENTS))
    _plant(city)

    def reports(district: str) -> tuple[SampleEvent, ...]:
        return tuple(
            _report(city, step, segment) for step, segment in city.reports() if _district(segment) == district
        )

    stream = f"{EXAMPLE}traffic/stream/"
    return UseCase(
        "traffic",
        {"traffic": f"{EXAMPLE}traffic#", "r": f"{EXAMPLE}traffic/"},
        (
            SampleStream(f"{stream}north", "traffic-north.trig", reports("north")),
            SampleStream(f"{stream}south", "traffic-south.trig", reports("south")),
            SampleStream(
                f"{stream}incidents",
                "traffic-incidents.nt",
                tuple(_incident(step, segment) for step, segment in sorted(city.incidents)),
                "triples=4",
            ),
        ),
        f"{EXAMPLE}traffic/kb",
        _knowledge(),
        {"traffic": SPREADING, "traffic-unexplained": UNEXPLAINED},
        {"traffic": tuple(_spreading(city)), "traffic-unexplained": tuple(_unexplained(city))},
    )

"""What is asked of every engine: workloads, as each engine says them, and the events that all of them read.

An event is a row ``id,kind,key,v`` of small numbers, ``id`` its time and place. Where a peer cannot say what
a workload asks, or says something else, there is a reason in place of its query.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
_TIME: Final = "http://www.w3.org/ns/prov#generatedAtTime"

Row = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Unsaid:
    """Why an engine does not run a workload."""

    reason: str


@dataclass(frozen=True, slots=True)
class Workload:
    """``ours`` are queries of SPAseq, ``peers`` per peer the text that its driver reads."""

    name: str
    says: str
    ours: tuple[str, ...]
    peers: Mapping[str, str | Unsaid]
    events: int
    kinds: int = 10
    keys: int = 5
    #: One event after another, each answered before the next.
    single: bool = False

    def rows(self, events: int | None = None) -> list[Row]:
        """Its events, the same each time."""
        rng = random.Random(14)
        return [
            (i, rng.randrange(self.kinds), rng.randrange(self.keys), rng.randrange(10_000))
            for i in range(self.events if events is None else events)
        ]


def csv(rows: list[Row]) -> bytes:
    """The rows with a header."""
    return "".join(["id,kind,key,v\n", *(f"{i},{kind},{key},{v}\n" for i, kind, key, v in rows)]).encode()


def triples(row: Row) -> list[str]:
    """An event's triples in N-Triples, without the dot."""
    i, *values = row
    return [
        f'<urn:e{i}> <urn:{name}> "{value}"^^<{_INTEGER}>'
        for name, value in zip(("kind", "key", "v"), values, strict=True)
    ]


def n_quads(rows: list[Row]) -> bytes:
    """The same as a named graph each: three triples, and its time."""
    lines = []
    for row in rows:
        lines += [f"{triple} <urn:e{row[0]}> .\n" for triple in triples(row)]
        lines.append(f'<urn:e{row[0]}> <{_TIME}> "{row[0]}"^^<{_INTEGER}> .\n')
    return "".join(lines).encode()


def _ours(seq: str, window: int, gpms: Mapping[str, str], partition: bool = False) -> str:
    return (
        f"PREFIX : <urn:> SELECT * WITHIN {window} SECONDS SLIDING {'PARTITION BY ?k' if partition else ''} "
        f"FROM STREAM S <urn:s> WHERE {{ SEQ({seq}) "
        + " ".join(f"DEFINE GPM {name} ON S {{ [] {body} }}" for name, body in gpms.items())
        + " }"
    )


def _kinds(keyed: bool, **filters: str) -> dict[str, str]:
    """A GPM for each of the first three kinds, its number in a variable of its own."""
    return {
        name: f":kind {i} ; {':key ?k ; ' if keyed else ''}:v ?{name.lower()} . {filters.get(name, '')}"
        for i, name in enumerate("ABC")
    }


def _any(window: int, b: str = "", c: str = "") -> str:
    """``A : B : C`` for Esper: a join of windows; ``every a -> every b -> every c`` took up to twice that."""
    span = f"#time({window + 1} milliseconds)"
    conditions = " and ".join(filter(None, ("a.id < b.id", b, c)))
    return (
        f"select * from E(kind=2) as c unidirectional, E(kind=0){span} as a, E(kind=1){span} as b "
        f"where {conditions}"
    )


def _rows(window: int, pattern: str, define: str) -> str:
    names = [name.strip("+") for name in pattern.split()]
    return (
        f"select * from E#time({window + 1} milliseconds) match_recognize (partition by key "
        f"measures {', '.join(f'{name} as {name}' for name in names)} all matches "
        f"after match skip to next row pattern ({pattern}) define {define})"
    )


def _alert(i: int) -> tuple[int, int, int]:
    return i // 5, 6_000 + 100 * (i % 30), 2_500 + 100 * (i % 7)


def _of_one_pattern(count: int, events: int) -> Workload:
    """Alerts whose constants stand in one graph pattern only."""
    ours, esper = [], []
    for share, above, _ in map(_alert, range(count)):
        bodies = {
            "A": f":key {share} ; :v ?a . FILTER(?a > {above})",
            "B": ":v ?b . FILTER(?b < ?a - 2500)",
        }
        ours.append(_ours("A ; B", 1_000, bodies))
        esper.append(
            f"select * from pattern [every a=E(key={share}, v > {above}) -> b=E(v < a.v - 2500) "
            "where timer:within(1001 milliseconds)]"
        )
    return Workload(
        f"queries-{count}-one-pattern",
        f"{count:,} registered alerts `A ; B` whose constants stand in `A` only, 1,000",
        tuple(ours),
        {"esper": "\n---\n".join(esper), "flink": f"first 1000 {count}"},
        events,
        keys=max(count // 5, 1),
    )


def _many(count: int, events: int, flink: str | Unsaid) -> Workload:
    ours, esper = [], []
    for share, above, loss in map(_alert, range(count)):
        bodies = {
            "A": f":key {share} ; :v ?a . FILTER(?a > {above})",
            "B": f":key {share} ; :v ?b . FILTER(?b < ?a - {loss})",
        }
        ours.append(_ours("A ; B", 1_000, bodies))
        esper.append(
            f"select * from pattern [every a=E(key={share}, v > {above}) -> "
            f"b=E(key={share}, v < a.v - {loss}) where timer:within(1001 milliseconds)]"
        )
    return Workload(
        f"queries-{count}",
        f"{count:,} registered alerts `A ; B` of {max(count // 5, 1)} shares, 1,000",
        tuple(ours),
        {"esper": "\n---\n".join(esper), "flink": flink},
        events,
        keys=max(count // 5, 1),
    )


_NEXT_ESPER: Final = (
    "select * from pattern [every a=E(kind=0) -> (b=E(kind=1, key=a.key) -> c=E(kind=2, key=a.key)) "
    "where timer:within(101 milliseconds)]"
)
#: Not by match_recognize: a match there ends those that began before it and are not complete.
_V_ESPER: Final = (
    "select * from pattern [every a=E -> ([1:] b=E(key=a.key, v < a.v) until c=E(key=a.key, v >= a.v)) "
    "where timer:within(101 milliseconds)] where c.v > a.v"
)
_THREE_NEXT: Final = _ours("A ; B ; C", 100, _kinds(True), partition=True)
_V_SHAPE: Final = {
    "A": ":key ?k ; :v ?a",
    "B": ":key ?k ; :v ?b . FILTER(?b < ?a)",
    "C": ":key ?k ; :v ?c . FILTER(?c > ?a)",
}

WORKLOADS: Final = (
    Workload(
        "any",
        "`A : B : C`, 100",
        (_ours("A : B : C", 100, _kinds(False)),),
        {"esper": _any(100), "flink": "any 100"},
        200_000,
    ),
    Workload(
        "next",
        "`A ; B ; C` by key, 100",
        (_THREE_NEXT,),
        {"esper": _NEXT_ESPER, "flink": "next 100"},
        400_000,
    ),
    Workload(
        "rising",
        "`A : B : C` with `?b > ?a`, `?c > ?b`, 1,000",
        (_ours("A : B : C", 1_000, _kinds(False, B="FILTER(?b > ?a)", C="FILTER(?c > ?b)")),),
        {"esper": _any(1_000, "a.v < b.v", "b.v < c.v"), "flink": "rising 1000"},
        30_000,
    ),
    Workload(
        "strict",
        "`A , B , C` by key, 100",
        (_ours("A , B , C", 100, _kinds(True), partition=True),),
        {
            "esper": _rows(100, "a b c", "a as a.kind = 0, b as b.kind = 1, c as c.kind = 2"),
            "flink": "strict 100",
        },
        400_000,
        kinds=3,
    ),
    Workload(
        "v",
        "`A , B+[,] , C` by key, `?b < ?a`, `?c > ?a`, 100",
        (_ours("A , B+[,] , C", 100, _V_SHAPE, partition=True),),
        {"esper": _V_ESPER, "flink": "v 100"},
        200_000,
    ),
    Workload(
        "kleene",
        "`A ; B+ , C` by key, `?b < ?a`, `?c > ?a`, 50",
        (_ours("A ; B+ , C", 50, _V_SHAPE, partition=True),),
        {
            "esper": Unsaid("`b until c` gives the longest loop only, match_recognize skips no row"),
            "flink": "kleene 50",
        },
        100_000,
    ),
    Workload(
        "negation",
        "`A ; !B ; C` by key, 100",
        (_ours("A ; !B ; C", 100, _kinds(True), partition=True),),
        {
            "esper": "select * from pattern [every a=E(kind=0) -> (c=E(kind=2, key=a.key) "
            "and not E(kind=1, key=a.key)) where timer:within(101 milliseconds)]",
            "flink": "negation 100",
        },
        400_000,
    ),
    _many(32, 100_000, "alerts 1000 32"),
    _of_one_pattern(32, 100_000),
    _many(1_000, 50_000, Unsaid("a job of 1,000 operators, to each of which every event goes")),
    Workload(
        "push",
        "`A ; B ; C` by key, 100, one event at a time",
        (_THREE_NEXT,),
        {"esper": _NEXT_ESPER, "flink": Unsaid("a job takes a stream; no call answers for one event")},
        50_000,
        single=True,
    ),
)

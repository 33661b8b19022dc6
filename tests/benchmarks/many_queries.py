"""The sets of queries that ``many`` runs, and the events that they are about."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import pyarrow as pa

import spaseq

_TIME: Final = "http://www.w3.org/ns/prov#generatedAtTime"
_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
_HEAD: Final = "PREFIX : <urn:> SELECT * WITHIN {window} SECONDS SLIDING FROM STREAM S <urn:s> WHERE {{"
_ALERT: Final = (
    _HEAD
    + """ SEQ(A ; B)
      DEFINE GPM A ON S {{ {share} :price ?bought . FILTER(?bought > {bound}) }}
      DEFINE GPM B ON S {{ {share} :price ?now . FILTER(?now < ?bought - {loss}) }} }}"""
)
_UNLIKE: Final = (
    _HEAD
    + """ SEQ(A {operator} B)
      DEFINE GPM A ON S {{ ?x :bought{i} ?bought }}
      DEFINE GPM B ON S {{ ?x :price{i} ?now . FILTER(?now > ?bought + {i}) }} }}"""
)
_PREFIX: Final = (
    _HEAD
    + """ SEQ(A {operator} B {operator} C)
      DEFINE GPM A ON S {{ ?s :a ?a }} DEFINE GPM B ON S {{ ?s :b ?b }}
      DEFINE GPM C ON S {{ ?s :c{i} ?c {filter} }} }} {after}"""
)
#: Queries that begin alike by the matcher that runs them: operator, filter, what follows.
PREFIXES: Final = {
    "tecs": (":", "", ""),
    "nfa": (";", "", ""),
    "nfa, skip": (";", "", "AFTER MATCH SKIP PAST LAST EVENT"),
    "lazy": (":", "FILTER(?c > ?a + ?b)", ""),
}
#: Alerts of one template for each share.
A_SHARE: Final = 5


@dataclass(frozen=True, slots=True)
class Events:
    """One integer of one node an event, by a predicate; ten events a second."""

    subjects: Sequence[str]
    predicates: Sequence[str]
    values: Sequence[int]

    def __len__(self) -> int:
        return len(self.values)

    def columns(self) -> Callable[[], spaseq.Source]:
        """What makes a source of columns, which are there before the clock starts."""
        rows = {"s": self.subjects, "p": self.predicates, "v": self.values}
        table = pa.table({"at": [i // 10 for i in range(len(self))], **rows})
        return lambda: spaseq.Source(
            "urn:s", spaseq.table(table, time="at", template="<urn:{s}> <urn:{p}> ?v .")
        )

    def quads(self) -> Callable[[], spaseq.Source]:
        """What makes a source of N-Quads."""
        lines = []
        for i, (s, p, v) in enumerate(zip(self.subjects, self.predicates, self.values, strict=True)):
            lines.append(f'<urn:{s}> <urn:{p}> "{v}"^^<{_INTEGER}> <urn:e{i}> .\n')
            lines.append(f'<urn:e{i}> <{_TIME}> "{i // 10}"^^<{_INTEGER}> .\n')
        text = "".join(lines).encode()
        return lambda: spaseq.Source("urn:s", BytesIO(text), spaseq.SourceOptions(format="nq"))


def drawn(count: int, subjects: int, predicates: Sequence[str]) -> Events:
    """So many events; subjects, predicates and values up to 100 by lot."""
    rng = random.Random(5)
    return Events(
        [f"s{rng.randrange(subjects)}" for _ in range(count)],
        [rng.choice(predicates) for _ in range(count)],
        [rng.randint(0, 100) for _ in range(count)],
    )


def third_and_third(count: int) -> list[str]:
    """Predicates for queries that begin alike: a third ``a``, a third ``b``, a third each its own."""
    return ["a", "b"] * count + [f"c{i}" for i in range(count)]


def anyone() -> spaseq.Query:
    """An alert of all shares."""
    return spaseq.prepare(_ALERT.format(window=100, share="?share", bound=80, loss=30))


def alerts(count: int) -> list[str]:
    """Alerts of one template, which differ in share and numbers."""
    rows: Iterator[tuple[str, int, int]] = (
        (f":s{i // A_SHARE}", 60 + i % 30, 25 + i % 7) for i in range(count)
    )
    return [_ALERT.format(window=100, share=share, bound=bound, loss=loss) for share, bound, loss in rows]


def prefixed(matcher: str, count: int) -> list[spaseq.Query]:
    """Queries of three elements, the first two of which are the same."""
    operator, condition, after = PREFIXES[matcher]
    return [
        spaseq.prepare(_PREFIX.format(window=100, operator=operator, i=i, filter=condition, after=after))
        for i in range(count)
    ]


def unlike(count: int) -> list[str]:
    """Queries that have nothing in common: each has predicates of its own, so that an event concerns one."""
    return [_UNLIKE.format(window=10, operator=";:,"[i % 3], i=i) for i in range(count)]


def apart(count: int) -> list[spaseq.Query]:
    """Queries that share nothing but their events, each of which may concern all: no window is another's."""
    return [
        spaseq.prepare(_ALERT.format(window=100 + i, share="?share", bound=60 + i, loss=40 - i % 30))
        for i in range(count)
    ]

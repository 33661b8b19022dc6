"""Events that are pushed one by one, with a callback: what each of them costs, by operator and by stream."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from statistics import mean, quantiles
from typing import Final

import spaseq
from tests.benchmarks.measure import Measurement, check

_S: Final = "http://example.org/s"
_T: Final = "http://example.org/t"
#: So many events come before those that are measured: they are kept to say why there is no match.
_BEFORE: Final = 2_500
_OPERATORS: Final = (
    "A ; B",
    "A ; !C ; B",
    "A ; B+ ; C",
    "A : B",
    "A : B+[:] : C",
    "ALL(A, B)",
    "A ; B , C",
    "A , B",
)

#: A stream, a text, and a time.
Pushed = tuple[str, str, int]


def query(sequence: str, *, of_two: bool) -> str:
    """A sequence of readings of meters above 50, of others, and of calls, which may be of a second stream."""
    gpms = {
        "A": "A ON S { ?m <urn:k0> ?a FILTER(?a > 50) }",
        "B": "B ON S { ?m <urn:k1> ?b }",
        "C": f"C ON {'T' if of_two else 'S'} {{ ?m <urn:c> ?c }}",
    }
    used = " ".join(f"DEFINE GPM {gpm}" for name, gpm in gpms.items() if name in sequence)
    other = f"FROM STREAM T <{_T}>" if of_two else ""
    return f"SELECT * WITHIN 50 SECONDS FROM STREAM S <{_S}> {other} WHERE {{ SEQ({sequence}) {used} }}"


def events(count: int, *, of_two: bool, others: int = 0) -> list[Pushed]:
    """``others``: for each kind that a query asks for, so many that concern it not."""
    rng, found, at = random.Random(1), [], 0
    for number in range(count):
        at += rng.randint(0, 2)
        meter, kind = rng.randint(0, 50), rng.randrange(2 * (1 + others))
        if rng.random() < 0.1:
            found.append((_T if of_two else _S, f"<urn:m{meter}> <urn:c> {number} .", at))
        else:
            found.append((_S, f"<urn:m{meter}> <urn:k{kind}> {rng.randint(0, 100)} .", at))
    return found


def costs(text: str, pushed: list[Pushed]) -> tuple[list[float], int]:
    """Microseconds of processor time of the events that concern the query, and how many matches it has."""
    engine, matches, taken = spaseq.Engine(), 0, []

    def count(_: spaseq.Match) -> None:
        nonlocal matches
        matches += 1

    engine.register(text, count)
    concerning = tuple(kind for kind in ("<urn:k0>", "<urn:k1>", "<urn:c>") if kind in text)
    for number, event in enumerate(pushed):
        begin = time.thread_time_ns()
        engine.push(*event)
        end = time.thread_time_ns()
        if number >= _BEFORE and any(kind in event[1] for kind in concerning):
            taken.append((end - begin) / 1_000)
    return taken, matches


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each operator over one stream and over two, and where few events concern the query."""
    count = _BEFORE + (500 if quick else 8_000)
    base: float | None = None
    for sequence in _OPERATORS:
        found = []
        for of_two, others in ((False, 0), (True, 0), (False, 9)):
            taken, matches = costs(
                query(sequence, of_two=of_two), events(count, of_two=of_two, others=others)
            )
            median, worst = quantiles(taken, n=100)[49], quantiles(taken, n=100)[98]
            base = base or median
            case = "of two streams" if of_two else "one in ten events" if others else "of one stream"
            facts = {"p50 in µs": median, "mean": mean(taken), "p99": worst, "matches": matches}
            yield Measurement("pushed", f"{sequence}, {case}", median / base, "A ; B", facts=facts)
            found.append(matches)
        if "C" not in sequence and "," not in sequence.replace(
            "ALL(A, B)", ""
        ):  # which asks what came between
            check(sequence, found[1], found[0])

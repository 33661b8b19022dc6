"""Events that are pushed one by one, with a callback: what each of them costs, by operator and by stream."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
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
    "A ; !C",
    "A ; B?",
    "A ; B , C",
    "A , B",
)
_SKIP: Final = "AFTER MATCH SKIP PAST LAST EVENT"
#: What SKIP is measured with.
_SKIPPING: Final = ("A ; B", "A ; B+ ; C", "A+[,] , B")
#: What A has besides, which is more than a join of triples and filters.
_MORE: Final = {
    "OPTIONAL": "OPTIONAL { ?m <urn:w> ?w }",
    "BIND": "BIND(?a + 1 AS ?w)",
    "UNION": "{ ?m <urn:k0> ?w } UNION { ?m <urn:k1> ?w }",
    "a path": "?m (<urn:k0>|<urn:w>)+ ?w",
    "NOT EXISTS": "FILTER NOT EXISTS { ?m <urn:w> ?w }",
}
_TOGETHER: Final = (2, 8, 32)

#: A stream, a text, and a time.
Pushed = tuple[str, str, int]


def query(sequence: str, *, of_two: bool = False, more: str = "", least: int = 50, seconds: int = 50) -> str:
    """A sequence of readings of meters above 50, of others, and of calls, which may be of a second stream.

    ``more``: what else a reading has; ``seconds``: the window.
    """
    sequence, _, skip = sequence.partition(" AFTER ")
    after = f"AFTER {skip}" if skip else ""
    gpms = {
        "A": f"A ON S {{ ?m <urn:k0> ?a FILTER(?a > {least}) {more} }}",
        "B": "B ON S { ?m <urn:k1> ?b }",
        "C": f"C ON {'T' if of_two else 'S'} {{ ?m <urn:c> ?c }}",
    }
    used = " ".join(f"DEFINE GPM {gpm}" for name, gpm in gpms.items() if name in sequence)
    other = f"FROM STREAM T <{_T}>" if of_two else ""
    read = f"FROM STREAM S <{_S}> {other}"
    # What is absent at the end is absent until its window ends.
    window = f"{seconds} SECONDS" + (" SLIDING" if sequence in ("A ; !C", "A ; B?") else "")
    return f"SELECT * WITHIN {window} {read} WHERE {{ SEQ({sequence}) {used} }} {after}"


def begin_alike(count: int) -> list[str]:
    """Queries that have their first two elements in common."""
    alike, last = query("A ; B ; C"), "?m <urn:c> ?c "
    return [alike.replace(last, f"{last}. ?m <urn:c> ?c{number} ") for number in range(count)]


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


def costs(texts: Sequence[str], pushed: Sequence[Pushed], before: int) -> tuple[list[float], int]:
    """Microseconds of processor time of the events that concern the queries, and how many matches come.

    ``before``: so many events come first, and are not measured.
    """
    engine, matches, taken = spaseq.Engine(), 0, []

    def count(_: spaseq.Match) -> None:
        nonlocal matches
        matches += 1

    for text in texts:
        engine.register(text, count)
    concerning = tuple(kind for kind in ("<urn:k0>", "<urn:k1>", "<urn:c>") if kind in texts[0])
    for number, event in enumerate(pushed):
        begin = time.thread_time_ns()
        engine.push(*event)
        end = time.thread_time_ns()
        if number >= before and any(kind in event[1] for kind in concerning):
            taken.append((end - begin) / 1_000)
    return taken, matches


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each operator over one stream and over two, and where few events concern the query; then others."""
    before = 100 if quick else _BEFORE
    count = before + (500 if quick else 8_000)
    base: float | None = None

    def measured(texts: Sequence[str], pushed: Sequence[Pushed], case: str) -> tuple[Measurement, int]:
        nonlocal base
        taken, matches = costs(texts, pushed, before)
        median, worst = quantiles(taken, n=100)[49], quantiles(taken, n=100)[98]
        base = base or median
        facts = {"p50 in µs": median, "mean": mean(taken), "p99": worst, "matches": matches}
        return Measurement("pushed", case, median / base, "A ; B", facts=facts), matches

    for sequence in (*_OPERATORS, *(f"{of} {_SKIP}" for of in _SKIPPING)):
        found = []
        for of_two, others in ((False, 0), (True, 0), (False, 9)):
            case = "of two streams" if of_two else "one in ten events" if others else "of one stream"
            pushed = events(count, of_two=of_two, others=others)
            shown, matches = measured([query(sequence, of_two=of_two)], pushed, f"{sequence}, {case}")
            yield shown
            found.append(matches)
        if "C" not in sequence and "," not in sequence.replace(
            "ALL(A, B)", ""
        ):  # which asks what came between
            check(sequence, found[1], found[0])
    pushed = events(count, of_two=False)
    for name, more in _MORE.items():
        yield measured([query("A ; B", more=more)], pushed, f"A ; B, A with {name}")[0]
    for number in _TOGETHER:
        for case, texts in (
            ("equal ones", [query("A ; B")] * number),
            ("of other windows", [query("A ; B", seconds=50 + n) for n in range(number)]),
            ("that begin alike", begin_alike(number)),
            ("of a template", [query("A ; B", least=50 + n) for n in range(number)]),
        ):
            yield measured(texts, pushed, f"{number} queries {case}")[0]

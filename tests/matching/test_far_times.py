"""Times over all 64 bits: what matches does not depend on where on the axis a stream of ticks lies."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

import spaseq
from spaseq import _kernel_events as kernel_times
from spaseq import events
from spaseq.bounds import WorkClock

NS = "http://example.org/"
EARLIEST, LATEST = -(2**63), 2**63 - 1

MATCHERS = (
    None, "reference", "interpreter", "nfa", "lazy", "tree", "tecs", "kmp",
)  # fmt: skip

#: Each with how far its first event is from 0: of the near stream, two parts of it are 1,000 ticks apart.
STREAM = "A0 B2 A3 C5 B6 A10 C13 B14 A15"
LENGTH, PART = 15, 3
NEAR = 1_000

#: Where the stream begins, and where its second part does, which is a window further if that is None.
BASES: Mapping[str, tuple[int, int | None]] = {
    "0": (0, None),
    "2^53": (2**53 - 7, None),
    "-2^53": (-(2**53) - 7, None),
    "2^61": (2**61 - 7, None),
    "-2^61": (-(2**61) - 7, None),
    "2^62": (2**62 - 7, None),
    "-2^62": (-(2**62) - 7, None),
    "first": (EARLIEST, None),
    "last": (LATEST - LENGTH, None),
    "a span of 2^63": (-(2**62) - 3, 2**62 - 3),
    "a span of 10^19": (-5 * 10**18, 5 * 10**18),
    "all times": (EARLIEST, LATEST - LENGTH),
}

SEQUENCES = (
    "A", "A ; B", "A , B", "A : B", "A : B : C", "A & B", "A : (B & C)", "A | B", "(A ; B) | (C , A)",
    "!B ; A", "!B , A", "A ; !B ; C", "A : !C : B", "A , !B ; C", "A ; !B", "A , !B", "!B : A : !C",
    "!B WITHIN 2 SECONDS ; A", "A ; !B WITHIN 2 SECONDS ; C", "A ; !B WITHIN 2 SECONDS",
    "A+ ; B", "A ; B+", "A : B+[:]", "A+[,]", "A ; B{2,3}", "(A ; B)+", "A ; (B , C)+ ; A",
    "A ; B? ; C", "B? ; A", "A ; B?", "A ; B*", "A ; B{0,1} ; C",
    "ALL(A, B)", "ALL(A ; B, C)", "ALL(A, !B ; C)",
    "(A ; B) WITHIN 3 SECONDS", "(A ; B) WITHIN 3 SECONDS ; C", "A+ WITHIN 3 SECONDS ; B",
)  # fmt: skip

SKIPS = ("AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH SKIP TO NEXT EVENT")
FORMS = [
    *itertools.product(
        ("10 SECONDS SLIDING", "10 SECONDS TUMBLING"),
        ("", "CONSUME ANY", "EMIT LAST", "EMIT NEXT", "EMIT MAX", *SKIPS, "PARTITION BY ?k"),
    ),
    ("1 SECONDS TUMBLING", ""),
    ("4 EVENTS SLIDING", ""),
]

#: A match: the GPM and the number of each event.
Match = tuple[tuple[str, int], ...]


def query(sequence: str, within: str, form: str) -> str:
    partition, tail = (form, "") if form.startswith("PARTITION") else ("", form)
    key = "?k" if partition else "?k{}"
    gpms = "\n".join(
        f"DEFINE GPM {name} ON S {{ ?e{name} a :{name} ; :k {key.format(name)} }}"
        for name in "ABC"
        if name in sequence.replace("ALL", "").replace("WITHIN", "").replace("SECONDS", "")
    )
    return (
        f"PREFIX : <{NS}>\nSELECT * WITHIN {within} {partition} FROM STREAM S <{NS}s>\n"
        f"WHERE {{ SEQ({sequence})\n{gpms} }} {tail}"
    )


def stream(base: str) -> list[tuple[str, int]]:
    """The events of a stream: what type each has, and when it is."""
    begin, second = BASES[base]
    words = STREAM.split()
    return [
        (word[0], (begin if second is None or i < PART else second) + int(word[1:]))
        for i, word in enumerate(words)
    ]


def near(base: str) -> tuple[tuple[str, int], ...]:
    """The same near 0, its parts as far apart as makes no difference to windows."""
    begin, second = BASES[base]
    apart = 0 if second is None else NEAR + (second - begin) % 10
    words = STREAM.split()
    return tuple((word[0], (0 if i < PART else apart) + int(word[1:])) for i, word in enumerate(words))


@cache
def runnable(texts: Sequence[str], matcher: str | None) -> Sequence[str]:
    """Those of the queries that a matcher can run."""
    engine, able = spaseq.Engine(matcher=matcher), []
    for text in texts:
        try:
            engine.register(text)
        except spaseq.EngineError:
            continue
        able.append(text)
    return tuple(able)


def matches(
    texts: Sequence[str], given: Sequence[tuple[str, int]], matcher: str | None, way: str = "push"
) -> list[list[Match]]:
    """What each of some queries finds, all of them in one engine, in the order of delivery."""
    graphs = [f"<{NS}e{i}> a <{NS}{name}> ; <{NS}k> {i % 2} ." for i, (name, _) in enumerate(given)]
    times = [time for _, time in given]
    engine = spaseq.Engine(matcher=matcher)
    handles = [engine.register(text) for text in texts]
    if way == "push_many":
        engine.push_many(f"{NS}s", list(zip(graphs, times, strict=True)))
    else:
        for graph, time in zip(graphs, times, strict=True):
            engine.push(f"{NS}s", graph, time)
            if way == "advance":
                engine.advance(time)
    if way == "advance":
        engine.advance(LATEST)
    engine.close()
    number = {time: i for i, time in enumerate(times)}
    return [
        [
            tuple((gpm, number[event.time]) for gpm, chosen in match.events.items() for event in chosen)
            for match in handle.matches()
        ]
        for handle in handles
    ]


@cache
def expected(texts: Sequence[str], given: Sequence[tuple[str, int]], way: str) -> list[list[Match]]:
    """What the reference says."""
    return matches(texts, given, "reference", way)


def differences(
    texts: Sequence[str], matcher: str | None, base: str, way: str = "push"
) -> Iterator[tuple[str, list[Match], list[Match]]]:
    """The queries for which far times give something else than the reference says of near ones."""
    able = runnable(tuple(texts), matcher)
    far = matches(able, stream(base), matcher, way)
    for text, ours, theirs in zip(able, far, expected(able, near(base), way), strict=True):
        if sorted(ours) != sorted(theirs):
            yield text, sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Negations at an end of the sequence with TUMBLING, and such."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        yield


def test_kernels_have_the_same_ends() -> None:
    assert (kernel_times.EARLIEST, kernel_times.LATEST) == (events.EARLIEST, events.LATEST)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.few(1, ci=6)
def test_some_queries(matcher: str | None, base: str) -> None:
    """A third of the sequences for each base, each in another form."""
    third = [*BASES].index(base) % 3
    forms = itertools.cycle(FORMS[third:])
    texts = [query(sequence, *next(forms)) for sequence in SEQUENCES[third::3]]
    assert list(differences(texts, matcher, base)) == []


@pytest.mark.few(0, ci=3)
@pytest.mark.parametrize("way", ["push", "push_many", "advance"])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_all_queries(matcher: str | None, base: str, way: str) -> None:
    texts = [query(sequence, *form) for sequence in SEQUENCES for form in FORMS]
    for text in texts:
        assert list(differences([text], matcher, base, way)) == [], text


def under_a_bound(text: str, matcher: str | None, begin: int) -> tuple[int, str]:
    """How many matches a query has under a bound that is hard to keep, by the work done, and what is shed."""
    rng = random.Random(7)
    engine = spaseq.Engine(matcher=matcher, latency=timedelta(microseconds=4), clock=WorkClock())
    handle = engine.register(text)
    for time in itertools.accumulate(rng.randint(0, 2) for _ in range(200)):
        graph = f"[] a <{NS}{rng.choice('AABBC')}> ; <{NS}k> {rng.randint(0, 3)} ."
        engine.push(f"{NS}s", graph, begin + time)
    engine.close()
    return len(list(handle.matches())), str(handle.stats.shed)


@pytest.mark.parametrize("matcher", ["nfa", "lazy"])
@pytest.mark.parametrize("within", ["30 SECONDS SLIDING", "30 SECONDS TUMBLING"])
@pytest.mark.few(1)
def test_a_bound_sheds_the_same_anywhere(matcher: str, within: str) -> None:
    text = query("A : B : C", within, "")
    found, shed = under_a_bound(text, matcher, 0)
    assert found
    assert "partial_matches=0" not in shed
    for begin in (2**62 - 150, LATEST - 500):
        assert under_a_bound(text, matcher, begin) == (found, shed)


def test_lateness_at_the_ends() -> None:
    """An event at most so late is taken, however near the ends of 64 bits."""
    for begin in (EARLIEST, LATEST - 30):
        engine = spaseq.Engine(lateness=timedelta(seconds=10))
        handle = engine.register(query("A ; B", "5 SECONDS SLIDING", ""))
        # The last one is 11 ticks late.
        for name, time in (("B", 12), ("A", 10), ("C", 23), ("A", 11)):
            engine.push(f"{NS}s", f"[] a <{NS}{name}> ; <{NS}k> 1 .", begin + time)
        engine.close()
        assert [(match.start, match.end) for match in handle.matches()] == [(begin + 10, begin + 12)]
        assert handle.stats.late == 1


def test_a_window_of_the_longest_duration() -> None:
    """2^63 - 1 microseconds: longer than all instants are apart."""
    text = query("A : B", "9223372036854775807 MICROSECONDS SLIDING", "")
    for matcher in (None, "nfa", "lazy", "tecs", "interpreter", "reference"):
        engine = spaseq.Engine(matcher=matcher)
        handle = engine.register(text)
        for name, time in (("A", datetime.min), ("B", datetime(1970, 1, 1)), ("B", datetime.max)):
            engine.push(f"{NS}s", f"[] a <{NS}{name}> ; <{NS}k> 1 .", time.replace(tzinfo=UTC))
        engine.close()
        assert len(list(handle.matches())) == 2


def test_why_of_far_times() -> None:
    engine = spaseq.Engine()
    handle = engine.register(query("A , B", "10 SECONDS SLIDING", ""))
    for name, time in (("A", -5 * 10**18), ("B", 5 * 10**18), ("A", LATEST - 20), ("B", LATEST)):
        engine.push(f"{NS}s", f"[] a <{NS}{name}> ; <{NS}k> 1 .", time)
    engine.close()
    assert handle.why().cause == (
        "4 events, all ended in SEQ(A , B): a window of 10 SECONDS is too short: "
        "with 20 SECONDS there is a match (the shortest spans 20 ticks)"
    )

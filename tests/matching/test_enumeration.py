"""The enumerating matcher gives what the reference gives, lazily, in memory that does not grow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise

import pytest
from pyoxigraph import Literal

import spaseq
from spaseq.errors import QueryError
from spaseq.events import Stamp
from spaseq.matching.context import Context
from spaseq.matching.model import Occurrence, StreamWindow
from spaseq.matching.tecs import memory, walking
from spaseq.matching.tecs.fits import obstacles
from spaseq.matching.tecs.matcher import TecsMatcher
from spaseq.matching.tecs.records import counter
from spaseq.terms.dictionary import Dictionary
from tests.matching.blocks import singly
from tests.matching.kernel_cases import batches, by_kernel, by_reference
from tests.matching.random_sequences import Query, pattern_of, random_sample
from tests.streams import NS, found, letters, query

#: Seeds of a test, of so many queries and their streams each: together over 2,500 cases, and 10,000 with
#: those that only who asks for them runs.
SEEDS = [pytest.param(seed, marks=() if seed < 10 else pytest.mark.long) for seed in range(40)]
QUERIES = 26
STREAMS = 10


class _Sequences:
    """Random sequences of ``:``, closures, groups and alternatives; few name a GPM twice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.names = rng.sample("ABCDEFGH", 8) * (2 if rng.random() < 0.1 else 1)

    def chain(self, depth: int) -> str:
        elements = [self._element(depth) for _ in range(self._rng.choice([1, 2, 2, 3]))]
        return " : ".join(filter(None, elements)) or "A"

    def _element(self, depth: int) -> str:
        kind = self._rng.random()
        if not self.names:
            return ""
        if kind < 0.3:
            deep = depth and self._rng.random() < 0.4
            inner = f"({self.chain(depth - 1)})" if deep else self.names.pop()
            return inner + self._rng.choice(["+[:]", "+[:]", "{2,}[:]", "{1,2}[:]", "{2}[:]", "{2,3}[:]"])
        if depth and kind < 0.5:
            return f"({self.chain(depth - 1)} | {self.chain(depth - 1)})"
        if depth and kind < 0.55:
            return f"({self.chain(depth - 1)})"
        return self.names.pop()


def random_query(rng: random.Random) -> Query:
    """A query whose matches can be enumerated."""
    while True:
        seq = _Sequences(rng).chain(2)
        names = sorted(set("ABCDEFGH") & set(seq))
        keys = rng.choices([(), ("k",), ("k", "j")], [60, 30, 10])[0]
        joined = "j" not in keys and rng.random() < 0.2
        streams = (1,) if rng.random() < 0.4 else (1, 2)
        reads = {name: streams if rng.random() < 0.6 else (rng.choice(streams),) for name in names}
        binds = {name: (*keys, *["j"] * joined) for name in names}
        gpms = "".join(
            f"DEFINE GPM {name} ON {', '.join(f'S{i}' for i in reads[name])} "
            f"{{ [] :v ?v{name}{''.join(f' ; :{b} ?{b}' for b in binds[name])} }}\n"
            for name in names
        )
        end = rng.choice(["", "", "EMIT NEXT", "EMIT LAST", "EMIT MAX"]) + rng.choice(
            ["", "", " CONSUME ANY"]
        )
        text = (
            f"PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS "
            f"{'PARTITION BY ' * bool(keys)}{' '.join('?' + key for key in keys)} "
            f"{' '.join(f'FROM STREAM S{i} <http://example.org/s{i}>' for i in streams)}\n"
            f"WHERE {{ SEQ({seq})\n{gpms} }} {end if not joined else ''}"
        )
        try:
            pattern = pattern_of(text)
        except QueryError:
            continue
        if not any(obstacles(pattern)):
            return Query(text, pattern, {name: rng.choice("xxxy") for name in names}, reads, binds)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that has to grow all the time."""
    for name, size in (("_NODES", 512), ("_PARTITIONS", 1), ("_FOUND", 4), ("_ACTIVE", 1), ("_LIST", 2)):
        monkeypatch.setattr(memory, name, size)
    monkeypatch.setattr(memory, "_KEYS", 1)
    for name, size in (("_MATCHES", 1), ("_MOST_AT_FIRST", 1), ("_DEEP", 2)):
        monkeypatch.setattr(walking, name, size)


@pytest.mark.few(2, ci=4)
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("seed", SEEDS)
def test_enumeration_equals_the_reference(seed: int) -> None:
    rng = random.Random(f"enumeration {seed}")
    for _ in range(QUERIES):
        query = random_query(rng)
        for _ in range(STREAMS):
            sample = replace(random_sample(rng, query, 7), drops=frozenset())
            answers = by_kernel(sample, TecsMatcher), by_reference(sample)
            # Those with the same last event come in the order of partitions, and in one of these in any.
            found, expected = ([(keys(step), Counter(step)) for step in steps] for steps in answers)
            assert found == expected, str(sample)


def keys(step: list[object]) -> list[object]:
    """The partitions of matches, in the order of delivery."""
    return [match[0] for match in step]  # type: ignore[index]  # a tuple


# --- what it costs --------------------------------------------------------------------------------


def _query(seq: str, more: str = "", partition: str = "") -> Query:
    names = sorted(set("ABC") & set(seq))
    gpms = " ".join(f"DEFINE GPM {name} ON S {{ [] :v{name} ?v{name} ; :k ?k }}" for name in names)
    text = (
        f"PREFIX : <http://example.org/> SELECT * WITHIN 1 SECONDS {partition} "
        f"FROM STREAM S <http://example.org/s> WHERE {{ SEQ({seq}) {gpms} }} {more}"
    )
    return Query(text, pattern_of(text), {}, {}, {})


def _stream(dictionary: Dictionary, kinds: Iterator[tuple[str, str]]) -> list[Occurrence]:
    """An event for each GPM and key."""
    intern = dictionary.intern
    return [
        Occurrence(Stamp(i, 1, i), i, {name: ({f"v{name}": intern(Literal(i)), "k": intern(Literal(key))},)})
        for i, (name, key) in enumerate(kinds)
    ]


def _matcher(query: Query, window: StreamWindow) -> tuple[TecsMatcher, Dictionary]:
    dictionary = Dictionary()
    context = Context(query.pattern, dictionary, lambda *_: False)
    return TecsMatcher(query.pattern, dictionary, context, window), dictionary


def test_whoever_takes_ten_matches_pays_for_ten() -> None:
    """A pattern with some 10^60 matches."""
    matcher, dictionary = _matcher(
        _query("A+[:] : B", partition="PARTITION BY ?k"), StreamWindow(10**6, False, True, 0)
    )
    events = _stream(dictionary, iter([*[("A", "k")] * 200, ("B", "k")]))
    (batch,) = batches(events, dictionary, [])
    found = list(islice(singly(matcher.process(*batch)), 10))
    assert len({match.chosen for _, match in found}) == 10
    assert all(match.events[-1][1].position == 200 for _, match in found)
    assert matcher.memory.live_nodes < 10 * len(events)


@pytest.mark.parametrize("sliding", [True, False])
@pytest.mark.slow
def test_nodes_are_recycled_with_the_window(sliding: bool) -> None:
    """The ring is as large for a stream ten times as long."""
    sizes = []
    for length in (4_000, 40_000):
        matcher, dictionary = _matcher(_query("A : B : C"), StreamWindow(50, False, sliding, 0))
        rng = random.Random(1)
        events = _stream(dictionary, ((rng.choice("ABC"), "k") for _ in range(length)))
        for batch in batches(events, dictionary, [500] * (length // 500)):
            matcher.update(*batch)
        sizes.append(len(matcher.memory.nodes))
    assert sizes[0] == sizes[1]


def test_idle_partitions_are_dropped() -> None:
    matcher, dictionary = _matcher(
        _query("A : B", partition="PARTITION BY ?k"), StreamWindow(50, False, True, 0)
    )
    events = _stream(dictionary, (("A", f"key {i}") for i in range(5_000)))
    for batch in batches(events, dictionary, [100] * 50):
        matcher.update(*batch)
    assert matcher.memory.partitions < 500


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("sliding", [True, False])
@pytest.mark.slow
def test_a_ring_that_went_round_many_times_has_the_right_nodes(sliding: bool) -> None:
    """All matches of a long stream, as loops over its events find them."""
    matcher, dictionary = _matcher(_query("A : B : C"), StreamWindow(20, False, sliding, 0))
    rng = random.Random(2)
    kinds = rng.choices("ABCD", k=6_000)
    events = _stream(dictionary, ((kind, "k") for kind in kinds))
    found = Counter(
        tuple(event.position for _, event in match.events)
        for batch in batches(events, dictionary, [500] * 12)
        for _, match in singly(matcher.process(*batch))
    )
    assert matcher.memory.counters[counter.NEXT_NODE] > 4 * len(matcher.memory.nodes)
    within = (lambda a, c: c - a <= 20) if sliding else (lambda a, c: c // 20 == a // 20)
    expected = Counter(
        (a, b, c)
        for a in range(len(kinds))
        if kinds[a] == "A"
        for c in range(a + 2, min(a + 21, len(kinds)))
        if kinds[c] == "C" and within(a, c)
        for b in range(a + 1, c)
        if kinds[b] == "B"
    )
    assert found == expected


def test_events_at_the_edge_of_the_window_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events at three times fill the ring; those of the second are the window's first."""
    monkeypatch.setattr(memory, "_NODES", 1 << 11)
    engine = spaseq.Engine(matcher="tecs")
    handle = engine.register(query("A : B", "9 SECONDS SLIDING", head="SELECT (1 AS ?one)"))
    a, b = letters("a1 b1")
    times = [0] * 750 + [1] * 750 + [10] * 1_500
    engine.push_many(f"{NS}S", [*((a.turtle, time) for time in times), (b.turtle, 10)])
    engine.finish()
    assert sum(1 for _ in handle.matches()) == 2_250


def test_runs_of_simultaneous_events_are_joined_in_the_order_of_their_starts() -> None:
    text = query("A : (B | C) : D", "2 SECONDS SLIDING", streams=("S", "T"))
    events = "T.a2 T.a3 T.b3 T.b4 T.a4 T.b4 S.d4 S.d5"
    assert sorted(found(text, events, matcher="tecs")) == sorted(found(text, events, matcher="reference"))
    assert len(found(text, events, matcher="tecs")) == 6


def test_more_states_are_active_than_an_integer_has_bits() -> None:
    matcher, dictionary = _matcher(_query("A{69}[:]"), StreamWindow(1_000, False, True, 0))
    events = _stream(dictionary, (("A", "k") for _ in range(70)))
    (batch,) = batches(events, dictionary, [])
    found = [{event.position for _, event in match.events} for _, match in singly(matcher.process(*batch))]
    assert sorted(min(set(range(70)) - positions) for positions in found) == list(range(70))


def test_arrays_are_the_matches() -> None:
    matcher, dictionary = _matcher(_query("A : B"), StreamWindow(50, False, True, 0))
    events = _stream(dictionary, iter([("A", "k"), ("A", "k"), ("B", "k"), ("B", "k")]))
    (batch,) = batches(events, dictionary, [])
    found = []
    for positions, labels, offsets in matcher.arrays(*batch):
        steps = list(zip(positions.tolist(), labels.tolist(), strict=True))
        found += [steps[begin:end] for begin, end in pairwise(offsets.tolist())]
    assert sorted(found) == [[(a, 0), (b, 1)] for a in (0, 1) for b in (2, 3)]


# --- what it is for -------------------------------------------------------------------------------


def _against(text: str) -> list[tuple[str, str, str | None]]:
    """What keeps a query from enumeration: the demand, what is there, and its place in the text."""
    return [
        (found.demand, found.here, found.span and text[found.span.start : found.span.end])
        for found in obstacles(pattern_of(text))
    ]


GAPS = "nothing depends on what is between events"
OPERATORS = "every operator is ':'"


@pytest.mark.parametrize(
    ("seq", "against"),
    [
        ("A : B", []),
        ("A : (B | C)+[:]", []),
        ("A ; B , C", [(OPERATORS, "';' before B", "B"), (OPERATORS, "',' before C", "C")]),
        ("A : B+", [(OPERATORS, "';' inside B+", "B+")]),
        ("A : !B : C", [(GAPS, "!B", "!B")]),
        ("A : B? : C", [(GAPS, "B?", "B?")]),
        ("A : (B & C)", [("nothing gathers events", "B & C", "B & C")]),
        ("ALL(A, B)", [("nothing gathers events", "ALL(A, B)", "ALL(A, B)")]),
    ],
)
def test_what_it_cannot_run(seq: str, against: list[tuple[str, str, str]]) -> None:
    assert _against(_query(seq).text) == against


def test_with_emit_it_runs_per_partition() -> None:
    demand = "there is PARTITION BY ?k where there is EMIT or CONSUME"
    assert _against(_query("A : B", "EMIT LAST CONSUME ANY").text) == [
        (demand, "EMIT LAST", None),
        (demand, "CONSUME ANY", None),
    ]
    assert _against(_query("A : B", "EMIT LAST CONSUME ANY", "PARTITION BY ?k").text) == []


def test_filters_and_joins_of_some_events() -> None:
    text = (
        "PREFIX : <http://example.org/> SELECT * WITHIN 1 SECONDS FROM STREAM S <http://example.org/s> "
        "WHERE { SEQ(A : B : C) DEFINE GPM A ON S { [] :v ?a } DEFINE GPM C ON S { [] :v ?c } "
        "DEFINE GPM B ON S { [] :v ?b ; :w ?a FILTER(?b > ?c) } FILTER(?a + ?b > 3) }"
    )
    filters = ["FILTER(?b > ?c)", "FILTER(?a + ?b > 3)"]
    assert _against(text) == [
        *(("no filter compares events", item, item) for item in filters),
        ("?a joins all events or none", "C without it", "DEFINE GPM C ON S { [] :v ?c }"),
    ]

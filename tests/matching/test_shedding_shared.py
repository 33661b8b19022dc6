"""Queries that begin alike and have one bound: they keep it as one, and each is told what it gave up."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.bounds import Bound, Pool, Shed, WorkClock
from spaseq.engine import registry
from spaseq.errors import SpaseqWarning
from spaseq.matching.shedding.matcher import SheddingNfa

pytestmark = pytest.mark.filterwarnings("ignore:.*SEQ.*:spaseq.errors.SpaseqWarning")

_STREAM = "http://example.org/s"
_BLOCK = 50
_BOTH = pytest.mark.parametrize("matcher", ["nfa", "lazy"])

Event = tuple[list[ox.Triple], int]


def events(count: int, seed: int) -> list[Event]:
    """Each of one kind, with a number."""
    chosen = random.Random(seed)
    return [
        (
            [
                ox.Triple(
                    ox.NamedNode(f"http://example.org/e{i}"),
                    ox.NamedNode(f"http://example.org/{chosen.choice('aabbcd')}"),
                    ox.Literal(chosen.randrange(1000)),
                )
            ],
            i,
        )
        for i in range(count)
    ]


def query(sequence: str, above: int = 0, window: str = "100 EVENTS") -> str:
    """A sequence; C is that much above A and B, D as much below."""
    gpms = {
        "A": "?a :a ?x",
        "B": "?b :b ?y . FILTER(?y > ?x)",
        "C": f"?c :c ?z . FILTER(?z + {above} < ?x + ?y)",
        "D": f"?d :d ?w . FILTER(?w > ?x + {above})",
    }
    used = " ".join(
        f"DEFINE GPM {name} ON S {{ {gpm} }}"
        for name, gpm in gpms.items()
        if name in sequence.split(" EMIT")[0]
    )
    return (
        f"PREFIX : <http://example.org/> SELECT ?x WITHIN {window} SLIDING "
        f"FROM STREAM S <{_STREAM}> WHERE {{ SEQ({sequence}) {used} }}"
    )


def _events(match: spaseq.Match) -> tuple[int, ...]:
    return tuple(event.n for of in match.events.values() for event in of)


@dataclass(frozen=True)
class Ran:
    """What came of queries: their matches, what each gave up, how many shared its first elements, and the
    units of work of an event in each block.
    """

    found: list[Counter[tuple[int, ...]]]
    shed: list[Shed | None]
    shared: list[tuple[int, ...]]
    units: list[float]

    @property
    def mean(self) -> float:
        return sum(self.units) / len(self.units)

    @property
    def worst(self) -> float:
        return sorted(self.units)[int(0.99 * len(self.units))]


def run(
    queries: Sequence[str],
    came: Sequence[Event],
    matcher: str,
    units: float | None = None,
    *,
    weights: Sequence[float] = (),
    bounds: Sequence[float | None] = (),
    memory: int | None = None,
    one_by_one: bool = False,
    leaves: int | None = None,
) -> Ran:
    """Queries of one engine; ``units``: its bound. ``leaves``: so many events on, the first one is over."""
    clock = WorkClock()
    latency = None if units is None else timedelta(microseconds=units)
    engine = spaseq.Engine(matcher=matcher, latency=latency, memory=memory, clock=clock)
    handles = []
    for i, text in enumerate(queries):
        bound = bounds[i] if bounds else None
        own = None if bound is None else timedelta(microseconds=bound)
        handles.append(engine.register(text, weight=weights[i] if weights else 1.0, latency=own))
    found: list[Counter[tuple[int, ...]]] = [Counter() for _ in handles]
    worked = []
    for at in range(0, len(came), _BLOCK):
        before = clock.units
        if one_by_one:
            for graph, time in came[at : at + _BLOCK]:
                engine.push(_STREAM, graph, time)
        else:
            engine.push_many(_STREAM, came[at : at + _BLOCK])
        worked.append((clock.units - before) / _BLOCK)
        for handle, own in zip(handles, found, strict=True):
            own.update(map(_events, handle.matches()))
        if at == leaves:
            handles[0].cancel()
    shared = [handle.stats.shared for handle in handles]
    engine.close()
    for handle, own in zip(handles, found, strict=True):
        own.update(map(_events, handle.matches()))
    return Ran(found, [handle.stats.shed for handle in handles], shared, worked)


_ALIKE = [query("A : B : C", above) for above in (500, 700, 900)] + [query("A : B : D", 300)]


@pytest.mark.few(1)
@_BOTH
@pytest.mark.parametrize("one_by_one", [False, True])
def test_with_time_enough_they_find_what_they_find_without_a_bound(matcher: str, one_by_one: bool) -> None:
    came = events(600, seed=1)
    exact = run(_ALIKE, came, matcher)
    loose = run(_ALIKE, came, matcher, 1e9, one_by_one=one_by_one)
    assert loose.found == exact.found
    assert all(exact.found)
    assert [of[:2] for of in loose.shared] == [(4, 4)] * 4  # A and B are had once


@pytest.mark.few(0, ci=1)
@_BOTH
@pytest.mark.parametrize("one_by_one", [False, True])
def test_they_keep_one_bound_together_and_find_nothing_false(matcher: str, one_by_one: bool) -> None:
    came = events(1_500, seed=2)
    exact = run(_ALIKE, came, matcher, 1e9)
    bound = exact.mean / 2
    ran = run(_ALIKE, came, matcher, bound, one_by_one=one_by_one)
    assert [of[:2] for of in ran.shared] == [(4, 4)] * 4
    assert ran.mean < bound
    assert ran.worst < 1.5 * bound
    for own, every, shed in zip(ran.found, exact.found, ran.shed, strict=True):
        assert shed is not None
        assert not own - every
        assert shed.partial_matches == sum(shed.by_state.values()) > 0
        assert set(shed.by_state) <= {f"{where} {gpm}" for where in ("before", "buffered") for gpm in "ABCD"}
        assert shed.recall is not None
        assert 0.1 < own.total() / every.total() < 1.0


def test_what_fails_as_a_group_is_made_is_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that left a group without a kernel raised an AttributeError instead."""

    def fails(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(SheddingNfa, "_load_passes", fails)
    with pytest.raises(spaseq.LimitError, match="no memory was left"):
        run([query("A : B : C", above) for above in (510, 530)], events(40, seed=1), "nfa", 1e9)


@pytest.mark.few(0, ci=1)
@_BOTH
def test_a_query_that_weighs_more_finds_more_of_its_matches(matcher: str) -> None:
    """C below, which most pairs lead to, or D above, which few do: what is kept is what leads to either."""
    came = events(1_500, seed=3)
    both = [query("A : B : C", 900), query("A : B : D", 500)]
    exact = run(both, came, matcher, 1e9)
    found = []
    for weights in ((20.0, 1.0), (1.0, 20.0)):
        ran = run(both, came, matcher, exact.mean / 4, weights=weights)
        found.append([own.total() / every.total() for own, every in zip(ran.found, exact.found, strict=True)])
    assert found[0][0] > found[1][0] + 0.05
    assert found[1][1] > found[0][1] + 0.05


@pytest.mark.few(0, ci=1)
@_BOTH
def test_one_that_is_over_leaves_the_bound_to_the_others(matcher: str) -> None:
    came = events(1_500, seed=4)
    exact = run(_ALIKE, came, matcher, 1e9)
    ran = run(_ALIKE, came, matcher, exact.mean / 3, leaves=500, memory=1 << 26)
    without = run(_ALIKE, came, matcher, exact.mean / 3)
    assert not ran.found[0] - exact.found[0]
    assert not any(own - every for own, every in zip(ran.found, exact.found, strict=True))
    others, before = (sum(own.total() for own in found[1:]) for found in (ran.found, without.found))
    assert others > 1.05 * before
    assert ran.shed[0] is not None
    assert not ran.shed[0].active


@pytest.mark.parametrize(
    ("queries", "bounds"),
    [
        ([query("A : B : C"), query("A : B : D")], (1e6, 2e6)),
        ([query("A : B : C") + " EMIT LAST", query("A : B : D") + " EMIT LAST"], (1e6, 1e6)),
        ([query("A : B : C"), query("A : B : D")], (None, 1e6)),
    ],
)
def test_what_has_another_bound_or_chooses_among_matches_keeps_it_alone(
    queries: list[str], bounds: tuple[float | None, ...]
) -> None:
    ran = run(queries, events(300, seed=5), "nfa", bounds=bounds)
    assert ran.shared == [(), ()]
    assert all(ran.found)


@pytest.mark.slow
def test_of_memory_they_have_what_each_would_have() -> None:
    """Four have twice what one has beside another query that weighs as much as two of them."""
    came = events(2_000, seed=6)
    other = query("A : D", 500, window="100 EVENTS")
    exact = run([*_ALIKE, other], came, "nfa")
    ran = run([*_ALIKE, other], came, "nfa", memory=3 << 20, weights=[1.0] * 4 + [2.0])
    assert [of[:2] for of in ran.shared[:4]] == [(5, 4)] * 4
    for own, every in zip(ran.found, exact.found, strict=True):
        assert not own - every


@pytest.mark.few(0, ci=1)
@_BOTH
def test_one_warning_says_for_all_that_shedding_begins_and_one_that_it_ends(matcher: str) -> None:
    came = events(1_500, seed=7)
    mean = run(_ALIKE, came, matcher, 1e9).mean
    with pytest.warns(SpaseqWarning) as told:
        run(_ALIKE, came, matcher, mean / 3)
    words = [str(warning.message) for warning in told]
    begin = [said for said in words if "sheds no more" not in said and "sheds" in said]
    assert len(begin) == 1
    assert "and 3 more that run with it as one" in begin[0]
    assert sum("sheds no more" in said for said in words) == 1


@pytest.mark.few(0, ci=1)
@_BOTH
def test_where_warnings_are_errors_no_query_ends_by_one(matcher: str) -> None:
    """It is shown where it cannot be raised: in the midst of an event, or of the end."""
    came, found = events(1_500, seed=7), []

    def strictly() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found.extend(run(queries, came, matcher, 30.0).found for queries in (_ALIKE, _ALIKE[:1]))

    with pytest.warns(SpaseqWarning) as shown:
        strictly()
    assert all(map(all, found))
    assert sum("sheds no more" in str(warning.message) for warning in shown) == 2


@pytest.mark.few(0, ci=1)
@_BOTH
def test_one_that_was_over_before_it_was_shown_anything_lets_the_others_end(matcher: str) -> None:
    """Nobody asked it whether it is done: to the end of time the others shed, as they were told."""
    came = events(1_500, seed=7)
    engine = spaseq.Engine(matcher=matcher, latency=timedelta(microseconds=20), clock=WorkClock())
    handles = [engine.register(text) for text in (_ALIKE[3], *_ALIKE[:3])]
    engine.push(_STREAM, *next(event for event in came if "/d>" in str(event)))  # for the first alone
    handles[1].cancel()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        engine.push_many(_STREAM, [(graph, 2_000 + time) for graph, time in came])
        engine.close()
        assert [bool(list(handle.matches())) for handle in handles] == [True, False, True, True]
    assert handles[0].stats.shared[0] == 3
    assert [handle.stats.shed is not None and handle.stats.shed.active for handle in handles] == [False] * 4
    assert sum("sheds no more" in str(warning.message) for warning in told) == 1


@pytest.mark.few(1)
@_BOTH
def test_those_that_are_over_give_their_memory_back_and_no_others_do(
    matcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When one left, all seemed to hold nothing; and nobody had what the last of them had held."""
    pools: list[Pool] = []

    def made(size: int) -> Pool:
        pools.append(Pool(size))
        return pools[0]

    monkeypatch.setattr(registry, "Pool", made)
    engine = spaseq.Engine(matcher=matcher, memory=1 << 24)
    handles = [engine.register(text) for text in _ALIKE]
    came = events(2_100, seed=8)
    engine.push_many(_STREAM, came[:2_000])
    (pool,) = pools
    other = Bound(pool=pool)
    pool.join(other)
    left = pool.share(other, 0)
    assert left < pool.size
    handles[0].cancel()
    engine.push_many(_STREAM, came[2_000:2_002])
    assert pool.share(other, 0) < left + 10_000
    for handle in handles[1:]:
        handle.cancel()
    engine.push_many(_STREAM, came[2_002:])
    assert pool.share(other, 0) == pool.size


def _push(engine: spaseq.Engine, handles: Sequence[spaseq.Handle], came: Sequence[Event]) -> list[Shed]:
    """Events, the matches of which are read; what was given up then."""
    _take(engine, handles, came)
    return [shed for handle in handles if (shed := handle.stats.shed) is not None]


def _take(engine: spaseq.Engine, handles: Sequence[spaseq.Handle], came: Sequence[Event]) -> None:
    """The same, if nobody asks."""
    for at in range(0, len(came), _BLOCK):
        engine.push_many(_STREAM, came[at : at + _BLOCK])
        for handle in handles:
            handle.drop()


@pytest.mark.few(0, ci=1)
@_BOTH
def test_who_sheds_no_more_for_a_while_keeps_its_memory(
    matcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it seemed to be free whenever a pause came."""
    pool = Pool(1 << 24)
    monkeypatch.setattr(registry, "Pool", lambda _: pool)
    bound = timedelta(microseconds=20)
    engine = spaseq.Engine(matcher=matcher, memory=1 << 24, latency=bound, clock=WorkClock())
    handles = [engine.register(text) for text in _ALIKE]
    assert all(shed.active for shed in _push(engine, handles, events(800, seed=8)))
    quiet = [(graph, 800 + time) for graph, time in events(4_000, seed=9) if "/d>" in str(graph)]
    pauses = (
        not any(shed.active for shed in _push(engine, handles, quiet[at : at + 1]))
        for at in range(len(quiet))
    )
    assert any(pauses)  # who looks again takes its memory again
    other = Bound(pool=pool)
    pool.join(other)
    assert pool.share(other, 0) < pool.size


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.slow
def test_the_last_estimate_by_lazy_is_of_all_that_was_found(count: int) -> None:
    """While nothing new is buffered it does not look, and nobody asks what it has given up."""
    engine = spaseq.Engine(matcher="lazy", latency=timedelta(microseconds=20), clock=WorkClock())
    handles = [engine.register(text) for text in _ALIKE[:count]]
    told = _push(engine, handles, events(800, seed=8))
    subject, predicate = ox.NamedNode("http://example.org/e"), ox.NamedNode("http://example.org/c")
    ends: list[Event] = [([ox.Triple(subject, predicate, ox.Literal(0))], time) for time in range(800, 830)]
    _take(engine, handles, ends)
    before = [shed.recall for shed in told]
    engine.close()
    assert not any(list(handle.batches()) for handle in handles)
    assert all(shed.recall != past for shed, past in zip(told, before, strict=True))

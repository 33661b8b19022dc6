"""Under a bound, in a burst: what an event is not shown makes no false match, and is shown the next one."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq import Engine, SpaseqWarning
from spaseq.bounds import Bound, Policy, WorkClock
from spaseq.engine.handle import Handle
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.nfa import memory as kernel_memory
from spaseq.matching.nfa import sizing
from spaseq.matching.nfa.records import header
from spaseq.matching.shedding import burst
from spaseq.matching.shedding._kernel_burst import PASSED_OVER
from spaseq.matching.shedding.matcher import SheddingNfa
from spaseq.matching.shedding.overload import Overload
from spaseq.matching.shedding.query import doubts, obstacles, reads_in_one_way
from tests.benchmarks import sharp
from tests.matching.kernel_cases import by_reference
from tests.matching.random_sequences import random_query, random_sample
from tests.matching.test_shedding import readings, shedding, whole_rows

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")

STREAM: Final = "http://example.org/s"
#: Where it stands of a partial match up to where it is shown nothing (`records.waits`).
_BARRED: Final = 8


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event is a burst of which nothing is shown that promises less than the best."""
    monkeypatch.setattr(burst, "_FROM", -1.0)
    monkeypatch.setattr(burst, "_TO", -0.5)
    monkeypatch.setattr(burst, "_SHOWN", 0.0)
    monkeypatch.setattr(burst, "_CALM", -1.0)
    monkeypatch.setattr(burst, "_LITTLE", 0.0)


@pytest.mark.usefixtures("eager")
@given(st.integers(0, 2**64 - 1))
def test_no_false_matches(seed: int) -> None:
    """Of ``;``, ``,``, ``&``, negations and ``?`` nothing is passed over; of ``:`` anything may be."""
    rng = random.Random(seed)
    for _ in range(20):
        query = random_query(rng, alls=False, kernel=rng.random() < 0.5)
        if not query.misfit and not any(obstacles(query.pattern)) and not any(doubts(query.pattern)):
            break
    else:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizing, "ENOUGH", kernel_memory.Capacity(1, 1, 1, 1))
        # Of some events all is passed over that may be, of others nothing.
        patch.setattr(burst.BurstFilter, "_least", lambda *_: rng.choice([-np.inf, np.inf]))
        for _ in range(5):
            sample = replace(random_sample(rng, query, 9), drops=frozenset())
            # Enough that hardly anything is shed.
            bound = Bound(rng.choice([1e3, 8.0, 0.5]), clock=WorkClock(1.0))
            found, doubtful = shedding(sample, bound)
            assert not doubtful
            for ours, all_of_them in zip(found, by_reference(sample), strict=True):
                assert not readings(ours) - readings(all_of_them)
                if reads_in_one_way(query.pattern):
                    assert not whole_rows(ours) - whole_rows(all_of_them)


TEXT: Final = f"""PREFIX : <http://example.org/>
    SELECT ?a ?b WITHIN 2000 EVENTS SLIDING FROM STREAM S <{STREAM}>
    WHERE {{ SEQ(A : B) DEFINE GPM A ON S {{ ?a :a ?x }}
                        DEFINE GPM B ON S {{ ?b :b ?y . FILTER(?y > ?x) }} }}"""


def _found(engine: Engine, handle: Handle, events: int) -> int:
    """How many matches there are of so many events, of which one in four is a B."""
    count = 0
    for t in range(events):
        kind, value = ("b", (t * 37) % 100) if t % 4 == 3 else ("a", (t * 61) % 100)
        engine.push(STREAM, f"<urn:{t}> <http://example.org/{kind}> {value} .", t)
        count += len(list(handle.matches()))
    return count


def test_who_was_passed_over_is_shown_what_comes_next_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, eager: None
) -> None:
    del eager
    other = Engine(matcher="nfa")
    every = _found(other, other.register(TEXT), 200)
    engine = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-3))
    handle = engine.register(TEXT)
    with pytest.warns(SpaseqWarning, match="sheds partial matches: an event takes"):
        some = _found(engine, handle, 200)
    shed = handle.stats.shed
    assert shed is not None
    assert shed.partial_matches == 0
    monkeypatch.undo()
    engine.push(STREAM, "<urn:last> <http://example.org/b> 1000 .", 200)
    assert len(list(handle.matches())) == 150
    engine.close()
    assert 0 < every - some <= shed.passed_over
    assert shed.recall is not None
    assert 0.2 < shed.recall < 1.0


@pytest.mark.usefixtures("eager")
@pytest.mark.slow
def test_however_many_an_event_is_to_be_shown_to_all_may_be_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There was room for 4,096 at once: of 200,000, which take as long as many events, hardly any were."""
    monkeypatch.setattr(burst.BurstFilter, "_least", lambda *_: np.inf)
    engine = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-3))
    handle = engine.register(TEXT.replace("2000", "20000"))
    for t in range(6_000):
        kind, value = ("a", t % 10) if t % 50 else ("b", -1)
        engine.push(STREAM, f"<urn:{t}> <http://example.org/{kind}> {value} .", t)
    shed = handle.stats.shed
    assert shed is not None
    before = shed.passed_over
    engine.push(STREAM, "<urn:last> <http://example.org/b> 1000 .", 6_000)
    assert not list(handle.matches())
    assert shed.passed_over - before == 6_000 - 120
    monkeypatch.undo()
    engine.push(STREAM, "<urn:next> <http://example.org/b> 1000 .", 6_001)
    assert len(list(handle.matches())) == 6_000 - 120


@pytest.mark.usefixtures("eager")
def test_no_more_are_shown_an_event_than_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what came was shown, however much that was."""
    monkeypatch.setattr(burst.BurstFilter, "_least", lambda *_: -np.inf)
    engine = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-3))
    handle = engine.register(TEXT)
    for t in range(400):
        engine.push(STREAM, f"<urn:{t}> <http://example.org/a> {t % 7} .", t)
    with monkeypatch.context() as patch:
        patch.setattr(burst.Costs, "shows", lambda *_: 10.0)
        engine.push(STREAM, "<urn:last> <http://example.org/b> 1000 .", 400)
        assert len(list(handle.matches())) == 10
    shed = handle.stats.shed
    assert shed is not None
    assert shed.passed_over == 390
    engine.push(STREAM, "<urn:next> <http://example.org/b> 1000 .", 401)
    assert len(list(handle.matches())) == 400


def test_what_showing_takes_is_told_from_what_listing_takes() -> None:
    """Of 100 that are listed in 1 second, 10 are shown: what events take besides is for those 10."""
    learned = burst.Costs()
    assert learned.shows(1.0, 100) == np.inf
    for _ in range(200):
        learned.listed(100, 10, 1.0)
        learned.worked(1.0 + 1.0 + 5.0)  # to list them, to come by them, to show it to some
        learned.skip()
        learned.worked(1e9)  # of which nobody knows what was shown
    assert learned.shows(6.0, 100) == pytest.approx(10.0)
    assert learned.shows(1.5, 50) == pytest.approx(2.0)
    assert learned.shows(0.5, 100) == 0.0


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("where", ["_passed", "show"])
def test_who_was_interrupted_leaves_nobody_out(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between an event and the next one some stay passed over: these are shown the next one."""
    matchers: list[SheddingNfa] = []
    begun: Any = SheddingNfa._load_passes
    monkeypatch.setattr(SheddingNfa, "_load_passes", lambda self: (matchers.append(self), begun(self))[1])
    engine = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-3))
    handle = engine.register(TEXT)
    for t in range(40):
        engine.push(STREAM, f"<urn:{t}> <http://example.org/a> {t} .", t)
    # Whoever a B was shown to is in a list from then on.
    engine.push(STREAM, "<urn:first> <http://example.org/b> 1000 .", 40)
    assert len(list(handle.matches())) == 40
    with monkeypatch.context() as patch:
        patch.setattr(burst.BurstFilter, "_least", lambda *_: np.inf)
        patch.setattr(burst.BurstFilter, where, lambda *_, **__: -1)
        engine.push(STREAM, "<urn:last> <http://example.org/b> 1000 .", 41)
        assert not list(handle.matches())
    m = matchers[0]._memory.ints
    at = np.arange(m[header.WAITS] + m[header.WIDTH], m[header.NEXT_WAIT], m[header.WIDTH])
    assert (m[at + _BARRED] == PASSED_OVER).any() == (where == "show")
    monkeypatch.setattr(burst, "_CALM", np.inf)
    engine.push(STREAM, "<urn:next> <http://example.org/b> 1000 .", 42)
    assert len(list(handle.matches())) == 40


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("alone", [False, True])
def test_who_stops_midway_leaves_nobody_out(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody reads to its end, as when an interrupt comes: what was passed over is shown what comes."""
    stopped, passed = 0, 0
    matcher: SheddingNfa | None = None

    def first(self: SheddingNfa, *given: Any) -> Iterator[Block]:
        nonlocal stopped, passed, matcher
        matcher = self
        before = self.shed.passed_over
        found = whole(self, *given)
        block = None if found is None else next(iter(found), None)
        if found is not None and block is not None:
            stopped += 1
            passed += self.shed.passed_over - before
            cast("Generator[Block]", found).close()
            yield block
        m = self._memory.ints
        at = np.arange(m[header.WAITS] + m[header.WIDTH], m[header.NEXT_WAIT], m[header.WIDTH])
        assert not (m[at + _BARRED] == PASSED_OVER).any()

    name = "take_single" if alone else "process"
    whole: Any = getattr(SheddingNfa, name)
    monkeypatch.setattr(SheddingNfa, name, first)
    if not alone:
        monkeypatch.setattr(SheddingNfa, "expect", lambda *_: False)
    engine = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-3))
    assert _found(engine, engine.register(TEXT), 200) > 0
    assert min(stopped, passed) > 10


def test_only_the_best_policy_passes_over_and_nothing_where_a_match_keeps_out_another(eager: None) -> None:
    del eager
    for policy, after in (
        (Policy.RANDOM_STATE, ""),
        (Policy.SHARP, "EMIT LAST"),
        (Policy.SHARP, "CONSUME ANY"),
    ):
        engine = Engine(matcher="nfa", latency=timedelta(days=1), policy=policy, clock=WorkClock(1e-3))
        handle = engine.register(f"{TEXT} {after}")
        _found(engine, handle, 100)
        assert handle.stats.shed is not None
        assert handle.stats.shed.passed_over == 0
        engine.close()


def test_what_an_event_takes_by_itself_is_no_burst() -> None:
    """Where the bound is less than that, half of the load was passed over at each event, for nothing."""
    engine = Engine(matcher="nfa", latency=timedelta(microseconds=900), clock=WorkClock(1e-3))
    handle = engine.register(TEXT)
    _found(engine, handle, 400)
    assert handle.stats.shed is not None
    assert handle.stats.shed.passed_over == 0


def test_to_pass_over_much_does_not_put_off_the_look_that_sheds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is as long as the work is; by what was shown alone it took thousands of events."""
    looks = list[int]()
    look = SheddingNfa._look

    def noted(self: SheddingNfa, axis: int, time: int, most: int) -> None:
        looks.append(most)
        look(self, axis, time, most)

    monkeypatch.setattr(SheddingNfa, "_look", noted)
    monkeypatch.setattr(burst.BurstFilter, "pass_over", lambda *_: (0, 5_000))
    engine = Engine(matcher="nfa", latency=timedelta(days=1), clock=WorkClock(1e-3))
    _found(engine, engine.register(TEXT), 60)
    assert max(looks) > 5_000


def test_to_choose_who_is_passed_over_is_nothing_that_an_event_takes_by_itself() -> None:
    """It was taken for that, and so little of the bound was left for what is shown."""
    overload = Overload(1.0)
    for _ in range(200):
        overload.measure(1, 0.9, 1_000.0, 101.0, 0, 0.8)
    assert overload.least < 0.11


@pytest.mark.slow
def test_a_burst_is_held_and_hardly_a_match_is_lost() -> None:
    """Two events of 25 bounds each, and two of 17, were in one block of 64."""
    stream = sharp.Stream(4_000, 2.5, seed=24)
    whole = sharp.run("Q4", stream, None)
    bound = 0.5 * float(whole.latency.mean())
    ran = sharp.run("Q4", stream, bound)
    assert ran.matches <= whole.matches
    assert len(ran.matches) > 0.9 * len(whole.matches)
    assert np.quantile(ran.latency, 0.99) <= 1.15 * bound

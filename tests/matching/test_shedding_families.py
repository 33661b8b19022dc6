"""AFTER MATCH SKIP TO NEXT EVENT under a bound: first events are shed whole, and nothing else is found."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq import Engine
from spaseq.automaton.normal import normalise
from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Bound, Policy, Pool, WorkClock
from spaseq.engine.handle import Handle
from spaseq.errors import EngineError, SpaseqWarning
from spaseq.language import prepare
from spaseq.language.reading.parser import parse
from spaseq.language.syntax import SkipMode
from spaseq.limits import UNLIMITED
from spaseq.matching.context import Context
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa import memory as kernel_memory
from spaseq.matching.nfa.skip import matcher
from spaseq.matching.plan import explain
from spaseq.matching.shedding.query import BoundedQuery, obstacles
from spaseq.matching.shedding.skip import SheddingSkip
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.sharp import Stream
from tests.engine.test_bounds import found, query
from tests.matching.kernel_cases import Yields, by_kernel
from tests.matching.random_sequences import Sample, random_sample
from tests.matching.random_skips import by_judge, random_skip

_SKIP = "AFTER MATCH SKIP TO NEXT EVENT"
_POLICIES = ["sharp", "random-state", "selective"]


def shedding(sample: Sample, kept: Bound) -> Yields:
    """What is found under a bound."""

    def make(
        pattern: SequencePattern, dictionary: Dictionary, context: Context, window: StreamWindow
    ) -> SheddingSkip:
        return SheddingSkip(BoundedQuery(pattern, dictionary, context, window, kept))

    return by_kernel(sample, make)


def counted(steps: Yields) -> Counter[object]:
    """All matches, with their rows."""
    return Counter(match for step in steps for match in cast("list[Any]", step))


@pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")
@given(st.integers(0, 2**64 - 1), st.sampled_from(_POLICIES), st.sampled_from(["latency", "memory", "both"]))
@pytest.mark.slow
def test_no_false_matches(seed: int, policy: str, by: str) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        skipping = random_skip(rng, compiled=True, most=4)
        if not any(obstacles(skipping.pattern)) and not skipping.misfit:
            break
    else:
        return
    assert skipping.pattern.query.skip is not None
    assert skipping.pattern.query.skip.mode is SkipMode.TO_NEXT_EVENT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher, "_START", kernel_memory.Capacity(1, 1, 1, 1))
        patch.setattr(matcher, "_FAMILIES", 1)
        for _ in range(4):
            sample = replace(random_sample(rng, skipping, 9), drops=frozenset())
            every = counted(by_judge(sample))
            pool = None if by == "latency" else Pool(rng.choice([1, 3_000, 20_000]))
            latency = None if by == "memory" else rng.choice([0.5, 3.0, 8.0])
            kept = Bound(latency, pool, policy=Policy(policy), clock=WorkClock(1.0))
            assert not counted(shedding(sample, kept)) - every
            free = Bound(1e9, Pool(2**40), clock=WorkClock(1.0))
            assert counted(shedding(sample, free)) == every


def ran(
    policy: str = "sharp", *, bound: float | None = None, size: int | None = None
) -> tuple[set[str], Any]:
    """What is found of a query, and its handle; without a bound the mean work of an event, too."""
    clock = WorkClock(1e-3)
    latency = timedelta(days=1) if bound is None else timedelta(seconds=bound)
    engine = Engine(latency=latency, memory=size, policy=policy, clock=clock)
    handle: Handle = engine.register(query(after=_SKIP))
    some = found(engine, handle, 600)
    return some, (handle, clock() / 600)


def test_first_events_are_shed_and_what_they_come_to_is_learned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        every, (whole, mean) = ran()
        assert not whole.stats.shed.active
        exact = Engine()
        assert found(exact, exact.register(query(after=_SKIP)), 600) == every
        some, (handle, spent) = ran(bound=0.5 * mean)
        lots, _ = ran("random-state", bound=0.5 * mean)
    assert set() < some < every
    assert lots < every
    assert len(some) > len(lots)
    assert spent < 0.6 * mean
    shed = handle.stats.shed
    assert shed.partial_matches == sum(shed.by_state.values()) > 0
    assert set(shed.by_state) <= {"before B", "before C"}
    assert shed.doubtful == 0


def test_it_is_said_and_explained() -> None:
    with pytest.warns(SpaseqWarning) as told:
        ran(bound=0.02)
    assert "sheds partial matches: an event takes" in str(told[0].message)
    assert "sheds no more: " in str(told[-1].message)
    bound = explain(prepare(query(after=_SKIP))).bound
    assert (bound.name, bound.sheds, bound.doubts, bound.all_readings) == ("nfa", True, (), True)
    assert "those of a first event together" in bound.reason
    assert not explain(prepare(query(after="AFTER MATCH SKIP PAST LAST EVENT"))).bound.sheds
    Engine(latency=timedelta(1), matcher="nfa").register(query(after=_SKIP))
    with pytest.raises(EngineError, match="ask for 'nfa' or for none"):
        Engine(latency=timedelta(1), matcher="reference").register(query(after=_SKIP))


def test_memory_is_kept_about(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [0]
    share = Pool.share

    def noticed(self: Pool, kept: Bound, holds: int) -> int:
        held[0] = max(held[0], holds)
        return share(self, kept, holds)

    monkeypatch.setattr(Pool, "share", noticed)
    text = (
        query(after=_SKIP).replace("200 EVENTS", "1000 EVENTS").replace("?z > ?x + ?y", "?z > ?x + ?y + 60")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        engine = Engine(memory=2_000_000)
        handle = engine.register(text)
        some = found(engine, handle, 1_500)
    every = Engine()
    assert set() < some <= found(every, every.register(text), 1_500)
    assert handle.stats.shed is not None
    assert handle.stats.shed.partial_matches
    assert 0 < held[0] <= 2_000_000


def test_to_look_at_all_first_events_takes_little_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looked after each event that took long worked for the looks alone, and shed for these."""
    now, looks = [0.0], [0]
    look, takes = SheddingSkip._look_over, SheddingSkip._take_alone

    def looked(self: SheddingSkip, at: int) -> None:
        now[0] += 1.0
        looks[0] += 1
        look(self, at)

    def taken(self: SheddingSkip, *event: Any) -> Any:
        now[0] += 0.1
        return takes(self, *event)

    monkeypatch.setattr(SheddingSkip, "_look_over", looked)
    monkeypatch.setattr(SheddingSkip, "_take_alone", taken)
    engine = Engine(latency=timedelta(seconds=0.5), clock=lambda: now[0])
    handle: Handle = engine.register(query(after=_SKIP))
    exact = Engine()
    assert found(engine, handle, 600) == found(exact, exact.register(query(after=_SKIP)), 600)
    assert 2 < looks[0] < now[0] / 10
    assert handle.stats.shed is not None
    assert not handle.stats.shed.partial_matches


_RISING = {"B": "?ax < ?bx", "C": "?ax + ?bx < ?cx"}


def over_sharps_data(
    bound: float | None, seed: int, window: str, policy: str = "sharp"
) -> tuple[int, Any, float]:
    """How many matches ``A : B : C`` has in Sharp's data, what was shed, and the units of an event."""
    gpms = " ".join(
        f"DEFINE GPM {t} ON S {{ [] :{t} ?id ; :x ?{t.lower()}x . "
        f"{f'FILTER({_RISING[t]})' if t in _RISING else ''} }}"
        for t in "ABC"
    )
    asked = normalise(
        parse(
            f"PREFIX : <http://example.org/> SELECT * WITHIN 1 EVENTS {window} FROM STREAM S <urn:s> "
            f"WHERE {{ SEQ(A : B : C) {gpms} }} {_SKIP}"
        )
    )
    stream = Stream(400, 4, seed)
    clock = WorkClock(1.0)
    kept = Bound(1e18 if bound is None else bound, policy=Policy(policy), clock=clock)
    context = Context(asked, stream.dictionary, None, UNLIMITED)
    size = StreamWindow(stream.window, True, window == "SLIDING", 0, True)
    matcher = SheddingSkip(BoundedQuery(asked, stream.dictionary, context, size, kept))
    count = 0
    for start in range(stream.size):
        batch, solutions = stream.batch(start, start + 1)
        count += sum(len(block.chosen().offsets) - 1 for block in matcher.process(batch, start, solutions))
    count += sum(len(block.chosen().offsets) - 1 for block in matcher.close())
    return count, matcher.shed, clock() / stream.size


@pytest.mark.slow
@pytest.mark.parametrize("window", ["SLIDING", "TUMBLING"])
def test_values_tell_what_first_events_come_to_and_so_does_the_estimate(window: str) -> None:
    every = found = lots = 0
    said = list[float]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)
        for seed in (401, 402):
            whole, _, mean = over_sharps_data(None, seed, window)
            some, shed, spent = over_sharps_data(mean / 2, seed, window)
            by_lot, _, _ = over_sharps_data(mean / 2, seed, window, "random-state")
            assert shed.partial_matches
            assert spent < 0.55 * mean
            every, found, lots = every + whole, found + some, lots + by_lot
            said.append(shed.recall)
    assert found > 1.25 * lots
    assert abs(sum(said) / len(said) - found / every) < 0.15

"""A bucket under a bound, without Spark: what is found is found without, and what was shed is told."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from spaseq.automaton.normal import normalise
from spaseq.bounds import WorkClock
from spaseq.errors import EngineError, SpaseqWarning
from spaseq.language.reading.parser import parse
from spaseq.matching.planner import under_bound
from spaseq.spark.sinks._lines import MATCH, SHED
from spaseq.spark.stages._bucket import State, bound_of
from spaseq.spark.stages._job import BucketBound, Job, pattern_of
from spaseq.spark.stages._keepers import BucketStep, Done, Keeper
from tests.spark.stages import Cluster, changed, comparable, pushed
from tests.streams import Letter, letters, query

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.* sheds:spaseq.errors.SpaseqWarning")

TEXT = query(
    "A : B : C",
    "60 SECONDS SLIDING",
    {"A": "?a :k ?k .", "B": "?b :k ?k . FILTER(?bv > ?av)", "C": "?c :k ?k . FILTER(?cv < ?bv)"},
    partition="?k",
)

#: What buffers cannot do: with a bound and without, these are the kernel's.
BY_KERNEL = [
    query(
        sequence,
        "40 SECONDS SLIDING",
        {"A": "?a :k ?k .", "B": "?b :k ?k . FILTER(?bv > ?av)", "C": "?c :k ?k . FILTER(?cv < ?av)"},
        partition="?k",
    )
    for sequence in ("A ; B+ ; C", "A : B{1,2}[:] : C")
]


def stream(count: int = 300) -> list[Letter]:
    rng = random.Random(3)
    some = letters(" ".join(f"{rng.choice('abc')}{time}" for time in range(1, count)))
    return [replace(letter, value=rng.randint(0, 100)) for letter in some]


@dataclass
class Asker:
    """What a keeper may lack."""

    of: Job
    stored: State | None = None

    def job(self) -> Job:
        return self.of

    def state(self) -> State:
        assert self.stored is not None
        return self.stored


def run(
    bound: BucketBound, events: Sequence[Letter], *, cold: bool, text: str = TEXT
) -> list[tuple[str, str]]:
    """The answers of one bucket in micro-batches of 50 events; ``cold``: brought back for each."""
    cluster = Cluster(buckets=1)
    job, _ = cluster.made(text, events)
    asker, keeper, token = Asker(replace(job, bound=bound)), Keeper(), None
    answers: list[tuple[str, str]] = []
    for begin in range(0, len(events), 50):
        part = events[begin : begin + 50]
        pieces = tuple(piece.data for piece in cluster.pieces(text, part))
        step = BucketStep("q", 0, token, pieces, part[0].time, is_over=part[-1] is events[-1])
        for said in (Keeper() if cold else keeper).take(step, asker):
            if isinstance(said, Done):
                token, asker.stored = said.token, changed(asker.stored, said.changes)
            else:
                answers += said
    return answers


def without_n(lines: Sequence[str]) -> list[str]:
    """Lines to compare; arrival numbers begin anew with each micro-batch here."""
    return comparable([re.sub(r'"n":\d+', '"n":0', line) for line in lines])


def lines(answers: Sequence[tuple[str, str]], kind: str) -> list[str]:
    return [line for of, line in answers if of == kind]


@pytest.mark.slow
def test_a_bucket_keeps_its_bound() -> None:
    """An event takes so long on average, where without a bound it takes longer."""
    events = stream()
    free, kept = WorkClock(), WorkClock()
    run(BucketBound(1.0, clock=free), events, cold=False)
    found = run(BucketBound(5e-5, clock=kept), events, cold=False)
    assert kept() / len(events) <= 5e-5 < free() / len(events)
    assert lines(found, MATCH)


@pytest.mark.parametrize("cold", [False, True])
def test_what_is_found_under_a_bound_is_found_without(cold: bool) -> None:
    """``cold``: also when it is brought back from its state for every micro-batch."""
    events = stream()
    every = Counter(without_n(pushed(TEXT, events)))
    answers = run(BucketBound(latency=5e-5, clock=WorkClock()), events, cold=cold)
    some = Counter(without_n(lines(answers, MATCH)))
    assert 0 < some.total() < every.total()
    assert not some - every  # no false match, and none twice
    told = [json.loads(line) for line in lines(answers, SHED)]
    assert told
    assert all(said["partial_matches"] > 0 and said["doubtful"] == 0 for said in told)
    assert answers == run(BucketBound(latency=5e-5, clock=WorkClock()), events, cold=cold)


@pytest.mark.parametrize("text", [TEXT, *BY_KERNEL])
@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.few(0, ci=2)
def test_a_wide_bound_changes_nothing(cold: bool, text: str) -> None:
    events = stream()
    answers = run(BucketBound(1.0, 1 << 30, WorkClock()), events, cold=cold, text=text)
    assert without_n(lines(answers, MATCH)) == without_n(pushed(text, events))
    assert not lines(answers, SHED)


@pytest.mark.parametrize("text", BY_KERNEL)
@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.few(0, ci=2)
def test_what_stays_with_the_kernel_keeps_a_bound(cold: bool, text: str) -> None:
    assert under_bound(normalise(parse(text))).name == "nfa"
    events = stream()
    free = WorkClock()
    run(BucketBound(1.0, clock=free), events, cold=False, text=text)
    kept, half = WorkClock(), 0.5 * free() / len(events)
    answers = run(BucketBound(half, clock=kept), events, cold=cold, text=text)
    some, every = Counter(without_n(lines(answers, MATCH))), Counter(without_n(pushed(text, events)))
    assert 0 < some.total() < every.total()
    assert not some - every
    told = [json.loads(line) for line in lines(answers, SHED)]
    assert told
    assert all(said["partial_matches"] > 0 and said["doubtful"] == 0 for said in told)
    if not cold:  # who is brought back sees the events of its window again
        assert kept() / len(events) <= 1.1 * half


def test_memory_is_of_each_bucket() -> None:
    bound = BucketBound(memory=1 << 20)
    assert bound.fresh().pool is not bound.fresh().pool


def test_who_cannot_shed_runs_without_a_bound() -> None:
    ms = timedelta(milliseconds=1)
    assert bound_of(pattern_of(TEXT), None, None, None) is None
    assert bound_of(pattern_of(TEXT), ms, None, None) == BucketBound(latency=1e-3)
    for text, why in [
        (query("A : B", "9 SECONDS", tail="CONSUME ANY"), "CONSUME ANY runs without a bound"),
        (query("A : B", "9 SECONDS", tail="AFTER MATCH SKIP PAST LAST EVENT"), "runs without a bound"),
    ]:
        with pytest.warns(SpaseqWarning, match=why):
            assert bound_of(pattern_of(text), ms, None, None) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        need_not = pattern_of(query("A : B", "9 SECONDS"))
        assert bound_of(need_not, ms, None, "tecs") is None
    for latency, memory in [(-ms, None), (None, 0)]:
        with pytest.raises(EngineError, match="a bound is a"):
            bound_of(pattern_of(TEXT), latency, memory, None)

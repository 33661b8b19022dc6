"""Under a bound, events that come alone: the same is found and shed as of batches of one, for little."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from itertools import cycle
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq import Engine, Match
from spaseq.bounds import Policy, WorkClock
from spaseq.matching.shedding.lazy import SheddingLazy
from spaseq.matching.shedding.matcher import SheddingNfa
from spaseq.matching.shedding.overload import Overload
from spaseq.matching.shedding.skip import SheddingSkip
from tests.streams import NS, letters
from tests.streams import query as of_letters

pytestmark = pytest.mark.filterwarnings("ignore:SEQ.*:spaseq.errors.SpaseqWarning")

STREAM: Final = "http://example.org/s"
SEQUENCES: Final = (
    "A : B : C",
    "A ; B+ ; C",
    "A : B{1,3}[:] : C",
    "A : !B : C",
    "A ; B , C",
    "A : B ; !C",
    "A ; B?",
)


def query(sequence: str, window: str, after: str = "") -> str:
    gpms = {
        "A": "A ON S { ?a :a ?k ; :v ?x }",
        "B": "B ON S { ?b :b ?k ; :v ?y . FILTER(?y > ?x) }",
        "C": "C ON S { ?c :c ?k ; :v ?z . FILTER(?z > ?x) }",
    }
    used = " ".join(f"DEFINE GPM {gpm}" for name, gpm in gpms.items() if name in sequence)
    return f"""PREFIX : <http://example.org/> SELECT * WITHIN {window}
        FROM STREAM S <{STREAM}> WHERE {{ SEQ({sequence}) {used} }} {after}"""


def events(seed: int, count: int, kinds: str = "abc") -> Iterator[str]:
    """Some are of several triples, and a few of too many to be taken as one that came alone."""
    rng = random.Random(seed)
    for t in range(count):
        triples = [
            f"<urn:{t}.{i}> <http://example.org/{rng.choice(kinds)}> {rng.randint(1, 3)} ; "
            f"<http://example.org/v> {rng.randint(0, 100)} ."
            for i in range(rng.choices([1, 2, 34], [40, 10, 1])[0])
        ]
        yield " ".join(triples)


def pushed(
    text: str, seed: int, bounds: dict[str, Any], count: int = 80, matcher: str = "nfa"
) -> tuple[list[Any], Any]:
    """What each event completes, and what was given up."""
    engine = Engine(matcher=matcher, clock=WorkClock(1e-3), **bounds)
    handle = engine.register(text)
    found = []
    # Events that concern it not are no positions where the window is one of time, and are in a batch.
    for t, event in enumerate(events(seed, count, "abc" if "C ON" in text else "ab")):
        engine.push(STREAM, event, t)
        found.append(Counter(str(match.bindings) for match in handle.matches()))
    engine.close()
    found.append(Counter(str(match.bindings) for match in handle.matches()))
    return found, None if handle.stats.shed is None else asdict(handle.stats.shed)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(SEQUENCES),
    st.sampled_from(["20 EVENTS SLIDING", "20 SECONDS SLIDING", "15 SECONDS"]),
    st.sampled_from(["", "EMIT LAST", "CONSUME ANY"]),
    st.sampled_from(Policy),
    st.sampled_from([2, 6, 10**6]),
)
def test_the_same_is_found_and_shed_as_of_batches(
    seed: int, sequence: str, window: str, after: str, policy: Policy, bound: int
) -> None:
    text = query(sequence, window, after)
    if policy is Policy.RANDOM_INPUT and (after or sequence != "A : B : C"):
        return  # false matches might be found
    if after == "CONSUME ANY" and sequence.endswith(("!C", "?")):
        return  # the kernel cannot do that
    bounds = {"latency": timedelta(milliseconds=bound), "policy": policy}
    ours = pushed(text, seed, bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SheddingNfa, "expect", lambda *_: False)
        assert ours == pushed(text, seed, bounds)
    if bound == 10**6:
        assert ours[0] == pushed(text, seed, {})[0]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["A : B : C", "A : !B : C", "ALL(A, B, C)"]),
    st.sampled_from(["20 EVENTS SLIDING", "20 SECONDS SLIDING", "15 SECONDS"]),
    st.sampled_from([Policy.SHARP, Policy.RANDOM_STATE, Policy.SELECTIVE]),
    st.sampled_from([2, 6, 10**6]),
)
@pytest.mark.slow
def test_the_same_of_buffered_events(
    seed: int, sequence: str, window: str, policy: Policy, bound: int
) -> None:
    text = query(sequence, window)
    bounds = {"latency": timedelta(milliseconds=bound), "policy": policy}
    ours = pushed(text, seed, bounds, matcher="lazy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SheddingLazy, "expect", lambda *_: False)
        assert ours == pushed(text, seed, bounds, matcher="lazy")
    if bound == 10**6:
        assert ours[0] == pushed(text, seed, {}, matcher="lazy")[0]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["A ; B ; C", "A ; B+ ; C", "A , B"]),
    st.sampled_from(["20 EVENTS SLIDING", "20 SECONDS SLIDING", "15 SECONDS"]),
    st.sampled_from([Policy.SHARP, Policy.RANDOM_STATE, Policy.SELECTIVE]),
    st.sampled_from([2, 6, 10**6]),
)
@pytest.mark.slow
def test_the_same_of_first_events(seed: int, sequence: str, window: str, policy: Policy, bound: int) -> None:
    text = query(sequence, window, "AFTER MATCH SKIP TO NEXT EVENT")
    bounds = {"latency": timedelta(milliseconds=bound), "policy": policy}
    ours = pushed(text, seed, bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SheddingSkip, "expect", lambda *_: False)
        assert ours == pushed(text, seed, bounds)
    if bound == 10**6:
        assert ours[0] == pushed(text, seed, {})[0]


def test_a_callback_sees_each_match_once_and_may_push() -> None:
    """Of an event that completes something, what is left to do comes behind its matches."""
    found: dict[bool, Counter[str]] = {}
    for is_bounded in (True, False):
        bounds: dict[str, Any] = {"latency": timedelta(days=1)} if is_bounded else {}
        engine = Engine(matcher="nfa", **bounds)
        seen: Counter[str] = Counter()

        now = [0]

        def take(
            match: Match, engine: Engine = engine, seen: Counter[str] = seen, now: list[int] = now
        ) -> None:
            seen[str(match.bindings)] += 1
            if seen.total() % 7 == 0:
                raise KeyError(seen.total())
            if seen.total() % 5 == 0:
                engine.push(STREAM, "<urn:of> <http://example.org/d> 1 .", max(match.end, now[0]))

        engine.register(query("A : B : C", "20 EVENTS SLIDING"), take)
        for t, event in enumerate(events(3, 200)):
            now[0] = t
            with suppress(KeyError):
                engine.push(STREAM, event, t)
        with suppress(KeyError):
            engine.close()
        found[is_bounded] = seen
    assert found[True] == found[False]
    assert found[True].total() > 100


class Ticking:
    """A clock that counts how often it is asked, and goes on by so many seconds each time."""

    def __init__(self, step: float) -> None:
        self.step, self.asked = step, 0

    def __call__(self) -> float:
        self.asked += 1
        return self.asked * self.step


def ends(monkeypatch: pytest.MonkeyPatch, step: float, count: int = 640) -> list[int]:
    """After how many events each it is learned what they were, where one takes so many seconds."""
    told: list[int] = []
    measure = Overload.measure

    def measured(self: Overload, events: int, *given: Any) -> float:
        told.append(events)
        return measure(self, events, *given)

    monkeypatch.setattr(Overload, "measure", measured)
    engine = Engine(matcher="nfa", latency=timedelta(milliseconds=50), clock=Ticking(step))
    engine.register(query("A : B : C", "20 EVENTS SLIDING"), lambda _: None)
    for t, event in enumerate(events(5, count)):
        engine.push(STREAM, event, t)
    monkeypatch.undo()
    return told


def test_while_there_is_time_enough_nothing_is_done_between_two_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was done after each of them, which took as long as seven events do."""
    told = ends(monkeypatch, 1e-6)
    assert sum(told) > 500
    assert np.median(told) == 64
    # Here each takes more than a bound does: what is too much is known at once.
    assert max(ends(monkeypatch, 0.06)) == 1


def test_first_events_are_shed_of_all_that_there_are() -> None:
    """A look is spread over events that come alone: at its end there are more partial matches than it saw."""
    rng, steps, now = random.Random(0), cycle([1e-3, 1e-1, 1e-2, 1e-2, 1e-3]), [0.0]

    def clock() -> float:
        now[0] += next(steps)
        return now[0]

    words = letters(" ".join(f"{rng.choice('aabbbc')}{tick}" for tick in range(300)))
    text = of_letters("A ; B*[:]", "9 EVENTS SLIDING", tail="EMIT LAST")
    bounded = Engine(matcher="nfa", latency=timedelta(milliseconds=2), clock=clock)
    engines = [bounded, Engine(matcher="nfa")]
    handles = [engine.register(text) for engine in engines]
    for word in words:
        for engine in engines:
            engine.push(f"{NS}{word.stream}", word.turtle, word.time)
    some, every = ([(match.start, match.end) for match in handle.matches()] for handle in handles)
    assert handles[0].stats.shed is not None
    assert handles[0].stats.shed.partial_matches > 0
    assert 0 < len(some) <= len(every)

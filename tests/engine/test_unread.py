"""Matches that nobody has asked for yet: they cost nothing, and are the same when they are."""

from __future__ import annotations

import random
import tracemalloc
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine import delivery
from spaseq.engine import handle as handles
from spaseq.matching.tecs import walking
from tests.conftest import examples
from tests.streams import NS, Letter, events_of, letters, query

#: What an event completes here doubles with each.
SUBSETS = query("A : B+[:] : C", "10000 SECONDS")


def _push(engine: spaseq.Engine, events: Iterable[Letter]) -> None:
    for letter in events:
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def _answer(match: spaseq.Match) -> tuple[object, ...]:
    rows = tuple(sorted(str(sorted(row.items())) for row in match.bindings))
    return match.start, match.end, str(match.partition), events_of(match), rows


def test_the_first_ten_of_very_many() -> None:
    engine = spaseq.Engine()
    handle = engine.register(SUBSETS)
    *before, last = letters("a0 " + " ".join(f"b{time}" for time in range(1, 2_999)) + " c2999")
    _push(engine, before)
    tracemalloc.start()
    _push(engine, [last])
    ten = list(islice(handle.matches(), 10))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 * 2**20
    assert len({tuple(event.time for event in match.events["B"]) for match in ten}) == 10
    assert {(match.start, match.end) for match in ten} == {(0, 2_999)}
    assert 10 <= handle.stats.matches < 1_000


@pytest.mark.parametrize("matcher", ["nfa", "interpreter", "reference"])
@pytest.mark.few(1)
def test_a_cancelled_query_finds_nothing_that_only_later_time_completes(matcher: str) -> None:
    """Nor does it overlook a C that comes behind it."""
    engine = spaseq.Engine(matcher=matcher)
    handle = engine.register(query("A : (D | B : !C)", "5 SECONDS SLIDING"))
    engine.register(query("A", "5 SECONDS SLIDING"))
    # More than are looked for before somebody reads, so that time waits for a reader, too.
    many = [*letters(" ".join(["a10"] * 60 + ["d11"] * 60)), *letters("a12 b12 e13")]
    engine.push_many(NS + "S", [(each.turtle, each.time, f"{NS}{each.name}") for each in many])
    handle.cancel()
    _push(engine, letters("c14 a40"))
    assert [events_of(match)[-3:] for match in handle.matches()] == ["d11"] * 3_600
    assert handle.stats.watermark == 13


def test_further_events_do_not_wait_for_a_reader() -> None:
    engine = spaseq.Engine()
    handle = engine.register(SUBSETS)
    _push(engine, letters("a0 " + " ".join(f"{'bc'[time % 2]}{time}" for time in range(1, 200))))
    assert handle.stats.events == 200
    assert [events_of(match) for match in islice(handle.matches(), 1)] == ["a0b2c3"]
    handle.cancel()
    assert handle.done
    assert next(iter(handle.matches())).end == 5  # what was found before can still be drained


def test_what_is_dropped_is_never_looked_for() -> None:
    engine = spaseq.Engine()
    handle = engine.register(SUBSETS)
    _push(engine, letters("a0 " + " ".join(f"{'bc'[time % 2]}{time}" for time in range(1, 200))))
    handle.drop()
    assert list(handle.matches()) == []
    _push(engine, letters("b20000 a20001 b20002 c20003"))
    assert [events_of(match) for match in handle.matches()] == ["a20001b20002c20003"]
    handle.drop()
    engine.close()
    assert list(handle.matches()) == []


def test_there_is_a_limit_to_what_waits() -> None:
    engine = spaseq.Engine(limits=spaseq.Limits(pending_matches=20))
    handle = engine.register(SUBSETS)
    other = engine.register(query("A"))
    _push(engine, letters("a0 " + " ".join(f"b{time}" for time in range(1, 40)) + " c41"))
    assert not handle.done
    _push(engine, letters(" ".join(f"c{time}" for time in range(42, 80))))
    assert isinstance(handle.error, spaseq.LimitError)
    assert not other.done
    with pytest.raises(spaseq.LimitError, match="over the limit pending_matches=20"):
        for _ in handle.matches():
            pass


def test_a_callback_that_cancels_ends_the_search() -> None:
    engine = spaseq.Engine()
    seen: list[spaseq.Match] = []

    def enough(match: spaseq.Match) -> None:
        seen.append(match)
        if len(seen) == 3:
            handle.cancel()

    handle = engine.register(SUBSETS, enough)
    _push(engine, letters("a0 " + " ".join(f"b{time}" for time in range(1, 100)) + " c101 c102"))
    assert len(seen) == 3


def test_a_limit_that_is_reached_late_is_one() -> None:
    engine = spaseq.Engine()
    handle = engine.register(SUBSETS + " LIMIT 20000")
    _push(engine, letters("a0 " + " ".join(f"b{time}" for time in range(1, 13)) + " c14"))
    assert not handle.done  # as far as anybody has looked
    _push(engine, letters("c15"))
    assert handle.done
    rows = [len(match.bindings) for match in handle.matches()]
    assert sum(rows) == 20_000
    assert all(rows)


# --- late and at once -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def _little_at_a_time() -> Iterator[None]:
    """Few matches are looked for at once, so that many wait in every state there is; terms are soon old."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handles, "AT_ONCE", 3)
        patch.setattr(delivery, "AT_ONCE", 3)
        patch.setattr(walking, "_MATCHES", 2)
        patch.setattr("spaseq.engine.core._SWEEP_AFTER", 10)
        yield


def _text(rng: random.Random) -> str:
    joined = rng.random() < 0.4
    gpms = {name: f"?{name.lower()} :k ?x" for name in "ABC"} if joined else {}
    sequence = rng.choice(["A : B", "A : B+[:] : C", "A : B : C", "A+[:] : B+[:]"])
    window = rng.choice(["9 SECONDS", "6 SECONDS TUMBLING", "7 EVENTS", "8 EVENTS TUMBLING", "1000 SECONDS"])
    head = rng.choice(["SELECT *", "SELECT *", "SELECT ?bv (?bv + 1 AS ?more)", "ASK"])
    by = "?x" if joined and rng.random() < 0.6 else ""
    clauses = ["", "", "", *([] if joined and not by else ["EMIT MAX", "EMIT LAST", "CONSUME ANY"])]
    tail = rng.choice(clauses) + rng.choice(["", "", "", " LIMIT 3", " LIMIT 20", " OFFSET 1"])
    return query(sequence, window, gpms, head=head, partition=by, tail=tail if head != "ASK" else "")


@pytest.mark.usefixtures("_little_at_a_time")
@pytest.mark.parametrize("matcher", ["tecs", "nfa"])
@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1))
def test_late_is_as_at_once(matcher: str, seed: int) -> None:
    rng = random.Random(seed)
    text = _text(rng)
    wanted: list[spaseq.Match] = []
    engines = [spaseq.Engine(matcher=matcher) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        at_once, late = engines[0].register(text, wanted.append), engines[1].register(text)
    found, time = [], 0
    size = rng.randint(8, 18)
    end = rng.choice([size, size, rng.randrange(size)])
    for number in range(size):
        time += rng.choice([0, 1, 1, 2])
        events = letters(f"{rng.choice('abbc')}{time}={number}/{rng.choice('kkm')}")
        for engine in engines:
            _push(engine, events)
        if number == end:
            at_once.cancel()
            late.cancel()
        match rng.randrange(8):
            case 0:
                found += [_answer(match) for match in islice(late.matches(), rng.randint(1, 5))]
            case 1:
                found += [_answer(match) for batch in islice(late.batches(4), 2) for match in batch]
    for engine in engines:
        engine.close()
    found += map(_answer, late.matches())
    assert found == list(map(_answer, wanted)), text
    assert (late.done, late.stats.matches) == (at_once.done, at_once.stats.matches), text

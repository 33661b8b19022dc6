"""What a group has found and nobody has read: each query has its own, and is in its limits, as if alone."""

from __future__ import annotations

import random
import tracemalloc
import warnings
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine import delivery
from spaseq.engine import handle as handles
from spaseq.engine.pipelines import query_set
from spaseq.matching.columns.blocks import share
from spaseq.matching.sharing import by_tecs
from spaseq.matching.tecs import walking
from tests.conftest import examples
from tests.streams import NS, Letter, events_of, letters, query


def _push(engine: spaseq.Engine, events: list[Letter]) -> None:
    for letter in events:
        engine.push(NS + letter.stream, letter.turtle, letter.time, name=f"{NS}{letter.name}")


def _answer(match: spaseq.Match) -> tuple[object, ...]:
    rows = tuple(sorted(str(sorted(row.items())) for row in match.bindings))
    return match.start, match.end, str(match.partition), events_of(match), rows


def _cubes(bound: int) -> str:
    """An event completes as many matches as the square of those before."""
    return query("A : B : C", "100000 SECONDS", {"A": f"FILTER(?av > {bound})"})


@pytest.mark.parametrize("bounds", [(-1, -1, -1), (-1, -2, 5_000)], ids=["equal", "template"])
def test_very_many_matches_wait_as_those_of_one_query(bounds: tuple[int, ...]) -> None:
    engine = spaseq.Engine()
    handles = [engine.register(_cubes(bound)) for bound in bounds]
    events = letters(" ".join(f"{'abc'[time % 3]}{time}" for time in range(900)))
    _push(engine, events[:60])
    assert len([*handles[0].matches()]) == 20 * 21 * 22 // 6
    tracemalloc.start()
    _push(engine, events[60:])
    assert [handle.stats.events for handle in handles] == [900] * 3
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 2**20
    (match, *_) = ten = list(islice(handles[1].matches(), 10))
    assert events_of(match) == "a0b1c2"
    assert len(ten) == 10
    # 300 · 301 · 302 / 6 there are, of which nobody has looked for most.
    assert all(handle.stats.matches < 2_000_000 for handle in handles)
    assert not any(handle.done for handle in handles)
    handles[1].cancel()
    assert handles[1].done
    handles[0].drop()
    assert [*handles[0].matches()] == []
    _push(engine, letters("a200000 b200001 c200002"))
    assert [*map(events_of, handles[0].matches())] == ["a200000b200001c200002"]
    # What was found before it was cancelled can still be drained.
    assert 10 + sum(map(len, handles[1].batches())) == 300 * 301 * 302 // 6


def test_cancelled_queries_keep_what_they_have_in_common() -> None:
    engine = spaseq.Engine()
    handles = [engine.register(_cubes(bound)) for bound in range(-1, 39)]
    _push(engine, letters(" ".join(f"{'abc'[time % 3]}{time}" for time in range(360))))
    assert handles[0].stats.events == 360
    tracemalloc.start()
    for handle in handles:
        handle.cancel()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 8 * 2**20
    for handle, first in ((handles[0], 0), (handles[-1], 13)):
        there = 120 - first
        assert sum(map(len, handle.batches())) == there * (there + 1) * (there + 2) // 6


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(-1, -1), (-1, -2)], ids=["equal", "template"])
def test_there_is_a_limit_to_what_waits_in_a_group(
    bounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_set, "_AT_ONCE", 100)
    monkeypatch.setattr(query_set, "_EACH", 1)
    engine = spaseq.Engine(limits=spaseq.Limits(pending_matches=1500))
    read, unread = (engine.register(_cubes(bound)) for bound in bounds)
    count = 0
    for time in range(0, 3_000, 3):
        _push(engine, letters(f"b{time}" if time else "a0") + letters(f"c{time + 1}"))
        count += sum(1 for _ in islice(read.matches(), 1_000))
        if unread.done:
            break
    assert count > 500
    assert not read.done
    with pytest.raises(spaseq.LimitError, match="over the limit pending_matches=1500"):
        for _ in unread.matches():
            pass
    assert unread.stats.events > 900  # a wait for each C, not for each match


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(-1, -1), (-1, -2)], ids=["equal", "template"])
def test_what_cannot_wait_is_in_the_limit_while_it_is_found(
    bounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FILTERs between events are asked as matches are put together: these are arrays at once."""
    monkeypatch.setattr(share, "MOST", 1_000)
    monkeypatch.setattr(query_set, "MOST", 1_000)
    engine = spaseq.Engine(limits=spaseq.Limits(pending_matches=5_000))
    texts = [
        _cubes(bound).replace("?c a :c", "FILTER(?cv > ?bv && ?bv > ?av) ?c a :c") for bound in (*bounds, 100)
    ]
    *many, few = [engine.register(text) for text in texts]
    events = letters(" ".join(f"{'abc'[time % 3]}{time}" for time in range(150)))
    engine.push_many(f"{NS}S", [(each.turtle, each.time, f"{NS}{each.name}") for each in events])
    assert [handle.done for handle in [*many, few]] == [True, True, False]
    for handle in many:
        assert handle.stats.matches < 10_000  # of 22,100
        with pytest.raises(spaseq.LimitError, match="over the limit pending_matches=5000"):
            for _ in handle.batches():
                pass
    assert sum(map(len, few.batches())) == 16 * 17 * 18 // 6


@pytest.fixture(scope="module")
def _little_at_a_time() -> Iterator[None]:
    """Few matches are looked for at once, so that many wait in every state there is; terms are soon old."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handles, "AT_ONCE", 3)
        patch.setattr(delivery, "AT_ONCE", 3)
        patch.setattr(query_set, "_AT_ONCE", 4)
        patch.setattr(query_set, "_EACH", 1)
        patch.setattr(walking, "_MATCHES", 2)
        patch.setattr(by_tecs, "_WORTH", 1)
        patch.setattr("spaseq.engine.core._SWEEP_AFTER", 10)
        yield


def _texts(rng: random.Random) -> list[str]:
    """Queries of a form or two; of two, the first elements may be the same."""
    joined = rng.random() < 0.4
    window = rng.choice(["9 SECONDS", "6 SECONDS TUMBLING", "7 EVENTS", "1000 SECONDS"])
    by = "?x" if joined and rng.random() < 0.6 else ""
    head = rng.choice(["SELECT *", "SELECT *", "SELECT ?bv (?bv + 1 AS ?more)", "ASK"])
    extra = rng.choice(["", "", "", "EMIT LAST" if by or not joined else ""])

    def text(sequence: str, bound: int) -> str:
        gpms = {name: f"?{name.lower()} :k ?x" for name in "ABC"} if joined else {}
        gpms["A"] = f"{gpms.get('A', '')} FILTER(?av >= {bound})"
        tail = extra + rng.choice(["", "", "", " LIMIT 3", " LIMIT 20"])
        return query(sequence, window, gpms, head=head, partition=by, tail=tail if head != "ASK" else "")

    first = rng.choice(["A : B : C", "A : B", "A : B ; C"])
    texts = [text(first, rng.choice([0, 0, 2, 4])) for _ in range(rng.randint(2, 5))]
    if rng.random() < 0.4:
        texts += [text("A : B : (C | A)", 0) for _ in range(rng.randint(1, 2))]
    return texts


@pytest.mark.usefixtures("_little_at_a_time")
@settings(max_examples=examples(60))
@given(st.integers(0, 2**64 - 1))
def test_what_is_left_to_each_is_what_it_has_alone(seed: int) -> None:
    rng = random.Random(seed)
    texts = _texts(rng)
    wanted: list[list[spaseq.Match]] = [[] for _ in texts]
    found: list[list[tuple[object, ...]]] = [[] for _ in texts]
    together = spaseq.Engine()
    engines = [spaseq.Engine() for _ in texts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        late = [
            together.register(text, (lambda m, of=of: of.append(_answer(m))) if rng.random() < 0.1 else None)
            for text, of in zip(texts, found, strict=True)
        ]
        alone = [
            engine.register(text, of.append) for engine, text, of in zip(engines, texts, wanted, strict=True)
        ]
    engines.append(together)
    time = 0
    size = rng.randint(8, 25)
    ends = {number: rng.randrange(2 * size) for number in range(len(texts))}
    for number in range(size):
        time += rng.choice([0, 1, 1, 2])
        some = " ".join(
            f"{rng.choice('abbcc')}{time}={rng.randrange(6)}/{rng.choice('kkm')}"
            for _ in range(rng.choice([1, 1, 1, 5]))
        )
        events = [(each.turtle, each.time, f"{NS}{each.name}") for each in letters(some)]
        for engine in engines:
            engine.push_many(f"{NS}S", events)
        for which, end in ends.items():
            if end == number:
                alone[which].cancel()
                late[which].cancel()
        for which, handle in enumerate(late):
            match rng.randrange(8):
                case 0:
                    found[which] += [_answer(m) for m in islice(handle.matches(), rng.randint(1, 5))]
                case 1:
                    found[which] += [_answer(m) for b in islice(handle.batches(4), 2) for m in b]
    for engine in engines:
        engine.close()
    for handle, other, of, own, text in zip(late, alone, found, wanted, texts, strict=True):
        of += map(_answer, handle.matches())
        assert of == list(map(_answer, own)), text
        assert (handle.done, handle.stats.matches) == (other.done, other.stats.matches), text

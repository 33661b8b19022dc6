"""Memory that was swept is used again: nothing of what stood in it comes back."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import numpy as np
import pyoxigraph as ox
import pytest

from spaseq import Engine, Limits
from spaseq.bounds import WorkClock
from spaseq.limits import Budget
from spaseq.matching.nfa import sizing
from spaseq.matching.nfa.memory import Capacity, RunMemory, memory
from spaseq.matching.nfa.sizing import Turns
from spaseq.matching.nfa.tables.compiling import compile_tables
from spaseq.matching.shedding import matcher
from tests.matching.test_shedding_compared import pattern

_PREFIX = "PREFIX : <http://example.org/> SELECT *"
_GPMS = """DEFINE GPM A ON S { ?a :of ?k ; :a ?x } DEFINE GPM B ON S { ?b :of ?k ; :b ?y }
           DEFINE GPM C ON S { ?c :of ?k ; :c ?z . FILTER(?z > ?x) }"""
_FROM = "FROM STREAM S <http://example.org/s> WHERE"
_QUERIES = (
    f"{_PREFIX} WITHIN 40 EVENTS SLIDING {_FROM} {{ SEQ(A : B : C) {_GPMS} }}",
    f"{_PREFIX} WITHIN 40 EVENTS SLIDING PARTITION BY ?k {_FROM} {{ SEQ(A : B : C) {_GPMS} }}",
    f"{_PREFIX} WITHIN 40 EVENTS SLIDING {_FROM} {{ SEQ(A ; !B ; C) {_GPMS} }}",
    f"{_PREFIX} WITHIN 40 EVENTS SLIDING PARTITION BY ?k {_FROM} {{ SEQ(A ; B+ ; C) {_GPMS} }}",
)


def _found(query: str, count: int, **given: object) -> Counter[str]:
    rng, named = random.Random(7), ox.NamedNode
    engine = Engine(matcher="nfa", **given)  # type: ignore[arg-type]
    handle = engine.register(query)
    for i in range(count):
        who, kind = named(f"urn:{i}"), named(f"http://example.org/{rng.choice('abc')}")
        of = ox.Triple(who, named("http://example.org/of"), named(f"urn:k{rng.randrange(4)}"))
        event = [of, ox.Triple(who, kind, ox.Literal(rng.randrange(100)))]
        engine.push("http://example.org/s", event, time=i)
    engine.close()
    return Counter(str(match.bindings) for match in handle.matches())


@pytest.mark.few(1)
@pytest.mark.parametrize("query", _QUERIES)
def test_what_is_found_is_the_same(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories that are small from the first, so that there are many sweeps, each into one that was used."""
    whole = _found(query, 600)
    again = list[bool]()

    class Seen(Turns):
        def empty(self, room: Capacity, like: RunMemory) -> RunMemory:
            spare = self._spare
            made = super().empty(room, like)
            again.append(made.ints.base is spare)
            return made

    monkeypatch.setattr(sizing, "ENOUGH", sizing.START)
    monkeypatch.setattr(sizing, "_WORTH", range(1, 1 << 25))
    monkeypatch.setattr(matcher, "Turns", Seen)
    bounded = _found(query, 600, latency=timedelta(days=1), clock=WorkClock())
    assert sum(whole.values()) > 20
    assert bounded == whole
    assert sum(again) > 10


def test_two_memories_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, budget = compile_tables(pattern("?bx > ?ax", "?cx > ?bx"), lambda _: 0), Budget(Limits())
    monkeypatch.setattr(sizing, "_WORTH", range(1, 1 << 25))
    two, room = Turns(compiled, budget), Capacity(64, 64, 64, 64)
    first = two.empty(room, memory(compiled, room, budget))
    second = two.empty(room, first)
    third = two.empty(room, second)
    assert not np.shares_memory(first.ints, second.ints)
    assert np.shares_memory(first.ints, third.ints)


def test_who_was_interrupted_is_not_swept_into_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory to sweep into was there, and then an interrupt came: the old one is in use still."""
    compiled, budget = compile_tables(pattern("?bx > ?ax", "?cx > ?bx"), lambda _: 0), Budget(Limits())
    monkeypatch.setattr(sizing, "_WORTH", range(1, 1 << 25))
    two, room = Turns(compiled, budget), Capacity(64, 64, 64, 64)
    first = two.empty(room, memory(compiled, room, budget))
    two.empty(room, first)
    assert not np.shares_memory(first.ints, two.empty(room, first).ints)


def test_there_are_not_two_near_a_limit() -> None:
    """Of two memories one is counted: near ``query_bytes`` there is one."""
    compiled = compile_tables(pattern("?bx > ?ax", "?cx > ?bx"), lambda _: 0)
    room = Capacity(1 << 14, 1 << 14, 1 << 14, 1 << 14)
    for most, are_two in ((2**24, False), (2**30, True)):
        budget = Budget(Limits(query_bytes=most))
        two = Turns(compiled, budget)
        first = two.empty(room, memory(compiled, room, budget))
        second = two.empty(room, first)
        third = two.empty(room, second)
        assert np.shares_memory(first.ints, third.ints) is are_two

"""Queries that part at ``;``: a partial match of all waits at one place, and skips what each may skip."""

from __future__ import annotations

import pytest

import spaseq
from tests.streams import NS


def _registered(count: int, skip: str) -> tuple[spaseq.Engine, list[spaseq.Handle]]:
    engine = spaseq.Engine(matcher="nfa")
    text = (
        f"PREFIX : <{NS}> SELECT * WITHIN 90 SECONDS SLIDING FROM STREAM S <{NS}S> WHERE {{ SEQ(A ; B ; C) "
        "DEFINE GPM A ON S { ?x :a ?a } DEFINE GPM B ON S { ?x :b ?b } "
        "DEFINE GPM C ON S { ?x :c%d ?c FILTER(?c > ?a) } } "
    )
    return engine, [engine.register(text % number + skip) for number in range(count)]


def _push(engine: spaseq.Engine, time: int, of: dict[str, int]) -> None:
    triples = " ".join(f"<{NS}x> <{NS}{name}> {value} ." for name, value in of.items())
    engine.push(NS + "S", triples, time)


@pytest.mark.parametrize("skip", ["", "AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH SKIP TO NEXT EVENT"])
@pytest.mark.parametrize("count", [2, 50, 130])
@pytest.mark.few(1, ci=4)
def test_each_takes_what_it_waits_for_once_whatever_others_take(count: int, skip: str) -> None:
    engine, handles = _registered(count, skip)
    _push(engine, 0, {"a": 1})
    _push(engine, 1, {"b": 1})
    _push(engine, 2, {"c0": 1})  # fails its filter: it is skipped
    _push(engine, 3, {"c0": 2, "c1": 2})  # of two at once
    for time in (4, 5):
        _push(engine, time, {f"c{count - 1}": time, "c0": time})
    found = [[int(match.bindings[0]["c"]) for match in handle.matches()] for handle in handles]
    assert found == ([[2], [2], *[[] for _ in range(count - 3)], [4]] if count > 2 else [[2], [2]])
    groups = [handle.stats.shared for handle in handles]
    assert all(of[0] == of[1] > 1 == of[2] for of in groups)
    if not skip:
        assert groups[0][0] == count


@pytest.mark.parametrize("skip", ["", "AFTER MATCH SKIP PAST LAST EVENT"])
def test_one_that_is_cancelled_leaves_others_what_they_wait_for(skip: str) -> None:
    engine, handles = _registered(3, skip)
    _push(engine, 0, {"a": 1})
    _push(engine, 1, {"b": 1})
    _push(engine, 2, {"c0": 2})
    handles[0].cancel()
    handles[1].cancel()
    _push(engine, 3, {"c1": 2})
    _push(engine, 4, {"c2": 2})
    _push(engine, 5, {"c2": 3})
    assert [handle.stats.matches for handle in handles] == [1, 0, 1]

"""Matches that wait: what is added, taken, given back and dropped in turn comes once each, in its order."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine.delivery import Undelivered
from spaseq.results.batch import MatchBatch

_QUERY = """SELECT ?x WITHIN 10 SECONDS FROM STREAM S <urn:s>
            WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:v> ?x } }"""
_MOST = 60


@cache
def _every() -> MatchBatch:
    """So many matches, number i at time i."""
    engine = spaseq.Engine()
    handle = engine.register(_QUERY)
    engine.push_many("urn:s", ((f"<urn:a> <urn:v> {i} .", i) for i in range(_MOST)))
    return MatchBatch.joined([*handle.batches()])


_STEPS = st.one_of(
    st.tuples(st.sampled_from(["add"]), st.integers(1, 5)),
    st.tuples(st.sampled_from(["take", "give back"]), st.integers(1, 8)),
    st.tuples(st.sampled_from(["next", "drop"]), st.just(0)),
)


@settings(max_examples=200)
@given(st.lists(_STEPS, max_size=30), st.integers(0, 4))
def test_each_match_comes_once_and_in_order(steps: list[tuple[str, int]], again: int) -> None:
    found = Undelivered()
    found.again = again
    there: list[int] = []
    added = delivered = 0
    for what, count in steps:
        if what == "add" and added + count <= _MOST:
            whole = [*range(added, added + count)]
            given = [number for number in whole if number >= again]
            assert found.add(_every().part(added, added + count)) == len(given)
            there += given
            added += count
        elif what in ("take", "give back") and there:
            before = found.before_last
            batch = found.take(count)
            numbers = batch.start.tolist()
            assert 0 < len(numbers) <= count
            assert numbers == there[: len(numbers)]
            if what == "give back":
                found.give_back(batch)
            else:
                assert found.before_last <= before
                del there[: len(numbers)]
                delivered += len(numbers)
        elif what == "next" and there:
            assert found.next().start == there.pop(0)
            delivered += 1
        elif what == "drop":
            found.drop()
            delivered += len(there)
            there = []
        assert (found.size, found.delivered) == (len(there), delivered)
        assert found.before_last <= found.size
    rest = []
    while found.size:
        rest += found.take(_MOST).start.tolist()
    assert rest == there

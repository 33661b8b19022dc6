"""Matches that somebody keeps hold their events alone, not all that came together with these."""

from __future__ import annotations

import random
import warnings
import weakref
from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.matching.columns.blocks import share
from tests.conftest import examples
from tests.judge.generate import random_case, random_query
from tests.streams import NS

_QUERY = """SELECT ?x ?v ?w WITHIN 20 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { SEQ(A : B)
    DEFINE GPM A ON S { ?x <urn:v> ?v . FILTER(?v = 7) }
    DEFINE GPM B ON S { ?x <urn:v> ?w . FILTER(?w = 8) } }"""


def _chunks(count: int, size: int = 5_000) -> Iterator[list[tuple[str, int]]]:
    """In each some twenty matches of many events; the values are numbered."""
    for chunk in range(count):
        values = [7 + i % 2 if i < 20 else 100 + i for i in range(size)]
        yield [(f"<urn:x> <urn:v> {value} .", 100 * chunk + i // 100) for i, value in enumerate(values)]


def _shown(match: spaseq.Match) -> str:
    events = [(gpm, [(e.n, len(e.triples())) for e in found]) for gpm, found in sorted(match.events.items())]
    rows = sorted(str(sorted(row.items())) for row in match.bindings)
    return str((match.start, match.end, match.partition, events, rows))


@pytest.mark.parametrize("matcher", ["nfa", "lazy", "tecs"])
@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize("how", ["matches", "batches", "callback"])
@pytest.mark.parametrize("other", [None, "= 7", "= 9"], ids=["alone", "of equal ones", "of a template"])
@pytest.mark.few(0, ci=4)
def test_chunks_go_though_a_few_matches_of_each_are_kept(
    matcher: str, read: bool, how: str, other: str | None
) -> None:
    # Of queries that run as one the engine chooses what runs them.
    engine = spaseq.Engine(matcher=None if other else matcher)
    kept: list[spaseq.Match] = []
    handle = engine.register(_QUERY, kept.append if how == "callback" else None)
    if other is not None:
        engine.register(_QUERY.replace("= 7", other), lambda _: None)
    seen: list[weakref.ref[object]] = []
    shown: list[str] = []
    for events in _chunks(6):
        engine.push_many("urn:s", events)
        if how == "matches":
            kept += handle.matches()
        elif how == "batches":
            kept += [match for batch in handle.batches() for match in batch]
        last = kept[-1]
        assert last._batch is not None
        seen.append(weakref.ref(last._batch.chosen.batches[-1]))
        if read:
            shown += map(_shown, kept[len(shown) :])
        del last
    # Those of the last two are there: one may be what a loop has just been given.
    assert [batch() is None for batch in seen] == [True] * 4 + [False] * 2
    assert [*map(_shown, kept)] == (shown or [*map(_shown, kept)])
    judge = spaseq.Engine(matcher=matcher)
    expected: list[str] = []
    judge.register(_QUERY, lambda match: expected.append(_shown(match)))
    for events in _chunks(6):
        judge.push_many("urn:s", events)
    assert sorted(map(_shown, kept)) == sorted(expected)


@settings(max_examples=examples(150), phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_what_is_cut_out_says_the_same(seed: int) -> None:
    rng = random.Random(seed)
    drawn = random_query(rng)
    engine, again = spaseq.Engine(), spaseq.Engine()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", spaseq.SpaseqWarning)
        patch.setattr(share, "_WORTH", 0)
        patch.setattr(share, "_SPARSE", 0)
        try:
            handles = [of.register(drawn.text) for of in (engine, again)]
        except spaseq.QueryError:
            return
        found: list[list[spaseq.MatchBatch]] = [[], []]
        stream = [(stream, graph, time) for stream, graph, time in random_case(rng, drawn, 40).written]
        for begin in range(0, len(stream), 13):
            for one in (engine, again):
                for stream_, graph, time in stream[begin : begin + 13]:
                    one.push_many(NS + stream_.lower(), [(graph, time)])
            for batches, handle in zip(found, handles, strict=True):
                batches += handle.batches()
        for one in (engine, again):
            one.close()
        for batches, handle in zip(found, handles, strict=True):
            batches += handle.batches()
        for own, other in zip(*found, strict=True):
            if rng.random() < 0.5:
                assert [*map(_shown, own)] == [*map(_shown, other)]
            if rng.random() < 0.5:
                assert own.to_arrow().equals(other.to_arrow())
            own.settle()
        for own, other in zip(*found, strict=True):
            assert [*map(_shown, own)] == [*map(_shown, other)]
            assert own.to_arrow().equals(other.to_arrow())
            assert own.chosen.index.shape == other.chosen.index.shape
            half = slice(len(own) // 2, len(own))
            assert [*map(_shown, own[half])] == [*map(_shown, other[half])]

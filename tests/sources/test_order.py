"""``order=time``: a source that is read to its end, whatever order its graphs and their times are in."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.sources.assembly import assemble as _assemble

from .reading import EX, PREFIXES, Sample, assert_same, integer, read, samples

WRITTEN = {"trig": ox.RdfFormat.TRIG, "nq": ox.RdfFormat.N_QUADS, "jsonld": ox.RdfFormat.JSON_LD}


def written(events: list[Sample], form: str, *, stamps_at: int) -> bytes:
    """Events as a file, graph by graph, all their times in the default graph before one of them."""
    quads: list[ox.Quad] = []
    for n in range(len(events) + 1):
        if n == min(stamps_at, len(events)):
            quads += [event.stamp for event in events]
        if n < len(events):
            quads += events[n].quads
    text = ox.serialize(quads, format=WRITTEN[form])
    assert text is not None
    return text


@given(samples(), st.sampled_from(sorted(WRITTEN)), st.integers(0, 6))
def test_the_order_of_graphs_and_times_does_not_matter(
    events: list[Sample], form: str, stamps_at: int
) -> None:
    reading = read(written(events, form, stamps_at=stamps_at), f"format={form}&order=time")
    assert_same(reading, sorted(events, key=lambda event: (event.time, event.name.value)))


def test_without_it_they_come_as_they_stand() -> None:
    text = PREFIXES + ":b { :x :p 1 } :b prov:generatedAtTime 2 . :a { :x :p 1 } :a prov:generatedAtTime 1 ."
    assert read(text, "format=trig").graphs == ["b", "a"]
    assert read(text, "format=trig&order=arrival").graphs == ["b", "a"]
    reading = read(text, "format=trig&order=time")
    assert (reading.graphs, reading.times, reading.numbers) == (["a", "b"], [1, 2], [0, 1])


def test_events_without_names_stay_in_their_order() -> None:
    text = "\n".join(
        f'<{EX}x{n}> <{EX}at> "{n % 2}"^^<{ox.NamedNode(integer(1).datatype.value).value}> .'
        for n in range(6)
    )
    reading = read(text, f"format=nt&triples=1&order=time&time={EX}at")
    assert reading.times == [0, 0, 0, 1, 1, 1]
    subjects = [next(iter(reading.triples(n))).split()[0] for n in range(6)]
    assert subjects == [f"<{EX}x{n}>" for n in (0, 2, 4, 1, 3, 5)]


@pytest.mark.parametrize("first", [True, False])
def test_nothing_has_bounds_then(monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    """Neither the times that stand before their graphs, nor the graphs that wait for their times."""
    monkeypatch.setattr(_assemble, "HELD", 10)
    monkeypatch.setattr(_assemble, "REMEMBERED", 10)
    order = random.Random(1).sample(range(100), 100)
    events = [Sample(ox.NamedNode(f"{EX}g{n:02}"), n, ()) for n in order]
    triple = ox.Triple(ox.NamedNode(EX + "s"), ox.NamedNode(EX + "p"), integer(1))
    events = [Sample(event.name, event.time, (triple,)) for event in events]
    text = written(events, "nq", stamps_at=0 if first else 100)
    assert read(text, "format=nq").bad != []
    assert_same(read(text, "format=nq&order=time"), sorted(events, key=lambda event: event.time))


def test_what_is_bad_stays_bad() -> None:
    reading = read(
        PREFIXES + ":a { :x :p 1 } :b { :x :p 1 } :b prov:generatedAtTime 'x' .", "format=trig&order=time"
    )
    assert reading.batches == []
    assert len(reading.bad) == 2

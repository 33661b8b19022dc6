"""Whatever is late is told once, whether any GPM wants it or not, and whatever bucket it goes to."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from spaseq.chunks import events_of
from spaseq.events import BatchBuilder, Clock, concatenate
from spaseq.sources import BadEvent
from spaseq.spark.stages._bucket import Bucket
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._late import late_among, late_reason, stamps
from spaseq.terms.dictionary import Dictionary
from tests.conftest import examples
from tests.spark.cases import queries, streams
from tests.spark.running import without_n
from tests.spark.stages import BEGINNING, Cluster, pushed
from tests.streams import NS, Letter, letters, query

sizes = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)


def on_time(events: list[Letter], sizes: tuple[int, ...], read: set[str]) -> tuple[list[Letter], list[str]]:
    """What is on time of events in micro-batches of these sizes, and the positions of what is late."""
    newest = dict.fromkeys(read, BEGINNING)
    counts = dict.fromkeys(read, 0)
    kept, late = [], []
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))] + [len(events)]
    begin = 0
    for end in ends:
        watermark = min(newest.values())
        for event in events[begin:end]:
            counts[event.stream] += 1
            if event.time < watermark:
                late.append(f"{NS}{event.stream} event {counts[event.stream]}")
            else:
                kept.append(event)
            newest[event.stream] = max(newest[event.stream], event.time)
        begin = max(begin, end)
    return kept, late


@settings(max_examples=examples(100))
@given(queries(), streams(), sizes, st.integers(1, 3), st.data())
def test_late_events_are_told_once(
    text: str, events: list[Letter], sizes: tuple[int, ...], buckets: int, data: st.DataObject
) -> None:
    # The first one stays, since windows may begin with it.
    events = events[:1] + data.draw(st.permutations(events[1:]))
    told: list[BadEvent] = []
    found = Cluster(buckets, sizes, seed=data.draw(st.integers(0, 1000))).run(text, events, late=told)
    kept, late = on_time(events, sizes, {"S", "S2"})
    assert sorted(f"{letter.stream} {letter.position}" for letter in told) == sorted(late)
    order = sorted(range(len(kept)), key=lambda i: (kept[i].time, kept[i].stream, i))
    assert without_n(found) == without_n(pushed(text, [kept[i] for i in order]))


def test_many_late_events_are_looked_up_once() -> None:
    """What GPMs asked of them is found by one pass over their solutions, not by one for each event."""
    text = query("A ; B", "9 SECONDS SLIDING", {n: f"?{n.lower()} :k ?k ." for n in "AB"}, partition="?k")
    pieces = Cluster(buckets=1).pieces(text, letters(" ".join(f"a{i}/k" for i in range(1, 60))))
    with patch("spaseq.spark.stages._late.events_of", wraps=events_of) as asked:
        bucket = Bucket(Job(text, Clock.TICKS, None, (0,), is_stream=True))
        told = [letter for piece in pieces for letter in bucket.add(piece.data, 1_000)]
    assert len(told) == 59
    assert all(f" <{NS}v> " in letter.payload for letter in told)
    assert asked.call_count <= 2 * len(pieces) < 59  # once for each of two GPMs


def test_an_event_of_several_partitions_is_late_once() -> None:
    gpms = {"A": "?a ?one ?k .", "B": "?b ?other ?k ."}
    text = query("A ; B", "10 SECONDS SLIDING", gpms, partition="?k")
    events = letters("a9 b5=3/l a6=7/m b8=1/n")
    assert len(Cluster(buckets=8).pieces(text, events[1:2])) > 1
    told: list[BadEvent] = []
    Cluster(buckets=8, sizes=(1,)).run(text, events, late=told)
    assert [letter.position for letter in told] == ["event 2", "event 3", "event 4"]
    assert all(letter.payload for letter in told)


stamp = st.tuples(st.sampled_from("ab"), st.integers(-(1 << 60), 1 << 60), st.integers(0, 1 << 60))


@given(st.lists(stamp, min_size=1), st.integers(-(1 << 60), 1 << 60), st.sampled_from(Clock))
def test_stamps_are_brought_back(events: list[tuple[str, int, int]], watermark: int, clock: Clock) -> None:
    if clock is Clock.INSTANTS:
        events = [(stream, time >> 9, n) for stream, time, n in events]
        watermark >>= 9
    dictionary = Dictionary()
    builders = {iri: BatchBuilder(dictionary, NamedNode(iri), clock) for iri in ("urn:a", "urn:b")}
    for stream, time, n in events:
        builders[f"urn:{stream}"].add(time, n, [])
    batch = concatenate([builder.build() for builder in builders.values() if len(builder)])
    order = np.random.default_rng(len(events)).permutation(len(batch))
    chosen = order[: 1 + len(order) // 2]
    told = late_among(stamps(batch, chosen), watermark)
    columns = (batch.stream[chosen].tolist(), batch.n[chosen].tolist(), batch.time[chosen].tolist())
    assert [(letter.stream, letter.position, letter.reason) for letter in told] == [
        (dictionary.term(stream).value, f"event {n + 1}", late_reason(clock, time, watermark))
        for stream, n, time in zip(*columns, strict=True)
        if time < watermark
    ]

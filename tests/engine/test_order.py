"""Events one by one, or in batches: the same are late, and the order is the same."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from spaseq.alone import Single
from spaseq.engine.pipelines.reordering import Reordering
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.terms.dictionary import Dictionary

E = "http://e.org/"

#: Batches of events: a stream, and their times.
batches = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.integers(0, 9), min_size=1, max_size=6)), max_size=6
)


def stamps(batch: EventBatch | None) -> list[Stamp]:
    return [] if batch is None else [batch.stamp(event) for event in range(len(batch))]


def make(dictionary: Dictionary, stream: int, times: list[int], first: int) -> EventBatch:
    count = len(times)
    none = np.zeros(0, dtype=np.int64)
    return EventBatch(
        dictionary,
        Clock.TICKS,
        np.full(count, stream),
        np.zeros(count, dtype=np.int64),
        np.array(times, dtype=np.int64),
        np.arange(first, first + count),
        np.zeros(count + 1, dtype=np.int64),
        none,
        none,
        none,
    )


@given(batches, st.integers(0, 4), st.booleans())
@example([(0, [5]), (1, [5])], 0, True)
def test_one_by_one_is_as_in_batches(given_: list[tuple[int, list[int]]], lateness: int, held: bool) -> None:
    dictionary = Dictionary()
    streams = [dictionary.intern(NamedNode(E + name)) for name in "st"]
    results = []
    # In batches, one by one, as what comes alone, and as some of both.
    for way in range(4):
        order = Reordering({streams[0]: 1, streams[1]: 0}, timedelta(seconds=lateness))
        for clock in order.clocks.values():
            clock.holds = held
        arrived = [0, 0]
        late: list[Stamp] = []
        taken: list[Stamp] = []
        for stream, times in given_:
            for chunk in [[time] for time in times] if way else [times]:
                batch = make(dictionary, streams[stream], chunk, arrived[stream])
                if way == 2 or (way == 3 and chunk[0] % 2):
                    batch = Single(dictionary, batch.clock, batch.stamp(0), 0, ())
                arrived[stream] += len(chunk)
                assert order.fits(batch.clock)
                late += [batch.stamp(event) for event in order.add(batch)]
                taken += stamps(order.release())
        taken += stamps(order.drain())
        results.append((late, taken))
    assert results[0] == results[1] == results[2] == results[3]
    late, taken = results[1]
    assert len(late) + len(taken) == sum(len(times) for _, times in given_)
    # Of simultaneous events, those of the second stream are first; unless what is pushed goes on at once.
    rank = {streams[0]: 1 if held else 0, streams[1]: 0}
    times = [(stamp.time, rank[stamp.stream]) for stamp in taken]
    assert times == sorted(times)
    for stream in streams:
        own = [(stamp.time, stamp.n) for stamp in taken if stamp.stream == stream]
        assert own == sorted(own)

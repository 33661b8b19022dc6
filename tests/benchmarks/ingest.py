"""``ingest``: N-Quads bytes to batches of events."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pyoxigraph as ox

from spaseq.sources import SourceOptions, open_source
from spaseq.terms.dictionary import Dictionary
from tests.benchmarks.measure import Measurement, check, side_by_side
from tests.benchmarks.trades import STREAM, n_quads, rising_and_falling

#: How many new terms a dictionary takes before those of events gone by are forgotten.
_SWEEP = 100_000

_N_QUADS = SourceOptions(format="nq")


def benchmark(quick: bool) -> Iterator[Measurement]:
    """2 and 6 triples an event and its time, against ``pyoxigraph.parse`` iterated over the same bytes.

    The dictionary is new for each run, and swept as an engine does it.
    """
    for triples in (2, 6):
        events = 2_000 if quick else 400_000 // (triples + 1)
        data = n_quads(rising_and_falling(events, companies=100), triples)
        quads = data.count(b"\n")
        check("events", read(data, _N_QUADS), events)
        ours, parser = side_by_side(
            1 if quick else 5, lambda d=data: read(d, _N_QUADS), lambda d=data: _parse(d)
        )
        yield Measurement(
            "ingest",
            f"{triples} triples an event",
            parser / ours,
            "pyoxigraph.parse",
            {"events": events / ours, "quads": quads / ours, "pyoxigraph quads": quads / parser},
        )


def read(data: bytes, options: SourceOptions) -> int:
    """How many events there are in a document; the dictionary is swept as an engine does it."""
    dictionary = Dictionary()
    bad: list[object] = []
    count = 0
    for batch in open_source(BytesIO(data), ox.NamedNode(STREAM), dictionary, options, on_bad=bad.append):
        count += len(batch)
        if dictionary.unswept > _SWEEP:
            dictionary.sweep()
    check("bad events", bad, [])
    return count


def _parse(data: bytes) -> None:
    for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS):
        pass

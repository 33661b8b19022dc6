"""``sharp-scan``: recall under a bound of who looks at every partial match with each event, as in the paper.

This engine shows an event only to the partial matches that wait for it with its id; the paper's "must scan
all PMs and decides which of them can transition" (3.2). So the same share of the work is much less here: of a
tenth, an event itself takes four tenths. Here the bound is a share of the work that it would be to look at
all of them, and two keep it. One does look at all of them, as the paper's does: its *choice* of partial
matches is to be compared with the paper's. The other is this engine as it is: what a user finds in that time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.bounds import Policy, WorkClock
from spaseq.errors import SpaseqWarning
from spaseq.events import EventBatch
from spaseq.matching.nfa.records import gates, header, waits
from spaseq.matching.shedding.matcher import SheddingNfa
from spaseq.patterns.spectra.solutions import Solutions
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.sharp import QUERIES, WINDOW, Ran, Stream, run

Ids = npt.NDArray[np.int64]

#: Half of them were looked at when things were chosen, half were not.
SEEDS: Final = (*range(21, 27), *range(31, 34), *range(41, 50), *range(51, 69))


class Scanning(SheddingNfa):
    """Counts as work, with each event, all the partial matches there are."""

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Ids:
        shows = self._observed.model.shows
        before = shows.copy()
        columns = super()._take(batch, start, solutions)
        further = np.maximum(self._there() - (shows - before), 0.0)
        shows += further
        self._observed.units += float(further.sum())
        assert isinstance(self._bound.clock, WorkClock)
        self._bound.clock.add(float(further.sum()))
        return columns

    def _there(self) -> npt.NDArray[np.float64]:
        """How many partial matches there are, by gate."""
        t, m = self._tables, self._memory.ints
        width = int(m[header.WIDTH])
        places = np.arange(int(m[header.WAITS]) + width, int(m[header.NEXT_WAIT]), width)
        gate = m[places + waits.GATE]
        live = gate != 0
        live &= m[places + waits.BUCKET] != waits.IS_PARKED
        live &= m[places + waits.FIRST] >= self._observed.place[0] - self._window.reach
        counted = np.bincount(t[gate[live] + gates.NUMBER], minlength=len(self._observed.model.shows))
        return counted.astype(np.float64)


#: How they are named.
_WHO: Final = {SheddingNfa: "as it is", Scanning: "scanning"}


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Each query at a half and a tenth of the work of who scans: means over seeds."""
    seeds = SEEDS[:1] if quick else SEEDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpaseqWarning)  # which say that shedding begins and ends
        for name, (sequence, _) in QUERIES.items():
            repeats = "{" in sequence
            window = WINDOW[quick][repeats]
            streams = [Stream(window, 2.5, seed) for seed in seeds]
            wholes = [run(name, stream, None, evaluated=Scanning) for stream in streams]
            yield from _measured(name, streams, wholes, SheddingNfa, (Policy.SHARP,))
            if not repeats:  # else who scans looks at ten thousand an event
                yield from _measured(name, streams, wholes, Scanning, (Policy.RANDOM_STATE, Policy.SHARP))


def _measured(
    name: str,
    streams: Sequence[Stream],
    wholes: Sequence[Ran],
    evaluated: type[SheddingNfa],
    policies: Sequence[Policy],
) -> Iterator[Measurement]:
    """The means, where ``evaluated`` keeps a share of the work of who scans."""
    for share in (0.5, 0.1):
        for policy in policies:
            facts = []
            for stream, whole in zip(streams, wholes, strict=True):
                bound = share * float(whole.latency.mean())
                ran = run(name, stream, bound, policy, evaluated=evaluated)
                check(f"{name}: precision", len(ran.matches - whole.matches), 0)
                recall = len(ran.matches) / max(1, len(whole.matches))
                latency = ran.latency / bound
                facts.append((recall, float(latency.mean()), float(np.quantile(latency, 0.99))))
            means = np.mean(facts, axis=0).tolist()
            names = ("recall", "mean latency / bound", "p99 / bound")
            case = f"{name}, window {streams[0].window}, {share:.0%} of the latency of who scans, {policy}"
            case += f", {_WHO[evaluated]}"
            yield Measurement("sharp-scan", case, None, "", facts=dict(zip(names, means, strict=True)))

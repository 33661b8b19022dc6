"""``soak``: resident memory over a stream of ten million events, of which no more than a block is ever held.

Not among the benchmarks that run by default: it takes a while. Companies come and go, each with a few
hundred events, so that partitions begin and end all the time, and every event has terms of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from io import RawIOBase
from pathlib import Path

import spaseq
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.trades import STREAM, Trade, n_quads, rising_and_falling, v_shape, v_shapes

#: Each chunk of events has so many companies of its own.
_COMPANIES = 50

#: Different chunks; then they come again, with new companies and times.
_CHUNKS = 8


class _Stream(RawIOBase):
    """So many chunks of N-Quads, made when they are read; ``at`` gets the number of events so far."""

    def __init__(self, chunks: Sequence[Sequence[Trade]], count: int, at: Callable[[int], None]) -> None:
        self._chunks = chunks
        self._count = count
        self._at = at
        self._made = 0
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._rest and self._made < self._count:
            chunk = self._chunks[self._made % len(self._chunks)]
            company, number = self._made * _COMPANIES, self._made * len(chunk)
            self._at(number)
            self._rest = n_quads([Trade(company + t.company, t.price) for t in chunk], 2, number)
            self._made += 1
        block, self._rest = self._rest[:size], self._rest[size:]
        return block


def soak(quick: bool) -> Iterator[Measurement]:
    """V shapes of partitions that come and go: resident memory at the end, to that after a tenth."""
    size, count = (1_000, 20) if quick else (20_000, 500)
    events = size * count
    chunks = [rising_and_falling(size, _COMPANIES, falls=0.004, seed=seed) for seed in range(_CHUNKS)]
    sizes: dict[int, int] = {}

    def at(made: int) -> None:
        if made * 10 % events == 0:
            sizes[made * 10 // events] = _resident()

    begin = time.perf_counter()
    source = spaseq.Source(STREAM, _Stream(chunks, count, at), spaseq.SourceOptions(format="nq"))
    found = sum(1 for _ in spaseq.run(v_shape(2), {STREAM: source}))
    taken = time.perf_counter() - begin
    sizes[10] = _resident()
    expected = [v_shapes(chunk) for chunk in chunks]
    check("V shapes", found, sum(expected[number % _CHUNKS] for number in range(count)))
    megabytes = {f"MB after {tenths}/10": size / 1e6 for tenths, size in sorted(sizes.items())}
    yield Measurement(
        "soak",
        f"{events:,} events",
        sizes[10] / sizes[1],
        "a tenth's memory",
        {"events": events / taken},
        megabytes,
    )


def _resident() -> int:
    """The bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

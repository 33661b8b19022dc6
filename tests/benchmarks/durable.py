"""What a state costs: ``vshape-bytes`` with one, in processor time, and a restart with a full window."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import spaseq
from tests.benchmarks.measure import Measurement, check, cpu_seconds
from tests.benchmarks.trades import (
    STREAM,
    n_quads,
    next_higher,
    rising_and_falling,
    sinking,
    v_shape,
    v_shapes,
)


def _alternating(runs: int, *works: Callable[[], object]) -> list[float]:
    """The medians of several calls, taken in turn, after one of each, which loads compiled code."""
    for work in works:
        work()
    taken = [[cpu_seconds(work) for work in works] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def _matches(query: str, data: Path, state: Path | None) -> int:
    """How many matches a query has over a file, committed once a second if there is a state."""
    with spaseq.Engine(state=state) as engine:
        handle = engine.register(query, name="v" if state is not None else None)
        count = 0
        for _ in engine.pull(spaseq.Source(STREAM, data)):
            count += sum(len(batch) for batch in handle.batches())
        return count


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Both, in files of a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _cost(Path(folder), quick)
        yield _restart(Path(folder), quick)


def _cost(folder: Path, quick: bool) -> Iterator[Measurement]:
    events = 2_000 if quick else 60_000
    trades = rising_and_falling(events, companies=100, falls=0.004)
    for triples in (2, 6):
        data = folder / f"{triples}.nq"
        data.write_bytes(n_quads(trades, triples))
        query = v_shape(triples)
        sizes: list[int] = []

        def without(query: str = query, data: Path = data) -> None:
            check("V shapes", _matches(query, data, None), v_shapes(trades))

        def kept(query: str = query, data: Path = data, sizes: list[int] = sizes) -> None:
            state = data.with_suffix(f".{len(sizes)}")
            check("V shapes", _matches(query, data, state), v_shapes(trades))
            sizes.append(state.stat().st_size)

        plain, durable = _alternating(1 if quick else 7, without, kept)
        yield Measurement(
            "state",
            f"vshape-bytes, {triples} triples",
            durable / plain,
            "the CPU without a state",
            {"events": events / durable},
            {"bytes an event": sizes[-1] / events},
        )


def _restart(folder: Path, quick: bool) -> Measurement:
    size = 200 if quick else 100_000
    state, query = folder / "window.state", next_higher(size)
    data = folder / "window.nq"
    data.write_bytes(n_quads(sinking(size), 2))
    _matches(query, data, state)

    def fresh() -> None:
        with spaseq.Engine() as engine:
            engine.register(query)

    def again() -> None:
        spaseq.Engine(state=state).abandon()

    plain, durable = _alternating(1 if quick else 7, fresh, again)
    return Measurement(
        "state",
        f"a restart with a window of {size:,} events",
        None,
        "seconds of CPU more than a start without a state",
        {},
        {"seconds": durable - plain},
    )

"""``spark``: the same stream on Spark and in one process, per core; and what a tiny micro-batch costs.

What counts is processor time, that of all of Spark's processes together: a machine that does other things
meanwhile gives many processes more than one. (From ``/proc``, so on Linux only.)
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import spaseq
from spaseq.spark._lines import line_of
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.trades import STREAM, n_quads, rising_and_falling, v_shape, v_shapes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CORES = 2


def benchmark(quick: bool) -> Iterator[Measurement]:
    """V shapes by company: batch, stream and driver against ``spaseq.run``; then tiny micro-batches."""
    from spaseq.spark import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = session(f"local[{_CORES}]", partitions=_CORES)
        folder = Path(tempfile.mkdtemp())
        try:
            yield from _measured(spark, folder, quick)
        finally:
            shutil.rmtree(folder)


def _measured(spark: SparkSession, folder: Path, quick: bool) -> Iterator[Measurement]:
    few, many = (1_000, 3_000) if quick else (100_000, 500_000)
    query = spaseq.prepare(v_shape(2))
    _costs(spark, query, folder, few)  # workers start, and compiled code is loaded
    small = _costs(spark, query, folder, few)
    runs = [_costs(spark, query, folder, many) for _ in range(1 if quick else 3)]
    large = {way: statistics.median(run[way] for run in runs) for way in runs[0]}
    for way in ("one batch", "one micro-batch"):
        yield Measurement(
            "spark",
            f"{way} of {many:,} events",
            large["embedded"] / large[way],
            "the embedded engine, per core",
            {"events per core": many / large[way], "embedded events": many / large["embedded"]},
        )
        more = {name: large[name] - small[name] for name in ("embedded", way)}
        if not quick:  # where it would be noise
            yield Measurement(
                "spark",
                f"{way}, each event beyond {few:,}",
                more["embedded"] / more[way],
                "the embedded engine, per core",
                {"events per core": (many - few) / more[way]},
                {"fixed seconds": small[way] - few * more[way] / (many - few)},
            )
    yield _tiny(spark, query, folder, quick)


def _costs(spark: SparkSession, query: spaseq.Query, folder: Path, count: int) -> dict[str, float]:
    """The processor seconds of each way to run the query over so many events."""
    from spaseq.spark import run

    trades = rising_and_falling(count, companies=200, falls=0.004)
    path = folder / f"trades-{count}.nq"
    path.write_bytes(n_quads(trades, 2))
    wanted = v_shapes(trades)
    streams: dict[str, spaseq.engine.running.StreamSource] = {STREAM: str(path)}

    def embedded() -> None:
        # Spark's matches come as lines, too.
        check("matches", len([line_of(match) for match in spaseq.run(query, streams)]), wanted)

    def batch() -> None:
        check("matches", run(spark, query, streams).count(), wanted)

    def stream() -> None:
        check("matches", len(_streamed(spark, query, streams, folder, None)), wanted)

    works = {"embedded": embedded, "one batch": batch, "one micro-batch": stream}
    return {way: _processor_seconds(work) for way, work in works.items()}


def _processor_seconds(work: Callable[[], object]) -> float:
    """What a call costs, here and in all processes that this one has started."""
    begin = _spent()
    work()
    return _spent() - begin


def _spent() -> float:
    """Seconds on processors of this process and those below it, with all that have ended."""
    fields = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, _, rest = stat.read_text().partition(" ")
            fields[int(number)] = rest.rpartition(")")[2].split()
    below = {os.getpid()}
    while more := {p for p, f in fields.items() if int(f[1]) in below} - below:
        below |= more
    return sum(sum(map(int, fields[p][11:15])) for p in below) / os.sysconf("SC_CLK_TCK")


def _tiny(spark: SparkSession, query: spaseq.Query, folder: Path, quick: bool) -> Measurement:
    """Micro-batches of a few events each."""
    trades = rising_and_falling(400, companies=20)
    path = folder / "few.nq"
    path.write_bytes(n_quads(trades, 2))
    begin = time.perf_counter()
    size = path.stat().st_size // (3 if quick else 12)
    taken = _streamed(spark, query, {STREAM: str(path)}, folder, size)
    check("matches", len(taken), v_shapes(trades))
    batches = 3 if quick else 12
    return Measurement(
        "spark",
        f"{batches} micro-batches of {400 // batches} events",
        None,
        "what a micro-batch costs",
        {},
        {"seconds each": (time.perf_counter() - begin) / batches},
    )


def _streamed(
    spark: SparkSession,
    query: spaseq.Query,
    streams: dict[str, spaseq.engine.running.StreamSource],
    folder: Path,
    most: int | None,
) -> list[str]:
    """The matches of a stream that is read to its end, in micro-batches of so many bytes."""
    from spaseq.spark import run

    checkpoint = Path(tempfile.mkdtemp(dir=folder))
    frame = run(spark, query, streams, checkpoint=checkpoint, most_bytes=most, piece_bytes=most or (8 << 20))
    found: list[str] = []

    def take(batch: DataFrame, _: int) -> None:
        found.extend(row.json for row in batch.collect())

    running = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
    running.processAllAvailable()
    running.stop()
    return found

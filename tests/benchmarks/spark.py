"""``spark``: files and columns on Spark and in one process, per core; micro-batches; background graphs.

What counts is processor time, that of all of Spark's processes together: a machine that does other things
meanwhile gives many processes more than one. (From ``/proc``, so on Linux only.) Before anything is measured,
each way has run once, so the session, its workers and their compiled code are there; what a stream costs is
what each of its micro-batches costs but the first and the last two: one matches its own events, too, since
the streams end with it, and one brings none.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import spaseq
from spaseq.engine.running import StreamSource
from spaseq.events import Clock
from spaseq.results.writers._json import line_of
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.trades import STEP, STREAM, E, n_quads, rising_and_falling, v_shape, v_shapes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spaseq.spark._jobs import Graphs
    from spaseq.spark.background.frames import SparkKnowledge

_CORES = 2
_KB = f"{E}kb"


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds: of this process, of the JVM, of the others (Python workers); and by the clock."""

    driver: float
    jvm: float
    workers: float
    wall: float

    @classmethod
    def now(cls) -> Self:
        """What this process and those below it have spent, with all that have ended."""
        processes = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                number, _, rest = stat.read_text().partition(" (")
                name, _, others = rest.rpartition(")")
                processes[int(number)] = name, others.split()
        below = {os.getpid()}
        while more := {p for p, (_, fields) in processes.items() if int(fields[1]) in below} - below:
            below |= more
        ticks = {"driver": 0, "java": 0, "workers": 0}
        for process in below:
            name, counts = processes[process]
            own = "driver" if process == os.getpid() else name if name == "java" else "workers"
            ticks[own] += int(counts[11]) + int(counts[12])
            ticks["workers"] += int(counts[13]) + int(counts[14])
        driver, jvm, workers = (count / os.sysconf("SC_CLK_TCK") for count in ticks.values())
        return cls(driver, jvm, workers, time.perf_counter())

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> float:
        """Of all processes together, and at least what the system's clock can tell."""
        return max(self.driver + self.jvm + self.workers, 1 / os.sysconf("SC_CLK_TCK"))

    def facts(self) -> dict[str, float]:
        """For a measurement."""
        return {"seconds": self.total, "JVM": self.jvm, "Python workers": self.workers, "driver": self.driver}


def median(costs: Sequence[Cost]) -> Cost:
    """The one in the middle."""
    return sorted(costs, key=lambda cost: cost.total)[len(costs) // 2]


def spent(work: Callable[[], object]) -> Cost:
    """What a call costs."""
    begin = Cost.now()
    work()
    return Cost.now() - begin


def benchmark(quick: bool) -> Generator[Measurement, None, None]:
    """V shapes by company against ``spaseq.run``: stages, batch, stream; tiny ones; background graphs."""
    from spaseq.spark import session
    from spaseq.spark.sessions import without_noise

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Cost.now()
        with without_noise():
            spark = session(f"local[{_CORES}]", partitions=_CORES)
        made = Cost.now() - made
        folder = Path(tempfile.mkdtemp())
        try:
            yield Measurement("spark", "a session", None, "what it costs, once", {}, made.facts())
            yield from _Bench(spark, folder, quick).measured()
        finally:
            shutil.rmtree(folder)


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, quick: bool) -> None:
        self._spark = spark
        self._folder = folder
        self._size, self._batches = (1_000, 5) if quick else (500_000, 5)
        self._runs = 1 if quick else 5
        self._few, self._times = 10, 4 if quick else 20
        self._kb_sizes = (300,) if quick else (10_000, 1_000_000)
        self._kb_read = 3_000 if quick else 2_000_000
        self._query = spaseq.prepare(v_shape(2))

    def measured(self) -> Iterator[Measurement]:
        """All there is, each way beside the embedded engine on the same events."""
        one, many = self._trades(self._size), self._trades(self._size * self._batches)
        ways = (lambda: self._embedded(one), lambda: self._stages(one), lambda: self._batch(one))
        first = [spent(way) for way in ways]
        runs = [[spent(way) for way in ways] for _ in range(self._runs)]
        embedded, stages, batch = (median(costs) for costs in zip(*runs, strict=True))
        yield self._against(embedded, stages, f"the stages alone, {self._size:,} events")
        yield self._against(embedded, batch, f"a batch of {self._size:,} events")
        yield self._columns()
        yield self._tiny()
        begin = Cost.now()
        marks = self._streamed(self._query, many, self._size)
        whole = Cost.now() - begin
        each = median(marks[1:-2])
        # What else the machine does changes: the embedded engine once more, at the same time.
        embedded = median([spent(ways[0]) for _ in range(self._runs)])
        yield self._against(embedded, each, f"a micro-batch of {self._size:,} events")
        once = {"a first batch": first[2].total, "a stream": whole.total - self._batches * each.total}
        yield Measurement("spark", "what a query costs once", None, "seconds", {}, once)
        yield self._reading()
        yield from self._background(many, each)

    def _against(self, embedded: Cost, cost: Cost, case: str) -> Measurement:
        rates = {"events per core": self._size / cost.total, "embedded events": self._size / embedded.total}
        ratio = embedded.total / cost.total
        return Measurement("spark", case, ratio, "the embedded engine, per core", rates, cost.facts())

    def _columns(self) -> Measurement:
        """Parquet, whose columns are events by a template."""
        from spaseq.spark import events, matches

        trades = rising_and_falling(self._size, companies=200, falls=0.004)
        number = np.arange(self._size)
        columns = pa.table(
            {
                "at": pa.array(number * STEP * 1000, pa.timestamp("us", tz="UTC")),
                "company": pa.array([trade.company for trade in trades]),
                "price": pa.array([trade.price / 100 for trade in trades]),
                "volume": pa.array(100 * (number % 50 + 1)),
            }
        )
        folder, wanted = self._folder / "columns", v_shapes(trades)
        folder.mkdir()
        half = self._size // _CORES
        for i in range(_CORES):
            parquet.write_table(columns.slice(i * half, half), folder / f"{i}.parquet")
        template = f"<{E}company/{{company}}> <{E}price> ?price ; <{E}volume> ?volume ."

        def embedded() -> None:
            table = spaseq.table(parquet.read_table(folder), time="at", template=template)
            check(
                "matches", len([line_of(match) for match in spaseq.run(self._query, {STREAM: table})]), wanted
            )

        def spark() -> None:
            rows = self._spark.read.parquet(str(folder))
            lifted = events(rows, stream=STREAM, time="at", template=template)
            check("matches", matches(lifted, self._query).count(), wanted)

        runs = [[spent(way) for way in (embedded, spark)] for _ in range(self._runs + 1)][1:]
        here, there = (median(costs) for costs in zip(*runs, strict=True))
        return self._against(here, there, f"a batch of {self._size:,} rows of Parquet")

    def _reading(self) -> Measurement:
        """A file of background triples, numbered by the workers."""
        from spaseq.spark import knowledge

        path = self._folder / "kb.nt"
        with path.open("w") as file:
            for i in range(self._kb_read):
                file.write(f"<{E}company/{i}> <{E}near> <{E}company/{i * 7 % self._kb_read}> .\n")
        cost = spent(lambda: check("names", len(knowledge(self._spark, {_KB: path}).names), 1))
        facts = cost.facts() | {"seconds by the clock": cost.wall}
        return Measurement(
            "spark", f"knowledge of {self._kb_read:,} triples", None, "what it costs", {}, facts
        )

    def _tiny(self) -> Measurement:
        """Micro-batches of a few events each."""
        path, wanted = self._trades(self._times * self._few, companies=20)
        marks = self._streamed(self._query, (path, wanted), self._few)
        each = median(marks[1:-2])
        facts = each.facts() | {"seconds by the clock": each.wall}
        return Measurement("spark", f"a micro-batch of {self._few} events", None, "what it costs", {}, facts)

    def _background(self, trades: tuple[Path, int], without: Cost) -> Iterator[Measurement]:
        """The same stream, each company looked up in a background graph."""
        lookup = f"GRAPH <{_KB}> {{ ?c :sector ?s }} FILTER(?p3"
        query = spaseq.prepare(v_shape(2).replace("FILTER(?p3", lookup))
        for size in self._kb_sizes:
            path = self._folder / f"kb-{size}.nt"
            path.write_text(
                "".join(f"<{E}company/{i}> <{E}sector> <{E}sector/{i % 40}> .\n" for i in range(size))
            )
            each = median(self._streamed(query, trades, self._size, {_KB: path})[1:-2])
            case = f"a micro-batch of {self._size:,} events with a background graph of {size:,} triples"
            ratio = each.total / without.total
            yield Measurement("spark", case, ratio, "the seconds without", {}, each.facts())
            yield self._broadcast(query, trades, {_KB: path}, each)
        yield from self._joined(query, trades, {_KB: path}, each)

    def _broadcast(
        self, query: spaseq.Query, trades: tuple[Path, int], kb: dict[str, Path], sent: Cost
    ) -> Measurement:
        """The same joined by ``F.broadcast``, in place of a copy in each worker."""
        from pyspark.sql.classic.dataframe import DataFrame
        from pyspark.sql.functions import broadcast

        from spaseq.spark import knowledge

        there = knowledge(self._spark, kb, broadcast_limit=0)
        with patch.object(DataFrame, "hint", lambda rows, _: broadcast(rows)):
            each = median(self._streamed(query, trades, self._size, there)[1:-2])
        case = f"a micro-batch of {self._size:,} events, the same by F.broadcast"
        return Measurement("spark", case, each.total / sent.total, "the seconds sent", {}, each.facts())

    def _joined(
        self, query: spaseq.Query, trades: tuple[Path, int], kb: dict[str, Path], sent: Cost
    ) -> Iterator[Measurement]:
        """The largest of them joined as a DataFrame, against sent to every worker."""
        from spaseq.spark import knowledge

        here, there = knowledge(self._spark, kb), knowledge(self._spark, kb, broadcast_limit=0)
        each = median(self._streamed(query, trades, self._size, there)[1:-2])
        case = f"a micro-batch of {self._size:,} events, the same joined as a DataFrame"
        yield Measurement("spark", case, each.total / sent.total, "the seconds sent", {}, each.facts())
        one = self._trades(self._size)
        sent, joined = self._again(query, one, here), self._again(query, one, there)
        case = f"a batch of {self._size:,} events, the same joined as a DataFrame"
        yield Measurement("spark", case, joined.total / sent.total, "the seconds sent", {}, joined.facts())

    # --- ways to run it -----------------------------------------------------------------------

    def _trades(self, count: int, companies: int = 200) -> tuple[Path, int]:
        """A file of trades, and how many V shapes there are."""
        trades = rising_and_falling(count, companies=companies, falls=0.004)
        path = self._folder / f"trades-{count}.nq"
        path.write_bytes(n_quads(trades, 2))
        return path, v_shapes(trades)

    def _embedded(self, trades: tuple[Path, int]) -> None:
        path, wanted = trades
        # Spark's matches come as lines, too.
        lines = [line_of(match) for match in spaseq.run(self._query, {STREAM: str(path)})]
        check("matches", len(lines), wanted)

    def _stages(self, trades: tuple[Path, int]) -> None:
        """Both stages in this process, with nothing between them."""
        from spaseq.sources import SourceOptions
        from spaseq.spark.source._blocks import ARROW
        from spaseq.spark.source._pieces import Cutter, Place
        from spaseq.spark.stages._job import Job, bucket_numbers
        from spaseq.spark.stages.arrow import all_at_once, from_blocks

        path, wanted = trades
        job = Job(str(self._query), Clock.INSTANTS, None, bucket_numbers(_CORES))
        rows = [piece.row(STREAM) for piece, _ in Cutter(str(path), SourceOptions(), 8 << 20).after(Place())]
        blocks = pa.RecordBatch.from_pylist(rows, schema=ARROW)
        between = pa.Table.from_batches(from_blocks(job, 0)([blocks]))
        ordered = between.sort_by([("bucket", "ascending"), ("begin", "ascending")])
        check("matches", sum(batch.num_rows for batch in all_at_once(job)(ordered.to_batches())), wanted)

    def _batch(self, trades: tuple[Path, int]) -> None:
        from spaseq.spark import run

        path, wanted = trades
        check("matches", run(self._spark, self._query, {STREAM: str(path)}).count(), wanted)

    def _again(self, query: spaseq.Query, trades: tuple[Path, int], kb: SparkKnowledge) -> Cost:
        """What a batch costs whose background graph is where it shall be."""
        from spaseq.spark import run

        path, wanted = trades
        frame = run(self._spark, query, {STREAM: str(path)}, kb)
        check("matches", frame.count(), wanted)
        return median([spent(frame.count) for _ in range(self._runs)])

    def _streamed(
        self,
        query: spaseq.Query,
        trades: tuple[Path, int],
        size: int,
        kb: Graphs | None = None,
    ) -> list[Cost]:
        """What each micro-batch of about so many events costs, the first with all that comes before it."""
        from spaseq.spark import run

        path, wanted = trades
        checkpoint = Path(tempfile.mkdtemp(dir=self._folder))
        count = int(path.stem.rpartition("-")[2])
        most = path.stat().st_size * size // count
        streams: dict[str, StreamSource] = {STREAM: str(path)}
        frame = run(
            self._spark, query, streams, kb, checkpoint=checkpoint, most_bytes=most,
            piece_bytes=min(most, 8 << 20),
        )  # fmt: skip
        costs: list[Cost] = []
        found = 0
        last = Cost.now()

        def take(batch: DataFrame, _: int) -> None:
            nonlocal found, last
            found += len(batch.collect())
            now = Cost.now()
            costs.append(now - last)
            last = now

        running = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()
        running.processAllAvailable()
        running.stop()
        check("matches", found, wanted)
        return costs

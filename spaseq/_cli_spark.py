"""``spaseq run --engine spark``: the same query on PySpark, as matches and progress beside them."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.engine import Progress, Source
from spaseq.engine.rejects import DeadLetters
from spaseq.errors import BadEventError, EngineError, LateEventError
from spaseq.events import Clock
from spaseq.gpm.kb import KnowledgeBase
from spaseq.language.syntax import Query
from spaseq.results.match import Match
from spaseq.spark._lines import LATE, MATCH, letter_of_line, match_of
from spaseq.spark.queries import Prepared, answers_of, planned
from spaseq.spark.sessions import session

#: Seconds between two looks at how far Spark is.
_EVERY: Final = 0.25

#: A micro-batch takes so many bytes of each stream.
_MOST: Final = 256 << 20


def start(
    query: Query,
    streams: Mapping[str, Source],
    kb: KnowledgeBase,
    *,
    checkpoint: Path | None,
    lateness: timedelta,
    idle: timedelta | None,
    strict: bool,
    dead_letters: DeadLetters | Path,
    progress: Callable[[Progress], None],
) -> Generator[Match, None, None]:
    """The matches of a query over files and folders, as ``spaseq.run`` gives them.

    With a ``checkpoint``, as a stream of micro-batches that goes on where it was; otherwise all at once, in
    the order of their ends.
    """
    if idle is not None:
        raise EngineError("--idle is for --engine local: Spark's watermark waits for every stream")
    # Under spark-submit the cluster is given.
    spark = session(None if "SPARK_ENV_LOADED" in os.environ else "local[*]")
    plan = planned(spark, query, streams, kb, checkpoint=checkpoint, lateness=lateness, most_bytes=_MOST)
    report = _Report(plan.job.clock, strict, dead_letters, progress)
    if checkpoint is None:
        return _matches(query, _in_order(answers_of(plan), plan.job.clock), report)
    return _matches(query, _stream(plan, checkpoint, report), report)


@dataclass(slots=True)
class _Report:
    """What was found so far."""

    clock: Clock
    strict: bool
    dead_letters: DeadLetters | Path
    progress: Callable[[Progress], None]
    events: int = 0
    matches: int = 0
    rows: int = 0
    late: int = 0
    bad: int = 0
    watermark: datetime | int | None = None
    more: tuple[str, ...] = ()
    seen: int = field(default=-1)

    def show(self) -> None:
        """Tells how far it is."""
        self.progress(
            Progress(self.events, self.matches, self.rows, self.late, self.bad, self.watermark, self.more)
        )

    def refuse(self, kind: str, line: str) -> None:
        """A dead letter; raises if that ends the run."""
        letter = letter_of_line(line)
        if kind == LATE:
            self.late += 1
        else:
            self.bad += 1
        if callable(self.dead_letters):
            self.dead_letters(letter)
        else:
            with self.dead_letters.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(letter), ensure_ascii=False) + "\n")
        if self.strict:
            error = LateEventError if kind == LATE else BadEventError
            raise error(letter.reason, stream=letter.stream, position=letter.position)

    def look(self, running: StreamingQuery) -> None:
        """Reads the progress of the micro-batches since the last look."""
        for said in running.recentProgress:
            if said.batchId <= self.seen:
                continue
            self.seen = said.batchId
            observed = said.observedMetrics
            self.events += sum(
                row.events or 0 for name, row in observed.items() if name.startswith("stream ")
            )
            state = sum(operator.memoryUsedBytes for operator in said.stateOperators)
            self.more = (f"batch {said.batchId}", f"state {state / 1e6:,.1f} MB")
            watermark = said.eventTime.get("watermark", "")
            if watermark and not watermark.startswith(("1970-01-01T00:00:00.000", "9999", "+")):
                moment = datetime.fromisoformat(watermark)
                self.watermark = int(moment.timestamp()) if self.clock is Clock.TICKS else moment
        self.show()


def _matches(query: Query, found: Iterable[Row], report: _Report) -> Generator[Match, None, None]:
    try:
        for row in found:
            if row.kind == MATCH:
                match = match_of(row.json, query)
                report.matches += 1
                report.rows += len(match.bindings)
                yield match
            else:
                report.refuse(row.kind, row.json)
    except PySparkException as error:
        raise EngineError(f"Spark stopped the query: {_reason(error)}") from error
    finally:
        if isinstance(found, Generator):
            found.close()
        report.show()


def _in_order(found: DataFrame, clock: Clock) -> Generator[Row, None, None]:
    kind = "bigint" if clock is Clock.TICKS else "timestamp"
    ends = F.get_json_object("json", "$.end").cast(kind)
    yield from found.orderBy(ends.asc_nulls_first()).toLocalIterator(prefetchPartitions=True)


def _stream(plan: Prepared, checkpoint: Path, report: _Report) -> Generator[Row, None, None]:
    """The rows of each micro-batch, as they come, until the streams end."""
    rows: queue.Queue[Row | None] = queue.Queue(maxsize=10_000)
    stopping = threading.Event()

    def take(batch: DataFrame, _: int) -> None:
        for row in batch.toLocalIterator():
            while not stopping.is_set():
                try:
                    rows.put(row, timeout=_EVERY)
                    break
                except queue.Full:
                    continue

    failed: list[BaseException] = []

    def wait() -> None:
        try:
            running.processAllAvailable()
        except BaseException as error:  # handed to the reading side, which raises it
            failed.append(error)
        rows.put(None)

    writer = answers_of(plan).writeStream.foreachBatch(take)
    running = writer.option("checkpointLocation", str(checkpoint)).start()
    threading.Thread(target=wait, daemon=True).start()
    try:
        while True:
            try:
                row = rows.get(timeout=_EVERY)
            except queue.Empty:
                report.look(running)
                continue
            if row is None:
                break
            yield row
        report.look(running)
        if failed and not stopping.is_set():
            raise failed[0]
    finally:
        stopping.set()
        running.stop()


def _reason(error: PySparkException) -> str:
    """The line of an error that says what was wrong in a worker, or else its first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("spaseq.errors.")]
    return told[-1] if told else (lines[0] if lines else type(error).__name__)

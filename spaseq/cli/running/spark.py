"""``spaseq run --engine spark``: run a query on PySpark, and report its matches and progress."""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.accumulators import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.cli.running.cursor import Cursor
from spaseq.engine import Progress, Source
from spaseq.engine.rejects import DeadLetters
from spaseq.errors import BadEventError, EngineError, LateEventError
from spaseq.events import Clock
from spaseq.language.syntax import Query
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.shapes import NOT_CONFORMING
from spaseq.results.batch import Match
from spaseq.spark.queries import Prepared, answers_of, in_files, planned
from spaseq.spark.sessions import session, without_noise
from spaseq.spark.sinks._lines import LATE, MATCH, SHED, letter_of_line, match_of
from spaseq.spark.source._files import listed
from spaseq.spark.source._told import Told
from spaseq.spark.stages._job import reached
from spaseq.why.diagnosis import failed_calls

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: Seconds between two checks of Spark's progress.
_EVERY: Final = 0.25

#: The line of a Python error in Spark's report, other than the errors that wrap it.
_RAISED: Final = re.compile(r"(?!org\.|java\.|py4j\.|pyspark\.)[\w.]*(Error|Exception): ")

#: Blank nodes in lines of matches.
_LABEL: Final = re.compile(r"_:\w+|(?<=\"type\":\"bnode\",\"value\":\")\w+")

#: The most bytes of each stream in a micro-batch.
_MOST: Final = 256 << 20


def start(
    query: Query,
    streams: Mapping[str, Source],
    kb: KnowledgeBase,
    *,
    checkpoint: Path | None,
    cursor: Cursor | None,
    follow: bool,
    lateness: timedelta,
    idle: timedelta | None,
    strict: bool,
    latency: timedelta | None,
    memory: int | None,
    shapes: Path | None,
    dead_letters: DeadLetters | Path,
    progress: Callable[[Progress], None],
) -> Generator[Match, None, None]:
    """Yield the matches of a query over files and folders, as ``spaseq.run`` does.

    With a ``checkpoint`` and the ``cursor`` of the output, run as a stream of micro-batches, which a later
    run can resume; with ``follow`` the stream waits for new files. Without a checkpoint, run all at once.
    Within a micro-batch, matches are in the order of their ends.
    """
    if follow and checkpoint is None:
        raise EngineError("--follow reads bit by bit: say --checkpoint DIR, too")
    if idle is not None:
        raise EngineError("--idle is for --engine local: Spark's watermark waits for every stream")
    for iri, source in streams.items():
        listed(in_files(iri, source.location))  # before Spark takes time to start
    # Under spark-submit the cluster is given.
    with without_noise():
        spark = session(None if "SPARK_ENV_LOADED" in os.environ else "local[*]")
    # Errors are reported once, by the error that ends the run.
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger().addFilter(_is_not_of_py4j)
    plan = planned(
        spark, query, streams, kb, checkpoint=checkpoint, lateness=lateness, follow=follow, most_bytes=_MOST,
        latency=latency, memory=memory, shapes=shapes,
    )  # fmt: skip
    report = _SparkReport(plan.job.clock, strict, dead_letters, progress, plan.failed)
    if checkpoint is None or cursor is None:
        return _matches(query, _in_order(plan, report), report, None)
    return _matches(query, _stream(plan, checkpoint, cursor, report, follow=follow), report, cursor)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record is not py4j's: it logs to the root logger when a signal also ends the JVM."""
    return record.module != "java_gateway"


@dataclass(slots=True)
class _SparkReport:
    """The progress of a run."""

    clock: Clock
    strict: bool
    dead_letters: DeadLetters | Path
    progress: Callable[[Progress], None]
    failed: Accumulator[Told] | None = None
    events: int = 0
    matches: int = 0
    rows: int = 0
    late: int = 0
    bad: int = 0
    nonconforming: int = 0
    watermark: datetime | int | None = None
    more: tuple[str, ...] = ()
    seen: int = field(default=-1)
    shed: int = 0

    def give_up(self, line: str) -> None:
        """Record what a bucket shed, for the status line."""
        self.shed += json.loads(line)["partial_matches"]
        self.more = (f"{self.shed:,} partial matches shed",)

    def show(self) -> None:
        """Show progress."""
        failed = {} if self.failed is None else self.failed.value
        read = self.events, self.matches, self.rows, self.late, self.bad, self.watermark
        more = (*self.more, *failed_calls({str(iri): count for iri, (count, _) in failed.items()}))
        self.progress(Progress(*read, more, nonconforming=self.nonconforming))

    def refuse(self, kind: str, line: str) -> None:
        """Record a dead letter; raise if it ends the run."""
        letter = letter_of_line(line)
        if kind == LATE:
            self.late += 1
        else:
            self.bad += 1
            self.nonconforming += letter.reason.startswith(NOT_CONFORMING)
        if callable(self.dead_letters):
            self.dead_letters(letter)
        else:
            with self.dead_letters.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(letter), ensure_ascii=False) + "\n")
        if self.strict:
            error = LateEventError if kind == LATE else BadEventError
            raise error(letter.reason, stream=letter.stream, position=letter.position)

    def look(self, running: StreamingQuery) -> None:
        """Read the progress of the micro-batches since the last check."""
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
            self.watermark = _shown(said.eventTime.get("watermark", ""), self.clock) or self.watermark
        self.show()

    def look_at_tasks(self, found: DataFrame) -> None:
        """Show which of Spark's tasks are done, if there are no micro-batches."""
        tracker = found.sparkSession.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        done = [f"stage {s.stageId}: {s.numCompletedTasks} of {s.numTasks} tasks" for s in stages if s]
        if done:
            self.more = tuple(done)
            self.show()
            self.more = ()


def _shown(watermark: str, clock: Clock) -> datetime | int | None:
    """Return Spark's watermark on the clock of the streams; None before the first."""
    try:
        passed = datetime.fromisoformat(watermark) - _EPOCH
    except ValueError:  # no watermark, or a year of six digits
        return None
    if not passed:
        return None
    return _EPOCH + passed if clock is Clock.INSTANTS else reached(passed // timedelta(milliseconds=1), clock)


def _matches(
    query: Query, found: Generator[Row, None, None], report: _SparkReport, cursor: Cursor | None
) -> Generator[Match, None, None]:
    try:
        for row in found:
            if row.kind == MATCH:
                match = match_of(row.json, query)
                report.matches += 1
                report.rows += len(match.bindings)
                yield match
            elif row.kind == SHED:
                report.give_up(row.json)
            else:
                report.refuse(row.kind, row.json)
                if cursor is not None:
                    cursor.passed()
    except PySparkException as error:
        raise EngineError(f"Spark stopped the query: {_reason(error)}") from error
    except (Py4JError, ConnectionError) as error:
        raise EngineError("Spark stopped the query: its Java process has ended") from error
    finally:
        found.close()
        report.show()


def _in_order(plan: Prepared, report: _SparkReport) -> Generator[Row, None, None]:
    # Cached, since Spark samples before it sorts: everything would be computed twice.
    ended = _ended(answers_of(plan), plan.job.clock).persist(StorageLevel.MEMORY_AND_DISK)
    failed: list[BaseException] = []

    def find() -> None:
        try:
            ended.count()
        except BaseException as error:  # passed to the reading side, which raises it
            failed.append(error)

    finding = threading.Thread(target=find, daemon=True)
    finding.start()
    while finding.is_alive():
        finding.join(_EVERY)
        report.look_at_tasks(ended)
    if failed:
        raise failed[0]
    report.events = sum(seen.get["events"] or 0 for seen in plan.observed)
    report.show()
    yield from ended.orderBy(F.col("end").asc_nulls_first()).toLocalIterator(prefetchPartitions=True)


def _ended(found: DataFrame, clock: Clock) -> DataFrame:
    """Return answers with the ends of matches."""
    kind = "bigint" if clock is Clock.TICKS else "timestamp"
    return found.withColumn("end", F.get_json_object("json", "$.end").cast(kind))


def _order(row: Row) -> tuple[object, ...]:
    """Order dead letters first, then matches by their ends.

    Deterministic, so without labels of blank nodes.
    """
    return row.kind == MATCH, row.end or 0, _LABEL.sub("_:", row.json)


def _stream(
    plan: Prepared, checkpoint: Path, cursor: Cursor, report: _SparkReport, *, follow: bool
) -> Generator[Row, None, None]:
    """Yield the rows of each micro-batch, until the streams end.

    Spark's micro-batch ends when its last row was written. If reading stops earlier, Spark sees a crash, and
    repeats everything that is not written.
    """
    batches: queue.Queue[tuple[int, list[Row]] | None] = queue.Queue(maxsize=1)
    written = threading.Semaphore(0)
    failed: list[BaseException] = []

    def take(batch: DataFrame, number: int) -> None:
        batches.put((number, sorted(batch.collect(), key=_order)))
        written.acquire()

    def wait() -> None:
        try:
            if follow:
                running.awaitTermination()
            else:
                running.processAllAvailable()
        except BaseException as error:  # passed to the reading side, which raises it
            failed.append(error)
        batches.put(None)

    writer = _ended(answers_of(plan), plan.job.clock).writeStream.foreachBatch(take)
    running = writer.option("checkpointLocation", str(checkpoint)).start()
    threading.Thread(target=wait, daemon=True).start()
    while True:
        try:
            batch = batches.get(timeout=_EVERY)
        except queue.Empty:
            report.look(running)
            continue
        if batch is None:
            break
        number, rows = batch
        yield from rows[cursor.begin(number) :]
        cursor.note()  # before Spark ends the micro-batch: then it does not repeat these rows
        written.release()
    report.look(running)
    running.stop()
    if failed:
        raise failed[0]


def _reason(error: PySparkException) -> str:
    """Return the line of an error that says what was wrong in a worker, or else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("spaseq.errors.")]
    if ours:
        return ours[-1].partition(": ")[2]
    others = [line for line in lines if _RAISED.match(line)]
    return next(iter(others or lines), type(error).__name__)

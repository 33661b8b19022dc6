"""Kafka topics as streams of events, by Spark's own connector: a topic a stream, a message an event."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyoxigraph import NamedNode
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.errors import SourceError
from spaseq.events import Clock, EventBatch
from spaseq.sources import GENERATED_AT, BadEvent, SourceOptions, open_source
from spaseq.spark._lines import MATCH
from spaseq.spark._rows import ARROW, EVENTS, bad_row, rows_of
from spaseq.terms import Dictionary

#: Which artefact has the connector; its version is Spark's.
CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"

#: Arrival numbers are offsets, and the number of the partition in the lowest bits.
_PARTITION_BITS: Final = 16

_MESSAGE: Final = pa.schema([("key", pa.binary()), ("value", pa.binary())])


def kafka_events(
    spark: SparkSession,
    servers: str,
    topics: Mapping[str, str],
    *,
    options: SourceOptions | None = None,
    follow: bool = True,
    kafka: Mapping[str, str] | None = None,
) -> DataFrame:
    """The events of some streams, as ``matches`` takes them: as a stream, or what is there now.

    ``topics``: the stream's IRI → its topic. ``options``: how messages are to be read, N-Quads with the time
    in the default graph unless given; a message that is not exactly one event is a dead letter, which says
    its topic, partition and offset, and keeps it.
    ``time="arrival"`` takes the time at which the broker has got a message, as an instant. Events of equal
    time are ordered by their offsets, then by partition. ``follow``: new messages are waited for. ``kafka``:
    further options of Spark's connector, such as ``startingOffsets`` (``earliest`` unless given) or
    ``maxOffsetsPerTrigger``. Raises SourceError where the session does not have the connector.
    """
    options = options or SourceOptions(format="nq")
    reader = spark.readStream if follow else spark.read
    said = {
        "kafka.bootstrap.servers": servers,
        "subscribe": ",".join(topics.values()),
        "startingOffsets": "earliest",
        **(kafka or {}),
    }
    try:
        rows = reader.format("kafka").options(**said).load()
    except Exception as error:
        if "kafka" not in str(error).lower() or "find" not in str(error).lower():
            raise
        raise SourceError(
            f"this Spark session has no Kafka connector: start it with --packages {CONNECTOR}:{spark.version}"
        ) from None
    chosen = rows.select(
        "topic", "value", "offset", F.col("partition"), F.unix_micros("timestamp").alias("micros")
    )
    return chosen.mapInArrow(_reader({topic: iri for iri, topic in topics.items()}, options), EVENTS)


def kafka_messages(events: DataFrame, *, time: str = GENERATED_AT.value) -> DataFrame:
    """Events as messages, to be written with ``format("kafka")``: ``key``, the graph's name, and ``value``.

    ``events`` has the columns of ``kafka_events``. A value is N-Quads with the time, under the predicate
    ``time``, in the default graph. An event without a graph name gets one that says which it is.
    """

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = [_message(row, time) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(made, schema=_MESSAGE)

    return events.where("bad IS NULL").mapInArrow(written, "key binary, value binary")


def answer_messages(found: DataFrame, matches: str, letters: str) -> DataFrame:
    """Answers (see ``answers``) as messages for ``format("kafka")``: those of matches and of dead letters.

    Columns: ``topic``, the one of the two that is meant, ``key``, what kind of answer it is, and ``value``,
    its line of JSON. Spark repeats the messages of a micro-batch that a crash has cut off.
    """
    topic = F.when(F.col("kind") == MATCH, matches).otherwise(letters)
    return found.select(topic.alias("topic"), F.col("kind").alias("key"), F.col("json").alias("value"))


def _message(row: Mapping[str, Any], time: str) -> dict[str, bytes]:
    clock = Clock(row["clock"])
    graph = f"<{row['graph']}>" if row["graph"] else f"<{row['stream']}/{row['time']}/{row['n']}>"
    shown = clock.show(row["time"])
    kind = "integer" if clock is Clock.TICKS else "dateTime"
    text = str(shown) if isinstance(shown, int) else shown.isoformat().replace("+00:00", "Z")
    lines = [f'{graph} <{time}> "{text}"^^<http://www.w3.org/2001/XMLSchema#{kind}> .']
    for line in bytes(row["payload"]).decode().splitlines():
        triple = line.rstrip()
        if triple:
            lines.append(f"{triple.removesuffix('.').rstrip()} {graph} .")
    return {"key": graph[1:-1].encode(), "value": "\n".join([*lines, ""]).encode()}


def _reader(
    streams: Mapping[str, str], options: SourceOptions
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            dictionary = Dictionary()
            yield pa.RecordBatch.from_pylist(
                [_event(row, streams[row["topic"]], options, dictionary) for row in batch.to_pylist()],
                schema=ARROW,
            )

    return read


def _event(
    row: Mapping[str, Any], stream: str, options: SourceOptions, dictionary: Dictionary
) -> dict[str, Any]:
    """The row of a message's event, or of its dead letter."""
    number = (row["offset"] << _PARTITION_BITS) | row["partition"]
    value = row["value"]
    letters: list[BadEvent] = []
    found: list[EventBatch] = []
    if value is not None:
        source = open_source(io.BytesIO(value), NamedNode(stream), dictionary, options, on_bad=letters.append)
        found = [batch for batch in source if len(batch)]
    count = sum(map(len, found))
    if letters or count != 1:
        if letters:
            reason = f"{letters[0].reason} ({letters[0].position})"
        elif value is None:
            reason = "the message has no value"
        else:
            reason = f"a message is one event, and this one is {count or 'none'}"
        place = f"topic {row['topic']}, partition {row['partition']}, offset {row['offset']}"
        text = (value or b"").decode(errors="replace")
        return bad_row(BadEvent(stream, place, reason, text), number)
    (event,) = rows_of(found[0]).to_pylist()
    if options.time == "arrival":
        event |= {"clock": Clock.INSTANTS.value, "time": row["micros"]}
    return {**event, "n": number}

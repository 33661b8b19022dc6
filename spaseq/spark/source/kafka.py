"""Kafka topics as streams of events, by Spark's own connector: a topic a stream, a message an event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.connect.messages import form_of
from spaseq.errors import SourceError
from spaseq.events import Clock
from spaseq.sources import GENERATED_AT, SourceOptions
from spaseq.sources._options import FORMATS
from spaseq.spark.sessions import VERSION, require_classic
from spaseq.spark.sinks._lines import MATCH, Topics
from spaseq.spark.source._messages import MessageReading
from spaseq.spark.source._rows import Behind, remembered

#: The connector's artefact.
CONNECTOR: Final = f"org.apache.spark:spark-sql-kafka-0-10_{'2.13' if VERSION >= (4, 0) else '2.12'}"

#: Its release by Spark's minor version, or else the first one: not every release of Spark has one. Connectors
#: 4.1.0 to 4.1.2 end a restarted query, once, with a NullPointerException.
_RELEASES: Final = {"4.1": "4.1.3"}

#: The metadata key under which the column ``n`` keeps the topics of its offsets.
_TOPICS: Final = "spaseq.topics"

#: How long a broker may take to say which topics it has.
_PATIENCE_MS: Final = "10000"

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
    """Return the events of Kafka topics for ``matches``: as a stream, or those there now.

    ``topics``: the stream's IRI → its topic. ``options``: how messages are to be read, as for ``spaseq.run``;
    by default N-Quads with the time in the default graph. Messages of N-Quads with one graph each are decoded
    many at once, others one by one. A message has at most 1,024 events, a topic at most 4,096 partitions.
    Dead letters, also of late events, name the topic, the partition and the offset. With ``time="arrival"``
    the time of an event is the instant at which the broker got its message. Events of equal time are ordered
    by offset, then by partition.

    ``follow``: wait for new messages. ``kafka``: further options of Spark's connector, such as
    ``startingOffsets`` (by default ``earliest``) or ``maxOffsetsPerTrigger``. The latter holds for each
    topic, since a query reads each topic by itself, with its own watermark. Raises SourceError if an option
    does not fit, the session lacks the connector, no broker answers, or a topic does not exist.
    """
    require_classic(spark)
    options = options or SourceOptions(format="nq")
    if options.format is None:
        known = ", ".join(FORMATS)
        raise SourceError(f"how are messages written? Say SourceOptions(format=…), one of {known}")
    form_of("Kafka", options)
    given = {"kafka.bootstrap.servers": servers, "startingOffsets": "earliest", **(kafka or {})}
    load = partial(_messages, spark, given, follow=follow)
    chosen = load(sorted(topics.values()))
    _require(spark, servers, topics.values(), kafka or {})
    reading = MessageReading({topic: iri for iri, topic in topics.items()}, options)
    several = sorted(topics.values()) if len(topics) > 1 else []
    behind = Behind(chosen, reading.read, lambda: [load([topic]) for topic in several] or [chosen])
    # Dead letters get the topics from here, wherever events turn out to be late.
    return remembered(behind, behind.events().withMetadata("n", {_TOPICS: dict(topics)}))


def _messages(
    spark: SparkSession, given: Mapping[str, str], topics: Sequence[str], follow: bool
) -> DataFrame:
    """Return the messages of topics, as ``MessageReading.read`` needs them."""
    reader = spark.readStream if follow else spark.read
    said = {name: _of_topics(value, topics) for name, value in given.items()}
    try:
        rows = reader.format("kafka").options(**said, subscribe=",".join(topics)).load()
    except Exception as error:
        if "kafka" not in str(error).lower() or "find" not in str(error).lower():
            raise
        minor = ".".join(spark.version.split(".")[:2])
        version = _RELEASES.get(minor, f"{minor}.0")
        raise SourceError(
            f"this Spark session has no Kafka connector: start it with --packages {CONNECTOR}:{version}"
        ) from None
    return rows.select(
        "topic", "value", "offset", F.col("partition"), F.unix_micros("timestamp").alias("micros")
    )


def _of_topics(value: str, topics: Sequence[str]) -> str:
    """Return an option of the connector, such as ``startingOffsets``; of values by topic, only these
    topics'.
    """
    if not value.lstrip().startswith("{"):
        return value
    return json.dumps({topic: said for topic, said in json.loads(value).items() if topic in topics})


def _require(spark: SparkSession, servers: str, topics: Iterable[str], options: Mapping[str, str]) -> None:
    """Raise SourceError if a topic does not exist. Spark reports that only in its tasks, if at all."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    patience = dict.fromkeys(("default.api.timeout.ms", "request.timeout.ms"), _PATIENCE_MS)
    given = {name[6:]: value for name, value in options.items() if name.startswith("kafka.")}
    properties = jvm.java.util.Properties()
    for name, value in (patience | given | {"bootstrap.servers": servers}).items():
        properties.setProperty(name, value)
    admin = jvm.org.apache.kafka.clients.admin.AdminClient
    try:
        client = admin.create(properties)
        try:
            known = set(client.listTopics().names().get())
        finally:
            client.close()
    except Py4JJavaError as error:
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise SourceError(f"Kafka at {servers}: {cause.getMessage()}") from None
    for topic in sorted(set(topics) - known):
        near = get_close_matches(topic, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f", among {len(known)}"
        raise SourceError(f"Kafka at {servers} has no topic {topic!r}{hint}")


def kafka_messages(events: DataFrame, *, time: str = GENERATED_AT.value) -> DataFrame:
    """Return events as messages, to be written with ``format("kafka")``.

    ``events`` has the columns of ``kafka_events``. Columns of the result: ``key``, the name of the event's
    graph, and ``value``: N-Quads with the time in the default graph, under the predicate ``time``. An event
    without a graph name gets one made of its stream, time and number.
    """

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = [_message(row, time) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(made, schema=_MESSAGE)

    return events.where("bad IS NULL").mapInArrow(written, "key binary, value binary")


def answer_messages(found: DataFrame, matches: str, letters: str) -> DataFrame:
    """Return answers (see ``answers``) as messages for ``format("kafka")``.

    ``matches``, ``letters``: the topics for matches and for dead letters. Columns: ``topic``, one of these
    two; ``key``, the kind of answer; and ``value``, its line of JSON. After a crash in a micro-batch, Spark
    sends its messages again.
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


def topics_of(events: DataFrame) -> Topics:
    """Return the topics of a DataFrame's streams, as far as its columns' metadata name them."""
    said = events.schema["n"].metadata.get(_TOPICS, {}) if "n" in events.columns else {}
    return tuple(sorted(said.items()))

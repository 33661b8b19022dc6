"""Run by ``test_spark_kafka`` with a broker, the connector and a folder: prints what was found as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession

import spaseq
from spaseq.results.writers._json import line_of
from spaseq.spark import answer_messages, answers, derived, kafka_events, kafka_messages, matches, session
from tests.spark.stages import comparable
from tests.streams import NS, query

COUNT = 240
V_SHAPE = query(
    "A , B+[,] , C",
    "20 SECONDS SLIDING",
    {"A": "?a :k ?k .", "B": "?b :k ?k . FILTER(?bv > ?av)", "C": "?c :k ?k . FILTER(?cv < ?av)"},
    partition="?k",
)
ALARMS = query(
    "A , C",
    "20 SECONDS SLIDING",
    {"A": "?a :k ?k .", "C": "?c :k ?k . FILTER(?cv < ?av)"},
    partition="?k",
    head=f"REGISTER STREAM <{NS}alarms> AS CONSTRUCT {{ ?k a :d ; :v ?cv }}",
)
PAIRS = query("D1 ; D2", "30 SECONDS SLIDING", streams=["alarms"])


def quads(i: int) -> str:
    graph, node, turn = f"<{NS}g{i}>", f"<{NS}e{i}>", i // 3
    kind = "abbc"[turn % 4] if turn % 8 < 4 else "acbb"[turn % 4]
    triples = (
        f"{node} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{NS}{kind}>",
        f'{node} <{NS}v> "{[5, 7, 9, 1][turn % 4] if turn % 8 < 4 else 5 - turn % 4}"^^<{XSD}integer>',
        f"{node} <{NS}k> <{NS}k{i % 3}>",
    )
    time = f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{i}"^^<{XSD}integer> .\n'
    return time + "".join(f"{triple} {graph} .\n" for triple in triples)


XSD = "http://www.w3.org/2001/XMLSchema#"


def plain(lines: Iterable[str]) -> list[str]:
    """Without arrival numbers, which are offsets here, and names of graphs that have none."""
    out = []
    for line in lines:
        match = json.loads(line)
        for chosen in match["events"].values():
            for event in chosen:
                event.pop("n", None)
                event.pop("graph", None)
        out.append(json.dumps(match))
    return comparable(out)


def everything(frame: DataFrame, folder: str, more: Sequence[Callable[[], None]]) -> list[tuple[str, str]]:
    """What a stream brings from what is there, and then from what each of ``more`` adds."""
    rows: list[tuple[str, str]] = []

    def take(batch: DataFrame, _: int) -> None:
        rows.extend((row.kind, row.json) for row in batch.collect())

    running = frame.writeStream.foreachBatch(take).option("checkpointLocation", folder).start()
    try:
        running.processAllAvailable()
        for add in more:
            add()
            running.processAllAvailable()
    finally:
        running.stop()
    return rows


def write(spark: SparkSession, servers: str, topic: str, texts: list[str]) -> None:
    rows = spark.createDataFrame([(text,) for text in texts], "value string")
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def main(servers: str, jars: str, folder: str) -> None:
    spark = session("local[2]", partitions=2, memory="1g", jars=jars.split(","))
    texts = [quads(i) for i in range(COUNT)]
    write(spark, servers, "trades", texts)
    topics = {f"{NS}S": "trades"}
    here = kafka_events(spark, servers, topics, follow=False)
    batch = [row.json for row in matches(here, V_SHAPE, clock="ticks").collect()]

    # Matches and dead letters to a topic each.
    found = answers(here, V_SHAPE, clock="ticks")
    out = answer_messages(found, "found", "dead").write.format("kafka")
    out.option("kafka.bootstrap.servers", servers).save()
    said = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "found")
    written = [bytes(row.value).decode() for row in said.load().collect()]

    def last() -> None:
        """Moves time on beyond the last event that counts; and two messages that are no events.

        Only when all others are read: a micro-batch takes a share of each partition, so that a message at the
        end of a short one is read long before the end of a long one.
        """
        write(spark, servers, "trades", [quads(COUNT + 1_000), "no quads at all", ""])

    bits = {"maxOffsetsPerTrigger": "120"}
    following = kafka_events(spark, servers, topics, kafka=bits)
    # Spark reads the partitions of a topic side by side, so that events come out of order.
    late = timedelta(seconds=COUNT)
    found = answers(following, V_SHAPE, clock="ticks", lateness=late)

    # The matches of another streaming query as events of a topic. It, too, has read the rest before the last.
    made = matches(following, ALARMS, clock="ticks", lateness=late)
    made = kafka_messages(derived(made, ALARMS, clock="ticks"))
    out = made.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
    alarms = out.option("topic", "alarms").option("checkpointLocation", f"{folder}/alarms").start()
    alarms.processAllAvailable()
    after = [last, alarms.processAllAvailable, lambda: write(spark, servers, "trades", [quads(1)])]
    try:
        rows = everything(found, f"{folder}/checkpoint", after)
    finally:
        alarms.stop()

    read = kafka_events(spark, servers, {f"{NS}alarms": "alarms"}, follow=False)
    pairs = [row.json for row in matches(read, PAIRS, clock="ticks").collect()]
    try:
        answers(derived(matches(following, ALARMS), ALARMS), PAIRS)
    except spaseq.EngineError as error:
        chained = str(error)

    # With something done to the events, they are rows before they are read.
    some = kafka_events(spark, servers, topics, follow=False, kafka={"endingOffsets": "latest"})
    some = some.where(f"time < {COUNT} OR bad IS NOT NULL")
    shown = [(row.kind, row.json) for row in answers(some, V_SHAPE, clock="ticks").collect()]
    try:
        kafka_events(spark, servers, {f"{NS}S": "trade"})
    except spaseq.SourceError as error:
        missing = str(error)

    engine = spaseq.Engine()
    v_shape, alarm, pair = (engine.register(text) for text in (V_SHAPE, ALARMS, PAIRS))
    del alarm
    for i, text in enumerate(texts):
        triples = [line.split(f" <{NS}g{i}> .")[0] + " ." for line in text.splitlines()[1:]]
        engine.push(f"{NS}S", "\n".join(triples), i)
    engine.close()
    result = {
        "expected": plain(map(line_of, v_shape.matches())),
        "expected_derived": plain(map(line_of, pair.matches())),
        "batch": plain(batch),
        "written": plain(written),
        "stream": plain(line for kind, line in rows if kind == "match"),
        "derived": plain(pairs),
        "shown": plain(line for kind, line in shown if kind == "match"),
        "shown_bad": [json.loads(line) for kind, line in shown if kind == "bad"],
        "late": [json.loads(line) for kind, line in rows if kind == "late"],
        "missing": missing,
        "chained": chained,
        "bad": [json.loads(line) for kind, line in rows if kind == "bad"],
    }
    print(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A query on a stream, as a process that tests kill: ``python -m tests.spark.killed MODE FOLDER``.

The folder has ``query.rq`` and ``in.nq``, or ``kafka.json`` with the broker and the jars of the connector;
checkpoint and output go beside them. Started again, the process goes on where it was; at the end of the
stream it ends.
"""

from __future__ import annotations

import json
import sys
import warnings
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spaseq
from spaseq.spark import answers, answers_of, drive, folder_sink, kafka_events, planned, save, session
from tests.spark.test_spark import quads
from tests.streams import NS

#: Small, so that there are many micro-batches.
PIECE, MOST = 10_000, 20_000
MESSAGES = 40

#: No machine is so fast that the stream ends before the last kill: a micro-batch takes so long at least.
EVERY = {"stream": "1 second", "save": "1 second", "driver": "0.5 seconds", "kafka": "1 second"}

#: Later than all events of a topic, so that what waits for the watermark comes.
LAST = 1_000_000

#: The topic; its partitions are read side by side, so that events come a little out of order.
TOPIC = "trades"
LATENESS = timedelta(seconds=4 * MESSAGES)


def main(mode: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    query = spaseq.prepare((folder / "query.rq").read_text())
    if mode == "kafka":
        from_kafka(query, folder)
        return
    master = "local-cluster[2,1,1024]" if mode == "executors" else "local[1]"
    spark = session(master, partitions=2, memory="1g")
    streams: dict[str, spaseq.engine.running.StreamSource] = {"S": str(folder / "in.nq")}
    checkpoint = folder / "checkpoint"
    plan = planned(spark, query, streams, checkpoint=checkpoint, most_bytes=MOST, piece_bytes=PIECE)
    if mode == "driver":
        running = drive(plan, checkpoint, folder_sink(folder / "out", query), processingTime=EVERY[mode])
    elif mode in ("save", "executors"):
        running = saved(answers_of(plan), query, folder, EVERY["save"])
    else:
        found = answers_of(plan).where("kind = 'match'").select("json")
        writer = found.writeStream.format("text").option("path", str(folder / "out"))
        writer = writer.trigger(processingTime=EVERY[mode])
        running = writer.option("checkpointLocation", str(checkpoint)).start()
    running.processAllAvailable()
    running.stop()
    spark.stop()


def saved(found: DataFrame, query: spaseq.Query, folder: Path, every: str) -> StreamingQuery:
    running = save(found, query, folder / "out", checkpoint=folder / "checkpoint", processingTime=every)
    assert running is not None
    return running


def from_kafka(query: spaseq.Query, folder: Path) -> None:
    """A topic as events; when all of it is read, one more moves time on."""
    given = json.loads((folder / "kafka.json").read_text())
    spark = session("local[1]", partitions=2, memory="1g", jars=given["jars"])
    bits = {"maxOffsetsPerTrigger": str(MESSAGES)}
    events = kafka_events(spark, given["servers"], {f"{NS}S": TOPIC}, kafka=bits)
    found = answers(events, query, clock="ticks", lateness=LATENESS)
    running = saved(found, query, folder, EVERY["kafka"])
    running.processAllAvailable()
    _last(spark, given["servers"])
    running.processAllAvailable()
    running.stop()
    spark.stop()


def _last(spark: SparkSession, servers: str) -> None:
    rows = spark.createDataFrame([(quads(LAST),)], "value string")
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

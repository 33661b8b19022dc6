"""A query on a stream of files, as a process that tests kill: ``python -m tests.spark.killed MODE FOLDER``.

The folder has ``query.rq`` and ``in.nq``; checkpoint and output go beside them. Started again, the process
goes on where it was; at the end of the stream it ends.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import spaseq
from spaseq.spark import answers_of, drive, folder_sink, planned, save, session

#: Small, so that there are many micro-batches.
PIECE, MOST = 10_000, 20_000

#: No machine is so fast that the stream ends before the last kill: a micro-batch takes so long at least.
EVERY = {"stream": "1 second", "save": "1 second", "driver": "0.5 seconds"}


def main(mode: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    spark = session("local[1]", partitions=2, memory="1g")
    query = spaseq.prepare((folder / "query.rq").read_text())
    streams: dict[str, spaseq.engine.running.StreamSource] = {"S": str(folder / "in.nq")}
    checkpoint = folder / "checkpoint"
    plan = planned(spark, query, streams, checkpoint=checkpoint, most_bytes=MOST, piece_bytes=PIECE)
    if mode == "driver":
        running = drive(plan, checkpoint, folder_sink(folder / "out", query), processingTime=EVERY[mode])
    elif mode == "save":
        out = save(answers_of(plan), query, folder / "out", checkpoint=checkpoint, processingTime=EVERY[mode])
        assert out is not None
        running = out
    else:
        found = answers_of(plan).where("kind = 'match'").select("json")
        writer = found.writeStream.format("text").option("path", str(folder / "out"))
        writer = writer.trigger(processingTime=EVERY[mode])
        running = writer.option("checkpointLocation", str(checkpoint)).start()
    running.processAllAvailable()
    running.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

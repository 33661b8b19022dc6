"""Matches on a console: ``python -m tests.spark.console_session QUERY STREAM CHECKPOINT``."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from spaseq.spark import expanded, run, session


def main(query: str, stream: str, checkpoint: str) -> None:
    warnings.simplefilter("ignore")
    spark = session("local[1]", partitions=1, memory="1g")
    found = expanded(run(spark, Path(query).read_text(), {"S": stream}, checkpoint=checkpoint), "ticks")
    shown = found.select("start", "end", "partition.k.value", "json").writeStream.format("console")
    running = shown.option("truncate", "false").option("checkpointLocation", checkpoint).start()
    running.processAllAvailable()
    running.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

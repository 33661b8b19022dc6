"""What the tests on a session share: streams run to their end, and lines of matches made comparable."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.stages import comparable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery


def finished(frame: DataFrame, checkpoint: Path) -> tuple[list[Row], StreamingQuery]:
    """All that a stream brings until it ends."""
    rows: list[Row] = []

    def take(batch: DataFrame, _: int) -> None:
        rows.extend(batch.collect())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    running = writer.start()
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    return rows, running


def without_n(lines: Iterable[str]) -> list[str]:
    """Lines of matches, in a form to be compared, without the arrival numbers of events.

    Those count from the byte where a piece of a file begins: other ones, in the same order.
    """
    out = []
    for line in lines:
        match = json.loads(line)
        for chosen in match["events"].values():
            for event in chosen:
                del event["n"]
        # As compact as they came, since ``comparable`` looks for labels of blank nodes.
        out.append(json.dumps(match, separators=(",", ":")))
    return comparable(out)

"""What is read of a stream's files at once: all their pieces, as rows, and the first event."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spaseq.events import EARLIEST, LATEST, Clock
from spaseq.sources import SourceOptions
from spaseq.spark.source._blocks import ARROW, read_row
from spaseq.spark.source._pieces import Cutter, Place
from spaseq.spark.stages._stateless import conforming
from spaseq.terms.dictionary import Dictionary


def first_of(
    stream: str, location: str, options: SourceOptions, size: int, lateness: timedelta, shapes: str
) -> tuple[Clock, int] | None:
    """The clock of a stream, and the time of the first event by time, read from its beginning.

    ``shapes``: what events must conform to, as N-Triples, if to anything.
    """
    for piece, _ in Cutter(location, options, min(size, 1 << 20)).after(Place()):
        row = piece.row(stream)
        read = (conforming(batch, shapes, []) for batch in read_row(row, Dictionary(), []))
        for batch in islice((b for b in read if len(b)), 1):
            allowed = min(lateness // batch.clock.unit, LATEST)
            newest = np.maximum(np.maximum.accumulate(batch.time), EARLIEST + allowed) - allowed
            on_time = np.append(True, batch.time[1:] >= newest[:-1])
            return batch.clock, int(batch.time[on_time].min())
    return None


def pieces_of(
    spark: SparkSession, stream: str, location: str, options: SourceOptions, size: int
) -> DataFrame:
    """All pieces of a stream's files, as many for each core.

    Not by ``format("spaseq")``: that asks Python processes for the plan, and others to read it.
    """
    rows = [piece.row(stream) for piece, _ in Cutter(location, options, size).after(Place())]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW))

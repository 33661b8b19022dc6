"""The stateful stage as Spark makes it: its states, and the class that does the work.

For each query, Spark starts a process only to ask for the states. So the other modules are loaded when rows
come.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from spaseq.spark._workers import freeze_worker
from spaseq.spark.stages._job import Job

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.accumulators import Accumulator

    from spaseq.spark.source._told import Told
    from spaseq.spark.stages.arrow import Buckets


class BucketProcessor(StatefulProcessor):
    """The stateful stage of a stream: one call for each bucket and micro-batch, see ``_stages.Buckets``."""

    def __init__(
        self, job: Job, told: Accumulator[Told] | None = None, failed: Accumulator[Told] | None = None
    ) -> None:
        """``told`` counts shed partial matches, ``failed`` failed calls of the user's functions."""
        self._job, self._told, self._failed = job, told, failed

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._head = handle.getValueState("head", "token string, head binary, timer bigint")
        self._chunks = handle.getMapState("chunks", "number bigint", "data binary")

    def handleInputRows(  # noqa: N802  # Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803  # Spark's name
    ) -> Iterator[pd.DataFrame]:
        yield from self._buckets.take(int(key[0]), rows, timerValues)

    def handleExpiredTimer(  # noqa: N802  # Spark's name
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803  # Spark's name
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803  # Spark's name
    ) -> Iterator[pd.DataFrame]:
        yield from self._buckets.move(int(key[0]), timerValues)

    def close(self) -> None:
        """Do nothing: the state is stored."""
        freeze_worker()

    @cached_property
    def _buckets(self) -> Buckets:
        from spaseq.spark.stages.arrow import Buckets

        return Buckets(self._job, self._handle, self._head, self._chunks, self._told, self._failed)

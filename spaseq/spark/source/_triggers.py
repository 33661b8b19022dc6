"""What the driver does when a streaming query starts, before its sources are asked for anything.

``trigger(availableNow=True)`` asks a source only once, so its answer must cover everything. But Spark asks a
Python source for its latest offset without passing the trigger: one micro-batch's worth would be all that is
read. So the driver leaves a note under the source's options, and the source looks for it.

Stateful operators behind the matches of a stream get a watermark from Spark if matches have an event time
(``Job.has_event_time``). Otherwise a warning says that these operators return no rows.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from spaseq.errors import warn

_AVAILABLE_NOW: Final = "AvailableNowTrigger"

#: Spark's operators that keep a state of a stream's rows.
_STATEFUL: Final = (
    "Aggregate",
    "Join",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "FlatMapGroupsWithState",
)

_NO_ROWS: Final = (
    "these matches have no event time for Spark (on ticks, or where negation or ALL lets a match wait), so "
    "{operator} behind them returns no rows and no error: write the matches to a table and read that as a "
    "stream, or aggregate in foreachBatch (docs/spark.md, Aggregates and joins behind matches)"
)

_WATERMARK: Final = "EventTimeWatermark"

_TWO_WATERMARKS: Final = (
    "these matches have a watermark already, that of the events, and with a second one no rows come: leave "
    "withWatermark behind matches out"
)

_TWICE: Final = (
    "this query uses the matches of one DataFrame twice, and Spark, which shuffles their events once, gives "
    "rows to one of the uses: call matches(…) once for each, with names for their metrics (observed=)"
)

_listening: WeakSet[SparkSession] = WeakSet()


def listen(spark: SparkSession) -> None:
    """Leave notes for the sources of a session's queries from now on."""
    if spark not in _listening:
        gateway: Any = SparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark's
        java = gateway.jvm.org.apache.spark.sql.streaming
        spark.streams._jsqm.addListener(java.PythonStreamingQueryListenerWrapper(_Notes(spark)))
        _listening.add(spark)


def takes_all(options: Mapping[str, str]) -> bool:
    """Return whether the query with a source of these options was started to read everything at once."""
    return _note(options).exists()


def _note(options: Mapping[str, str]) -> Path:
    """Return the path of a source's note: on this machine, in a folder of this user."""
    given = sorted((name.lower(), value) for name, value in options.items())
    key = blake2b(json.dumps(given).encode(), digest_size=16).hexdigest()
    return Path(tempfile.gettempdir(), f"spaseq-{os.getuid()}-available-now", key)


def _lost_behind_matches(plan: Any) -> tuple[tuple[str, ...], str | None]:
    """Return the operators that return no rows behind the matches in a plan, and the first one found
    there.
    """
    name = plan.nodeName()
    if name == "UpdateEventTimeWatermarkColumn":
        return (_WATERMARK,), None
    if name.startswith("TransformWithState"):
        return _STATEFUL, None
    children = [plan.children().apply(i) for i in range(plan.children().size())]
    found = [_lost_behind_matches(child) for child in children]
    operators = next((operators for operators, _ in found if operators), ())
    operator = next((operator for _, operator in found if operator), None)
    is_lost = name in operators and all(child.isStreaming() for child in children)
    return operators, operator or (name if is_lost else None)


def _uses_twice(plan: str) -> bool:
    """Return whether one DataFrame feeds two stateful stages: the second one's shuffle has no watermark
    then.
    """
    watermarks = re.findall(rf"{_WATERMARK} ([0-9a-f-]{{36}})", plan)
    return "TransformWithState" in plan and len(set(watermarks)) < len(watermarks)


class _Notes:
    """Spark's listener, as its Java interface.

    PySpark's own listener makes a Python object of every progress report, at 0.2 s of processor time per
    micro-batch: for each name of a package, Py4J asks the JVM whether it is a class, and the JVM searches all
    of its jars.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Leave notes and warn, before the query asks its sources for anything."""
        running = self._spark.streams.get(event.id().toString())
        query: Any = running._jsq.streamingQuery()  # type: ignore[union-attr]  # it has just been started
        if (operator := _lost_behind_matches(query.analyzedPlan())[1]) is not None:
            warn(_TWO_WATERMARKS if operator == _WATERMARK else _NO_ROWS.format(operator=operator))
        if _uses_twice(query.analyzedPlan().toString()):
            warn(_TWICE)
        leaves = query.analyzedPlan().collectLeaves()
        for leaf in (leaves.apply(i) for i in range(leaves.size())):
            if leaf.getClass().getSimpleName() != "StreamingRelationV2" or leaf.sourceName() != "spaseq":
                continue
            note = _note(dict(leaf.extraOptions().asCaseSensitiveMap()))
            if query.trigger().toString() == _AVAILABLE_NOW:
                note.parent.mkdir(mode=0o700, exist_ok=True)
                note.touch()
            else:
                note.unlink(missing_ok=True)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    class Java:
        """The name of the Java interface, for Py4J."""

        implements: Final = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)

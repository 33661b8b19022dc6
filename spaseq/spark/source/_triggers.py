"""What the driver does when a streaming query starts, before its sources are asked for anything.

``trigger(availableNow=True)``: a source that Spark asks only once must learn that it is to give all.
Spark asks a Python source for its latest offset without saying how the query is triggered; for this trigger
just once, so that what a micro-batch may take would be all that is read. So the driver leaves a note under
the source's options, and the source looks for it.

Operators with a state behind the matches of a stream get no watermark from Spark: a warning says so.
"""

from __future__ import annotations

import json
import os
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

#: Operators that keep a state of what streams bring.
_STATEFUL: Final = (
    "Aggregate",
    "Join",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "FlatMapGroupsWithState",
)

_NO_ROWS: Final = (
    "behind matches of a stream Spark gives {operator} no watermark, so that it brings no rows and no error: "
    "write the matches to a table and read that as a stream, or aggregate in foreachBatch "
    "(docs/spark.md, Aggregates and joins behind matches)"
)

_listening: WeakSet[SparkSession] = WeakSet()


def listen(spark: SparkSession) -> None:
    """From now on notes are left for the sources of a session's queries."""
    if spark not in _listening:
        gateway: Any = SparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # PySpark's
        java = gateway.jvm.org.apache.spark.sql.streaming
        spark.streams._jsqm.addListener(java.PythonStreamingQueryListenerWrapper(_Notes(spark)))
        _listening.add(spark)


def takes_all(options: Mapping[str, str]) -> bool:
    """Whether the query that was started with a source of these options is to read everything at once."""
    return _note(options).exists()


def _note(options: Mapping[str, str]) -> Path:
    """Where the note for a source is: on this machine, in a folder of this user's."""
    given = sorted((name.lower(), value) for name, value in options.items())
    key = blake2b(json.dumps(given).encode(), digest_size=16).hexdigest()
    return Path(tempfile.gettempdir(), f"spaseq-{os.getuid()}-available-now", key)


def _behind_matches(plan: Any) -> tuple[bool, str | None]:
    """Whether a plan has the stateful stage of a query, and which operator with a state is behind it."""
    if plan.nodeName().startswith("TransformWithState"):
        return True, None
    children = [plan.children().apply(i) for i in range(plan.children().size())]
    found = [_behind_matches(child) for child in children]
    if not any(has for has, _ in found):
        return False, None
    operator = next((name for _, name in found if name), None)
    is_stateful = plan.nodeName() in _STATEFUL and all(child.isStreaming() for child in children)
    return True, operator or (plan.nodeName() if is_stateful else None)


class _Notes:
    """Spark's listener as Java has it.

    PySpark's own makes a Python object of every progress, at 0.2 s of processor time a micro-batch: Py4J asks
    the JVM for each name of a package whether it is a class, and the JVM then looks into all of its jars.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Before the query asks its sources for anything."""
        running = self._spark.streams.get(event.id().toString())
        query: Any = running._jsq.streamingQuery()  # type: ignore[union-attr]  # it has just been started
        if (operator := _behind_matches(query.analyzedPlan())[1]) is not None:
            warn(_NO_ROWS.format(operator=operator))
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
        """Nothing to say."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Nothing to say."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Nothing to say."""

    class Java:
        """As Py4J wants to be told."""

        implements: Final = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)

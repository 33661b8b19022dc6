"""Checkpoints in object stores, by Spark's own committer for stores that know no rename."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from spaseq.errors import SpaseqWarning

#: Which artefact has the committer; its version is Spark's, or one of the same minor version.
CLOUD: Final = "org.apache.spark:spark-hadoop-cloud_2.13"

_SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
_ABORTABLE: Final = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
#: What Spark takes unless told, and what ``session`` takes for a local disk: they rename.
_RENAMING: Final = (".FileContextBasedCheckpointFileManager", ".FileSystemBasedCheckpointFileManager")


@contextmanager
def committing(spark: SparkSession, checkpoint: str | Path) -> Iterator[None]:
    """Streams that are started within write this checkpoint as its file system can.

    In a bucket (``s3a:``) a file is uploaded as a whole or not at all, where the session has the committer
    for it, and nothing was set by hand. Without it, a file gets its name by a copy and a deletion: a warning.
    """
    known: str | None = spark.conf.get(_SETTING, None)
    if not str(checkpoint).startswith("s3a:") or (known and not known.endswith(_RENAMING)):
        yield
        return
    if not _is_there(spark):
        warnings.warn(
            f"{checkpoint}: each file of this checkpoint is written under another name, copied and deleted, "
            f"which is slow, and leaves files behind where it is cut off: give the session {CLOUD}, of Spark "
            f"{'.'.join(spark.version.split('.')[:2])}, as packages=, which commits files in buckets at once",
            SpaseqWarning,
            stacklevel=4,
        )
        yield
        return
    spark.conf.set(_SETTING, _ABORTABLE)
    try:
        yield
    finally:
        # A query that has started keeps what was set.
        if known is None:
            spark.conf.unset(_SETTING)
        else:
            spark.conf.set(_SETTING, known)


def _is_there(spark: SparkSession) -> bool:
    jvm: Any = spark._jvm
    try:
        jvm.Thread.currentThread().getContextClassLoader().loadClass(_ABORTABLE)
    except Py4JError:
        return False
    return True

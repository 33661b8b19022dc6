"""Checkpoints: by which query one was begun, and how it is committed in stores that know no rename."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spaseq.chunks import unpack_header
from spaseq.errors import EngineError, warn
from spaseq.spark.stages._job import Identity, refused

#: Under which name the column ``json`` of a stream's answers says what a checkpoint of it is bound to.
JOB: Final = "spaseq.job"

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
        warn(
            f"{checkpoint}: each file of this checkpoint is written under another name, copied and deleted, "
            f"which is slow, and leaves files behind where it is cut off: give the session {CLOUD}, of Spark "
            f"{'.'.join(spark.version.split('.')[:2])}, as packages=, which commits files in buckets at once"
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


def require_begun_by(identity: Identity, spark: SparkSession, checkpoint: str | Path) -> None:
    """Raises EngineError if the state in a checkpoint is another query's, or of other background graphs."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/state/0/_metadata")
    if not path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path):
        return
    try:
        heads = spark.read.format("statestore").option("stateVarName", "head").load(str(checkpoint))
        head = heads.select("value.head").first()
    except PySparkException as error:
        if not str(error.getCondition()).startswith("STDS_"):
            raise
        return  # no micro-batch has ended yet
    reason = None if head is None else refused(unpack_header(bytes(head[0]))["job"], identity)
    if reason is not None:
        raise EngineError(f"{checkpoint}: {reason}")

"""Checkpoints: which query began one, what it holds, and how stores without a rename commit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spaseq.chunks import unpack_header
from spaseq.errors import EngineError, SourceError, warn
from spaseq.spark.sessions import frame_of, require_classic, require_streams
from spaseq.spark.source._blocks import arrow_schema
from spaseq.spark.source._files import join, names, normal, opened
from spaseq.spark.stages._job import Identity, bucket_numbers, refused

#: The metadata key of the column ``json`` under which a stream's answers keep their job's identity.
JOB: Final = "spaseq.job"

#: The artefact with the committer. Its version is Spark's, or one of the same minor version.
CLOUD: Final = "org.apache.spark:spark-hadoop-cloud_2.13"

#: The columns of ``state``.
_STATE: Final = "bucket int, events bigint, partial_matches bigint"

_SETTING: Final = "spark.sql.streaming.checkpointFileManagerClass"
_ABORTABLE: Final = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
#: Spark's default, and the one of ``session`` for a local disk. Both commit files by a rename.
_RENAMING: Final = (".FileContextBasedCheckpointFileManager", ".FileSystemBasedCheckpointFileManager")


@contextmanager
def committing(spark: SparkSession, checkpoint: str | Path) -> Iterator[None]:
    """Let streams that are started inside this context write the checkpoint as its file system can.

    In a bucket (``s3a:``) a file is uploaded whole or not at all, if the session has the committer for it. A
    committer that the user has configured is kept. Without a committer, a file is renamed by a copy and a
    deletion, and a warning says so.
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
        # A query that has started keeps these settings.
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
    """Raise EngineError if a checkpoint's state is of another query or of other background graphs."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/state/0/_metadata")
    if not path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path):
        return
    heads = _heads(spark, checkpoint)
    head = None if heads is None else heads.first()
    reason = None if head is None else refused(unpack_header(bytes(head[0]))["job"], identity)
    if reason is not None:
        raise EngineError(f"{checkpoint}: {reason}")


def _heads(spark: SparkSession, checkpoint: str | Path) -> DataFrame | None:
    """Return the heads of a checkpoint's buckets (``Bucket``); None if no micro-batch has ended yet."""
    try:
        heads = spark.read.format("statestore").option("stateVarName", "head").load(str(checkpoint))
    except PySparkException as error:
        if not str(error.getCondition()).startswith("STDS_"):
            raise
        return None
    return heads.select("value.head", "key.bucket")


def newest_commit(folder: str) -> str | None:
    """Return the last file that ``drive`` has committed in its folder of a checkpoint."""
    commits = [path for path in names(folder) if path.endswith(".commit")]
    return max(commits, key=lambda path: int(path.rpartition("/")[2].removesuffix(".commit")), default=None)


def _driven(spark: SparkSession, checkpoint: str | Path) -> DataFrame | None:
    """Do ``_heads`` for a stream that ``drive`` runs; None for another stream."""
    from spaseq.spark.stages._bucket import State

    try:
        commit = newest_commit(join(normal(checkpoint), "driver"))
    except SourceError:  # on a file system that only Spark knows
        return None
    if commit is None:
        return None
    with opened(commit) as file:
        head = State.unpacked(file.read())[0].head
    return frame_of(spark, pa.table({"head": [head], "bucket": [bucket_numbers(1)[0]]}))


def state(spark: SparkSession, checkpoint: str | Path) -> DataFrame:
    """Return what each bucket of a stream holds after its last micro-batch, also while the stream runs.

    ``checkpoint``: the stream's. Columns: ``bucket``, for each bucket that has had events; ``events``, how
    many are kept because they may still be part of a match; and ``partial_matches``. This is null for the
    matchers ``tecs`` and ``kmp`` (see ``spaseq explain``), which keep no single partial matches. Raises
    EngineError if no micro-batch has ended.
    """
    require_classic(spark)
    require_streams("state")
    heads = _driven(spark, checkpoint) or _heads(spark, checkpoint)
    if heads is None:
        raise EngineError(f"{checkpoint}: no micro-batch of matches has ended here")

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for row in batch.to_pylist():
                head = unpack_header(row["head"])
                number = bucket_numbers(head["job"]["buckets"]).index(row["bucket"])
                rows.append(head | {"bucket": number})
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(_STATE))

    return heads.mapInArrow(counted, _STATE)

"""A Spark session that is set up for spaseq."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spaseq.errors import EngineError
from spaseq.spark._quiet import without_noise
from spaseq.spark.source import register

_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOG: Final = Path(__file__).with_name("log4j2.properties")
#: The JVM only keeps the books, so its best compiler costs more than it gives; and chunks, of megabytes each,
#: shall be no exception for its collector of garbage.
_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:G1HeapRegionSize=32m"
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
#: On a local disk Hadoop starts processes (``chmod``, ``readlink``) for every file of a checkpoint, fewer by
#: the older of its interfaces; and what has changed in a state is less to write than its tables. Together a
#: third of what a small micro-batch costs.
_ON_ONE_MACHINE: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(
    master: str | None = None, *, partitions: int | None = None, memory: str = "2g", name: str = "spaseq"
) -> SparkSession:
    """The active session, or a new one with small defaults for one machine.

    ``partitions``: shuffle partitions, as many as there are cores unless given. Spark's own default of 200
    costs seconds in every micro-batch, and the number stands in checkpoints for good.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        prepare_session(active)
        return active
    # Workers run the interpreter that runs this.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.sql.shuffle.partitions", str(partitions or os.cpu_count() or 1))
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOG.as_uri()} {_JVM}")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.daemon.module", "spaseq.spark.daemon")
        .config(_PROVIDER, _ROCKSDB)
    )
    if master is not None:
        builder = builder.master(master)
        for option, value in _ON_ONE_MACHINE.items() if master.startswith("local[") else ():
            builder = builder.config(option, value)
    with without_noise():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    prepare_session(spark)
    return spark


def prepare_session(spark: SparkSession) -> None:
    """What every query needs: the source's name, and a state store that holds large values.

    Raises EngineError for a session of Spark Connect.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        raise EngineError("queries run on Spark's classic sessions, and this one is of Spark Connect")
    register(spark)
    spark.conf.set(_PROVIDER, _ROCKSDB)

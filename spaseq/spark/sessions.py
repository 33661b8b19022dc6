"""A Spark session that is set up for spaseq."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
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

#: Arguments of ``spark-submit`` that set a property of another name.
_SWITCHES: Final = {
    "--master": "spark.master",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}


def session(
    master: str | None = None,
    *,
    partitions: int | None = None,
    memory: str | None = None,
    name: str = "spaseq",
    packages: Sequence[str] = (),
    jars: Sequence[str | Path] = (),
) -> SparkSession:
    """The active session, or a new one with small defaults for one machine.

    What was submitted (``spark-submit --conf``, ``PYSPARK_SUBMIT_ARGS``, ``spark-defaults.conf``) stays as it
    is: the defaults fill in what it leaves open, and only parameters that are given here come before it.
    ``partitions``: shuffle partitions, as many as there are cores unless given. Spark's own default of 200
    costs seconds in every micro-batch, and the number stands in checkpoints for good. ``memory``: the
    driver's, 2g unless given. ``packages``, ``jars``: Maven coordinates and files for the JVM; EngineError
    if a session is active, which began without them.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        if packages or jars:
            raise EngineError("a Spark session is active: packages= and jars= are for one that begins")
        prepare_session(active)
        return active
    # Workers run the interpreter that runs this.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    options = {option: value for option, value in _defaults(master).items() if option not in submitted()}
    given = {
        "spark.sql.shuffle.partitions": partitions and str(partitions),
        "spark.driver.memory": memory,
        "spark.master": master,
        "spark.jars.packages": ",".join(packages),
        "spark.jars": ",".join(map(str, jars)),
    }
    options |= {option: value for option, value in given.items() if value}
    builder = SparkSession.builder.appName(name)
    for option, value in options.items():
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
    if str(spark.conf.get(_PROVIDER)).endswith(".HDFSBackedStateStoreProvider"):  # Spark's own default
        spark.conf.set(_PROVIDER, _ROCKSDB)


def _defaults(master: str | None) -> dict[str, str]:
    options = {
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG.as_uri()} {_JVM}",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "spaseq.spark.daemon",
        _PROVIDER: _ROCKSDB,
    }
    return options | (_ON_ONE_MACHINE if master is not None and master.startswith("local[") else {})


def submitted() -> frozenset[str]:
    """The names of Spark's properties that were set from outside of this process's program."""
    return frozenset(_of_the_submission() | _of_the_arguments() | _of_the_defaults())


def _of_the_submission() -> set[str]:
    """What ``spark-submit`` has put into the JVM that it started before this program."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return set()
    SparkContext._ensure_initialized()
    return {name for name, _ in SparkConf().getAll()}


def _of_the_arguments() -> set[str]:
    """What the arguments name with which PySpark starts a JVM itself."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    found = set()
    for option, value in pairwise([*words, ""]):
        name, is_joined, rest = option.partition("=")
        if name in ("--conf", "-c"):
            found.add((rest if is_joined else value).partition("=")[0])
        elif name in _SWITCHES:
            found.add(_SWITCHES[name])
    return found


def _of_the_defaults() -> set[str]:
    """What ``spark-defaults.conf`` names, where Spark looks for it."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder is None and "SPARK_HOME" in os.environ:
        folder = str(Path(os.environ["SPARK_HOME"]) / "conf")
    path = Path(folder or ".") / "spark-defaults.conf"
    if folder is None or not path.is_file():
        return set()
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {re.split(r"[\s=:]", line, maxsplit=1)[0] for line in lines if line and line[0] not in "#!"}

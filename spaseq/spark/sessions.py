"""A Spark session that is set up for spaseq."""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.utils import is_remote

from spaseq.errors import EngineError

#: PySpark's version, such as (4, 1).
VERSION: Final = tuple(map(int, pyspark.__version__.split(".")[:2]))
#: Since this version there are Python data sources and stateful processors.
_STREAMS: Final = (4, 0)

_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOG: Final = Path(__file__).with_name("log4j2.properties")
#: Chunks of megabytes must not count as oversized objects for the JVM's garbage collector.
_JVM: Final = "-XX:G1HeapRegionSize=32m"
#: The JVM does little here, so its best compiler costs more than it saves. Not with GraphFrames: their
#: searches run in the JVM, and take 1.4 times as long without it.
_BOOKKEEPING: Final = "-XX:TieredStopAtLevel=1"
#: Where a submitted program finds its JVM.
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
#: Two settings that together save a third of a small micro-batch's cost. On a local disk, Hadoop's older
#: interface starts fewer processes (``chmod``, ``readlink``) for each file of a checkpoint. And the changes
#: of a state are less to write than its tables.
_ON_ONE_MACHINE: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"org.apache.spark.sql.execution.streaming{'.checkpointing' if VERSION >= (4, 1) else ''}"
        ".FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


#: Options of ``spark-submit`` that are settings.
_FLAGS: Final = {
    "--master": "spark.master",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--packages": "spark.jars.packages",
    "--jars": "spark.jars",
}


def session(
    master: str | None = None,
    *,
    partitions: int | None = None,
    memory: str | None = None,
    name: str | None = None,
    packages: Sequence[str] = (),
    jars: Sequence[str | Path] = (),
) -> SparkSession:
    """Return the active session, or a new one with defaults for a small machine.

    Settings from ``spark-submit``, ``PYSPARK_SUBMIT_ARGS`` or ``spark-defaults.conf`` apply unless a
    parameter overrides them. ``partitions``: shuffle partitions, by default the number of cores. Spark's own
    default, 200, costs seconds in every micro-batch, and a checkpoint fixes the number for good. ``memory``:
    the driver's, by default 2g. ``packages``: Maven packages, as ``group:artifact:version``; ``jars``: their
    files. Raises EngineError if a JVM is running already and lacks these packages or jars.
    """
    if is_remote() or "SPARK_REMOTE" in os.environ:
        raise EngineError(_CONNECT)
    active = SparkSession.getActiveSession()
    if active is not None or _GATEWAY in os.environ:
        known = _of_jvm() if active is None else dict(active.sparkContext.getConf().getAll())
        _require(known, packages, jars)
        packages = jars = ()
        if active is not None:
            prepare_session(active)
            return active
    else:
        known = _said()
    # Workers run the interpreter that runs this.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    asked = {
        "spark.master": master,
        "spark.app.name": name,
        "spark.sql.shuffle.partitions": partitions and str(partitions),
        "spark.driver.memory": memory,
        "spark.jars.packages": _listed(known, "spark.jars.packages", packages),
        "spark.jars": _listed(known, "spark.jars", jars),
    }
    has_graphframes = any(
        "graphframes" in (asked[option] or known.get(option) or "")
        for option in ("spark.jars.packages", "spark.jars")
    )
    own = _defaults(
        master or known.get("spark.master"), _JVM if has_graphframes else f"{_JVM} {_BOOKKEEPING}"
    )
    builder = SparkSession.builder
    for option, value in {
        **{option: value for option, value in own.items() if option not in known},
        **{option: value for option, value in asked.items() if value},
    }.items():
        builder = builder.config(option, value)
    with without_noise():
        spark = builder.getOrCreate()
    if "spark.driver.extraJavaOptions" not in known:
        spark.sparkContext.setLogLevel("ERROR")
    prepare_session(spark)
    return spark


def _defaults(master: str | None, options: str) -> dict[str, str]:
    """Return the settings for one machine; ``options``: those of the JVM."""
    return {
        "spark.app.name": "spaseq",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG.as_uri()} {options}",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "spaseq.spark.daemon",
        _PROVIDER: _ROCKSDB,
        **(_ON_ONE_MACHINE if master is not None and master.startswith("local[") else {}),
    }


def _of_jvm() -> dict[str, str]:
    """Return the settings that this program was submitted with."""
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _said() -> dict[str, str]:
    """Return the settings from the environment for a JVM that has not started."""
    said: dict[str, str] = {}
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or Path(home) / "conf") / "spark-defaults.conf"
    for line in defaults.read_text().splitlines() if defaults.is_file() else ():
        option, _, value = re.sub(r"[\s=:]+", " ", line.strip(), count=1).partition(" ")
        if option.startswith("spark."):
            said[option] = value
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for word, after in pairwise(words):
        if word in ("--conf", "-c"):
            option, _, value = after.partition("=")
            said[option] = value
        elif word in _FLAGS:
            said[_FLAGS[word]] = after
    return said


def _listed(known: Mapping[str, str], option: str, more: Sequence[str | Path]) -> str | None:
    """Return the known values and ``more``, joined as Spark lists them; None if there are no more."""
    if not more:
        return None
    before = known[option].split(",") if known.get(option) else []
    return ",".join(dict.fromkeys([*before, *map(str, more)]))


def _require(known: Mapping[str, str], packages: Sequence[str], jars: Sequence[str | Path]) -> None:
    for option, asked in (("spark.jars.packages", packages), ("spark.jars", jars)):
        missing = [str(one) for one in asked if str(one) not in known.get(option, "").split(",")]
        if missing:
            raise EngineError(
                f"the JVM runs already without {', '.join(missing)}: submit with --conf "
                f"{option}={_listed(known, option, missing)}, or stop the session first"
            )


_CONNECT: Final = (
    "spaseq runs on Spark's classic sessions, and this one is of Spark Connect: submit the program "
    "(spark-submit), or start a session with master(…) and without SPARK_REMOTE"
)


def require_classic(known: SparkSession | DataFrame) -> None:
    """Raise EngineError for a session of Spark Connect, and for a DataFrame of one."""
    if type(known).__module__.startswith("pyspark.sql.connect."):
        raise EngineError(_CONNECT)


def require_streams(what: str) -> None:
    """Raise EngineError if PySpark is too old for ``what``."""
    if VERSION < _STREAMS:
        raise EngineError(f"{what} needs PySpark 4.0 or later, not {pyspark.__version__}: run a batch")


def register(spark: SparkSession) -> None:
    """Make ``format("spaseq")`` known to a session. Raises EngineError before PySpark 4.0."""
    require_classic(spark)
    require_streams('format("spaseq")')
    from spaseq.spark.source._triggers import listen
    from spaseq.spark.source.datasource import SpaseqDataSource

    spark.dataSource.register(SpaseqDataSource)
    listen(spark)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return the rows of an Arrow table as a DataFrame."""
    if VERSION >= _STREAMS:
        return spark.createDataFrame(table)
    return spark.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema))


def table_of(rows: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame as an Arrow table."""
    if VERSION >= _STREAMS:
        return rows.toArrow()
    return pa.Table.from_batches(rows._collect_as_arrow(), to_arrow_schema(rows.schema))  # type: ignore[operator]


def prepare_session(spark: SparkSession) -> None:
    """Make the source known, and choose a state store that holds large values.

    Raises EngineError for a session of Spark Connect.
    """
    require_classic(spark)
    if VERSION >= _STREAMS:
        register(spark)
    if str(spark.conf.get(_PROVIDER)).endswith(".HDFSBackedStateStoreProvider"):  # Spark's own default
        spark.conf.set(_PROVIDER, _ROCKSDB)


# --- standard error without Spark's own notices --------------------------------------------------

#: Beginnings of lines that tell a user nothing.
_NOISE: Final = (
    b"NOTE: Picked up JDK_JAVA_OPTIONS",
    b"WARNING: Using incubator modules",
    b"Starting Streaming TransformWithState",
    b"Streaming TransformWithState",
    # Every query starts a Python process (see ``_processor``). It ends before Spark has answered it.
    b'Exception in thread "stateConnectionListenerThread"',
)

#: Beginnings of lines that continue an exception.
_GOING_ON: Final = (b"\tat ", b"\t... ", b"Caused by: ", b"\tSuppressed: ")


def told(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines that tell a user something."""
    is_noise = False
    for line in lines:
        is_noise = line.startswith(_NOISE) or (is_noise and line.startswith(_GOING_ON))
        if line.strip() and not is_noise:
            yield line


@contextmanager
def without_noise() -> Iterator[None]:
    """Start processes without the notices of Spark and its JVM on standard error."""
    try:
        real = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    reading, writing = os.pipe()

    def copy() -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in told(lines):
                os.write(real, line)

    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=copy, daemon=True).start()
    try:
        yield
    finally:
        os.dup2(real, 2)

"""One Spark session for all tests; they are skipped where there is no PySpark."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("pyspark", "pandas", "pyarrow", "google.protobuf")


def _missing() -> list[str]:
    found = []
    for name in NEEDED:
        try:
            if importlib.util.find_spec(name) is None:
                found.append(name)
        except ModuleNotFoundError:
            found.append(name)
    return found


def pytest_ignore_collect(collection_path) -> bool | None:  # type: ignore[no-untyped-def]
    """Test files of this folder import pyspark."""
    return True if collection_path.name.startswith("test_spark") and _missing() else None


#: Tests that need a JVM and are not slow: a batch shows that the host works.
QUICK = ("test_spark.py::test_a_batch",)


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that use the session are slow, but for one."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and not item.nodeid.endswith(QUICK):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores."""
    from spaseq.spark.sessions import session

    # The JVM's best compiler costs more than it gives in a short life. Processes that tests start inherit it.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    with warnings.catch_warnings():
        # PySpark leaves sockets to its JVM open.
        warnings.simplefilter("ignore", ResourceWarning)
        made = session("local[2]", partitions=2, memory="1g")
        yield made
        made.stop()

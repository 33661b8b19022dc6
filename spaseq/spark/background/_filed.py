"""Background graphs as files that Spark brings to every machine.

The stateful stage of a stream gets them so: the process that Spark starts to ask a processor for its states
reads no broadcast, and PySpark makes one of every function that takes more than 1 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkFiles
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Filed:
    """Bytes of a file that Spark has brought; for a task to read."""

    name: str

    @property
    def value(self) -> bytes:
        """The bytes."""
        return Path(SparkFiles.get(self.name)).read_bytes()


def filed(spark: SparkSession, data: bytes) -> Filed:
    """These bytes, for all tasks to come. The file is named by a hash of them, and there once."""
    name = f"spaseq-{blake2b(data, digest_size=16).hexdigest()}.kb"
    path = Path(_folder().name) / name
    if not path.exists():
        path.write_bytes(data)
    spark.sparkContext.addFile(str(path))
    return Filed(name)


@lru_cache(maxsize=1)
def _folder() -> TemporaryDirectory[str]:
    """Where machines fetch them from as long as this process lives."""
    return TemporaryDirectory(prefix="spaseq-")

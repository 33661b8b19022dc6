"""Standard error without what Spark says there of itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: How lines begin that tell a user nothing.
_NOISE: Final = (
    b"NOTE: Picked up JDK_JAVA_OPTIONS",
    b"WARNING: Using incubator modules",
    b"Starting Streaming TransformWithState",
    b"Streaming TransformWithState",
)


@contextmanager
def without_noise() -> Iterator[None]:
    """Launches processes whose standard error leaves out what Spark and its JVM say of themselves."""
    try:
        real = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    reading, writing = os.pipe()

    def copy() -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                if line.strip() and not line.startswith(_NOISE):
                    os.write(real, line)

    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=copy, daemon=True).start()
    try:
        yield
    finally:
        os.dup2(real, 2)

"""Standard error without what Spark says there of itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

#: How lines begin that tell a user nothing.
_NOISE: Final = (
    b"NOTE: Picked up JDK_JAVA_OPTIONS",
    b"WARNING: Using incubator modules",
    b"Starting Streaming TransformWithState",
    b"Streaming TransformWithState",
    # Whose process of Python ends before it is answered: every query starts one, see ``_processor``.
    b'Exception in thread "stateConnectionListenerThread"',
)

#: How lines begin that go on with an exception.
_GOING_ON: Final = (b"\tat ", b"\t... ", b"Caused by: ", b"\tSuppressed: ")


def told(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that tell a user something."""
    is_noise = False
    for line in lines:
        is_noise = line.startswith(_NOISE) or (is_noise and line.startswith(_GOING_ON))
        if line.strip() and not is_noise:
            yield line


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
            for line in told(lines):
                os.write(real, line)

    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=copy, daemon=True).start()
    try:
        yield
    finally:
        os.dup2(real, 2)

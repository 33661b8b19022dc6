"""Answers that are looked for when they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

from spaseq.errors import SpaseqError

Answer = TypeVar("Answer")


class Asked(Iterator[Answer], Generic[Answer]):
    """The answers of a search, one after the other, for one thread or several: each comes once.

    A search that an exception has broken off cannot go on: to ask for more is a SpaseqError.
    """

    def __init__(self, found: Iterator[Answer]) -> None:
        self._found = found
        self._lock = threading.RLock()
        self._broken: str | None = None

    def __next__(self) -> Answer:
        with self._lock:
            if self._broken is not None:  # or the search would seem to have come to its end
                raise SpaseqError(f"{self._broken} broke off this search, so it cannot go on: ask anew")
            try:
                return self._next()
            except StopIteration:
                raise
            except BaseException as error:
                self._broken = type(error).__name__
                raise

    def _next(self) -> Answer:
        return next(self._found)

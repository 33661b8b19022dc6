"""A running search: the memory that it may take, a flag that stops it, and an iterator over its results."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

import numpy as np

from spaseq.errors import LimitError, SpaseqError
from spaseq.limits import Limits
from spaseq.paths.language.expression import Expression
from spaseq.paths.search._kernel import Ids

_UNLIMITED: Final = 1 << 62

#: The memory left is divided among this many threads of a query.
_THREADS: Final = 8

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class Memory:
    """The memory of one query, in bytes; ``left`` may still be taken."""

    __slots__ = ("_limits", "_query", "left", "taken")

    def __init__(self, limits: Limits, query: str | Expression) -> None:
        self._limits = limits
        self._query = query
        self.taken = 0
        self.left = _UNLIMITED if limits.query_bytes is None else limits.query_bytes

    def take(self, size: int, what: str) -> None:
        """Count ``size`` more bytes, for ``what``. Raises LimitError if fewer are left."""
        if size > self.left:
            raise self.error(size, what)
        self.taken += size
        self.left -= size

    def give(self, size: int) -> None:
        """Free ``size`` bytes again."""
        self.taken -= size
        self.left += size

    def share(self) -> Memory:
        """Return the memory of one of several threads of the query: a part of what is left."""
        shared = Memory(self._limits, self._query)
        shared.left = self.left // _THREADS
        return shared

    def error(self, size: int, what: str) -> LimitError:
        """Return the error for too many bytes."""
        asked = (
            f"{in_bytes(self.taken + size)} of memory for {self._query}, {in_bytes(size)} of them for {what},"
        )
        return self._limits.error("query_bytes", asked)


def in_bytes(size: int) -> str:
    """Return a number of bytes as readable text.

    >>> in_bytes(900), in_bytes(3 << 29)
    ('900 bytes', '1.5 GiB')
    """
    scaled, unit = float(size), 0
    while scaled >= 1024 and unit + 1 < len(_UNITS):
        scaled, unit = scaled / 1024, unit + 1
    return f"{scaled:.1f} {_UNITS[unit]}" if unit else f"{size} bytes"


class Stop:
    """A signal that ends searches. Kernels read ``flag``, ``(1,)``, which is 1 once they must end.

    Any thread may call ``set``. Searches read the flag every few microseconds.
    """

    __slots__ = ("flag", "reason")

    def __init__(self) -> None:
        self.flag: Ids = np.zeros(1, dtype=np.int64)
        self.reason = ""

    def set(self, reason: str) -> None:
        """End the searches with a LimitError that gives this reason."""
        self.reason = reason
        self.flag[0] = 1

    def check(self) -> None:
        """Raise LimitError (``limit="seconds"``) if the searches are to end."""
        if self.reason:
            raise LimitError(self.reason, limit="seconds")


_NEVER: Final = Stop()
_CURRENT: Final[ContextVar[Stop]] = ContextVar("spaseq-stop", default=_NEVER)


def current() -> Stop:
    """Return the ``Stop`` of searches that begin in this context; outside ``stopped_by``, one never set."""
    return _CURRENT.get()


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let ``stop`` end the searches that begin in the ``with`` block."""
    token = _CURRENT.set(stop)
    try:
        yield
    finally:
        _CURRENT.reset(token)


Answer = TypeVar("Answer")


class AnswerIterator(Iterator[Answer], Generic[Answer]):
    """An iterator over the results of a search. Several threads may share it; each result is returned once.

    After an exception the search cannot go on: reading more raises SpaseqError.
    """

    def __init__(self, found: Iterator[Answer]) -> None:
        self._found = found
        self._lock = threading.RLock()
        self._broken: str | None = None

    def __next__(self) -> Answer:
        with self._lock:
            if self._broken is not None:  # otherwise the search would seem to be exhausted
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

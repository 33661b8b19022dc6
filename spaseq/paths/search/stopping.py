"""Ending the searches of a thread from outside: a flag that kernels and loops look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import numpy as np

from spaseq.errors import LimitError
from spaseq.paths.search._kernel import Ids


class Stop:
    """Whether searches are to end. ``flag``, ``(1,)``, is what kernels read: 1 once they are to end.

    Any thread may call ``set``. The searches look at it every few microseconds.
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
    """Return what ends the searches that begin here; without ``stopped_by`` nothing does."""
    return _CURRENT.get()


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let ``stop`` end the searches that begin in the ``with`` block."""
    token = _CURRENT.set(stop)
    try:
        yield
    finally:
        _CURRENT.reset(token)

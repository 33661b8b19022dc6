"""Who may use an engine now: one thread at a time, and nobody in a process that was forked off meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from spaseq.errors import EngineError


class Turn:
    """The lock of an engine and its handles, to be taken after ``check``: ``with turn.lock``.

    It can be taken again by the thread that has it, as in a callback. ``used`` is set by the first event:
    from then on a fork leaves what nobody can go on with.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.used = False
        self._is_copy = False
        self._aside: int | None = None
        _alive.add(self)

    def check(self) -> None:
        """Raises ``EngineError`` in a process that was forked off after the first event, and ``aside``."""
        if self._is_copy:
            raise EngineError(
                "this engine was in use when the process was forked: make a new one in the child process, "
                "or fork before the first event"
            )
        if self.is_aside:
            raise EngineError("inside dead_letters only push can be used of the engine")

    @property
    def is_aside(self) -> bool:
        """Whether this thread is in ``aside``."""
        return self._aside is not None and self._aside == threading.get_ident()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Around a callback of a thread that reads, and may wait for nobody. One thread at a time."""
        self._aside = threading.get_ident()
        try:
            yield
        finally:
            self._aside = None

    def after_fork(self) -> None:
        """In the child: whoever held the lock in another thread is not here to release it."""
        self._is_copy = self.used or not self.lock.acquire(blocking=False)
        self.lock = threading.RLock()


_alive: WeakSet[Turn] = WeakSet()


def _after_fork() -> None:
    for turn in list(_alive):
        turn.after_fork()


if hasattr(os, "register_at_fork"):  # where there is fork at all
    os.register_at_fork(after_in_child=_after_fork)

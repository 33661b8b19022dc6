"""Who may use an engine now: one thread at a time, and nobody in a process that was forked off meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

from spaseq.engine.delivered.raised import Raised
from spaseq.errors import EngineError
from spaseq.interrupts import DEFERRAL

#: So many queries are not worth looking for those that are over.
_SLACK: Final = 16


class Turn:
    """The lock of an engine and its handles, to be taken after ``check``: ``with turn.deferral, turn.lock``.

    It can be taken again by the thread that has it, as in a callback. ``deferral``: interrupts wait until the
    lock was released. ``used`` is set by the first event: from then on a fork leaves what nobody can go on
    with.

    Pushed events may wait until somebody asks what became of them. ``is_behind``: some do; ``catch_up`` does
    then what is to be done with them, for who has the lock. ``raised``: what callbacks have raised.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.deferral = DEFERRAL
        self.used = False
        self.is_behind = False
        self.catch_up: Callable[[], None] = _nothing
        self.raised = Raised()
        self._prompt: list[Callable[[], bool]] = []
        self._worth_pruning = _SLACK
        self._is_copy = False
        self._aside: int | None = None
        #: Whether ``check`` may raise at all.
        self.is_odd = False
        _alive.add(self)

    def check(self) -> None:
        """Raises ``EngineError`` in a process that was forked off after the first event, and ``aside``."""
        if self._is_copy:
            raise EngineError(
                "this engine was in use when the process was forked: make a new one in the child process, "
                "or fork before the first event"
            )
        if self._aside is not None and self.is_aside:
            raise EngineError("inside dead_letters only push can be used of the engine")

    @property
    def is_aside(self) -> bool:
        """Whether this thread is in ``aside``."""
        return self._aside is not None and self._aside == threading.get_ident()

    def prompts(self, is_over: Callable[[], bool]) -> None:
        """Until ``is_over``, no event may wait: somebody is told of what it does, or could tell when."""
        if len(self._prompt) >= self._worth_pruning:
            self._prompt = [other for other in self._prompt if not other()]
            self._worth_pruning = max(_SLACK, 2 * len(self._prompt))
        self._prompt.append(is_over)

    @property
    def may_wait(self) -> bool:
        """Whether nobody can tell when an event is worked on."""
        prompt = self._prompt
        while prompt and prompt[-1]():
            prompt.pop()
        return not prompt

    def flush(self) -> None:
        """Before anybody is told anything: all that was pushed has come to the queries."""
        if self.is_behind and not self.is_aside:
            with self.deferral, self.lock:
                self.catch_up()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Around a callback of a thread that reads, and may wait for nobody. One thread at a time."""
        self.is_odd = True
        self._aside = threading.get_ident()
        try:
            yield
        finally:
            self._aside = None
            self.is_odd = self._is_copy

    def after_fork(self) -> None:
        """In the child: whoever held the lock in another thread is not here to release it."""
        self._is_copy = self.used or not self.lock.acquire(blocking=False)
        self.lock = threading.RLock()
        if self._is_copy:
            self.is_odd, self.is_behind = True, False


def _nothing() -> None:
    """Where no event waits."""


_alive: WeakSet[Turn] = WeakSet()


def _after_fork() -> None:
    for turn in list(_alive):
        turn.after_fork()


if hasattr(os, "register_at_fork"):  # where there is fork at all
    os.register_at_fork(after_in_child=_after_fork)

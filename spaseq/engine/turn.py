"""The engine's lock: one thread at a time, not in a fork; and exceptions of callbacks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from traceback import format_exception_only
from typing import Final
from weakref import WeakSet

from spaseq.errors import EngineError
from spaseq.interrupts import DEFERRAL

#: After this many further exceptions, no more are noted.
_NOTED: Final = 64
_AGAIN: Final = "A callback raised again meanwhile"


class Raised:
    """The exceptions of callbacks during a call: the first one, with the others as notes.

    A callback's exception must not keep events from queries, nor matches from other callbacks. So exceptions,
    KeyboardInterrupt included, are collected here and raised when the call has done everything else. Any
    thread may ``add``.
    """

    def __init__(self) -> None:
        self.first: BaseException | None = None
        self._lock = Lock()

    def add(self, error: BaseException) -> None:
        """Collect an exception. Never raises, even if the exception's text raises.

        >>> raised = Raised()
        >>> raised.add(KeyError("a"))
        >>> raised.add(ValueError("b"))
        >>> raised.first.__notes__
        ['A callback raised again meanwhile: ValueError: b']
        """
        with self._lock:
            if self.first is None:
                self.first = error
            elif self.first is not error:
                _note(self.first, error)

    def take(self) -> BaseException | None:
        """Return the first exception, if there is one, and forget all."""
        with self._lock:
            first, self.first = self.first, None
        return first

    def join(self, interrupt: BaseException) -> None:
        """Add all as notes to an interrupt outside of a callback, which ends the call."""
        first = self.take()
        if first is not None and first is not interrupt:
            _note(interrupt, first)


def _note(first: BaseException, then: BaseException) -> None:
    """Add a note to an exception that says which one came after it."""
    _add_note(first, f"{_AGAIN}: {format_exception_only(then)[0].strip()}")
    for text in _notes(then):
        _add_note(first, text)


def _add_note(raised: BaseException, text: str) -> None:
    noted = len(_notes(raised))
    if noted <= _NOTED:
        raised.add_note(text if noted < _NOTED else f"{_AGAIN}, and again")


def _notes(raised: BaseException) -> list[str]:
    return [text for text in getattr(raised, "__notes__", ()) if text.startswith(_AGAIN)]


class Turn:
    """The lock of an engine and its handles: ``check``, then ``with turn.deferral, turn.lock``.

    The lock is reentrant, as callbacks need. ``deferral``: interrupts are deferred until the lock is
    released. ``used`` is set by the first event: after that, a forked child cannot use the engine.

    Pushed events may wait until a result is read. ``is_behind``: some events wait. ``catch_up`` processes
    them, with the lock held. ``raised``: the exceptions of callbacks.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.deferral = DEFERRAL
        self.used = False
        self.is_behind = False
        self.catch_up: Callable[[], None] = _nothing
        self.raised = Raised()
        #: How many active queries have listeners that would observe a delay; if there are any, no event
        #: waits.
        self.prompt = 0
        self._is_copy = False
        self._aside: int | None = None
        #: Whether ``check`` can raise at all.
        self.is_odd = False
        _alive.add(self)

    def check(self) -> None:
        """Raise ``EngineError`` in a process that was forked after the first event, and in ``aside``."""
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

    def flush(self) -> None:
        """Process all waiting events, before a result is returned."""
        if self.is_behind and not self.is_aside:
            with self.deferral, self.lock:
                self.catch_up()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let this thread run a callback that must not wait for the lock. One thread at a time."""
        self.is_odd = True
        self._aside = threading.get_ident()
        try:
            yield
        finally:
            self._aside = None
            self.is_odd = self._is_copy

    def after_fork(self) -> None:
        """Reset the lock in a forked child: a thread that held it does not exist there."""
        self._is_copy = self.used or not self.lock.acquire(blocking=False)
        self.lock = threading.RLock()
        if self._is_copy:
            self.is_odd, self.is_behind = True, False


def _nothing() -> None:
    """Do nothing: no event waits."""


_alive: WeakSet[Turn] = WeakSet()


def _after_fork() -> None:
    for turn in list(_alive):
        turn.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)

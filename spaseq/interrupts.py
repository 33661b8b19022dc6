"""Deferred interrupts: Ctrl-C raises KeyboardInterrupt at the end of a turn, not in the middle of an event.

While the main thread has a turn, SIGINT is only noted. A turn installs a signal handler for that if Python's
own is installed, and removes it at its end. Any other handler stays installed. If another handler raises
inside a turn (asyncio's does at the second Ctrl-C), the queries of the engine end.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the functions of ``signal`` take ten times as long
import os
import sys
import threading
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGINT, SIGTERM, default_int_handler
from types import FrameType
from typing import Final

_getsignal, _setsignal = _signal.getsignal, _signal.signal
_getframe = sys._getframe

#: Seconds between two checks for an interrupt (a guess: a delay that users do not notice).
_LONGEST: Final = 0.05


class Terminated(KeyboardInterrupt):  # no error, like Ctrl-C
    """SIGTERM, which service managers send instead of Ctrl-C."""


class Deferral:
    """A context in which the main thread only notes interrupts; the outermost one raises as it ends.

    A second interrupt does not wait: a callback may never return. There is one deferral in a process.

    An exception of another signal's handler may occur after a context is entered and before its block begins.
    Such a context never exits. To recognize it, the frame that entered the outermost context is kept. Once
    this frame has returned, the context is forgotten.
    """

    __slots__ = ("_depth", "_frame", "_held", "_is_ours", "_main", "handler", "is_kept", "noted")

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        #: The signal handler, for SIGINT and SIGTERM. Outside of the context it raises at once.
        self.handler: Final = self._handle
        #: Whether the handler was installed by other code, which also removes it.
        self.is_kept = False
        self._depth = self._held = 0
        #: The exception to raise at the end of the outermost context.
        self.noted: type[KeyboardInterrupt] | None = None
        # Whether this context has installed the handler, and the frame that has entered it.
        self._is_ours = False
        self._frame: FrameType | None = None

    def __enter__(self) -> None:
        handler = _getsignal(SIGINT)
        if handler is default_int_handler:
            if get_ident() == self._main:
                # First, so that the handler finds them: an interrupt may come with the next call.
                self._depth, self._held, self.noted, self._is_ours = 1, 0, None, True
                self._frame = _getframe(1)
                _setsignal(SIGINT, self.handler)
        elif (handler is self.handler or self.is_kept) and get_ident() == self._main:
            if self._is_ours and self._has_returned(_getframe(1)):
                self._depth, self._held, self.noted, self._frame = 1, 0, None, _getframe(1)
            else:
                self._depth += 1

    def __exit__(self, *_: object) -> None:
        is_counted = self.noted is not None or self.is_kept or _getsignal(SIGINT) is self.handler
        if not is_counted or get_ident() != self._main:
            return
        self._depth -= 1
        if self._depth > 0:
            return
        noted = self._reset()
        if noted is not None:
            raise noted

    def _has_returned(self, frame: FrameType | None) -> bool:
        """Return whether the frame of the outermost context is not among the callers of a frame."""
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is None

    def _reset(self) -> type[KeyboardInterrupt] | None:
        """Remove the handler if it is ours; return the noted exception."""
        noted, self.noted, self._depth, self._frame = self.noted, None, 0, None
        if self._is_ours:
            if _getsignal(SIGINT) is self.handler:
                _setsignal(SIGINT, default_int_handler)
            self._is_ours = False  # after the removal: an interrupt in between removes the handler, too
        return noted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        kind = Terminated if number == SIGTERM else KeyboardInterrupt
        is_inside = self._depth > 0 and not (self._is_ours and self._has_returned(frame))
        if is_inside and self.noted is None:
            self.noted = kind
            return
        self._reset()
        raise kind

    @property
    def is_due(self) -> bool:
        """Whether this thread must end its turn as soon as its queries are consistent."""
        return self.noted is not None and not self._held and get_ident() == self._main

    @contextmanager
    def held(self) -> Iterator[None]:
        """Finish a block, however long it takes, as when an engine closes or commits."""
        is_main = get_ident() == self._main
        with self:
            if is_main and self._depth == 1:
                self._frame = _getframe(2)  # the caller: this generator's frame is on no stack while it waits
            self._held += is_main
            try:
                yield
            finally:
                self._held -= is_main

    def after_fork(self) -> None:
        """In the child, the thread that has forked is the main thread."""
        if self._main != get_ident():
            self._main = get_ident()
            self._reset()


class Pace:
    """How many events are processed between two checks for an interrupt: as many as take 25 to 50 ms.

    >>> pace = Pace(1_000, most=4_000)
    >>> pace.took(0.01)
    >>> pace.size
    2000
    """

    def __init__(self, size: int, *, most: int) -> None:
        self.size, self._most = size, most

    def took(self, seconds: float) -> None:
        """Adapt the size to the seconds that this many events took."""
        if seconds > _LONGEST:
            self.size = max(1, self.size // 2)
        elif seconds < _LONGEST / 2:
            self.size = min(2 * self.size, self._most)


#: The process's deferral.
DEFERRAL: Final = Deferral()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=DEFERRAL.after_fork)

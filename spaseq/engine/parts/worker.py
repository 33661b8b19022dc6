"""A thread that does what coroutines ask of it, in the order of asking."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class Worker:
    """A daemon thread that does calls in their order; it is there when it is needed, until ``end``.

    ``idle`` is done whenever nothing else is to do. ``is_over``: its engine is closed. Whatever a call or
    ``idle`` raises is logged, and the thread goes on. If it dies nevertheless, another one takes its place.
    """

    def __init__(self, idle: Callable[[], None]) -> None:
        self.is_over = False
        self._idle = idle
        self._changed = threading.Condition()
        self._calls: deque[Callable[[], None]] = deque()
        self._is_running = self._is_ending = False

    def put(self, do: Callable[[], None]) -> None:
        """Something to be done, that raises nothing. After ``end``, too: then the thread ends with it."""
        with self._changed:
            self._calls.append(do)
            if self._is_running:
                self._changed.notify()
            else:
                self._start()

    def end(self) -> None:
        """Lets the thread end when it has done what it was told."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()

    async def awaited(self, do: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """The result of something that is done when it is its turn. See ``AsyncEngine.call``."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = _Call(do, undo, future, self)
        self.put(call)
        try:
            return await future
        except asyncio.CancelledError:
            with self._changed, suppress(ValueError):  # it has begun
                self._calls.remove(call)
            raise

    def _start(self) -> None:
        """Begin another thread. Must be called with ``_changed`` held."""
        threading.Thread(target=self._run, name="spaseq engine", daemon=True).start()
        self._is_running = True

    def _run(self) -> None:
        is_ended = False
        try:
            while not is_ended:
                is_ended = self._do_next()
        finally:
            if not is_ended:  # not even what went wrong could be logged
                with self._changed:
                    self._is_running = False
                    if self._calls:
                        self._start()

    def _do_next(self) -> bool:
        """Do the next call; return whether this was the last one."""
        with self._changed:
            while not self._calls:
                if self._is_ending:
                    self._is_running = False
                    return True
                self._changed.wait()
            do = self._calls.popleft()
        try:
            do()
        except BaseException as error:
            failed(error)
            if isinstance(do, _Call):
                do.fail(error)
        del do  # it may hold the object whose end ends this thread
        if not self._calls:
            try:
                self._idle()
            except BaseException as error:
                failed(error)
        return False


class _Call(Generic[T]):
    """Something that is to be done in a worker's thread, and awaited in an event loop."""

    def __init__(
        self,
        do: Callable[[], T],
        undo: Callable[[T], object] | None,
        future: asyncio.Future[T],
        worker: Worker,
    ) -> None:
        self._future = future
        self._do = do
        self._undo = undo
        self._worker = worker

    def __call__(self) -> None:
        try:
            result = self._do()
        except BaseException as error:  # which is the caller's
            self.fail(error)
        else:
            tell(self._future, partial(self._future.set_result, result), partial(self._unwanted, result))

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits that there is no result, as what there was could not be told."""
        tell(self._future, partial(self._future.set_exception, _awaitable(error)))

    def _unwanted(self, result: T) -> None:
        """Whoever asked is gone."""
        if (undo := self._undo) is not None:
            self._worker.put(lambda: quietly(lambda: undo(result)))


def tell(
    future: asyncio.Future[T], finish: Callable[[], object], unwanted: Callable[[], None] | None = None
) -> None:
    """Finishes a future of another thread's loop; if it is cancelled, or the loop closed, ``unwanted``."""

    def finished() -> None:
        if not future.done():
            finish()
        elif unwanted is not None:
            unwanted()

    try:
        future.get_loop().call_soon_threadsafe(finished)
    except RuntimeError:  # the loop is closed, and nobody is there
        if unwanted is not None:
            unwanted()


def failed(error: BaseException) -> None:
    """Log an exception that reaches no caller. The thread goes on."""
    with suppress(Exception):
        _LOG.error("a call of the engine's thread failed", exc_info=error)


def _awaitable(error: BaseException) -> BaseException:
    """Return an exception that a future takes: StopIteration becomes a RuntimeError, as in a generator."""
    if not isinstance(error, StopIteration):
        return error
    raised = RuntimeError("StopIteration was raised in the engine's thread")
    raised.__cause__ = error
    return raised


def quietly(do: Callable[[], object]) -> None:
    """Does what nobody waits for."""
    with suppress(Exception):
        do()

"""How much a call of a tool may take: rows, seconds, queries."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Final, TypeVar

from spaseq.errors import LimitError
from spaseq.paths.search.running import Stop, current, stopped_by

_Value = TypeVar("_Value")

#: At most this many searches at a time, cancelled ones that have not ended yet included.
_AT_WORK: Final = 8

#: A search ends after this part of the seconds of its call, to give what it has found.
_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of tool calls. ``rows``: the most answers of a call. ``seconds``: the time of a call that only
    reads. ``queries``: the most queries that are registered at the same time.

    Raises ValueError for a bound that is not above 0.
    """

    rows: int = 100
    seconds: float = 60.0
    queries: int = 50

    def __post_init__(self) -> None:
        for item in fields(self):
            if not (value := getattr(self, item.name)) > 0:
                raise ValueError(f"{item.name}={value}: a bound is a number above 0")

    def most(self, asked: int | None) -> int:
        """Return the most rows of a call that asks for ``asked`` rows; None: it did not ask for a number."""
        if asked is not None and asked < 0:
            raise ValueError(f"rows={asked}: ask for at least 0")
        return self.rows if asked is None else min(asked, self.rows)

    def taken(self, answers: Iterable[_Value], most: int) -> tuple[list[_Value], str | None]:
        """Return at most ``most`` answers; and why there may be more, None if there are no more."""
        stop = current()
        found = list[_Value]()
        several: Iterator[_Value] = iter(answers)
        try:
            for answer in islice(several, most):
                found.append(answer)
                stop.check()
            if next(several, None) is None:
                return found, None
        except LimitError as error:
            if error.limit != "seconds":
                raise
            return found, f"there may be more: {error}"
        return found, f"there are more than {most:,}"


class Workers:
    """Calls in threads of their own. Searches are limited: 8 at the same time, each for ``seconds``.

    A search ends itself soon after its time, or after its client has cancelled the call. Its thread counts
    as at work until then. Other calls are never refused.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.Semaphore(_AT_WORK)

    async def search(self, work: Callable[[], _Value]) -> _Value:
        """Run a search in a thread: return or raise what ``work`` does.

        Raises LimitError when it takes too long, and when too many searches are at work.
        """
        if not self._free.acquire(blocking=False):
            raise LimitError(
                f"{_AT_WORK} searches are still at work: ask again later, and for less", limit="at_work"
            )
        stop = Stop()

        def stopped() -> _Value:
            try:
                with stopped_by(stop):
                    return work()
            finally:
                self._free.release()

        late = (
            f"after {self._seconds:g} seconds the search was ended: ask for less (--seconds moves the limit)"
        )
        timer = asyncio.get_running_loop().call_later(_SHARE * self._seconds, stop.set, late)
        try:
            return await self.run(stopped, reads=True)
        finally:
            timer.cancel()
            stop.set("the call has ended")

    async def run(self, work: Callable[[], _Value], *, reads: bool) -> _Value:
        """Run a call in a thread: return or raise what ``work`` does.

        Raises LimitError when a call that only reads takes longer than ``seconds``. A call that changes
        something has no time limit: after an error, a client would repeat the change.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Value] = loop.create_future()

        def tell(result: Any, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        def call() -> None:
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:  # the caller's thread raises it
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell, result, error)

        # A daemon: what is still at work when the process ends, ends with it.
        threading.Thread(target=call, name="spaseq-mcp", daemon=True).start()
        try:
            return await asyncio.wait_for(done, self._seconds if reads else None)
        except TimeoutError:
            if done.done() and not done.cancelled():
                raise  # a TimeoutError of the call itself
            raise LimitError(
                f"this took more than {self._seconds:g} seconds: ask for less (--seconds moves the limit)",
                limit="seconds",
            ) from None

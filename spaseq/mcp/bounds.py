"""How much a call of a tool may take: rows, seconds, queries."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from time import monotonic
from typing import Any, Final, TypeVar

from spaseq.errors import LimitError

_Value = TypeVar("_Value")

#: So many calls may be at work at the same time, those that nobody waits for any more included.
_AT_WORK: Final = 8

#: What is searched ends by itself so much sooner than the call, to give what it has found.
_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Bounds:
    """``rows``: so many answers a call gives at most. ``seconds``: so long one that only reads
    may take. ``queries``: so many may be registered at the same time.

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
        """How many rows a call gives that asks for so many."""
        if asked is not None and asked < 0:
            raise ValueError(f"rows={asked}: ask for at least 0")
        return self.rows if asked is None else min(asked, self.rows)

    def taken(self, answers: Iterable[_Value], most: int) -> tuple[list[_Value], str | None]:
        """The first answers, and what ended them if there may be more."""
        until = monotonic() + _SHARE * self.seconds
        found = list[_Value]()
        several: Iterator[_Value] = iter(answers)
        for answer in islice(several, most):
            found.append(answer)
            if monotonic() > until:
                return found, f"there may be more: after {self.seconds:g} seconds the search was ended"
        if next(several, None) is None:
            return found, None
        return found, f"there are more than {most:,}"


class Workers:
    """Calls in threads of their own; for those that only read, nobody waits longer than ``seconds``.

    A search that has found nothing yet cannot be stopped from outside: its thread works on until it is done,
    or the process ends, and counts until then against what may be at work.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.Semaphore(_AT_WORK)

    async def run(self, work: Callable[[], _Value], *, reads: bool) -> _Value:
        """What ``work`` gives or raises. Raises LimitError when that takes too long, or too much is at work.

        What changes something is waited for: who is told that it took too long would do it again.
        """
        if not self._free.acquire(blocking=False):
            raise LimitError(
                f"{_AT_WORK} calls are still at work: ask again later, and for less", limit="at_work"
            )
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
            finally:
                self._free.release()
            with contextlib.suppress(RuntimeError):  # nobody is there any more to be told
                loop.call_soon_threadsafe(tell, result, error)

        # A daemon: what is still at work when the process ends, ends with it.
        threading.Thread(target=call, name="spaseq-mcp", daemon=True).start()
        try:
            return await asyncio.wait_for(done, self._seconds if reads else None)
        except TimeoutError:
            if done.done() and not done.cancelled():
                raise  # its own
            raise LimitError(
                f"this took more than {self._seconds:g} seconds: ask for less (--seconds moves the limit)",
                limit="seconds",
            ) from None

"""Bounds of one query: how long it may take per event, and how much memory it may keep, before it sheds.

A bound differs from a limit (``limits``): at a bound partial matches are shed, at a limit the query ends.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final, SupportsFloat
from weakref import WeakKeyDictionary

from spaseq.errors import EngineError


class Policy(StrEnum):
    """What is shed first.

    ``sharp``: the partial matches of lowest utility, which is expected matches relative to cost. The others
    are baselines: ``random-state`` sheds random partial matches, ``random-input`` drops random events, and
    ``selective`` sheds partial matches of states that rarely lead to matches.
    """

    SHARP = "sharp"
    RANDOM_STATE = "random-state"
    RANDOM_INPUT = "random-input"
    SELECTIVE = "selective"


class WorkClock:
    """A clock that advances with work instead of time, so that shedding is the same in every run.

    ``units`` counts events processed, visits of partial matches, and partial matches created. ``unit`` is the
    seconds that each of them stands for.

    >>> clock = WorkClock()
    >>> clock.add(500_000)
    >>> clock()
    0.5
    """

    def __init__(self, unit: float = 1e-6) -> None:
        self.unit = unit
        self.units = 0.0

    def add(self, units: float) -> None:
        """Add work."""
        self.units += units

    def __call__(self) -> float:
        return self.units * self.unit


class Pool:
    """The memory that the queries of an engine share: ``size`` bytes, divided in proportion to weights."""

    def __init__(self, size: int) -> None:
        """Create a pool. Raises ``EngineError`` unless ``size`` is a whole number of bytes above 0."""
        if type(size) is not int or size < 1:
            raise EngineError(f"memory={size!r}: a bound is a whole number of bytes above 0, as 2 << 30")
        self.size = size
        self._held: WeakKeyDictionary[Bound, int] = WeakKeyDictionary()

    def join(self, bound: Bound, holds: int = 0) -> None:
        """Add a query, which holds ``holds`` bytes now."""
        self._held[bound] = holds

    def share(self, bound: Bound, holds: int) -> int:
        """Return how many bytes a query may hold: its share, or what other queries leave if that is more."""
        self._held[bound] = holds
        others = sum(held for other, held in self._held.items() if other is not bound)
        part = self.size * (bound.weight / sum(other.weight for other in self._held))
        return int(max(part, self.size - others))

    def leave(self, bound: Bound) -> int:
        """Remove a finished query; return the bytes it held."""
        return self._held.pop(bound, 0)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Bound:
    """The bounds of one query; None is no bound.

    ``latency``: seconds from the start of processing an event until all matches that it completes are found,
    on average over some events. ``pool``: the memory that queries share. ``weight``: the query's share of it,
    relative to the weights of the other queries.
    """

    latency: float | None = None
    pool: Pool | None = None
    weight: float = 1.0
    policy: Policy = Policy.SHARP
    clock: Callable[[], float] = time.perf_counter


@dataclass(slots=True)
class Shed:
    """What a query shed to keep its bounds.

    - ``partial_matches``: how many were shed. ``by_state``: the same by the step they waited for, or, for the
      matcher ``lazy``, by the buffer that the event was in.
    - ``passed_over``: how often a partial match was not shown an event during overload.
    - ``events``: how many events were dropped (``random-input`` only).
    - ``active``: the query is shedding now.
    - ``latency``: the seconds that an event takes now. ``least``: the seconds that it takes even if no
      partial match is kept. None before the first event. ``too_tight``: the bound is below ``least``, so that
      no shedding can keep it.
    - ``recall``: a rough estimate of the share of all matches that were found. None with ``random-input``,
      EMIT and CONSUME ANY.
    - ``doubtful``: how many matches may not be among the matches without a bound, because a shed partial
      match could have excluded them (``explain`` says for which queries this can happen).
    """

    partial_matches: int = 0
    by_state: dict[str, int] = field(default_factory=dict)
    passed_over: int = 0
    events: int = 0
    active: bool = False
    latency: float | None = None
    least: float | None = None
    too_tight: bool = False
    recall: float | None = 1.0
    doubtful: int = 0


def latency_given(latency: timedelta) -> float:
    """Return a latency bound in seconds. Raises ``EngineError`` unless it is a timedelta above 0."""
    if not isinstance(latency, timedelta) or latency <= timedelta(0):
        raise EngineError(
            f"latency={latency!r}: a bound is a timedelta above 0, as timedelta(milliseconds=50)"
        )
    return latency.total_seconds()


def in_ms(seconds: float) -> str:
    """Return seconds as text in milliseconds.

    >>> in_ms(0.0123456), in_ms(1.5)
    ('12.3 ms', '1,500 ms')
    """
    return f"{1_000 * seconds:.3g} ms" if seconds < 1 else f"{1_000 * seconds:,.0f} ms"


class Steady:
    """Elapsed seconds by an arbitrary clock: a reading that is not a number, or goes back, adds nothing.

    ``time.thread_time``, for one, goes back when another thread reads it.

    >>> readings = iter([5.0, 6.0, 2.0, 3.0, float("nan"), 4.0])
    >>> clock = Steady(lambda: next(readings))
    >>> [clock() for _ in range(6)]
    [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]
    """

    def __init__(self, clock: Callable[[], SupportsFloat]) -> None:
        self._clock = clock
        self._last: float | None = None
        self._passed = 0.0

    def __call__(self) -> float:
        try:
            now = float(self._clock())
        except OverflowError:
            return self._passed
        if math.isfinite(now):
            if self._last is not None and now > self._last:
                self._passed += now - self._last
            self._last = now
        return self._passed


#: Clocks that always return numbers and never go back.
_NEVER_BACK: Final = (time.perf_counter, time.monotonic, time.process_time)


def clock_given(clock: Callable[[], SupportsFloat]) -> Callable[[], float]:
    """Return a clock that never goes back. Raises ``EngineError`` if ``clock`` does not return seconds."""
    what = f"clock={clock!r}: a clock is called, and gives seconds, as time.perf_counter"
    if not callable(clock):
        raise EngineError(what)
    if clock in _NEVER_BACK or isinstance(clock, WorkClock | Steady):
        return clock
    try:
        now = clock()
    except Exception as error:
        raise EngineError(f"{what}; this one raised {type(error).__name__}: {error}") from error
    if not isinstance(now, SupportsFloat):
        raise EngineError(f"{what}; this one gave {now!r}")
    return Steady(clock)


def weight_given(weight: float) -> float:
    """Return a weight as a float. Raises ``EngineError`` unless it is a finite number above 0."""
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 < weight <= sys.float_info.max:
        raise EngineError(f"weight={weight!r}: a weight is a number above 0")
    return float(weight)


_POLICIES: Final = ", ".join(Policy)


def policy_given(name: str) -> Policy:
    """Return the policy of this name. Raises ``EngineError`` for an unknown name."""
    try:
        return Policy(name)
    except ValueError:
        raise EngineError(f"unknown policy {name!r}: there are {_POLICIES}") from None

"""Best effort: how long a query may take for an event, and how much it may keep, before it gives up a part.

Between a bound and a limit (``limits``): at the bound partial matches are shed, at the limit the query ends.
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
    """What is given up first.

    ``sharp``: the partial matches of which the fewest matches are to be expected for what they cost.
    The others are there to compare with it: ``random-state`` draws lots among the partial matches,
    ``random-input`` among the events, ``selective`` goes by how seldom those of a state become matches.
    """

    SHARP = "sharp"
    RANDOM_STATE = "random-state"
    RANDOM_INPUT = "random-input"
    SELECTIVE = "selective"


class WorkClock:
    """A clock that goes on with work instead of time, so that what is shed is the same in every run.

    ``units``: how often an event was taken, a partial match was shown one, and was made. ``unit`` is how
    many seconds each of them stands for.

    >>> clock = WorkClock()
    >>> clock.add(500_000)
    >>> clock()
    0.5
    """

    def __init__(self, unit: float = 1e-6) -> None:
        self.unit = unit
        self.units = 0.0

    def add(self, units: float) -> None:
        """So much more work was done."""
        self.units += units

    def __call__(self) -> float:
        return self.units * self.unit


class Pool:
    """The memory that the queries of an engine have in common: ``size`` bytes, in proportion to weights."""

    def __init__(self, size: int) -> None:
        """Raises ``EngineError`` for what is no number of bytes above 0."""
        if type(size) is not int or size < 1:
            raise EngineError(f"memory={size!r}: a bound is a whole number of bytes above 0, as 2 << 30")
        self.size = size
        self._held: WeakKeyDictionary[Effort, int] = WeakKeyDictionary()

    def join(self, effort: Effort, holds: int = 0) -> None:
        """A query comes in, that holds so much."""
        self._held[effort] = holds

    def share(self, effort: Effort, holds: int) -> int:
        """How much a query may hold, that holds so much: its part, and what the others leave."""
        self._held[effort] = holds
        others = sum(held for other, held in self._held.items() if other is not effort)
        part = self.size * (effort.weight / sum(other.weight for other in self._held))
        return int(max(part, self.size - others))

    def leave(self, effort: Effort) -> int:
        """A query is over; what it held."""
        return self._held.pop(effort, 0)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Effort:
    """The bounds of one query. ``latency``: seconds from when the query turns to an event until all that it
    completes is found, on average over some events. ``pool``: the memory, in bytes. None is no bound.
    ``weight``: of what several queries share, its part.
    """

    latency: float | None = None
    pool: Pool | None = None
    weight: float = 1.0
    policy: Policy = Policy.SHARP
    clock: Callable[[], float] = time.perf_counter


@dataclass(slots=True)
class Shed:
    """What a query gave up to keep its bounds.

    ``partial_matches`` were shed, and ``by_state`` says in front of what; of ``lazy``, whose partial matches
    are buffered events, in which buffer. ``passed_over``: how often one was not shown an event, in a burst.
    ``events`` were dropped (by ``random-input`` alone). ``active``: it sheds these days. ``latency``: the
    seconds that an event takes now, and ``least``: those that it takes even if no partial match is kept; None
    before the first. ``too_tight``: the bound is less than that, so that no shedding holds it. ``recall``: a
    rough estimate of the share of all matches that was found; None with ``random-input``, EMIT and CONSUME
    ANY. ``doubtful``: matches that may not be among those without a bound, as what was shed might have kept
    them out (``explain`` says of which queries).
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
    """A bound in seconds. Raises ``EngineError`` for what is no length of time above 0."""
    if not isinstance(latency, timedelta) or latency <= timedelta(0):
        raise EngineError(
            f"latency={latency!r}: a bound is a timedelta above 0, as timedelta(milliseconds=50)"
        )
    return latency.total_seconds()


def in_ms(seconds: float) -> str:
    """Seconds in words.

    >>> in_ms(0.0123456), in_ms(1.5)
    ('12.3 ms', '1,500 ms')
    """
    return f"{1_000 * seconds:.3g} ms" if seconds < 1 else f"{1_000 * seconds:,.0f} ms"


class Steady:
    """The seconds that pass by a clock of which nothing is known: what is no number is no time, nor is what
    goes back, as from one thread's ``time.thread_time`` to another's.

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


#: These give numbers, and never go back.
_NEVER_BACK: Final = (time.perf_counter, time.monotonic, time.process_time)


def clock_given(clock: Callable[[], SupportsFloat]) -> Callable[[], float]:
    """A clock, as one that never goes back. Raises ``EngineError`` for what gives no seconds."""
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
    """A weight. Raises ``EngineError`` for what is no number above 0, or an infinite one."""
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 < weight <= sys.float_info.max:
        raise EngineError(f"weight={weight!r}: a weight is a number above 0")
    return float(weight)


_POLICIES: Final = ", ".join(Policy)


def policy_given(name: str) -> Policy:
    """The policy of this name. Raises ``EngineError`` if there is none."""
    try:
        return Policy(name)
    except ValueError:
        raise EngineError(f"no policy is called {name!r}: there are {_POLICIES}") from None

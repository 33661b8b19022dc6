"""The overload detector: how long events take, how often the bound is checked, and how long a window is."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from typing import Final

from spaseq.bounds import Bound, Shed, WorkClock, in_ms
from spaseq.errors import warn_within
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.shedding import _kernel_known as k

#: The share of old measurements that is forgotten at each event.
_FORGET: Final = 0.002
#: The same for the current duration of a unit of work.
_FORGET_SOON: Final = 0.01
#: The least time of an event is the minimum of recent ones: the old minimum grows by this factor per event.
_GROWS: Final = 1.0005
#: The most and the least share of the bound to use. The rest is for unexpected work: ``_DEVIATIONS`` standard
#: deviations of averages over recent events.
_ROOM: Final = 0.95
_LEAST_ROOM: Final = 0.5
_DEVIATIONS: Final = 2.5
#: If all partial matches have the same utility, each one shed needlessly loses matches. Then only this many
#: deviations are left free for bursts, which the burst filter handles.
_FEWER: Final = 1.0
_FORGET_NOW: Final = 1 / 32
#: The same for the usual load.
_FORGET_USUAL: Final = 1 / 64
#: A delay of more than this many bounds, and this many more for each event, has another cause: the machine,
#: or Python's garbage collector. No burst takes that long.
_STALLED: Final = 32.0
_SLOW: Final = 2.0
#: Load that is added to the measured one, so that long times are not attributed to a small load: otherwise,
#: shedding all by mistake would never be unlearned.
_UNKNOWN: Final = 8.0
#: Partial matches are shed when the load exceeds the target by this factor.
_ABOVE: Final = 1.05
#: If an event's own time exceeds the bound for this many events, no shedding can keep the bound.
_TOO_MANY: Final = 512
#: At least this share of the partial matches stays.
_LEAST: Final = 0.02


class Overload:
    """The duration of events: their own time, plus a time in proportion to the load (see ``CostModel.load``).

    The current load predicts the duration of the next event, so that a bound is kept before it is exceeded,
    and one slow event does not count as load. An event's own time is the shortest time of recent events, plus
    the time to begin partial matches. Events take this time even if few partial matches are kept.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._fixed = math.inf
        # Sums over recent events: events, load, and the seconds above the least, for units of work and for
        # the work between events. Of these units: partial matches that began, and all.
        self._events = self._load = 0.0
        self._working = self._between = 0.0
        self._begun = self._worked = 0.0
        self._spent = self._units = 0.0
        self.latency: float | None = None
        # For how many events the bound has been less than an event's own time; whether a warning was given.
        self._too_tight, self._told = 0, False
        # The current and the expected duration of events; the variance of the error. The same for a unit of
        # work.
        self._now = self._expected = self._variance = 0.0
        self._unit_seconds = self._unit_units = self._unit_variance = 0.0
        #: From 0 to 1: how equal all utilities are (see ``cost_model.evenness``).
        self.even = 0.0
        # The recent usual load.
        self._usual = 0.0
        #: The target duration of an event, in seconds.
        self.most = _ROOM * bound

    def measure(
        self, events: int, seconds: float, load: float, units: float, begun: int = 0, between: float = 0.0
    ) -> float:
        """Record that events took ``seconds``, at this average load, for these units of work.

        Returns the seconds due to the events themselves, without delays by other causes.

        ``begun``: how many of the units were new partial matches, not existing ones. ``between``: how many of
        the seconds were for observing partial matches and choosing what to pass over: these are due to the
        load.
        """
        self._fixed = min((seconds - between) / events, self._fixed * _GROWS**events)
        most = (_STALLED + _SLOW * events) * self._bound
        was_held_up, seconds = seconds > most, min(seconds, most)
        each = seconds / events
        usual = (1 - _FORGET_USUAL) ** events
        self._usual = usual * self._usual + (1 - usual) * load
        keep = (1 - _FORGET) ** events
        above = events * max(0.0, each - self._fixed)
        between = min(between, above)
        expected = self.expect(load)
        self._events = keep * self._events + events
        self._load = keep * self._load + events * load
        self._working = keep * self._working + above - between
        self._between = keep * self._between + between
        # The units are known for some events only, so they give a ratio.
        self._begun = keep * self._begun + begun
        self._worked = keep * self._worked + max(0.0, units - events)
        self._too_tight = self._too_tight + events if self.least > self._bound else 0
        if not was_held_up:
            self._vary(events, seconds, units, keep)
            self._spare(events, each, expected, keep)
        keep = (1 - _FORGET_SOON) ** events
        self._spent = keep * self._spent + seconds
        self._units = keep * self._units + units
        return events * min(each, expected) if was_held_up else seconds

    def _vary(self, events: int, seconds: float, units: float, keep: float) -> None:
        """Learn the variance of a unit's duration; passing over partial matches does not help against it."""
        now = (1 - _FORGET_NOW) ** events
        self._unit_seconds = now * self._unit_seconds + seconds
        self._unit_units = now * self._unit_units + units
        expected = self.unit * self._unit_units
        wrong = self._unit_seconds / expected - 1 if expected > 0 else 0.0
        self._unit_variance = keep * self._unit_variance + (1 - keep) * min(wrong * wrong, 1.0)

    def _spare(self, events: int, each: float, expected: float, keep: float) -> None:
        now = (1 - _FORGET_NOW) ** events
        self._now = now * self._now + (1 - now) * each
        self._expected = now * self._expected + (1 - now) * expected
        wrong = self._now / self._expected - 1 if self._expected > 0 else 0.0
        self._variance = keep * self._variance + (1 - keep) * min(wrong * wrong, 1.0)
        least = max((_FEWER / _DEVIATIONS) ** 2 * self._variance, self._unit_variance)
        variance = self._variance + self.even * (min(self._variance, least) - self._variance)
        room = 1 / (1 + _DEVIATIONS * math.sqrt(variance))
        # An event's own time cannot be saved; of the rest, some is used in any case.
        rest = max(0.0, self._bound - self.least)
        self.most = max(min(_ROOM, room) * self._bound, self._bound - (1 - _LEAST_ROOM) * rest)

    @property
    def unit(self) -> float:
        """The seconds of a unit of work; 0 while that is unknown."""
        return self._spent / self._units if self._units > 0 else 0.0

    @property
    def _slope(self) -> float:
        seconds = self._working - self._beginning + self._between
        return seconds / (self._load + _UNKNOWN) if self._load > 0 else 0.0

    @property
    def _beginning(self) -> float:
        """The seconds spent on beginning partial matches."""
        return self._working * (min(1.0, self._begun / self._worked) if self._worked > 0 else 1.0)

    @property
    def least(self) -> float:
        """The seconds that an event takes without partial matches; 0 while that is unknown."""
        return self._fixed + self._beginning / self._events if self._events > 0 else 0.0

    def tell(self, shed: Shed, name: str) -> None:
        """Report the duration of a query's events; warn once if no shedding can keep the bound."""
        shed.latency, shed.least = self.latency, self.least
        shed.too_tight = self._too_tight >= _TOO_MANY
        if shed.too_tight and not self._told:
            self._told = True
            warn_within(
                f"{name}: no shedding holds a bound of {in_ms(self._bound)}: an event takes "
                f"{in_ms(self.least)} even if no partial match is kept; raise the bound to at least "
                f"{in_ms(_rounded_up(self.least / _ROOM))}, or leave it out"
            )

    def expect(self, load: float) -> float:
        """Return the seconds that the next event is expected to take, at this load."""
        return self.least + self._slope * load

    @property
    def target(self) -> float:
        """The load that there is time for; infinite while that is not known."""
        return max(0.0, self.most - self.least) / self._slope if self._slope > 0 else math.inf

    def lasting(self, load: float) -> float:
        """Return the part of a load that is a reason to shed. If all utilities are equal, a burst is not:
        then some partial matches are passed over.
        """
        return load - self.even * max(0.0, load - self._usual)

    def share(self, load: float) -> float:
        """Return the share of the partial matches that may stay, at this load."""
        if not self._events:
            return 1.0
        moving = self._slope * load
        self.latency = self.expect(load)
        if self.latency <= _ABOVE * self.most or moving <= 0:
            return 1.0
        return min(1.0, max(_LEAST, (self.most - self.least) / moving))


def late(latency: float | None) -> str:
    """Return the reason for shedding: how many seconds an event takes."""
    return f"an event takes {in_ms(latency or 0.0)}"


def _rounded_up(number: float) -> float:
    """Round a positive number up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


#: The most events taken at once, and about what share of a bound they may take.
_CHUNK: Final = 4_096
_SLICE: Final = 1 / 8
#: The least number of events taken at once from a batch, as a call for each would take longer than the
#: events. Together they may take at most this many seconds: the duration of a slow event must be known before
#: the next one.
_FEW: Final = 16
_LONG: Final = 4e-3
#: Single events are checked together, at most this many.
_ALONE: Final = 64


class LoadMeter:
    """Counts the events, and their seconds, until the next check of the bound.

    ``events`` and ``taken`` are those since the last check, and ``chunk`` is how many of a batch are taken at
    once. ``is_exact``: work is counted, not measured, so that the bound is checked after each event.
    """

    def __init__(self, bound: Bound, few: int = _FEW) -> None:
        """``few``: the least number of events taken at once from a batch."""
        self._clock, self._latency, self._few = bound.clock, bound.latency, few
        self.is_exact = isinstance(bound.clock, WorkClock)
        self.chunk, self.events, self.taken = 1, 0, 0.0

    def timed(self, found: Iterable[Block], begin: float) -> Generator[Block, None, float]:
        """Yield matches, on which work began at ``begin``; return the time up to which all is counted.

        The time of the reader is not counted.
        """
        for block in found:
            self.taken += self._clock() - begin
            yield block
            begin = self._clock()
        return begin

    def end_one(self, begin: float) -> float | None:
        """Finish a single event, on which work began at ``begin``.

        Return None if the bound need not be checked; else the time up to which all is counted. After an event
        that took longer than the bound, it is checked at once.
        """
        self.events += 1
        if self.is_exact or self.events >= min(_ALONE, self.chunk):
            return begin
        now = self._clock()
        self.taken += now - begin
        return now if self.taken > (self._latency or math.inf) else None

    def see(self) -> int:
        """Check the bound: return how many events came since the last check. The caller resets
        the seconds.
        """
        events, self.events = self.events, 0
        return events

    def learn(self, each: float) -> None:
        """Set the seconds that an event takes, which determine ``chunk``."""
        if not self.is_exact and self._latency is not None:
            each = max(each, 1e-9)
            few = min(self._few, max(1.0, _LONG / each))
            self.chunk = int(min(_CHUNK, max(few, self._latency * _SLICE / each)))


#: A task is due again after work of this many times its own duration.
_SELDOM: Final = 16


class Seldom:
    """Decides when a task is due again, from the seconds of work since then and the seconds that the task
    took.

    >>> plan = Seldom()
    >>> plan.is_due
    True
    >>> plan.took(0.5)
    >>> plan.worked(7.0)
    >>> plan.is_due
    False
    >>> plan.worked(1.0)
    >>> plan.is_due
    True
    """

    def __init__(self) -> None:
        self._worked = 0.0
        #: The seconds that the task took last.
        self.seconds = 0.0

    def worked(self, seconds: float) -> None:
        """Add seconds of work."""
        self._worked += seconds

    def took(self, seconds: float) -> None:
        """Record that the task was done, and how long it took."""
        self._worked, self.seconds = 0.0, seconds

    @property
    def is_due(self) -> bool:
        """Whether the task is due."""
        return self._worked >= _SELDOM * self.seconds


class WindowLength:
    """The length of a window, in events.

    >>> window = WindowLength(15)  # it reaches 15 further on its axis
    >>> window.pass_to(10, 5), window.is_timed
    (None, False)
    >>> window.pass_to(14, 13)
    >>> window.age, window.is_timed  # two events a place of 16, eight ages
    (4.0, True)
    """

    def __init__(self, limit: int) -> None:
        """``limit``: the reach of a window on its axis; 0 for tumbling ones, with their numbers as axis."""
        self._limit = limit
        # The last look, on the window's axis and in events; the first one of several at one place of a
        # sliding window; and where the tumbling window began.
        self._axis = self._seen = self._opened = 0
        #: The number of events in an eighth of a window.
        self.age = 16.0
        #: Whether the number of events of a window is known: for a sliding one, from the second look on.
        self.is_timed = limit <= 0

    def pass_to(self, axis: int, position: int) -> None:
        """Note that ``position`` events have come, the last one at this place on the axis."""
        passed = position - self._seen
        if self._limit > 0:
            if self._seen and axis == self._axis:
                # Time stands still: the window has all events since it last advanced, and it goes on.
                self.age = max(self.age, passed / k.AGES)
                return
            if self._seen and axis > self._axis and passed > 0:
                each = passed / (axis - self._axis) * (self._limit + 1) / k.AGES
                weight = min(1.0, passed / (self.age * k.AGES)) if self.is_timed else 1.0
                self.age += weight * (each - self.age)
                self.is_timed = True
        elif self._seen and axis != self._axis:
            self.age = max(1.0, (position - self._opened) / k.AGES)
            self._opened = position
        else:
            self.age = max(self.age, (position - self._opened) / k.AGES)
        self._axis, self._seen = axis, position

    def passed(self, position: int) -> int:
        """Return, for tumbling windows, the common age of all events in the current one."""
        return int(min(k.AGES - 1, (position - self._opened) / max(self.age, 1e-9)))

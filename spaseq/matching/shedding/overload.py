"""The load: how long events take, how often the bound is seen to, and how long a window is."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from typing import Final

from spaseq.bounds import Bound, Shed, WorkClock, in_ms
from spaseq.errors import warn_within
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.shedding import _kernel_known as k

#: Of what was measured, such a share is forgotten with each event.
_FORGET: Final = 0.002
#: The same of what says how long a unit of work takes now.
_FORGET_SOON: Final = 0.01
#: The least that an event takes is sought among those of late: it grows so much with each event.
_GROWS: Final = 1.0005
#: So much of the bound is used at most and at least: the rest is for what events take more than is expected
#: of them, so many standard deviations of what means over so many events, about, did.
_ROOM: Final = 0.95
_LEAST_ROOM: Final = 0.5
_DEVIATIONS: Final = 2.5
#: Where all that may be shed is worth the same, each that is shed for nothing is missed. So many deviations
#: are left free then for bursts, as something is passed over in them.
_FEWER: Final = 1.0
_FORGET_NOW: Final = 1 / 32
#: The same of the load that there is as a rule.
_FORGET_USUAL: Final = 1 / 64
#: What took longer than so many bounds, and so many more for each event, was held up by something else: the
#: machine, or Python's collector. No burst takes that long.
_STALLED: Final = 32.0
_SLOW: Final = 2.0
#: Load added to what was seen, so that little load is not blamed for much: else shedding all by mistake
#: would never be unlearned.
_UNKNOWN: Final = 8.0
#: So much above that, partial matches are shed.
_ABOVE: Final = 1.05
#: If for so many events it is more than the bound what one takes by itself, no shedding will do.
_TOO_MANY: Final = 512
#: However little is left for them, this share of the partial matches stays.
_LEAST: Final = 0.02


class Overload:
    """What events took: by themselves, and in proportion to the load there was (see ``CostModel.load``).

    Since it is the load at hand that says what the next event will take, a bound is kept before it is broken,
    and one slow event is none. What an event takes by itself is the least that one took of late, and what it
    took to begin partial matches: that comes again, however few there are.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._fixed = math.inf
        # Of late: events, the load there was, and the seconds above the least: for units of work, and for
        # what was done between events. And of these units: of partial matches that began, and all.
        self._events = self._load = 0.0
        self._working = self._between = 0.0
        self._begun = self._worked = 0.0
        self._spent = self._units = 0.0
        self.latency: float | None = None
        # For so many events now the bound has been less than what one takes by itself; whether that was told.
        self._too_tight, self._told = 0, False
        # What events took just now, and were expected to; and what that was wrong by, squared. The same of
        # a unit of work.
        self._now = self._expected = self._variance = 0.0
        self._unit_seconds = self._unit_units = self._unit_variance = 0.0
        #: From 0 to 1: how far all partial matches are worth the same (see ``cost_model.evenness``).
        self.even = 0.0
        # The load of late.
        self._usual = 0.0
        #: The seconds that an event is to take.
        self.most = _ROOM * bound

    def measure(
        self, events: int, seconds: float, load: float, units: float, begun: int = 0, between: float = 0.0
    ) -> float:
        """So many events took so many seconds, with so much load on average, for so many units of work.

        The seconds of these that are the events' own: not what held them up.

        ``begun``: how many of the units were partial matches that began, and not for those there are.
        ``between``: how many of the seconds it took to look at partial matches, and to choose what is passed
        over: that is for the load.
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
        # The units are asked of some events only, so they tell a share.
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
        """Learns how much what a unit of work takes varies: passing over something does not help with it."""
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
        # What an event takes by itself cannot be saved: of the rest, some is used in any case.
        rest = max(0.0, self._bound - self.least)
        self.most = max(min(_ROOM, room) * self._bound, self._bound - (1 - _LEAST_ROOM) * rest)

    @property
    def unit(self) -> float:
        """The seconds that a unit of work takes; 0 while that is unknown."""
        return self._spent / self._units if self._units > 0 else 0.0

    @property
    def _slope(self) -> float:
        seconds = self._working - self._beginning + self._between
        return seconds / (self._load + _UNKNOWN) if self._load > 0 else 0.0

    @property
    def _beginning(self) -> float:
        """The seconds that it took to begin partial matches."""
        return self._working * (min(1.0, self._begun / self._worked) if self._worked > 0 else 1.0)

    @property
    def least(self) -> float:
        """The seconds that an event takes with no partial matches; 0 while that is not known."""
        return self._fixed + self._beginning / self._events if self._events > 0 else 0.0

    def tell(self, shed: Shed, name: str) -> None:
        """Notes what an event of a query takes now; a warning says, once, if no shedding holds the bound."""
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
        """The seconds that the next event is expected to take, with so much load at hand."""
        return self.least + self._slope * load

    @property
    def target(self) -> float:
        """The load that there is time for; infinite while that is not known."""
        return max(0.0, self.most - self.least) / self._slope if self._slope > 0 else math.inf

    def lasting(self, load: float) -> float:
        """How much of the load at hand there is to be shed for: where all is worth the same, not a burst, in
        which something is passed over.
        """
        return load - self.even * max(0.0, load - self._usual)

    def share(self, load: float) -> float:
        """Which share of the partial matches may stay, with so much load at hand."""
        if not self._events:
            return 1.0
        moving = self._slope * load
        self.latency = self.expect(load)
        if self.latency <= _ABOVE * self.most or moving <= 0:
            return 1.0
        return min(1.0, max(_LEAST, (self.most - self.least) / moving))


def late(latency: float | None) -> str:
    """Why something is shed: an event takes so many seconds."""
    return f"an event takes {in_ms(latency or 0.0)}"


def _rounded_up(number: float) -> float:
    """A number above 0, of two digits, not less than it was."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


#: So many events at most are taken at once, and as a part of a bound so much time, about.
_CHUNK: Final = 4_096
_SLICE: Final = 1 / 8
#: So many events at least are taken at once where they come so, as a call for each takes longer than they.
#: But together they are to take no more than so many seconds: what one took is to be known before the next
#: one that takes long is looked at.
_FEW: Final = 16
_LONG: Final = 4e-3
#: Events pushed alone are seen to together, at most this many.
_ALONE: Final = 64


class LoadMeter:
    """Counts the events that came, and the seconds that they took, until the bound is seen to.

    ``events`` and ``taken`` are those since then, and ``chunk`` is how many are taken at once of a batch.
    ``is_exact``: work is counted, and not measured, so that the bound is seen to after each event.
    """

    def __init__(self, bound: Bound, few: int = _FEW) -> None:
        """``few``: so many events are taken at once, at least, where they come so."""
        self._clock, self._latency, self._few = bound.clock, bound.latency, few
        self.is_exact = isinstance(bound.clock, WorkClock)
        self.chunk, self.events, self.taken = 1, 0, 0.0

    def timed(self, found: Iterable[Block], begin: float) -> Generator[Block, None, float]:
        """What is found, on which work began then; returns since when time is not counted.

        What whoever reads it does meanwhile takes none.
        """
        for block in found:
            self.taken += self._clock() - begin
            yield block
            begin = self._clock()
        return begin

    def end_one(self, begin: float) -> float | None:
        """An event that came alone is done with, on which work began then.

        None if the bound need not be seen to; else since when time is not counted. What took longer than the
        bound does not wait for others.
        """
        self.events += 1
        if self.is_exact or self.events >= min(_ALONE, self.chunk):
            return begin
        now = self._clock()
        self.taken += now - begin
        return now if self.taken > (self._latency or math.inf) else None

    def see(self) -> int:
        """The bound is seen to: how many events came since it was. The seconds are the caller's to take."""
        events, self.events = self.events, 0
        return events

    def learn(self, each: float) -> None:
        """An event takes so many seconds."""
        if not self.is_exact and self._latency is not None:
            each = max(each, 1e-9)
            few = min(self._few, max(1.0, _LONG / each))
            self.chunk = int(min(_CHUNK, max(few, self._latency * _SLICE / each)))


#: It is due again when so many times as long was worked as it took.
_SELDOM: Final = 16


class Seldom:
    """When something is due again, by the seconds of work and by those that it took itself.

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
        #: The seconds that it took the last time.
        self.seconds = 0.0

    def worked(self, seconds: float) -> None:
        """So long was worked."""
        self._worked += seconds

    def took(self, seconds: float) -> None:
        """It was done, and took so long."""
        self._worked, self.seconds = 0.0, seconds

    @property
    def is_due(self) -> bool:
        """Whether so much was worked that it may be done again."""
        return self._worked >= _SELDOM * self.seconds


class WindowLength:
    """What is known of the length of a window, in events.

    >>> window = WindowLength(15)  # it reaches 15 further on its axis
    >>> window.pass_to(10, 5), window.is_timed
    (None, False)
    >>> window.pass_to(14, 13)
    >>> window.age, window.is_timed  # two events a place of 16, eight ages
    (4.0, True)
    """

    def __init__(self, limit: int) -> None:
        """``limit``: how far a window reaches on its axis; 0 for tumbling ones, whose numbers that is."""
        self._limit = limit
        # Where the last look was, on the window's axis and in events, or of several at one place of a sliding
        # window's the first; where a tumbling window began.
        self._axis = self._seen = self._opened = 0
        #: So many events are in an eighth of a window.
        self.age = 16.0
        #: Whether it is known how many events a window has: of a sliding one, from the second look on.
        self.is_timed = limit <= 0

    def pass_to(self, axis: int, position: int) -> None:
        """So many events have come, the last of them there on the axis."""
        passed = position - self._seen
        if self._limit > 0:
            if self._seen and axis == self._axis:
                # Time stands still: the window has all that came since it moved, and it still goes on.
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
        """In tumbling windows, the age of all that is in one."""
        return int(min(k.AGES - 1, (position - self._opened) / max(self.age, 1e-9)))

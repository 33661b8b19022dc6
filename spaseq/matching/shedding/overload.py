"""The overload detector: how long an event takes, as what is at hand makes one expect."""

from __future__ import annotations

import math
from typing import Final

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
_FORGET_NOW: Final = 1 / 32
#: So much above that, partial matches are shed.
_ABOVE: Final = 1.05
#: However little is left for them, this share of the partial matches stays.
_LEAST: Final = 0.02


class Overload:
    """What events took, in proportion to the load there was (see ``Sketch.load``), above the least of all.

    Since it is the load at hand that says what the next event will take, a bound is kept before it is broken,
    and one slow event is none.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._fixed = math.inf
        self._load = self._seconds = 0.0
        self._spent = self._units = 0.0
        self.latency: float | None = None
        # What events took just now, and were expected to; and what that was wrong by, squared.
        self._now = self._expected = self._variance = 0.0
        #: The seconds that an event is to take.
        self.most = _ROOM * bound

    def measure(self, events: int, seconds: float, load: float, units: float) -> None:
        """So many events took so many seconds, with so much load on average, for so many units of work."""
        each = seconds / events
        self._fixed = min(each, self._fixed * _GROWS**events)
        keep = (1 - _FORGET) ** events
        self._load = keep * self._load + events * load
        self._seconds = keep * self._seconds + events * (each - self._fixed)
        self._spare(events, each, self._fixed + self._slope * load, keep)
        keep = (1 - _FORGET_SOON) ** events
        self._spent = keep * self._spent + seconds
        self._units = keep * self._units + units

    def _spare(self, events: int, each: float, expected: float, keep: float) -> None:
        now = (1 - _FORGET_NOW) ** events
        self._now = now * self._now + (1 - now) * each
        self._expected = now * self._expected + (1 - now) * expected
        wrong = self._now / self._expected - 1 if self._expected > 0 else 0.0
        self._variance = keep * self._variance + (1 - keep) * min(wrong * wrong, 1.0)
        room = 1 / (1 + _DEVIATIONS * math.sqrt(self._variance))
        self.most = min(_ROOM, max(_LEAST_ROOM, room)) * self._bound

    @property
    def unit(self) -> float:
        """The seconds that a unit of work takes; 0 while that is unknown."""
        return self._spent / self._units if self._units > 0 else 0.0

    @property
    def _slope(self) -> float:
        return self._seconds / self._load if self._load > 0 else 0.0

    def expect(self, load: float) -> float:
        """The seconds that the next event is expected to take, with so much load at hand."""
        return self._fixed + self._slope * load

    @property
    def load(self) -> float:
        """The load from which on there is too much; infinite while that is not known."""
        if self._fixed == math.inf or self._slope <= 0:
            return math.inf
        return (_ABOVE * self.most - self._fixed) / self._slope

    def share(self, load: float) -> float:
        """Which share of the partial matches may stay, with so much load at hand."""
        if self._fixed == math.inf:
            return 1.0
        moving = self._slope * load
        self.latency = self.expect(load)
        if self.latency <= _ABOVE * self.most or moving <= 0:
            return 1.0
        return min(1.0, max(_LEAST, (self.most - self._fixed) / moving))

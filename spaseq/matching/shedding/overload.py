"""The overload detector: how long an event takes, as what is at hand makes one expect."""

from __future__ import annotations

import math
from typing import Final

#: Of what was measured, such a share is forgotten with each event.
_FORGET: Final = 0.002
#: The least that an event takes is sought among those of late: it grows so much with each look.
_GROWS: Final = 1.02
#: So much of the bound is used: the rest is for what comes until the next look.
_ROOM: Final = 0.95
#: So much above the bound, partial matches are shed at once; up to there, only what is not worth its work.
_ABOVE: Final = 1.2
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
        self.latency: float | None = None
        #: The same as a multiple of what it is to be.
        self.excess = 0.0

    def measure(self, events: int, seconds: float, load: float) -> None:
        """So many events took so many seconds, with so much load on average."""
        each = seconds / events
        self._fixed = min(each, self._fixed * _GROWS)
        keep = (1 - _FORGET) ** events
        self._load = keep * self._load + events * load
        self._seconds = keep * self._seconds + events * (each - self._fixed)

    @property
    def _slope(self) -> float:
        return self._seconds / self._load if self._load > 0 else 0.0

    def share(self, load: float) -> float:
        """Which share of the partial matches may stay, with so much load at hand."""
        if self._fixed == math.inf:
            return 1.0
        moving = self._slope * load
        self.latency = self._fixed + moving
        self.excess = self.latency / (_ROOM * self._bound)
        if self.latency <= _ABOVE * self._bound or moving <= 0:
            return 1.0
        return min(1.0, max(_LEAST, (_ROOM * self._bound - self._fixed) / moving))

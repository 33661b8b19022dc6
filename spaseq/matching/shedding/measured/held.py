"""Whether the bound is held: of the means over 64 events, one of a hundred may be above it."""

from __future__ import annotations

from typing import Final

#: A bound is of what so many events take on average.
_EVENTS: Final = 64
#: Such a part of them may take more than this of the bound.
_SHARE: Final = 0.01
_HELD: Final = 1.1
#: With each that does, so much less of the time is used; each that does not gives back what keeps both even.
_STEP: Final = 0.05
_LEAST: Final = 0.9


class Held:
    """How much of the time that there seems to be is used: less where the bound is not held with it.

    So a quantile is followed without a model of what is above it: Robbins and Monro's approximation. What
    varies from event to event is left room for beforehand (see ``Overload``); this is for what does not show
    there: sweeps, collectors, and matches that cost more than what is tried for them.

    >>> held = Held(bound=1.0)
    >>> held.took(64, 2.0)
    >>> held.share
    0.95
    >>> for _ in range(99):
    ...     held.took(64, 1.0)
    >>> round(held.share, 3)
    1.0
    """

    def __init__(self, bound: float) -> None:
        self._most = _HELD * bound
        self._events, self._seconds = 0, 0.0
        #: From ``_LEAST`` to 1.
        self.share = 1.0

    def took(self, events: int, each: float) -> None:
        """So many events took so many seconds each."""
        self._events += events
        self._seconds += events * each
        if self._events < _EVENTS:
            return
        step = -_STEP if self._seconds > self._most * self._events else _STEP * _SHARE / (1 - _SHARE)
        self.share = min(1.0, max(_LEAST, self.share + step))
        self._events, self._seconds = 0, 0.0

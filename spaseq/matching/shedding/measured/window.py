"""How many events a window has, by where those that come stand on its axis."""

from __future__ import annotations

from spaseq.matching.shedding.compiled import _kernel_known as k


class Window:
    """What is known of the length of a window, in events.

    >>> window = Window(15)  # it reaches 15 further on its axis
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

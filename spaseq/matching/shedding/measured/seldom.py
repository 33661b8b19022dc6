"""What takes a while between events, and is done now and then: how long was worked since comes in."""

from __future__ import annotations

from typing import Final

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

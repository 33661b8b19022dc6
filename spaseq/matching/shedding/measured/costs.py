"""What it takes to come by partial matches, and to show them an event: learned of those of late."""

from __future__ import annotations

import math
from typing import Final

#: Of what was learned, such a share is forgotten with each time.
_FORGET: Final = 1 / 32


class Costs:
    """Seconds for each partial match that is come by, and for each that is shown an event besides."""

    def __init__(self) -> None:
        # What was listed: how many, and the seconds that it took; and what was shown.
        self._visits = self._visiting = 0.0
        self._shows = self._showing = 0.0
        # Since work was measured last: how many were come by, how many of them were shown something, the
        # seconds that it took to list them; and whether something was shown that was not listed.
        self._listed = self._shown = 0
        self._listing, self._skipped = 0.0, False

    def skip(self) -> None:
        """Nobody knows what an event was shown to."""
        self._skipped = True

    def listed(self, count: int, shown: int, seconds: float) -> None:
        """So many were listed, in so many seconds, of which so many are shown an event."""
        self._visits += _FORGET * (count - self._visits)
        self._visiting += _FORGET * (seconds - self._visiting)
        self._listed += count
        self._shown += shown
        self._listing += seconds

    def worked(self, seconds: float) -> None:
        """Events took so many seconds, besides what they take by themselves."""
        if self._listed and not self._skipped:
            showing = seconds - self._listing - self._visit * self._listed
            self._shows += _FORGET * (self._shown - self._shows)
            self._showing += _FORGET * (max(0.0, showing) - self._showing)
        self._listed = self._shown = 0
        self._listing, self._skipped = 0.0, False

    @property
    def _visit(self) -> float:
        return self._visiting / self._visits if self._visits else 0.0

    def shows(self, seconds: float, listed: int) -> float:
        """To how many something may be shown in so many seconds, where so many are come by."""
        if not self._shows or not self._showing:
            return math.inf
        return max(0.0, seconds - self._visit * listed) / (self._showing / self._shows)

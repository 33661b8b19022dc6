"""How often events come by which partial matches go on: of late, beside what their rates were counted with.

Rates are those of a window, about, and of the partial matches that there were in it. If what ends matches
comes ten times as often from now on, each partial match brings ten times as much at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.learned.features import Features

Floats = npt.NDArray[np.float64]

#: What came no more than so often in a window: rates of it are guessed.
_FEWEST: Final = 1.0


class Arrivals:
    """Counts the events of each GPM, by what lived through them at the gates where they go on."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._gates = [step.gate for step in features.steps]
        # Since the last time: how many solutions came of each GPM.
        self._came: dict[str, float] = {}
        # Of each gate, the events that partial matches lived through, up to the last time; of each step, how
        # many of its GPM they met if all were shown them.
        self._lived: Floats = np.zeros(len(features.bases))
        self._met: Floats = np.zeros(len(features.steps))
        # Of each step, how often its GPM came in an event, when rates were calculated: nan where nobody knew.
        self._usual: Floats = np.full(len(features.steps), np.nan)
        #: Of each step, how many times as often its GPM came the last time.
        self.relative: Floats = np.ones(len(features.steps))

    def see(self, gpm: str, solutions: float) -> None:
        """Some events come with so many solutions of a GPM."""
        self._came[gpm] = self._came.get(gpm, 0.0) + solutions

    def pass_by(self, events: float, lived: Floats, keep: float) -> None:
        """So many events have passed, and of what was counted a share is kept.

        ``lived``: of each gate, how many events its partial matches lived through, as the sketch counts it.
        """
        if events <= 0:
            return
        often = np.array([self._came.get(step.gpm, 0.0) / events for step in self._features.steps])
        self._came.clear()
        self._met += np.maximum(lived - self._lived, 0.0)[self._gates] * often
        self.relative = np.where(np.isnan(self._usual), 1.0, often / self._usual)
        self._lived, self._met = lived * keep, self._met * keep

    def rate(self, window: float) -> None:
        """Rates are calculated by what was counted. A window has so many events."""
        lived = self._lived[self._gates]
        usual = np.maximum(self._met / np.maximum(lived, 1e-12), _FEWEST / window)
        self._usual = np.where(lived > 0, usual, np.nan)

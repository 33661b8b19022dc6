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
        # Of each step, the classes at its gate.
        self._own = [
            slice(int(features.bases[step.gate]), int(features.bases[step.gate]) + features.size(step.source))
            for step in features.steps
        ]
        # Since the last time: how many solutions came of each GPM.
        self._came: dict[str, float] = {}
        # Of each class, the events that its partial matches lived through, up to the last time; and of each
        # step how many of its GPM they met, by class, if all were shown them.
        self._lived: Floats = np.zeros(features.classes)
        self._met = [np.zeros(own.stop - own.start) for own in self._own]
        #: Of each step, how often its GPM comes in an event: the last time, and as rates have it.
        self.often: Floats = np.ones(len(features.steps))
        self.usual: Floats = np.ones(len(features.steps))

    def see(self, gpm: str, solutions: float) -> None:
        """Some events come with so many solutions of a GPM."""
        self._came[gpm] = self._came.get(gpm, 0.0) + solutions

    def pass_by(self, events: float, lived: Floats, keep: float) -> None:
        """So many events have passed, and of what was counted a share is kept.

        ``lived``: of each class, how many events its partial matches lived through, as the sketch counts it.
        """
        if events <= 0:
            return
        self.often = np.array([self._came.get(step.gpm, 0.0) / events for step in self._features.steps])
        self._came.clear()
        new = np.maximum(lived - self._lived, 0.0)
        self._met = [
            keep * (met + each * new[own])
            for met, each, own in zip(self._met, self.often, self._own, strict=True)
        ]
        self._lived = keep * lived

    def level(self, gates: tuple[int, ...], lived: Floats) -> None:
        """What was counted at some gates is that of all their codes."""
        for i, (step, own) in enumerate(zip(self._features.steps, self._own, strict=True)):
            if step.gate in gates:
                self._met[i] = lived[own] * (self._met[i].sum() / max(lived[own].sum(), 1e-12))
        self._lived = lived.copy()

    def rate(self, goes: Floats, window: float) -> None:
        """Rates are calculated by what was counted. A window has so many events.

        ``goes``: by class, how often in an event one goes on. Who goes on often is kept when much comes, and
        others are shed: what rates are of is what those met that went on.
        """
        for i, (met, own) in enumerate(zip(self._met, self._own, strict=True)):
            lived = float(goes[own] @ self._lived[own])
            self.usual[i] = max(float(goes[own] @ met) / max(lived, 1e-12), _FEWEST / window)

"""What was shed, or not shown an event: what it would have become by now, by what is known *now*.

When most is shed, little is known yet, and what was thought of it then is far off. So it is kept how many
of each class were shed, by age, in each of the latest eighths of a window, and what these are worth is
calculated anew and anew. Little by little the worth of what was shed before a window stays as it is: what is
learned now may not be true of then. The same is done with those that were not shown an event: what it would
have made of them is lost, with all that would have come of that.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as k
from spaseq.matching.shedding.learned.features import Codes, Features

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Of what was shed a window ago and before, the worth of such a share is settled in each eighth of a window.
_SETTLED: Final = 1 / 16
#: Worth is calculated anew after such a part of an eighth of a window.
_ANEW: Final = 1 / 8


class Forgone:
    """Partial matches that were shed, by class and age; ``missed_of`` has the matches that they would be by
    now, by class.
    """

    def __init__(self, features: Features, gates: Ints) -> None:
        """``gates``: of each class, its gate."""
        self._features, self._gates, left = features, gates, _left(features)
        # Of what was shed, and of what an event would have made of those that were not shown it, how many
        # events are left to a match.
        self._left: Ints = np.stack([left, left - 1])
        # Both by eighths of a window, the latest first: none of queries that never shed.
        self._lately: Floats = np.zeros((0, 2, features.classes, k.AGES))
        self._before: Floats = np.zeros((2, features.classes, k.AGES))
        self.missed_of: Floats = np.zeros(features.classes)
        # Those of what is settled.
        self._settled = np.zeros_like(self.missed_of)
        # Which part of the eighth at hand is over, and what has passed since worth was calculated.
        self._over = self._passed = 0.0

    @property
    def missed(self) -> float:
        """The matches that what was shed would have become by now."""
        return float(self.missed_of.sum())

    def add(self, shed: Ints) -> None:
        """So many partial matches of each cell were shed."""
        self._add(shed, 0)

    def pass_over(self, passed: Ints) -> None:
        """So many partial matches of each cell were not shown an event."""
        self._add(passed, 1)

    def _add(self, cells: Ints, what: int) -> None:
        if not len(self._lately):
            self._lately = np.zeros((k.AGES, 2, self._features.classes, k.AGES))
        self._lately[0, what] += cells.reshape(-1, k.AGES)

    def pass_by(self, ages: float, worth: Floats) -> None:
        """So many eighths of a window have passed.

        ``worth``: the matches that one partial match of each class and age brings, and those that an event
        does that it is shown.
        """
        if not len(self._lately):
            return
        self._over += ages
        self._passed += ages
        for _ in range(min(int(self._over), k.AGES)):
            self._turn(worth)
        self._over %= 1.0
        if self._passed >= _ANEW:
            self._passed = 0.0
            come = self._come(np.concatenate([[self._over / 2], self._over + np.arange(k.AGES - 1) + 0.5]))
            lately = (self._lately * come[:, :, self._gates]).sum(axis=0)
            self.missed_of = ((lately + self._before) * worth).sum(axis=(0, 2)) + self._settled

    def recode(self, place: Codes, feature: int, moved: Floats) -> None:
        """Of each level of a feature of a place, such shares are in each level now."""
        axis, shape = 1 + feature - place.begin, (*self._features.shape(place), k.AGES)
        for gate in place.gates:
            begin = int(self._features.bases[gate])
            for counted in (*self._lately.reshape(-1, *self._before.shape[1:]), *self._before):
                own = counted[begin : begin + place.size].reshape(shape)
                own[:] = np.moveaxis(np.tensordot(moved, own, axes=(0, axis)), 0, axis)

    def _turn(self, worth: Floats) -> None:
        """An eighth of a window is over."""
        self._before += self._lately[-1]
        self._settled += _SETTLED * (self._before * worth).sum(axis=(0, 2))
        self._before *= 1 - _SETTLED
        self._lately = np.roll(self._lately, 1, axis=0)
        self._lately[0] = 0.0

    def _come(self, since: Floats) -> Floats:
        """Which share of the matches has come so many eighths of a window later, by kind, gate and age.

        The last of several events comes late in what is left of a window.
        """
        rest = k.AGES - 0.5 - np.arange(k.AGES)
        return np.asarray(np.minimum(since[:, None, None, None] / rest, 1.0) ** self._left[..., None])


def _left(features: Features) -> Ints:
    """How many events are left to a match at each gate, at least."""
    left = np.ones(len(features.bases), dtype=np.int64)
    for _ in features.places:
        for step in features.steps:
            left[step.gate] = 1 + min((left[gate] for gate in features.places[step.target].gates), default=0)
    return left

"""What was shed, or not shown an event: what it would have become by now, by what is known *now*.

When most is shed, little is known yet, and what was thought of it then is far off. So it is kept how many
of each class were shed, by age, in each of the latest eighths of a window, and what these are worth is
calculated anew and anew. Little by little the worth of what was shed before a window stays as it is: what is
learned now may not be true of then. The same is done with those that were not shown an event: what it would
have made of them is lost, with all that would have come of that.

How much of it would have come by now is not told by time alone, but by how often the events came that it was
to go on by: in a quiet time next to nothing comes of what is shed, and in a rush all of it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as k
from spaseq.matching.shedding.learned.arrivals import Arrivals
from spaseq.matching.shedding.learned.features import Codes, Features

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Of what was shed a window ago and before, the worth of such a share is settled in each eighth of a window.
_SETTLED: Final = 1 / 16
#: Worth is calculated anew after such a part of an eighth of a window. Of the first one, after such a part of
#: what is over of it: it may be all that there is.
_ANEW: Final = 1 / 8
#: The age of who is in the middle of a window.
_HALF: Final = k.AGES // 2


class Forgone:
    """Partial matches that were shed, by class and age; ``missed_of`` has the matches that they would be by
    now, by class.
    """

    def __init__(self, features: Features, gates: Ints) -> None:
        """``gates``: of each class, its gate."""
        self._features, self._gates = features, gates
        # Of each gate, the steps that are left to a match. Of what was shed; what an event would have made of
        # those that were not shown it has the first one behind it.
        self._left = _left(features)
        self._ways = self._left, [left[1:] for left in self._left]
        # How often events came by which each step is taken, in each of the latest eighths: as many times as
        # there are events in one.
        self._came: Floats = np.zeros((k.AGES, len(features.steps)))
        # Both by eighths of a window, the latest first: none of queries that never shed.
        self._lately: Floats = np.zeros((0, 2, features.classes, k.AGES))
        self._before: Floats = np.zeros((2, features.classes, k.AGES))
        # How often events come of each step, as worth is calculated.
        self._usual: Floats = np.ones(len(features.steps))
        self.missed_of: Floats = np.zeros(features.classes)
        # Those of what is settled.
        self._settled = np.zeros_like(self.missed_of)
        # While no window has ended, they are by pieces: where the latest begins, in events since the first.
        self._begun = 0.0
        # Which part of the eighth at hand is over, and what has passed since worth was calculated.
        self._over = self._passed = 0.0
        self._is_first = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing was shed or passed over so far."""
        return not len(self._lately)

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
        if self.is_empty:
            self._lately = np.zeros((k.AGES, 2, self._features.classes, k.AGES))
        self._lately[0, what] += cells.reshape(-1, k.AGES)

    def pass_by(self, ages: float, worth: Floats, arrivals: Arrivals | None = None) -> None:
        """So many eighths of a window have passed.

        ``worth``: the matches that one partial match of each class and age brings, and those that an event
        does that it is shown. ``arrivals``: how often events came meanwhile, and usually do, by which that is
        calculated.
        """
        if self.is_empty:
            return
        often = self._usual if arrivals is None else arrivals.often
        if arrivals is not None:
            self._usual = arrivals.usual
        self._passed += ages
        ages = min(ages, 2.0 * k.AGES)
        while ages > 0.0:
            part = min(ages, 1.0 - self._over)
            self._came[0] += part * often
            self._over += part
            ages -= part
            if self._over > 1.0 - 1e-9:
                self._turn(worth)
        if self._passed >= _ANEW * (self._over if self._is_first else 1.0):
            self._passed = 0.0
            lately = (self._lately * self._come()[:, :, self._gates]).sum(axis=0)
            self.missed_of = self._worth(lately + self._before, worth) + self._settled

    def stay_open(self, events: float, age: float, worth: Floats) -> None:
        """So many events have passed, and no window has ended so far: it is thought to be half over.

        ``age``: how many events an eighth of it has then.
        """
        if self.is_empty:
            return
        self._over += events
        if self._over >= 2 * self._begun:  # the latest piece begins here, each other one is half as far
            self._begun = self._over
            self._lately[-2] += self._lately[-1]
            self._lately = np.roll(self._lately, 1, axis=0)
            self._lately[0] = 0.0
        begins = self._begun * 0.5 ** np.arange(k.AGES)
        begins[-1] = 0.0
        middle = (begins + np.concatenate([[self._over], begins[:-1]])) / 2
        share = np.minimum((self._over - middle) / age / (k.AGES - 0.5 - _HALF), 1.0)
        left = np.array([[len(way) for way in kind] for kind in self._ways])
        come = (share[:, None, None] ** left)[:, :, self._gates]
        self.missed_of = (self._lately.sum(axis=3) * come * worth[:, :, _HALF]).sum(axis=(0, 1))

    def settle(self) -> None:
        """The first window has ended: what was shed in it has come to all that it would have."""
        self._settled = self.missed_of.copy()
        self._lately[:] = 0.0
        self._over = 0.0

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
        self._before += self._lately[-1] * self._come(k.AGES - 1)[0][:, self._gates]
        self._settled += _SETTLED * self._worth(self._before, worth)
        self._before *= 1 - _SETTLED
        for lately in (self._lately, self._came):
            lately[1:] = lately[:-1].copy()
            lately[0] = 0.0
        self._over, self._is_first = 0.0, False

    def _worth(self, forgone: Floats, worth: Floats) -> Floats:
        """The matches of what was shed, times how often events came, by class."""
        often = self._usual.tolist()
        usual = np.array([[math.prod(often[i] for i in left) for left in kind] for kind in self._ways])
        return np.asarray(((forgone * worth).sum(axis=2) / usual[:, self._gates]).sum(axis=0))

    def _come(self, begin: int = 0) -> Floats:
        """Which share of the matches has come, by the eighth of what was shed, its kind, gate and age: times
        how often events come. Of the eighths from the ``begin``-th on.

        The last of several events comes late in what is left of a window.
        """
        # Backwards from now: where eighths begin, and how often events of each step came since then.
        begins = np.concatenate([[0.0], self._over + np.arange(k.AGES)])
        came = np.concatenate([np.zeros((1, self._came.shape[1])), self._came.cumsum(axis=0)])
        since = ((begins[:-1] + begins[1:]) / 2)[begin:]
        rest = k.AGES - 0.5 - np.arange(k.AGES)
        until = np.maximum(since[:, None] - rest, 0.0)
        share = [
            (np.interp(since, begins, step)[:, None] - np.interp(until, begins, step)) / rest
            for step in came.T
        ]
        come = np.ones((len(since), len(self._ways), len(self._left), k.AGES))
        for kind, ways in enumerate(self._ways):
            for gate, way in enumerate(ways):
                for step in way:
                    come[:, kind, gate] *= share[step]
        return come


def _left(features: Features) -> list[tuple[int, ...]]:
    """Of each gate, the fewest steps that lead from there to a match."""
    left = dict[int, tuple[int, ...]]()
    for _ in features.places:
        for number, step in enumerate(features.steps):
            gates = features.places[step.target].gates
            ways = [left[gate] for gate in gates if gate in left]
            if gates and not ways:
                continue
            way = number, *min(ways, key=len, default=())
            if step.gate not in left or len(way) < len(left[step.gate]):
                left[step.gate] = way
    return [left.get(gate, ()) for gate in range(len(features.bases))]


def ended(events: float, age: float) -> Floats:
    """By age, how many of so many events one lives through whose window ends before the last of them.

    On average over all of an age, which has ``age`` events: 0 of the others.

    >>> ended(4, 16.0)[-2:].tolist()  # in the last age, the window of a quarter ends, of each after two
    [0.0, 0.5]
    """
    left = age * np.arange(k.AGES)[::-1]
    return np.asarray((np.clip(events, left, left + age) ** 2 - left**2) / (2 * age))

"""The burst filter: partial matches that promise least for the work are not shown an event.

What an event takes on average is kept by shedding, before it comes. That a few events in a row take many
times as much is not known before; and to shed what they are to be shown would lose what matches are of.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.nfa.records import header as mem
from spaseq.matching.shedding import _kernel_burst as k
from spaseq.matching.shedding.cost_model import CostModel
from spaseq.matching.shedding.overload import Seldom

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A bound is of what so many events take on average.
_EVENTS: Final = 64
#: From where on of that, but for what events take by themselves, something is passed over, and where most is;
#: of the load at hand, the part that promises most is always shown: of it most matches come.
_FROM: Final = 0.85
_TO: Final = 1.0
_SHOWN: Final = 0.5
#: But where all partial matches are worth the same, so is what is passed over: from where on less than that
#: is shown, and from where on none.
_OVER: Final = 1.1
_END: Final = 1.25
#: What would take more than this is not shown, however much it promises.
_MOST: Final = 1.6
#: Below this part, what an event would be shown to is not looked at; and nothing is passed over of an event
#: that takes less than this.
_CALM: Final = 0.5
_LITTLE: Final = 0.25
#: So many partial matches there is room for at first.
_SOME: Final = 1_024


class BurstFilter:
    """What the latest events took, of a ``bound`` in seconds, and which partial matches are passed over."""

    def __init__(self, sketch: CostModel, bound: float, clock: Callable[[], float]) -> None:
        self._sketch, self._bound, self._clock = sketch, bound, clock
        self._took, self._taken = deque([0.0] * (_EVENTS - 1), _EVENTS - 1), 0.0
        self._costs = Costs()
        self._listed: Ints = np.zeros(_SOME, dtype=np.int64)
        self._times: Ints = np.zeros_like(self._listed)
        self._cells: Ints = np.zeros_like(self._listed)
        # Whether some may be passed over now, and how many: the first ones listed; -1 if not known.
        self._is_on, self._count = False, 0
        # How often something would be shown, by cell, and behind all to those of which nothing is known.
        self._loads: Ints = np.zeros(sketch.alive.size + 1, dtype=np.int64)
        # Of each cell the promise; the loads of cells, the best first, as a running total; for how many
        # events these have been used.
        self._promise: Floats = np.zeros_like(sketch.alive, dtype=np.float64)
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._total: Floats = np.zeros(0)
        self._used, self._promising = _EVENTS, Seldom()
        # How often one was passed over, by cell.
        self.passed: Ints = np.zeros_like(sketch.alive)

    def load(self, tables: Ints, ints: Ints, batch: Ints, known: Ints) -> None:
        """Has compiled code ready, which takes a while to be loaded. ``batch`` is of no event."""
        count, _ = self._list(tables, ints, batch, known, 0, 0)
        self._passed(ints, -np.inf, 1.0, count)
        k.show(ints, self._listed, 0)
        k.show_all(tables, ints)

    @property
    def latency(self) -> float:
        """The seconds that an event took of late."""
        return self._taken / len(self._took)

    def leaves(self, seconds: float) -> bool:
        """Whether the latest events leave so many seconds of what so many may take."""
        return _EVENTS * self._bound - self._taken >= seconds

    def took(self, events: int, seconds: float) -> None:
        """So many events took so many seconds."""
        self._took.extend([seconds / events] * min(events, _EVENTS))
        self._taken = sum(self._took)
        self._used += events
        self._promising.worked(seconds)

    def worked(self, events: int, seconds: float, alone: float) -> None:
        """So many events took so many seconds, without what is done between them; ``alone``: see below."""
        self._costs.worked(seconds - events * alone)

    def pass_over(
        self,
        tables: Ints,
        ints: Ints,
        batch: Ints,
        known: Ints,
        unit: float,
        alone: float,
        axis: int,
        now: int,
    ) -> tuple[int, int]:
        """Passes over some that the events of a batch would be shown to, until ``show``, or the next batch.

        ``unit``: the seconds that it takes to show one an event; ``alone``: those that an event takes by
        itself, which none of them is to blame for. How many were looked at, and how many are passed over:
        counted by cell in ``passed``, too.
        """
        self.show(tables, ints, moved=True)  # whoever was interrupted did not
        room = _EVENTS * (self._bound - alone)
        taken = self._taken - _EVENTS * alone
        if room <= 0 or taken < _CALM * room or not unit:
            self._costs.skip()
            return 0, 0
        begin = self._clock()
        self._is_on, self._count = True, -1
        count, shows = self._list(tables, ints, batch, known, axis, now)
        comes = shows * unit / room
        least, share = -np.inf, 1.0
        if comes * _EVENTS > _LITTLE:
            taken /= room
            if taken + comes > _FROM:
                self._learn()
                shown = 1 - (1 - _SHOWN) * min(1.0, (taken + comes - _FROM) / (_TO - _FROM))
                over = min(1.0, max(0.0, (taken + comes - _OVER) / (_END - _OVER)))
                least = self._least(shown * (1 - self._sketch.even * over))
            left = _MOST * _EVENTS * self._bound - self._taken - alone - (self._clock() - begin)
            within = self._within(self._costs.shows(left, shows))
            least, share = within if within[0] >= least else (least, 1.0)
        self._count = self._passed(ints, least, share, count)
        self._costs.listed(shows, max(0, shows - int(self.passed.sum())), self._clock() - begin)
        return count, self._count

    def _list(
        self, tables: Ints, ints: Ints, batch: Ints, known: Ints, axis: int, now: int
    ) -> tuple[int, int]:
        """How many the events of a batch would be shown to, and how often; they are listed."""
        if (live := int(ints[mem.LIVE_WAITS])) > len(self._listed):
            self._listed, self._times, self._cells = np.zeros((3, 2 * live), dtype=np.int64)
        bases = self._sketch.features.bases
        return k.to_show(
            tables, ints, batch, known, bases, self._listed, self._times, self._cells, self._loads, axis, now
        )

    def _passed(self, ints: Ints, least: float, share: float, count: int) -> int:
        """How many of so many that are listed do not promise more than that, and are passed over."""
        return k.pass_over(
            ints, self._promise, least, share, self._listed, self._times, self._cells, count, self.passed
        )

    def _within(self, most: float) -> tuple[float, float]:
        """What those promise at most that are passed over, for no more than so many to be shown: and which
        share of those that promise as much is shown.
        """
        loads = self._loads[:-1]
        most = max(0.0, most - self._loads[-1])
        if loads.sum() <= most:
            return -np.inf, 1.0
        self._learn()
        some = np.flatnonzero(loads)
        loads, promise = loads[some], self._promise[some]
        order = np.argsort(-promise, kind="stable")
        least = promise[order[np.searchsorted(np.cumsum(loads[order]), most, side="right")]]
        before, at = loads[promise > least].sum(), loads[promise == least].sum()
        return float(least), float((most - before) / at)

    def show(self, tables: Ints, ints: Ints, *, moved: bool) -> None:
        """End passing over. ``moved``: partial matches may stand elsewhere in memory now."""
        if self._is_on and self._count != 0:
            if moved or self._count < 0:
                k.show_all(tables, ints)
            else:
                k.show(ints, self._listed, self._count)
        self._is_on, self._count = False, 0

    def _least(self, share: float) -> float:
        """What the best ones promise at least, which are such a share of the load there is."""
        if not len(self._order):
            return -np.inf
        last = int(np.searchsorted(self._total, share * self._total[-1]))
        return float(self._promise[self._order[min(last, len(self._order) - 1)]])

    def _learn(self) -> None:
        """What partial matches promise, now and then."""
        if self._used < _EVENTS or not self._promising.is_due:
            return
        begin = self._clock()
        self._used = 0
        s = self._sketch
        if not s.is_planned:
            s.plan(np.inf)  # no plan was made, as there is time enough on average
        gain, work = s.at_once()
        self._promise = (gain / np.maximum(work, 1e-12)[:, None]).ravel()
        loads = s.alive * s.load().repeat(gain.shape[1])
        some = np.flatnonzero(loads)
        self._order = some[np.argsort(-self._promise[some], kind="stable")]
        self._total = np.cumsum(loads[self._order])
        self._promising.took(self._clock() - begin)


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
        """Note an event of which it is unknown what it was shown to."""
        self._skipped = True

    def listed(self, count: int, shown: int, seconds: float) -> None:
        """Count partial matches listed, those of them shown an event, and the seconds that listing took."""
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
        """How many of those ``listed`` can be shown an event in these seconds."""
        if not self._shows or not self._showing:
            return math.inf
        return max(0.0, seconds - self._visit * listed) / (self._showing / self._shows)

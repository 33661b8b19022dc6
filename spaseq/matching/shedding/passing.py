"""A burst: of the partial matches that an event would be shown to, those that promise least are passed over.

What an event takes on average is kept by shedding, before it comes. That a few events in a row take many
times as much is not known before; and to shed what they are to be shown would lose what matches are of.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.kernel.records import header as mem
from spaseq.matching.shedding.compiled import _kernel_passed as k
from spaseq.matching.shedding.learned.sketch import Sketch

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
#: Less than this of it, nobody asks what an event is to be shown; and nothing is passed over of an event
#: that takes less than this.
_CALM: Final = 0.5
_LITTLE: Final = 0.25
#: So many partial matches there is room for at first.
_SOME: Final = 1_024


class Passing:
    """What the latest events took, of a ``bound`` in seconds, and who is passed over for it."""

    def __init__(self, sketch: Sketch, bound: float) -> None:
        self._sketch, self._bound = sketch, bound
        self._took, self._taken = deque([0.0] * (_EVENTS - 1), _EVENTS - 1), 0.0
        self._listed: Ints = np.zeros(_SOME, dtype=np.int64)
        self._times: Ints = np.zeros_like(self._listed)
        self._count = 0
        # Of each cell the promise; the loads of cells, the best first, as a running total; for how many
        # events these have been used.
        self._promise: Floats = np.zeros_like(sketch.alive, dtype=np.float64)
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._total: Floats = np.zeros(0)
        self._used = _EVENTS
        # How often one was passed over, by cell.
        self.passed: Ints = np.zeros_like(sketch.alive)

    def load(self, tables: Ints, ints: Ints, batch: Ints, known: Ints) -> None:
        """Has compiled code ready, which takes a while to be loaded. ``batch`` is of no event."""
        count, _ = k.to_show(tables, ints, batch, self._listed, self._times)
        self._passed(tables, ints, known, -np.inf, count, 0, 0)
        k.show(ints, self._listed, 0)
        k.show_all(tables, ints)

    @property
    def latency(self) -> float:
        """The seconds that an event took of late."""
        return self._taken / len(self._took)

    def took(self, events: int, seconds: float) -> None:
        """So many events took so many seconds."""
        self._took.extend([seconds / events] * min(events, _EVENTS))
        self._taken = sum(self._took)
        self._used += events

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
        """Passes over some that the events of a batch would be shown to, until ``show``.

        ``unit``: the seconds that it takes to show one an event; ``alone``: those that an event takes by
        itself, which none of them is to blame for. How many were looked at, and how many are passed over:
        counted by cell in ``passed``, too.
        """
        room = _EVENTS * (self._bound - alone)
        taken = self._taken - _EVENTS * alone
        if room <= 0 or taken < _CALM * room or not unit:
            return 0, 0
        taken /= room
        if (live := int(ints[mem.LIVE_WAITS])) > len(self._listed):
            self._listed, self._times = np.zeros((2, 2 * live), dtype=np.int64)
        count, shows = k.to_show(tables, ints, batch, self._listed, self._times)
        comes = shows * unit / room
        least = -np.inf
        if taken + comes > _FROM and comes * _EVENTS > _LITTLE:
            shown = 1 - (1 - _SHOWN) * min(1.0, (taken + comes - _FROM) / (_TO - _FROM))
            over = min(1.0, max(0.0, (taken + comes - _OVER) / (_END - _OVER)))
            least = self._least(shown * (1 - self._sketch.even * over))
        self._count = self._passed(tables, ints, known, least, count, axis, now)
        return count, self._count

    def _passed(
        self, tables: Ints, ints: Ints, known: Ints, least: float, count: int, axis: int, now: int
    ) -> int:
        """How many of so many that are listed promise less than that, and are passed over."""
        bases = self._sketch.features.bases
        return k.pass_over(
            tables, ints, known, bases, self._promise, least, self._listed, self._times, count, self.passed,
            axis, now,
        )  # fmt: skip

    def show(self, tables: Ints, ints: Ints, *, moved: bool) -> None:
        """Those that were passed over are shown what comes. ``moved``: they stand elsewhere now."""
        if self._count and moved:
            k.show_all(tables, ints)
        elif self._count:
            k.show(ints, self._listed, self._count)
        self._count = 0

    def _least(self, share: float) -> float:
        """What the best ones promise at least, which are such a share of the load there is."""
        if self._used >= _EVENTS:
            self._used = 0
            s = self._sketch
            if not s.is_planned:
                s.plan(np.inf)  # there may be time enough on average, so that nobody did
            gain, work = s.at_once()
            self._promise = (gain / np.maximum(work, 1e-12)[:, None]).ravel()
            loads = s.alive * s.load().repeat(gain.shape[1])
            some = np.flatnonzero(loads)
            self._order = some[np.argsort(-self._promise[some], kind="stable")]
            self._total = np.cumsum(loads[self._order])
        if not len(self._order):
            return -np.inf
        last = int(np.searchsorted(self._total, share * self._total[-1]))
        return float(self._promise[self._order[min(last, len(self._order) - 1)]])

"""The burst filter: in a burst, events are not shown to the partial matches that promise least for the work.

Shedding limits the average work of events, in advance. A burst is a few events in a row that take many times
as much work. It is not foreseen, and shedding the partial matches that its events are shown to would lose
later matches.
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
from spaseq.matching.shedding.observed import ObservedRuns
from spaseq.matching.shedding.overload import Seldom

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A bound holds on average over this many events.
_EVENTS: Final = 64
#: Passing over begins when the share ``_FROM`` of the bound, less the events' own time, is used. It is at its
#: maximum at the share ``_TO``. The share ``_SHOWN`` of the load, that which promises most, is always shown:
#: most matches come from it.
_FROM: Final = 0.85
_TO: Final = 1.0
_SHOWN: Final = 0.5
#: If all partial matches have the same utility, it does not matter which are passed over. Then less than
#: ``_SHOWN`` is shown from the share ``_OVER`` of the bound on, and nothing from ``_END`` on.
_OVER: Final = 1.1
_END: Final = 1.25
#: Work beyond this multiple of the bound is not done, whatever it promises.
_MOST: Final = 1.6
#: While less than the share ``_CALM`` of the bound is used, the load of the next events is not determined.
#: Nothing is passed over for events that take less than ``_LITTLE`` of the time of one event.
_CALM: Final = 0.5
_LITTLE: Final = 0.25
#: The initial room of the list.
_SOME: Final = 1_024


class BurstFilter:
    """The time of the latest events, relative to a ``bound`` in seconds; and the partial matches
    passed over.
    """

    def __init__(self, runs: ObservedRuns, bound: float, clock: Callable[[], float]) -> None:
        self._runs, self._bound, self._clock = runs, bound, clock
        self._took, self._taken = deque([0.0] * (_EVENTS - 1), _EVENTS - 1), 0.0
        self._costs = Costs()
        alive = runs.model.alive
        self._listing = self._room(_SOME, np.zeros(alive.size + 1, dtype=np.int64))
        # Whether partial matches may be passed over now, and how many are, at the beginning of the list; -1
        # if unknown.
        self._is_on, self._count = False, 0
        # The promise of each cell; the cells, the best first, and the running total of their loads; and for
        # how many events these have been used.
        self._promise: Floats = np.zeros_like(alive, dtype=np.float64)
        self._order: Ints = np.zeros(0, dtype=np.int64)
        self._total: Floats = np.zeros(0)
        self._used, self._promising = _EVENTS, Seldom()
        # How often a partial match was passed over, by cell.
        self.passed: Ints = np.zeros_like(alive)

    @staticmethod
    def _room(size: int, loads: Ints) -> k.Listing:
        """Return room for this many waits."""
        waits, times, cells = np.zeros((3, size), dtype=np.int64)
        return k.Listing(waits, times, cells, loads, size)

    def load(self, batch: Ints) -> None:
        """Load compiled code, which takes a while. ``batch`` has no event."""
        count, _ = self._list(batch)
        self._passed(-np.inf, 1.0, count)
        k.show(self._runs.memory.ints, self._listing.waits, 0)
        k.show_all(self._runs.features.tables, self._runs.memory.ints)

    @property
    def latency(self) -> float:
        """The recent average time of an event, in seconds."""
        return self._taken / len(self._took)

    def leaves(self, seconds: float) -> bool:
        """Return whether the latest events have left at least ``seconds`` of their common bound."""
        return _EVENTS * self._bound - self._taken >= seconds

    def took(self, events: int, seconds: float) -> None:
        """Add the seconds that events took."""
        self._took.extend([seconds / events] * min(events, _EVENTS))
        self._taken = sum(self._took)
        self._used += events
        self._promising.worked(seconds)

    def worked(self, events: int, seconds: float, alone: float) -> None:
        """Add the seconds that events took, without the work between them; ``alone``: see ``pass_over``."""
        self._costs.worked(seconds - events * alone)

    def pass_over(self, batch: Ints, unit: float, alone: float) -> tuple[int, int]:
        """Pass over partial matches that the events of a batch would be shown to, until ``show``, or the next
        batch.

        ``unit``: the seconds to show an event to one partial match; ``alone``: the seconds of an event
        itself, without partial matches. Returns how many were listed, and how many are passed over, which
        ``passed`` counts by cell.
        """
        self.show(moved=True)  # an interrupted call did not do this
        room = _EVENTS * (self._bound - alone)
        taken = self._taken - _EVENTS * alone
        if room <= 0 or taken < _CALM * room or not unit:
            self._costs.skip()
            return 0, 0
        begin = self._clock()
        self._is_on, self._count = True, -1
        count, shows = self._list(batch)
        comes = shows * unit / room
        least, share = -np.inf, 1.0
        if comes * _EVENTS > _LITTLE:
            taken /= room
            if taken + comes > _FROM:
                self._learn()
                shown = 1 - (1 - _SHOWN) * min(1.0, (taken + comes - _FROM) / (_TO - _FROM))
                over = min(1.0, max(0.0, (taken + comes - _OVER) / (_END - _OVER)))
                least = self._least(shown * (1 - self._runs.model.even * over))
            left = _MOST * _EVENTS * self._bound - self._taken - alone - (self._clock() - begin)
            within = self._within(self._costs.shows(left, shows))
            least, share = within if within[0] >= least else (least, 1.0)
        self._count = self._passed(least, share, count)
        self._costs.listed(shows, max(0, shows - int(self.passed.sum())), self._clock() - begin)
        return count, self._count

    def _list(self, batch: Ints) -> tuple[int, int]:
        """List the partial matches that the events of a batch would be shown to; return how many there are,
        and how often a row would be shown to one of them.
        """
        runs = self._runs
        if (live := int(runs.memory.ints[mem.LIVE_WAITS])) > self._listing.room:
            self._listing = self._room(2 * live, self._listing.loads)
        return k.to_show(runs.machine, runs.learned, runs.instant(*runs.place), batch, self._listing)

    def _passed(self, least: float, share: float, count: int) -> int:
        """Pass over the listed partial matches that promise less than ``least``. Of the partial matches that
        promise as much, pass over all but a ``share``. Return how many are passed over.
        """
        ints, promise = self._runs.memory.ints, self._promise
        return k.pass_over(ints, self._listing, count, promise, least, share, self.passed)

    def _within(self, most: float) -> tuple[float, float]:
        """Return the promise up to which partial matches are passed over, so that at most ``most`` rows are
        shown. Also return the share to show of those with exactly that promise.
        """
        loads = self._listing.loads[:-1]
        most = max(0.0, most - self._listing.loads[-1])
        if loads.sum() <= most:
            return -np.inf, 1.0
        self._learn()
        some = np.flatnonzero(loads)
        loads, promise = loads[some], self._promise[some]
        order = np.argsort(-promise, kind="stable")
        least = promise[order[np.searchsorted(np.cumsum(loads[order]), most, side="right")]]
        before, at = loads[promise > least].sum(), loads[promise == least].sum()
        return float(least), float((most - before) / at)

    def show(self, *, moved: bool) -> None:
        """End passing over. ``moved``: partial matches may have been moved in memory."""
        if self._is_on and self._count != 0:
            ints = self._runs.memory.ints
            if moved or self._count < 0:
                k.show_all(self._runs.features.tables, ints)
            else:
                k.show(ints, self._listing.waits, self._count)
        self._is_on, self._count = False, 0

    def _least(self, share: float) -> float:
        """Return the least promise among the most promising partial matches that make up this share of the
        load.
        """
        if not len(self._order):
            return -np.inf
        last = int(np.searchsorted(self._total, share * self._total[-1]))
        return float(self._promise[self._order[min(last, len(self._order) - 1)]])

    def _learn(self) -> None:
        """Compute the promise of partial matches, now and then."""
        if self._used < _EVENTS or not self._promising.is_due:
            return
        begin = self._clock()
        self._used = 0
        s = self._runs.model
        if not s.is_planned:
            s.plan(np.inf)  # no plan was made: on average there is time enough
        gain, work = s.at_once()
        self._promise = (gain / np.maximum(work, 1e-12)[:, None]).ravel()
        loads = s.alive * s.load().repeat(gain.shape[1])
        some = np.flatnonzero(loads)
        self._order = some[np.argsort(-self._promise[some], kind="stable")]
        self._total = np.cumsum(loads[self._order])
        self._promising.took(self._clock() - begin)


#: The share of old measurements that is forgotten at each new one.
_FORGET: Final = 1 / 32


class Costs:
    """Seconds to list a partial match, and to show it an event."""

    def __init__(self) -> None:
        # Moving averages. For listing: the partial matches, and the seconds. For showing them events: the
        # same.
        self._visits = self._visiting = 0.0
        self._shows = self._showing = 0.0
        # Since the last measurement: how many were listed, how many of them were shown an event, the seconds
        # of listing; and whether an event was shown without listing.
        self._listed = self._shown = 0
        self._listing, self._skipped = 0.0, False

    def skip(self) -> None:
        """Note an event for which nothing was listed."""
        self._skipped = True

    def listed(self, count: int, shown: int, seconds: float) -> None:
        """Count partial matches listed, those of them shown an event, and the seconds that listing took."""
        self._visits += _FORGET * (count - self._visits)
        self._visiting += _FORGET * (seconds - self._visiting)
        self._listed += count
        self._shown += shown
        self._listing += seconds

    def worked(self, seconds: float) -> None:
        """Add the seconds of events, without the events' own time."""
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
        """Return how many of the ``listed`` partial matches can be shown an event in these seconds."""
        if not self._shows or not self._showing:
            return math.inf
        return max(0.0, seconds - self._visit * listed) / (self._showing / self._shows)

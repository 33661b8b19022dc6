"""Looks at the partial matches between events: learns of them, and sheds what is too much."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.effort import Policy
from spaseq.matching.kernel.records import header as mem
from spaseq.matching.kernel.tables.analysis import Compiled
from spaseq.matching.shedding.bounded import Bounded
from spaseq.matching.shedding.compiled import _kernel_known as cells
from spaseq.matching.shedding.compiled import _kernel_passes as k
from spaseq.matching.shedding.learned.queries import Queries
from spaseq.matching.shedding.measured.overload import Overload, late
from spaseq.matching.shedding.measured.seldom import Seldom
from spaseq.matching.shedding.selecting import Selecting

Ints = npt.NDArray[np.int64]

#: A look at all partial matches begins when so many times as long was worked as the last one held events up.
#: Where all are worth the same it is twice as many, as then nothing is to be chosen.
_SELDOM: Final = 16
#: It waits for a time when it holds nobody up beyond the bound, until so many times as long was worked.
_LATE: Final = 1.5
#: A look is spread over events if it takes longer than so many may; what is known is fresher if it is not.
_BRIEF: Final = 8.0
#: Not so rarely that there is none in such a part of a window, or most partial matches come and go meanwhile.
_HALF: Final = 0.5
#: A plan is made anew after such a part of an age, from such a part of the bound on.
_PLANNED: Final = 0.25
_NEAR: Final = 0.8
#: How far partial matches are worth the same is that of late: so much of it is what the last plan says.
_SMOOTH: Final = 0.25


class Looking(Selecting):
    """The kernel, which sheds when it has looked at all its partial matches, and those that are new at once.

    When a look is due is for who calls it to say.
    """

    def __init__(
        self, query: Bounded, compiled: Compiled | None = None, queries: Queries | None = None
    ) -> None:
        """See ``Observed``."""
        super().__init__(query, compiled, queries)
        self._overload = None if query.effort.latency is None else Overload(query.effort.latency)
        # How many new ones are shed.
        self._scratch: Ints = np.zeros_like(self._sketch.alive)
        # Since the last look ended: events, and seconds of work and of the next look; what the last one
        # took, and held events up for.
        self._events, self._spent, self._looking, self._taken, self._pause = 0, 0.0, 0.0, 0.0, 0.0
        # What the look at hand has counted; at which of the events it began, and how many the last one took.
        self._began = self._between = 0
        self._counted: Ints = np.zeros_like(self._sketch.alive)
        # Of the work, what the overload detector knows.
        self._measured = 0.0
        # Of the events, the share that ``random-input`` lets in.
        self._admitted = 1.0
        # Events since a plan was made, and whether something was passed over.
        self._unplanned, self._passes = 0, False
        # When a plan may be made again, and when it may be told again what is missed; the events since then.
        self._planning, self._telling, self._untold = Seldom(), Seldom(), 0
        # Of the events since the last look ended, those that somebody who asked was told of.
        self._asked = 0
        # Seconds of the look at hand that both took.
        self._aside = 0.0

    def _look(self, axis: int, time: int, most: int) -> None:
        """Looks at ``most`` partial matches; learns, and sheds what is too much, when all have been seen.

        No event pays for them all: with each, as many are looked at as it was units of work. But if they are
        few, all are looked at.
        """
        begin = self._effort.clock()
        m = self._memory.ints
        places = int(m[mem.NEXT_WAIT] - m[mem.WAITS]) // int(m[mem.WIDTH]) - 1
        brief = self._overload is None or self._taken <= _BRIEF * (self._effort.latency or 0.0)
        if not self._hand:
            self._counted[:] = 0
            self._began = self._events
            most = places + 1 if brief else most
        # Those that are next were seen by the last look when it was as far on.
        middle = min(1.0, (self._hand + most / 2) / max(1, places))
        passed = self._events + self._between - min(self._between, int(middle * (self._between + 1)))
        self._hand, seen = self._visit(self._counted, axis, time, self._hand, most, passed)
        self._add_work(seen)
        if self._hand >= places:
            ending = self._effort.clock()
            self._looking += ending - begin
            self._planning.worked(self._spent)
            self._telling.worked(self._spent)
            self._aside = 0.0
            self._end_look(axis, time)
            self._pause = self._effort.clock() - ending - self._aside
            self._looking, self._taken = 0.0, self._looking + self._pause
            if brief:
                self._pause, self._between = self._taken, 0
            self._spent = self._measured = 0.0
        else:
            self._looking += self._effort.clock() - begin
        self._spent += self._effort.clock() - begin

    def _end_look(self, axis: int, time: int) -> None:
        """All partial matches have been looked at: learns of that, and sheds what is too much."""
        s, events = self._sketch, self._events
        self._between, self._events, self._hand = events - self._began, 0, 0
        s.outlive(events)
        s.alive[:] = self._counted
        s.window.pass_to(axis, self._given)
        s.decay(events)
        if s.learn():
            self._kept[:] = 1.0
            self._known[:] = 0
            self._observe(axis, time, counted=False)
        if self._overload is not None:
            self._load = self._loaded()
            share = self._overload.share(self._overload.lasting(self._load))
            self._overload.tell(self.shed, self._name)
            self._keep(share, axis, time, events)
        self._notice(events)

    def _welcome(self, axis: int, time: int) -> int:
        """Looks at the partial matches that the last events made; sheds of these where there is no room.

        How many of them began.
        """
        begin = self._effort.clock()
        s, f, m, numbers = self._sketch, self._features, self._memory, self._columns.numbers
        room = (
            math.inf if self._overload is None else self._overload.load - self._overload.lasting(self._load)
        )
        if self._admitted < 1 or self._doubt.matters:
            room = math.inf
        shed = self._scratch
        total, begun, load = k.welcome(
            f.tables, m.ints, m.floats, numbers.numbers, numbers.codes, self._known, f.ways, f.bases,
            *s.quantiles.arrays, s.counts, s.steps, s.alive, self._loads, self._kept, shed, self._next, axis,
            time, s.window.passed(self._given), room, self._draws,
        )  # fmt: skip
        self._load += load
        self._next = int(m.ints[mem.NEXT_WAIT])
        self._add_work(total)
        if shed.any():
            self._account.add(shed, self._sketch)
            shed[:] = 0
            self._account.begin(late(self._overload.expect(self._load) if self._overload else None))
        self._spent += self._effort.clock() - begin
        return begun

    @property
    def _paused(self) -> float:
        """The seconds that the next look is thought to hold events up for.

        With a plan, if there is one in each half of a window: in wide ones half as much was found where looks
        came as often as they could, by themselves.
        """
        if not self._sketch.window.is_timed or self._events >= _HALF * cells.AGES * self._sketch.window.age:
            return self._pause
        return self._pause + self._planning.seconds + self._telling.seconds

    @property
    def _since_seen(self) -> int:
        return self._events + self._between // 2

    def _keep(self, share: float, axis: int, time: int, events: int) -> None:
        """Sheds all but this share of the load.

        Nothing is shed before that, whatever it may cost some day: a burst passes, but what would have grown
        of a first event that was shed takes a window to grow again.
        """
        s, policy = self._sketch, self._effort.policy
        if policy is Policy.RANDOM_INPUT:
            self._admitted = min(1.0, max(0.01, self._admitted * (share if share < 1 else 1.02)))
            if share < 1:
                self._account.begin(late(self.shed.latency))
            return
        self._plan(events)
        self._loads = s.load()
        if share < 1 and self._shed(share, axis, time):
            self._sweep(axis, time, 0)
            self._observe(axis, time)
            self._load = self._loaded()
            self._account.begin(late(self.shed.latency))

    def _plan(self, events: int) -> None:
        """Now and then, what work must bring so that there is not too much of it.

        A plan takes several times as long as a look: who made one with each would look so seldom that most
        partial matches come and go meanwhile, and nobody knows how long they lived.
        """
        s, overload, begin = self._sketch, self._overload, self._effort.clock()
        self._unplanned += events
        if overload is None or overload.unit <= 0 or self._unplanned < _PLANNED * s.window.age:
            return
        if not self._planning.is_due:
            return
        if s.price > 0 or self._passes or (overload.latency or 0.0) > _NEAR * overload.most:
            self._passes = False
            s.plan(overload.most * 1.0 / overload.unit)
            self._unplanned = 0
            overload.even += _SMOOTH * (s.even - overload.even)
            self._planning.took(took := self._effort.clock() - begin)
            self._aside += took

    def _notice(self, events: int) -> None:
        """Now and then, says what is missed by now, and whether anything is shed these days."""
        self._untold += events - self._asked
        self._asked = 0
        if not self._telling.is_due:
            return
        begin = self._effort.clock()
        self._tell()
        if self._admitted >= 1 and self._account.is_over(self._sketch):
            self._account.end()
        self._telling.took(took := self._effort.clock() - begin)
        self._aside += took

    def update(self) -> None:
        """See ``Shedder.update``."""
        if not self._sketch.forgone.is_empty:
            self._tell()

    def _tell(self) -> None:
        """Says what is missed by now."""
        self._untold += self._events - self._asked
        self._asked = self._events
        self._account.pass_by(self._untold, self._sketch)
        self._untold = 0


def due(pause: float, even: float, *, waits: bool) -> float:
    """So many seconds of work after the last look that held events up for so many, the next one is due.

    ``even``: how far all partial matches are worth the same; ``waits``: the latest events leave it no time.
    """
    return (_LATE if waits else 1.0) * (1 + even) * _SELDOM * pause

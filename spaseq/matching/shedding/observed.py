"""The partial matches of an NFA matcher with counts: by state, by class of their values, by age."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.bounds import WorkClock
from spaseq.matching.filters._kernel_values import RunMachine
from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.nfa.memory import RunMemory
from spaseq.matching.nfa.records import header as mem
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.matching.shedding import _kernel_known as cells
from spaseq.matching.shedding import _kernel_passes as k
from spaseq.matching.shedding.cost_model import CostModel
from spaseq.matching.shedding.features import features
from spaseq.matching.shedding.query import BoundedQuery
from spaseq.matching.shedding.rates import Queries, only

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: The cost of observing a partial match, for a clock that counts work: much less than showing it an event.
_LOOK: Final = 1 / 16
#: A trial of an event on a ghost costs as much as this many observations: it reads both.
_TRIAL: Final = 2
#: At most this share of the work is spent on trials; missed ones are not made up for.
_TRIED: Final = 1 / 32
_MOST_TRIALS: Final = 64.0
#: The same for the search for partial matches ended by forbidden events.
_BURIED: Final = 1 / 16
_MOST_BURIED: Final = 1_024.0
#: The distances between events with exactly determined load. They are irregular, so that if kinds of events
#: alternate, it is not always the same kind.
_SAMPLED: Final = (1, 8, 11, 10, 5, 12, 15, 14, 9, 16, 3, 2, 13, 4, 7, 6)


class ObservedRuns:
    """The partial matches in a matcher's memory, which are counted between events (``_kernel_passes``).

    The counts, and which partial matches become matches, go to the cost model. Matching is not affected.
    """

    def __init__(
        self,
        query: BoundedQuery,
        compiled: NfaTables,
        memory: RunMemory,
        numbers: Numbers,
        queries: Queries | None,
    ) -> None:
        """``queries``: the queries of its matches, if there are several."""
        self.features = features(compiled, query.dictionary.pin)
        self.model = CostModel(self.features, query.window.reach, queries or only(len(compiled.accepts)))
        self.memory, self._numbers = memory, numbers
        self._work = query.bound.clock if isinstance(query.bound.clock, WorkClock) else None
        #: The load of each class, and the total.
        self.loads, self.load = np.zeros(self.features.classes), 0.0
        #: The next place of the current look. The place of the next new partial match.
        self.hand, self._next = 0, int(memory.ints[mem.NEXT_WAIT])
        #: Where the current events begin, on the window's axis and in time, and where they end; how many
        #: events have come.
        self.place, self.position, self.given = (0, 0), 0, 0
        #: Units of work since the last look. Events since the load of one was determined.
        self.units, self._since_shown = 0.0, 0
        # The distance to the next such event, and how many there were.
        self._apart, self._samples = _SAMPLED[0], 0
        # How many trials may be made; how many partial matches may be tested for being dead; and up to which
        # forbidden entry, and when, that was done.
        self._trials, self._burials = 0.0, 0.0
        self._buried, self._buried_at = 0, 0
        self._learned = self._learned_of(self._unknown())
        self._machine = self._machine_of()

    # --- the kernels' arguments ---

    @property
    def machine(self) -> RunMachine:
        """The arrays of the matcher."""
        old, ints = self._machine, self.memory.ints
        if old.m is not ints or old.n is not self._numbers.numbers or old.c is not self._numbers.codes:
            self._machine = self._machine_of()
        return self._machine

    def _machine_of(self) -> RunMachine:
        m, ids = self.memory, self._numbers
        return RunMachine(self.features.tables, m.ints, m.floats, m.ints, ids.numbers, ids.codes)

    @property
    def learned(self) -> cells.Learned:
        """The arrays of what is known."""
        return self._learned

    def _learned_of(self, known: Ints) -> cells.Learned:
        f, s = self.features, self.model
        arrays = s.quantiles.rows, s.quantiles.edges, s.quantiles.rings, s.counts, s.steps, self.loads
        return cells.Learned(known, f.ways, f.bases, *arrays, f.taken)

    def _unknown(self) -> Ints:
        return np.zeros(int(self.memory.ints[mem.MOST_NODES]) * cells.KNOWN_SIZE, dtype=np.int64)

    def instant(self, axis: int, time: int, events: int = 0) -> cells.Instant:
        """Return the instant of a pass; ``events``: how many have come since partial matches were last
        observed.
        """
        return cells.Instant(axis, time, self.model.window.passed(self.given), self.position, events)

    # --- events ---

    def rehearse(self, columns: Ints, *, moved: bool) -> None:
        """Try events on ghosts. ``moved``: the partial matches have been moved to another memory."""
        rehearsal = self.model.rehearsal
        if rehearsal is not None:
            if moved:
                rehearsal.forget()
            tried = rehearsal.take(self.machine, self._learned, columns, int(self._trials))
            self._trials -= tried
            self.add_work(_TRIAL * tried)

    def bury(self, since_seen: int) -> None:
        """Remove partial matches that forbidden events have ended, if these are found by a key.

        ``since_seen``: how many events have come since partial matches were last observed, on average.
        """
        ints = self.memory.ints
        if len(self.features.graves) and ints[mem.ENTRIES] + self._buried < ints[mem.NEXT_ENTRY]:
            self.look_for_dead(since_seen)

    def look_for_dead(self, since_seen: int) -> None:
        """Do what ``bury`` does, even if no forbidden row has come."""
        axis, time = self.place
        self._buried, looked, load = cells.bury(
            self.machine, self._learned, self.instant(axis, time, since_seen), self.model.alive,
            self.features.graves.ravel(), self._buried, self._buried_at, int(self._burials),
        )  # fmt: skip
        self._buried_at = time
        self.load = max(0.0, self.load - load)
        self._burials -= looked
        self.add_work(looked)

    def is_sampled(self, events: int) -> bool:
        """Count events; return whether the load of the first one is to be determined."""
        self._since_shown += events
        return self._work is not None or self._since_shown >= self._apart

    def ask(self, columns: Ints, events: int) -> int:
        """Return how many partial matches the first event of a batch is shown to, and count them for
        ``events`` events.
        """
        return k.shown(self.features.tables, self.memory.ints, columns, self.model.shows, events)

    def sample(self, columns: Ints) -> int:
        """Do what ``ask`` does, for all events since the last time."""
        return self.ask(columns, self._since_shown)

    def sampled(self, events: int, shown: int) -> None:
        """Count the work of the events since the last time, as if each was ``shown`` to as many partial
        matches as this one.
        """
        self.units += self._since_shown * shown
        self._since_shown = 0
        self._samples += 1
        self._apart = _SAMPLED[self._samples % len(_SAMPLED)]
        if self._work is not None:
            self._work.add(events + shown)

    def count(self, events: int, made: int) -> None:
        """Count the work of some events, which made this many partial matches."""
        self.units += events + made
        self._burials = min(_MOST_BURIED, self._burials + self.units * _BURIED / _LOOK)
        self._trials = min(_MOST_TRIALS, self._trials + self.units * _TRIED / (_TRIAL * _LOOK))
        if self._work is not None:
            self._work.add(made)

    def add_work(self, seen: int) -> None:
        """Count the observation of this many partial matches."""
        if self._work is not None:
            self._work.add(seen * _LOOK)

    # --- partial matches ---

    def credit(self) -> None:
        """Credit the partial matches of the matches just found."""
        k.credit(self.memory.ints, self._learned, self.model.queries.worth)

    def has_strangers(self) -> bool:
        """Return whether a partial match of the matches just found was not observed."""
        return k.strangers(self.memory.ints, self._learned.known)

    def welcome(self) -> int:
        """Observe the partial matches that the last events made; return how many of them have one event."""
        now = self.instant(*self.place)
        total, begun, load = k.welcome(self.machine, self._learned, now, self.model.alive, self._next)
        self.load += load
        self._next = int(self.memory.ints[mem.NEXT_WAIT])
        self.add_work(total)
        return begun

    def observe(self, axis: int, time: int, *, counted: bool = True) -> None:
        """Observe all partial matches at once."""
        self.model.alive[:] = 0
        most = int(self.memory.ints[mem.NEXT_WAIT])
        self.visit(self.model.alive, self.instant(axis, time), 0, most, counted=counted)

    def visit(
        self, alive: Ints, now: cells.Instant, begin: int, most: int, *, counted: bool = True
    ) -> tuple[int, int]:
        """Observe ``most`` partial matches from a place on; see ``_kernel_passes.observe``."""
        tells_the_dead = self.features.tells_the_dead
        return k.observe(self.machine, self._learned, now, alive, begin, most, counted, tells_the_dead)

    def forget(self) -> None:
        """Forget the classes of all partial matches."""
        self._learned.known[:] = 0

    def move(self, memory: RunMemory, hand: int) -> None:
        """Follow the partial matches to another memory; ``hand``: how many the current look has observed."""
        old, known = self.memory.ints, self._learned.known
        self.memory, self.hand = memory, hand
        self._learned = self._learned_of(self._unknown())
        k.follow(old, memory.ints, known, self._learned.known)
        self._next, self._buried = int(memory.ints[mem.NEXT_WAIT]), 0

    def surviving(self, axis: int, time: int) -> int:
        """Return how many of the partial matches that the current look has observed a sweep would move."""
        return k.surviving(self.features.tables, self.memory.ints, self.hand, axis, time)

    def mark(self, kept: Floats, shed: Ints, axis: int, time: int, draw: int) -> None:
        """Remove partial matches, of each cell all but a share; see ``_kernel_passes.mark``."""
        k.mark(self.machine, self._learned, self.instant(axis, time), kept, shed, draw)

    def listed(self, axis: int, time: int) -> Ints:
        """Observe and list all partial matches; see ``_kernel_passes.listed``."""
        self.observe(axis, time)
        rows = np.zeros((int(self.model.alive.sum()), k.L_SIZE), dtype=np.int64)
        k.listed(self.machine, self._learned, self.instant(axis, time), rows.ravel())
        return rows

    def learn_loads(self) -> None:
        """Set the load of each class."""
        self.loads[:] = self.model.load()

    def measure_load(self) -> None:
        """Set the total load, from the partial matches that were observed."""
        alive = self.model.alive.reshape(-1, cells.AGES).sum(axis=1)
        self.load = float((alive * self.model.load()).sum())

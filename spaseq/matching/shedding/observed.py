"""The NFA kernel with counts of its partial matches: by state, by class of their values, by age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.bounds import WorkClock
from spaseq.events import EventBatch
from spaseq.matching.nfa import sizing
from spaseq.matching.nfa.matcher import NfaMatcher
from spaseq.matching.nfa.memory import Capacity, RunMemory
from spaseq.matching.nfa.records import header as mem
from spaseq.matching.nfa.sizing import Turns
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.matching.nfa.tables.compiling import compile_tables
from spaseq.matching.shedding import _kernel_known as absent
from spaseq.matching.shedding import _kernel_known as cells
from spaseq.matching.shedding import _kernel_passes as k
from spaseq.matching.shedding.cost_model import CostModel
from spaseq.matching.shedding.features import features
from spaseq.matching.shedding.overload import LoadMeter
from spaseq.matching.shedding.query import BoundedQuery
from spaseq.matching.shedding.rates import Queries, only
from spaseq.patterns.spectra.solutions import Solutions

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
#: The distances between events with exactly determined load: irregular, so that of events that alternate, it
#: is not always the same one.
_SAMPLED: Final = (1, 8, 11, 10, 5, 12, 15, 14, 9, 16, 3, 2, 13, 4, 7, 6)


class Observed(NfaMatcher):
    """The NFA kernel with counts: between events the partial matches in its memory are counted
    (``_kernel_passes``), which does not affect matching.

    The counts, and which partial matches become matches, go to the cost model.
    """

    def __init__(
        self, query: BoundedQuery, compiled: NfaTables | None = None, queries: Queries | None = None
    ) -> None:
        """``compiled``: its tables, if they exist; ``queries``: the queries of its matches, if there are
        several.
        """
        pattern, dictionary, window = query.pattern, query.dictionary, query.window
        compiled = compiled or compile_tables(pattern, dictionary.pin)
        budget = None if query.many is None else query.many.budget
        super().__init__(pattern, dictionary, query.context, window, compiled, budget, floor=sizing.ENOUGH)
        self._sizing.spare = 0  # counted by a bound of memory
        self._turns = Turns(compiled, self._budget) if query.bound.pool is None else None
        self._bound = query.bound
        self._features = features(self._compiled, dictionary.pin)
        self._sketch = CostModel(self._features, window.reach, queries or only(len(compiled.accepts)))
        self._known: Ints = self._unknown()
        # The place of the next new partial match; and the next place of the current look.
        self._next, self._hand = int(self._memory.ints[mem.NEXT_WAIT]), 0
        # Where the current events begin, on the window's axis and in time, and where they end.
        self._place, self._position = (0, 0), 0
        # How many events have come.
        self._given = 0
        # Units of work since the last look; events since the load of one was determined.
        self._units, self._since_shown = 0.0, 0
        # The distance to the next such event, and how many there were.
        self._apart, self._samples = _SAMPLED[0], 0
        # Since the last check of the bound. If work is counted, not measured, each event's load is
        # determined.
        self._pace = LoadMeter(query.bound)
        # How many trials may be made; how many partial matches may be tested for being dead; and up to which
        # forbidden entry, and when, that was done.
        self._trials, self._burials = 0.0, 0.0
        self._buried, self._buried_at = 0, 0
        # The load of each class, and the total.
        self._load, self._loads = 0.0, np.zeros(self._features.classes)

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Ints:
        self._place = int(self._window.places(batch, start)[0]), int(batch.time[0])
        memory = self._memory
        columns = super()._take(batch, start, solutions)
        self._rehearse(columns, memory)
        self._memory.ints[mem.DECIDED] = 0
        self._bury()
        self._since_shown += len(batch)
        is_asked = self._pace.is_exact or self._since_shown >= self._apart
        self._meet(columns, len(batch), is_asked=is_asked)
        return columns

    def _take_alone(self, event: Single, start: int) -> Ints:
        memory = self._memory
        columns = super()._take_alone(event, start)
        self._place = self._window.place(event.at.time, start), event.at.time
        self._since_shown += 1
        is_asked = self._pace.is_exact or self._since_shown >= self._apart
        if is_asked:
            self._rehearse(columns, memory)
        self._memory.ints[mem.DECIDED] = 0
        self._bury()
        self._meet(columns, 1, is_asked=is_asked)
        return columns

    def _rehearse(self, columns: Ints, before: RunMemory) -> None:
        """Try events on ghosts. ``before``: the memory as it was before they came."""
        rehearsal, memory = self._sketch.rehearsal, self._memory
        if rehearsal is not None:
            if before is not memory:
                rehearsal.forget()
            most = int(self._trials)
            tried = rehearsal.take(memory.ints, memory.floats, self._columns.numbers, columns, most)
            self._trials -= tried
            self._add_work(_TRIAL * tried)

    def _bury(self) -> None:
        """Remove partial matches that forbidden events have ended, if these are found by a key."""
        ints = self._memory.ints
        if len(self._features.graves) and ints[mem.ENTRIES] + self._buried < ints[mem.NEXT_ENTRY]:
            self._look_for_dead()

    def _look_for_dead(self) -> None:
        m, s, f, numbers = self._memory, self._sketch, self._features, self._columns.numbers
        axis, time = self._place
        self._buried, looked, load = absent.bury(
            f.tables, m.ints, m.floats, numbers.numbers, numbers.codes, self._known, f.ways, f.bases,
            *s.quantiles.arrays, s.counts, s.steps, s.alive, self._loads, f.graves.ravel(), f.taken,
            self._buried, self._buried_at, axis, time, s.window.passed(self._given), self._position,
            self._since_seen, int(self._burials),
        )  # fmt: skip
        self._buried_at = time
        self._load = max(0.0, self._load - load)
        self._burials -= looked
        self._add_work(looked)

    @property
    def _since_seen(self) -> int:
        """Return how many events have come since partial matches were last observed, on average."""
        return 0

    def _meet(self, columns: Ints, events: int, *, is_asked: bool) -> None:
        """Choose the partial matches that some events are not shown to; now and then, determine the events'
        load.

        The load is what an event would be shown if nothing were passed over. Otherwise the load would seem
        smaller, the more there is too much of it.
        """
        shown = self._ask(columns, self._since_shown) if is_asked else 0
        gone = self._pass_over(columns)
        if is_asked:
            shown = max(0, shown - gone // events)
            self._units += self._since_shown * shown
            self._since_shown = 0
            self._samples += 1
            self._apart = _SAMPLED[self._samples % len(_SAMPLED)]
            if isinstance(self._bound.clock, WorkClock):
                self._bound.clock.add(events + shown)

    def _ask(self, columns: Ints, events: int) -> int:
        """Determine how many partial matches the first of some events is shown to."""
        return k.shown(self._tables, self._memory.ints, columns, self._sketch.shows, events)

    def _pass_over(self, columns: Ints) -> int:
        """Choose the partial matches that the events of a batch are not shown to; return how
        often that is.
        """
        del columns
        return 0

    def _count(self, events: int, made: int) -> None:
        """Count the work of some events, which made this many partial matches."""
        self._units += events + made
        self._burials = min(_MOST_BURIED, self._burials + self._units * _BURIED / _LOOK)
        self._trials = min(_MOST_TRIALS, self._trials + self._units * _TRIED / (_TRIAL * _LOOK))
        if isinstance(self._bound.clock, WorkClock):
            self._bound.clock.add(made)

    def _add_work(self, seen: int) -> None:
        """Count the observation of this many partial matches."""
        if isinstance(self._bound.clock, WorkClock):
            self._bound.clock.add(seen * _LOOK)

    def _credit(self) -> None:
        f, s = self._features, self._sketch
        k.credit(self._memory.ints, self._known, f.ways, f.bases, s.counts, s.queries.worth)

    def _sweep(self, axis: int, time: int, decided: int, left: tuple[int, int] = (0, 0)) -> None:
        old = self._memory
        self._hand = k.surviving(self._tables, old.ints, self._hand, axis, time)
        super()._sweep(axis, time, decided, left)
        known, self._known = self._known, self._unknown()
        k.follow(old.ints, self._memory.ints, known, self._known)
        self._next, self._buried = int(self._memory.ints[mem.NEXT_WAIT]), 0

    def _empty(self, room: Capacity, like: RunMemory) -> RunMemory:
        return super()._empty(room, like) if self._turns is None else self._turns.empty(room, like)

    def _unknown(self) -> Ints:
        return np.zeros(int(self._memory.ints[mem.MOST_NODES]) * cells.KNOWN_SIZE, dtype=np.int64)

    def _observe(self, axis: int, time: int, *, counted: bool = True) -> None:
        """Observe all partial matches at once."""
        self._sketch.alive[:] = 0
        self._visit(self._sketch.alive, axis, time, 0, int(self._memory.ints[mem.NEXT_WAIT]), 0, counted)

    def _visit(
        self, alive: Ints, axis: int, time: int, begin: int, most: int, events: int, counted: bool = True
    ) -> tuple[int, int]:
        s, f, m, numbers = self._sketch, self._features, self._memory, self._columns.numbers
        return k.observe(
            f.tables, m.ints, m.floats, numbers.numbers, numbers.codes, self._known, f.ways, f.bases,
            *s.quantiles.arrays, s.counts, s.steps, alive, begin, most, axis, time,
            s.window.passed(self._given), self._position, events, counted, f.tells_the_dead, f.taken,
        )  # fmt: skip

    def _loaded(self) -> float:
        alive = self._sketch.alive.reshape(-1, cells.AGES).sum(axis=1)
        return float((alive * self._sketch.load()).sum())

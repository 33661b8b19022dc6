"""The ordered kernel under a bound: first events are shed, each with all of its runs.

Where AFTER MATCH SKIP goes TO NEXT EVENT, the match of a first event does not depend on others: so what is
found of those that stay is found without a bound, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.effort import Policy, Shed, WorkClock
from spaseq.errors import warn_within
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.evaluator import Asked
from spaseq.matching.kernel.compiled import _kernel_layout as status
from spaseq.matching.kernel.memory import Room, runs_size
from spaseq.matching.kernel.records import header
from spaseq.matching.kernel.tables.analysis import Compiled
from spaseq.matching.ordered.compiled import _kernel_shed as k
from spaseq.matching.ordered.evaluator import OrderedKernel
from spaseq.matching.ordered.records import families, matches, roster
from spaseq.matching.shedding.account import found_in_words, recall_of
from spaseq.matching.shedding.bounded import Bounded
from spaseq.matching.shedding.compiled._kernel_known import F_CODE, F_CODE_END, F_SIZE
from spaseq.matching.shedding.learned.fates import STEPS, Fates, Seen
from spaseq.matching.shedding.learned.features import features
from spaseq.matching.shedding.lots import part_of
from spaseq.matching.shedding.measured.overload import Overload, late
from spaseq.matching.shedding.measured.pace import Pace
from spaseq.terms.dictionary import Term

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: So often the room left by first events that are too large for it is given to smaller ones.
_FILLS: Final = 4
#: First events are looked at when so many times as long was worked as the last look took: a look at all of
#: them takes as long as an event that all are shown.
_SELDOM: Final = 16
#: Where memory runs out, so much of it is in use afterwards.
_FILLED: Final = 0.8


class SheddingFamilies(OrderedKernel):
    """The preferred matches of the first events that a bound lets go on. ``shed`` says what was given up."""

    def __init__(self, query: Bounded) -> None:
        effort, bounds = query.effort, query.bounds
        super().__init__(query.pattern, query.dictionary, query.context, bounds)
        self.shed = Shed()
        self._effort = effort
        self._budget = query.context.budget
        self._name = query.name
        self._gates = [" | ".join(sorted(gate.gpms)) for gate in self._compiled.analysis.gates]
        self._overload = None if effort.latency is None else Overload(effort.latency)
        self._fates = Fates(len(self._gates), bounds.size)
        self._lots = np.random.default_rng(1)
        self._features, self._values = _values(self._compiled, query.dictionary.pin)
        self._rows: Ints = np.zeros((64, k.L_SIZE), dtype=np.int64)
        self._run_gates: Ints = np.zeros(256, dtype=np.int64)
        self._run_values: Floats = np.zeros(256)
        self._gone: Floats = np.zeros((STEPS + 1, self._fates.size))
        self._pace = Pace(effort)
        # The runs there are, the matches found, those that what was shed might have become.
        self._load, self._found_so_far, self._missed = 0, 0, 0.0
        # What the arena said to be alive when it was last asked. Since the last look: events, and the seconds
        # of work; and those that it took.
        self._alive, self._events, self._worked, self._looked = 0, 0, 0.0, 0.0
        # When the bound was seen to last, and something was shed last: in time or in events.
        self._now: int | None = None
        # Whether it has moved on at all.
        self._moves = False
        self._last_shed = 0
        self._listed()  # loads compiled code before anything is measured
        k.let_go(self.families.runs.ints, self.families.rows, np.zeros(0, dtype=np.int64))
        if effort.pool is not None and effort.pool.size < self._budget.size:
            warn_within(
                f"{self._name} keeps its first events in {self._budget.size:,} bytes at least, and not in "
                f"the {effort.pool.size:,} that all queries together may take: give more memory"
            )

    def expect(self, asked: Sequence[Asked], clock: Clock) -> bool:
        """See ``Quick.expect``: not where simultaneous events of several streams wait for each other."""
        return self._ranked is None and super().expect(asked, clock)

    def take_single(
        self, at: Stamp, graph: int, terms: Sequence[int], start: int, event: Single | None = None
    ) -> Iterator[Block] | None:
        """See ``Quick.take_single``: what is to be done between events waits for some of them."""
        begin = self._effort.clock()
        columns = self._take_alone(at, graph, terms, start, event)
        ended, now = self._run_alone(columns), self._measure(at.time, start)
        if ended != status.DONE or self.families.found:
            return self._completes(columns, start, ended, begin, now)
        self._end_one(begin, now)
        return None

    def _completes(self, columns: Ints, start: int, ended: int, begin: float, now: int) -> Iterator[Block]:
        """What an event completes that came alone."""
        begin = yield from self._pace.timed(self._go_on(columns, start, ended), begin)
        self._end_one(begin, now)

    def _end_one(self, begin: float, now: int) -> None:
        """An event that came alone is done with, on which work began then."""
        if (since := self._pace.end_one(begin)) is not None:
            self._see_to(since, now)

    def _process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        clock, at = self._effort.clock, 0
        while at < len(batch):
            end = min(len(batch), at + self._pace.chunk)
            part, found = part_of(batch, solutions, at, end)
            begin = clock()
            begin = yield from self._pace.timed(super()._process(part, start + at, found), begin)
            self._pace.events += end - at
            self._see_to(begin, self._measure(int(part.time[-1]), start + end - 1))
            at = end

    def _see_to(self, begin: float, now: int) -> None:
        """Sees to the bound after some events: the last of these took since ``begin``."""
        clock, load = self._effort.clock, self._load
        events = self._pace.see()
        units = events * (1 + load)
        if isinstance(clock, WorkClock):
            clock.add(units)
        ended = clock()
        spent, self._pace.taken = self._pace.taken + ended - begin, 0.0
        self._events, self._worked = self._events + events, self._worked + spent
        self._pace.learn(self._worked / self._events)
        alive = int(self.families.runs.ints[header.LIVE_WAITS])
        if self._worked >= _SELDOM * self._looked or self._memory_share() < 1:
            self._look_over(now)
            alive = int(self.families.runs.ints[header.LIVE_WAITS])
            self._events, self._worked, self._looked = 0, 0.0, clock() - ended
            spent += self._looked
        else:
            self._load = max(0, load + alive - self._alive)
        self._alive = alive
        if self._overload is not None:
            self._overload.measure(events, spent, load, units)

    def _found(self) -> Iterator[Block]:
        m = self.families.runs.ints
        match = int(self.families.rows[roster.FOUND])
        for _ in range(self.families.found):
            self._fates.win(int(m[match + matches.FAMILY]) // families.SIZE, int(m[match + matches.POSITION]))
            self._found_so_far += 1
            match = int(m[match + matches.LINK])
        yield from super()._found()

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()

    def _listed(self) -> Ints:
        """All first events, the oldest first, and their runs; see ``_kernel_shed``."""
        every, numbers = self.families, self._columns.numbers
        while True:
            count = k.listed(
                self._features, every.runs.ints, every.runs.floats, every.rows, numbers.numbers,
                numbers.codes, self._values, self._rows.ravel(), self._run_gates, self._run_values,
            )  # fmt: skip
            rows = self._rows[:count]
            runs = int(rows[:, k.L_RUNS].sum())
            if count <= len(self._rows) and runs <= len(self._run_gates):
                return rows
            if count > len(self._rows):
                self._rows = np.zeros((2 * count, k.L_SIZE), dtype=np.int64)
            self._run_gates = np.zeros(max(2 * runs, len(self._run_gates)), dtype=np.int64)
            self._run_values = np.zeros(len(self._run_gates))

    def _measure(self, time: int, position: int) -> int:
        return position if self._bounds.counted else time

    def _ages(self, firsts: Ints, now: int) -> Ints:
        """How much of its window each first event has behind it; ``firsts``: on the window's axis."""
        bounds = self._bounds
        if bounds.sliding:
            return now - firsts
        return np.full(len(firsts), (now - bounds.start) % bounds.size)

    def _look_over(self, now: int) -> None:
        """Learns from what there is, and sheds what is too much."""
        rows = self._listed()
        runs = rows[:, k.L_RUNS]
        self._load = int(runs.sum())
        passed, self._now = 0 if self._now is None else max(0, now - self._now), now
        self._moves |= passed > 0
        seen = self._fates.see(
            rows[:, k.L_FAMILY] // families.SIZE, rows[:, k.L_POSITION], self._ages(rows[:, k.L_FIRST], now),
            runs, self._run_gates[: self._load], self._run_values[: self._load], passed,
        )  # fmt: skip
        share, why = 1.0, ""
        if self._overload is not None:
            share = self._overload.share(float(self._load))
            self._overload.tell(self.shed, self._name)
            why = late(self._overload.latency)
        if (most := self._memory_share()) < share:
            share, why = most, "more would take more memory than it may"
        if share < 1 and self._load:
            self._let_go(rows, seen, share)
            self._last_shed = now
            if not self.shed.active:
                self.shed.active = True
                warn_within(f"{self._name} sheds partial matches: {why} (stats.shed says how many)")
        elif self.shed.active and now - self._last_shed > self._bounds.size:
            self.end_shedding()

    def _memory_share(self) -> float:
        """Which share of the runs there is memory for."""
        pool = self._effort.pool
        if pool is None:
            return 1.0
        m = self.families.runs.ints
        most = pool.share(self._effort, self._budget.size) - self._budget.but("runs")
        # As much again may be needed before the next look.
        room = Room(2 * int(m[header.LIVE_WAITS]), 2 * int(m[header.LIVE_NODES]), 1, 1)
        needed = runs_size(self._compiled, room)
        return max(0.0, _FILLED * most / needed) if needed > most else 1.0

    def _let_go(self, rows: Ints, seen: Seen, share: float) -> None:
        chances = np.where(rows[:, k.L_HAS] != 0, 1.0, seen.chances)
        order = np.argsort(-self._worth(chances, seen, rows[:, k.L_RUNS]), kind="stable")
        gone = order[_too_much(rows[order, k.L_RUNS], share * self._load)]
        k.let_go(self.families.runs.ints, self.families.rows, rows[gone, k.L_FAMILY].copy())
        self._fates.let_go(seen.numbers[gone])
        self._load -= int(rows[gone, k.L_RUNS].sum())
        has = rows[gone, k.L_HAS] != 0
        self._missed += float(has.sum())
        np.add.at(self._gone, (seen.left[gone[~has]], seen.classes[gone[~has]]), 1.0)
        by_gate = np.bincount(seen.gates[gone], rows[gone, k.L_RUNS]).tolist()
        states = Counter(self.shed.by_state)
        for gate, count in enumerate(by_gate):
            if count:
                states[f"before {self._gates[gate]}"] += int(count)
        self.shed.by_state, self.shed.partial_matches = dict(states), states.total()
        self._estimate()

    def _worth(self, chances: Floats, seen: Seen, runs: Ints) -> Floats:
        """What it is worth to let each first event go on: more is better."""
        policy = self._effort.policy
        if policy is Policy.RANDOM_STATE:
            return self._lots.random(len(chances))
        if policy is Policy.SELECTIVE:
            return self._fates.by_gate(seen.gates)
        # The work at hand is known, and that to come is thought: for both, found by trying.
        return np.asarray(chances / np.sqrt(np.maximum(1, runs) * np.maximum(1.0, seen.work)))

    def _estimate(self) -> None:
        found = float(self._found_so_far)
        recall, error = recall_of(
            found, self._missed + float((self._gone * self._fates.chances).sum()), found, self.shed
        )
        if self.shed.partial_matches and not self._moves:
            # How often first events go on in a unit of time, nobody knows before one has passed.
            error = max(recall, 1.0 - recall)
        self.shed.recall, self.shed.error = recall, error

    def update(self) -> None:
        """See ``Shedder.update``."""
        self._estimate()

    def end_shedding(self) -> None:
        """Nothing is shed any more; a warning says so."""
        if self.shed.active:
            self.shed.active = False
            self._estimate()
            warn_within(
                f"{self._name} sheds no more: {self.shed.partial_matches:,} partial matches were shed, and "
                f"some {found_in_words(self.shed)} of its matches were found, by estimate"
            )


def _values(compiled: Compiled, intern: Callable[[Term], int]) -> tuple[Ints, Ints]:
    """Tables, and by gate where in these the program of what the next condition reads begins and ends."""
    known = features(compiled, intern)
    values = np.full((len(compiled.analysis.gates), 2), -1, dtype=np.int64)
    for codes in known.places:
        for gate in codes.gates:
            if codes.begin < codes.end:
                row = codes.begin * F_SIZE
                values[gate] = known.rows[row + F_CODE], known.rows[row + F_CODE_END]
    return known.tables, values.ravel()


def _too_much(runs: Ints, most: float) -> npt.NDArray[np.bool_]:
    """Which of some first events, the best first, are more than there is room for, by how many runs each has.

    One that is too large leaves its room to smaller ones behind it.
    """
    gone = runs > 0
    for _ in range(_FILLS):
        room = most - runs[~gone].sum()
        small = gone & (runs <= room)
        if not small.any():
            break
        gone &= ~(small & (np.cumsum(np.where(small, runs, 0)) <= room))
    return gone

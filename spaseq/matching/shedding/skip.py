"""The kernel of AFTER MATCH SKIP under a bound: first events are shed, each with all of its runs.

With SKIP TO NEXT EVENT, the match of a first event does not depend on others: so the matches of the first
events that stay are also found without a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.bounds import Policy, Shed, WorkClock
from spaseq.errors import warn_within
from spaseq.events import EventBatch
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import PushedPattern
from spaseq.matching.filters._kernel_values import RunMachine
from spaseq.matching.nfa.compiled import _kernel_layout as status
from spaseq.matching.nfa.memory import Capacity, runs_size
from spaseq.matching.nfa.records import header
from spaseq.matching.nfa.skip.compiled import _kernel_shed as k
from spaseq.matching.nfa.skip.matcher import SkipMatcher
from spaseq.matching.nfa.skip.records import families, matches, roster
from spaseq.matching.nfa.tables.analysis import NfaTables
from spaseq.matching.shedding._kernel_known import F_CODE, F_CODE_END, F_SIZE
from spaseq.matching.shedding.account import given_up, recall_of
from spaseq.matching.shedding.features import features
from spaseq.matching.shedding.overload import LoadMeter, Overload, late
from spaseq.matching.shedding.query import BoundedQuery
from spaseq.matching.shedding.selection import part_of
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Term

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: The number of rounds in which room that is too small for large first events goes to smaller ones.
_FILLS: Final = 4
#: A look is due after this many times the duration of the last one: a look takes as long as an event that is
#: shown to all first events.
_SELDOM: Final = 16
#: If memory runs out, this share of it is in use after shedding.
_FILLED: Final = 0.8


class SheddingSkip(SkipMatcher):
    """The preferred matches of the first events that a bound permits. ``shed`` has the counts."""

    def __init__(self, query: BoundedQuery) -> None:
        bound, window = query.bound, query.window
        super().__init__(query.pattern, query.dictionary, query.context, window)
        self.shed = Shed()
        self._bound = bound
        self._budget = query.context.budget
        self._name = query.name
        self._gates = [" | ".join(sorted(gate.gpms)) for gate in self._compiled.analysis.gates]
        self._overload = None if bound.latency is None else Overload(bound.latency)
        self._fates = Fates(len(self._gates), window.size)
        self._lots = np.random.default_rng(1)
        self._features, self._values = _values(self._compiled, query.dictionary.pin)
        self._rows: Ints = np.zeros((64, k.L_SIZE), dtype=np.int64)
        self._run_gates: Ints = np.zeros(256, dtype=np.int64)
        self._run_values: Floats = np.zeros(256)
        self._gone: Floats = np.zeros((STEPS + 1, self._fates.size))
        self._pace = LoadMeter(bound)
        # The number of runs; the matches found; and the expected matches of what was shed.
        self._load, self._found_so_far, self._missed = 0, 0, 0.0
        # The number alive when the arena was last read. Since the last look: events, and seconds of work; and
        # the seconds of looks.
        self._alive, self._events, self._worked, self._looked = 0, 0, 0.0, 0.0
        # The last check of the bound, and the last shedding: in time or in events.
        self._now: int | None = None
        self._last_shed = 0
        self._listed()  # loads compiled code before anything is measured
        k.let_go(self.families.runs.ints, self.families.rows, np.zeros(0, dtype=np.int64))
        if bound.pool is not None and bound.pool.size < self._budget.size:
            warn_within(
                f"{self._name} keeps its first events in {self._budget.size:,} bytes at least, and not in "
                f"the {bound.pool.size:,} that all queries together may take: give more memory"
            )

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``. Return False if simultaneous events of several streams wait for each
        other.
        """
        return self._ranked is None and super().expect(asked)

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``. The bound is checked after several events, not after each one."""
        begin = self._bound.clock()
        columns = self._take_alone(event, start)
        ended, now = self._run_alone(columns), self._measure(event.at.time, start)
        if ended != status.DONE or self.families.found:
            return self._completes(columns, start, ended, begin, now)
        self._end_one(begin, now)
        return None

    def _completes(self, columns: Ints, start: int, ended: int, begin: float, now: int) -> Iterator[Block]:
        """Yield the matches of a single event."""
        begin = yield from self._pace.timed(self._go_on(columns, start, ended), begin)
        self._end_one(begin, now)

    def _end_one(self, begin: float, now: int) -> None:
        """Finish a single event, on which work began at ``begin``."""
        if (since := self._pace.end_one(begin)) is not None:
            self._see_to(since, now)

    def _process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        clock, at = self._bound.clock, 0
        while at < len(batch):
            end = min(len(batch), at + self._pace.chunk)
            part, found = part_of(batch, solutions, at, end)
            begin = clock()
            begin = yield from self._pace.timed(super()._process(part, start + at, found), begin)
            self._pace.events += end - at
            self._see_to(begin, self._measure(int(part.time[-1]), start + end - 1))
            at = end

    def _see_to(self, begin: float, now: int) -> None:
        """Check the bound after some events. The time since ``begin`` is not counted yet."""
        clock, load = self._bound.clock, self._load
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
        """Return all first events, oldest first, and their runs; see ``_kernel_shed``."""
        every, ids = self.families, self._columns.numbers
        m = every.runs
        machine = RunMachine(self._features, m.ints, m.floats, m.ints, ids.numbers, ids.codes)
        while True:
            count = k.listed(
                machine, every.rows, self._values, self._rows.ravel(), self._run_gates, self._run_values
            )
            rows = self._rows[:count]
            runs = int(rows[:, k.L_RUNS].sum())
            if count <= len(self._rows) and runs <= len(self._run_gates):
                return rows
            if count > len(self._rows):
                self._rows = np.zeros((2 * count, k.L_SIZE), dtype=np.int64)
            self._run_gates = np.zeros(max(2 * runs, len(self._run_gates)), dtype=np.int64)
            self._run_values = np.zeros(len(self._run_gates))

    def _measure(self, time: int, position: int) -> int:
        return position if self._window.counted else time

    def _ages(self, firsts: Ints, now: int) -> Ints:
        """Return how much of its window has passed for each first event; ``firsts``: their places on the
        window's axis.
        """
        window = self._window
        if window.sliding:
            return now - firsts
        return np.full(len(firsts), (now - window.start) % window.size)

    def _look_over(self, now: int) -> None:
        """Learn from the first events, and shed if there are too many."""
        rows = self._listed()
        runs = rows[:, k.L_RUNS]
        self._load = int(runs.sum())
        passed, self._now = 0 if self._now is None else max(0, now - self._now), now
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
        elif self.shed.active and now - self._last_shed > self._window.size:
            self.end_shedding()

    def _memory_share(self) -> float:
        """Return the share of the runs for which there is memory."""
        pool = self._bound.pool
        if pool is None:
            return 1.0
        m = self.families.runs.ints
        most = pool.share(self._bound, self._budget.size) - self._budget.but("runs")
        # As much again may be needed before the next look.
        room = Capacity(2 * int(m[header.LIVE_WAITS]), 2 * int(m[header.LIVE_NODES]), 1, 1)
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
        """Return the value of each first event: more is better."""
        policy = self._bound.policy
        if policy is Policy.RANDOM_STATE:
            return self._lots.random(len(chances))
        if policy is Policy.SELECTIVE:
            return self._fates.by_gate(seen.gates)
        # The current work is known, the future work is an estimate; this weighting was found by experiment.
        return np.asarray(chances / np.sqrt(np.maximum(1, runs) * np.maximum(1.0, seen.work)))

    def _estimate(self) -> None:
        missed = self._missed + float((self._gone * self._fates.chances).sum())
        self.shed.recall = recall_of(float(self._found_so_far), missed, self.shed)

    def update(self) -> None:
        """See ``Shedder.update``."""
        self._estimate()

    def end_shedding(self) -> None:
        """End shedding; a warning says so."""
        if self.shed.active:
            self.shed.active = False
            self._estimate()
            warn_within(f"{self._name} sheds no more: {given_up(self.shed)}")


def _values(compiled: NfaTables, intern: Callable[[Term], int]) -> tuple[Ints, Ints]:
    """Return tables with programs, and for each gate the range of its program there. The program computes the
    value that the next condition reads.
    """
    known = features(compiled, intern)
    values = np.full((len(compiled.analysis.gates), 2), -1, dtype=np.int64)
    for codes in known.places:
        for gate in codes.gates:
            if codes.feature >= 0:
                row = codes.feature * F_SIZE
                values[gate] = known.rows[row + F_CODE], known.rows[row + F_CODE_END]
    return known.tables, values.ravel()


def _too_much(runs: Ints, most: float) -> npt.NDArray[np.bool_]:
    """Return which first events exceed the room for ``most`` runs. ``runs``: how many runs each one has, the
    best first event first.

    A first event that is too large leaves its room to smaller ones after it.
    """
    gone = runs > 0
    for _ in range(_FILLS):
        room = most - runs[~gone].sum()
        small = gone & (runs <= room)
        if not small.any():
            break
        gone &= ~(small & (np.cumsum(np.where(small, runs, 0)) <= room))
    return gone


Bools = npt.NDArray[np.bool_]

#: The number of levels of a value; the first is for values that are not numbers.
LEVELS: Final = 9
#: The number of gates with classes of their own; later gates share the last one's.
_MOST_GATES: Final = 12
#: Edges between levels are learned from ``_FEW`` values on, with at least ``_EACH`` values per level, and
#: again when ``_AGAIN`` times as many have come. The latest ``_RING`` values are kept.
_FEW: Final = 8
_EACH: Final = 4
_AGAIN: Final = 2
_RING: Final = 256
#: A class counts as its gate until this many first events have left it.
_PRIOR: Final = 0.5
#: The weight of the next but one level relative to the next one, in smoothing.
_NEAR: Final = 0.25
#: Counts are halved in this many windows.
_HALVED: Final = 2.0
#: The rest of a window is computed in this many steps, each made by a number of doublings of a smaller one.
STEPS: Final = 32
_DOUBLINGS: Final = 4
#: The largest share of a class that leaves it in the smallest step.
_AT_ONCE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Seen:
    """First events at one time: of each its number and class, and the gate of its most promising run.

    Also the steps left of its window, the probability of a match in them, and the expected work in them, in
    runs times time.
    """

    numbers: Ints
    classes: Ints
    gates: Ints
    left: Ints
    chances: Floats
    work: Floats


class Fates:
    """Learns the fate of the first events of a query with this many ``gates``, in windows of ``size``.

    Time is that of the windows: the stream's, or a count of events.
    """

    def __init__(self, gates: int, size: int) -> None:
        self._reach = max(1, size)
        self._gates = min(gates, _MOST_GATES)
        self.size = size = self._gates * LEVELS
        # How often first events moved from class to class and, in the last column, to a match; and by class,
        # their total time, and that of their runs.
        self._moves: Floats = np.zeros((size, size + 1))
        self._lived: Floats = np.zeros(size)
        self._work: Floats = np.zeros(size)
        self._edges: list[Floats] = [np.zeros(0)] * self._gates
        self._values: list[list[float]] = [[] for _ in range(self._gates)]
        self._due = [_FEW] * self._gates
        self._come = [0] * self._gates
        # By a first event's number: its position, -1 if there is none, its class, and the number of its runs.
        self._positions: Ints = np.zeros(0, dtype=np.int64)
        self._classes: Ints = np.zeros(0, dtype=np.int64)
        self._runs: Ints = np.zeros(0, dtype=np.int64)
        # The class, and the number of runs, of first events that have matched since the last time.
        self._won: list[tuple[int, int]] = []
        # By class, how many first events were new when seen; and how many have matched since the last time
        # without having been seen.
        self._new: Floats = np.zeros(size)
        self._unseen = 0
        #: The probability of a match, by steps left and class.
        self.chances: Floats = np.full((STEPS + 1, size), 0.5)
        self._to_come: Floats = np.ones((STEPS + 1, size))
        self._unsolved = self._reach

    def see(
        self, numbers: Ints, positions: Ints, ages: Ints, runs: Ints, gates: Ints, values: Floats,
        passed: int,
    ) -> Seen:  # fmt: skip
        """Learn from the current first events, after ``passed`` of time since the last call.

        ``ages``: how much of its window has passed for each; ``runs``: its number of runs, with their
        ``gates`` and ``values``.
        """
        self._forget(passed)
        self._room(numbers)
        kinds = np.minimum(gates, self._gates - 1)
        owners = np.repeat(np.arange(len(numbers)), runs)
        left = np.clip(STEPS - 1 - ages * STEPS // self._reach, 0, STEPS - 1)
        strange = self._positions[numbers] != positions
        self._learn_edges(kinds, values, strange[owners])
        of_runs = kinds * LEVELS + self._levels(kinds, values)
        classes, best = np.zeros((2, len(numbers)), dtype=np.int64)
        # The most promising run of each is written last, and stays.
        order = np.argsort(self.chances[left[owners], of_runs], kind="stable")
        classes[owners[order]], best[owners[order]] = of_runs[order], gates[order]
        self._count(numbers, classes, runs, strange, passed)
        self._positions[:] = -1
        some = runs > 0
        self._positions[numbers[some]] = positions[some]
        self._classes[numbers[some]], self._runs[numbers[some]] = classes[some], runs[some]
        self._unsolved += passed
        if self._unsolved * STEPS >= self._reach:
            self._solve()
        return Seen(numbers, classes, best, left, self.chances[left, classes], self._to_come[left, classes])

    def win(self, number: int, position: int) -> None:
        """Note that a first event has its match."""
        if number < len(self._positions) and self._positions[number] == position:
            self._moves[self._classes[number], self.size] += 1.0
            self._positions[number] = -1
            self._won.append((int(self._classes[number]), int(self._runs[number])))
        else:
            self._unseen += 1

    def let_go(self, numbers: Ints) -> None:
        """Forget first events that are shed: their fate remains unknown."""
        self._positions[numbers] = -1

    def _count(self, numbers: Ints, classes: Ints, runs: Ints, strange: Bools, passed: int) -> None:
        old = np.flatnonzero(~strange & (runs > 0))
        before = self._classes[numbers[old]]
        moved = before != classes[old]
        np.add.at(self._moves, (before[moved], classes[old][moved]), 1.0)
        self._live(before, runs[old], float(passed))
        # First events that matched meanwhile lived through half of that time.
        won: Ints = np.array(self._won, dtype=np.int64).reshape(-1, 2)
        self._live(won[:, 0], won[:, 1], passed / 2)
        self._won.clear()
        self._new += np.bincount(classes[strange & (runs > 0)], minlength=self.size)
        if self._unseen and (new := self._new.sum()):
            # Unseen first events are assumed to have been like the new ones that were seen, and to have lived
            # as long as the matched ones.
            share = self._unseen * self._new / new
            self._moves[:, -1] += share
            self._lived += passed / 2 * share
            self._work += passed / 2 * share
            self._unseen = 0

    def _live(self, classes: Ints, runs: Ints, passed: float) -> None:
        self._lived += passed * np.bincount(classes, minlength=self.size)
        self._work += passed * np.bincount(classes, runs, minlength=self.size)

    def by_gate(self, gates: Ints) -> Floats:
        """Return the probability of a match given the gates alone."""
        lived = (self._lived + 1e-9).reshape(-1, LEVELS)
        chances = (self.chances[STEPS].reshape(-1, LEVELS) * lived).sum(axis=1) / lived.sum(axis=1)
        return np.asarray(chances[np.minimum(gates, self._gates - 1)])

    def _forget(self, passed: int) -> None:
        keep = 0.5 ** (passed / (_HALVED * self._reach))
        self._moves *= keep
        self._lived *= keep
        self._work *= keep
        self._new *= keep

    def _room(self, numbers: Ints) -> None:
        if len(numbers) and (most := int(numbers.max())) >= len(self._positions):
            more = np.full(2 * most + 64 - len(self._positions), -1, dtype=np.int64)
            self._positions = np.concatenate([self._positions, more])
            self._classes = np.concatenate([self._classes, more])
            self._runs = np.concatenate([self._runs, more])

    # --- levels -----------------------------------------------------------------------------------

    def _levels(self, gates: Ints, values: Floats) -> Ints:
        levels = np.zeros(len(gates), dtype=np.int64)
        for gate in range(self._gates):
            own = (gates == gate) & ~np.isnan(values)
            levels[own] = 1 + np.searchsorted(self._edges[gate], values[own])
        return levels

    def _learn_edges(self, gates: Ints, values: Floats, new: Bools) -> None:
        for gate in range(self._gates):
            brought = values[(gates == gate) & ~np.isnan(values) & (new | (gate > 0))]
            if not len(brought):
                continue
            kept = self._values[gate]
            kept.extend(brought[-_RING:].tolist())
            del kept[:-_RING]
            self._come[gate] += len(brought)
            if self._come[gate] >= self._due[gate]:
                self._due[gate] = _AGAIN * self._come[gate]
                self._cut(gate, np.array(kept))

    def _cut(self, gate: int, values: Floats) -> None:
        """Learn the edges of a gate again; spread its counts over the new levels in proportion to its latest
        values.
        """
        parts = int(np.clip(len(values) // _EACH, 1, LEVELS - 1))
        edges = np.unique(np.quantile(values, np.linspace(0, 1, parts + 1)[1:-1], method="lower"))
        before = 1 + np.searchsorted(self._edges[gate], values)
        after = 1 + np.searchsorted(edges, values)
        self._edges[gate] = edges
        moved = np.zeros((LEVELS, LEVELS))
        np.add.at(moved, (before, after), 1.0)
        empty = np.flatnonzero(moved.sum(axis=1) == 0)
        moved[empty, empty] = 1.0
        moved /= moved.sum(axis=1, keepdims=True)
        own = slice(gate * LEVELS, (gate + 1) * LEVELS)
        self._moves[own] = moved.T @ self._moves[own]
        self._lived[own] = moved.T @ self._lived[own]
        self._work[own] = moved.T @ self._work[own]
        self._new[own] = moved.T @ self._new[own]
        self._moves[:, own] = self._moves[:, own] @ moved
        some = (self._positions >= 0) & (self._classes // LEVELS == gate)
        levels = self._classes[some] % LEVELS
        self._classes[some] += np.argmax(moved, axis=1)[levels] - levels
        self._unsolved = self._reach

    # --- probabilities ----------------------------------------------------------------------------

    def _solve(self) -> None:
        """Compute the outcome of each class for each rest of a window, from all counts."""
        self._unsolved = 0
        rates, runs = self._rates()
        size = self.size
        # The outcomes of each class in a small step: classes, a match, and work. At most the share
        # ``_AT_ONCE`` leaves a class.
        small = self._reach / STEPS / (1 << _DOUBLINGS)
        quick = np.minimum(small, _AT_ONCE / np.maximum(rates.sum(axis=1), 1e-12))
        step = np.eye(size + 2)
        step[:size, : size + 1] += rates * quick[:, None]
        step[np.arange(size), np.arange(size)] -= rates.sum(axis=1) * quick
        step[:size, size + 1] = runs * small
        for _ in range(_DOUBLINGS):
            step = step @ step
        on, won, work = step[:size, :size], step[:size, size], step[:size, size + 1]
        self.chances[0], self._to_come[0] = 0.0, 0.0
        for i in range(STEPS):
            self.chances[i + 1] = on @ self.chances[i] + won
            self._to_come[i + 1] = on @ self._to_come[i] + work

    def _rates(self) -> tuple[Floats, Floats]:
        """Return the rates per unit of time at which a class changes to each class, and to a match; and its
        runs.
        """
        size, gates = self.size, self._gates
        # Moves between levels are smoothed over nearby levels only.
        moves = self._moves.reshape(gates, LEVELS, size + 1).copy()
        for gate in range(gates):
            moves[gate, :, gate * LEVELS : (gate + 1) * LEVELS] = 0.0
        near = _NEAR ** np.abs(np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS)))
        lived = self._lived.reshape(gates, LEVELS) @ near + 1.0
        usual = np.einsum("kl,glt->gkt", near, moves) / lived[:, :, None]
        usual_runs = (self._work.reshape(gates, LEVELS) @ near + 1.0) / lived
        # A prior of time: the time that ``_PRIOR`` first events of nearby levels take to leave.
        time = (_PRIOR / np.maximum(usual.sum(axis=2), _PRIOR / self._reach)).ravel()
        whole = (self._lived + time)[:, None]
        rates = (self._moves + time[:, None] * usual.reshape(size, -1)) / whole
        runs = (self._work + time * usual_runs.ravel()) / whole[:, 0]
        return rates, runs

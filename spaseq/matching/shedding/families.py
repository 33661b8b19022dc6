"""The ordered kernel under a bound: first events are shed, each with all of its runs.

Where AFTER MATCH SKIP goes TO NEXT EVENT, the match of a first event does not depend on others: so what is
found of those that stay is found without a bound, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from spaseq.matching.ordered.compiled import _kernel_shed as k
from spaseq.matching.ordered.evaluator import OrderedKernel
from spaseq.matching.ordered.records import families, matches, roster
from spaseq.matching.shedding.account import found_in_words, recall_of
from spaseq.matching.shedding.bounded import Bounded
from spaseq.matching.shedding.lots import part_of
from spaseq.matching.shedding.overload import Overload
from spaseq.matching.shedding.pace import Pace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: What is known of first events is by gate, age and how often their runs doubled, a bit each: of a window
#: there are so many ages, and so many doublings are told apart.
_AGES: Final = 4
_DOUBLINGS: Final = 5
_MOST_CLASSES: Final = 62
#: Of what was counted, such a share is forgotten with each event.
_FORGET: Final = 0.0005
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
        self._worth = _Worth(len(self._gates), bounds.reach, effort.policy)
        self._rows: Ints = np.zeros((64, k.L_SIZE), dtype=np.int64)
        self._pace = Pace(effort)
        # The runs there are, the matches found, those that what was shed might have become.
        self._load, self._found_so_far, self._missed = 0, 0, 0.0
        # Where something was shed last, on the window's axis.
        self._last_shed = 0
        self._listed()  # loads compiled code before anything is measured
        k.let_go(self.families.runs.ints, self.families.rows, np.zeros(0, dtype=np.int64))

    def expect(self, asked: Sequence[Asked], clock: Clock) -> bool:
        """See ``Quick.expect``: not where simultaneous events of several streams wait for each other."""
        return self._ranked is None and super().expect(asked, clock)

    def take_single(
        self, at: Stamp, graph: int, terms: Sequence[int], start: int, event: Single | None = None
    ) -> Iterator[Block] | None:
        """See ``Quick.take_single``: what is to be done between events waits for some of them."""
        begin = self._effort.clock()
        columns = self._take_alone(at, graph, terms, start, event)
        ended, place = self._run_alone(columns), self._bounds.place(at.time, start)
        if ended != status.DONE or self.families.found:
            return self._completes(columns, start, ended, begin, place)
        self._end_one(begin, place)
        return None

    def _completes(self, columns: Ints, start: int, ended: int, begin: float, place: int) -> Iterator[Block]:
        """What an event completes that came alone."""
        begin = yield from self._pace.timed(self._go_on(columns, start, ended), begin)
        self._end_one(begin, place)

    def _end_one(self, begin: float, place: int) -> None:
        """An event that came alone is done with, on which work began then."""
        if (since := self._pace.end_one(begin)) is not None:
            self._see_to(since, place)

    def _process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        clock, at = self._effort.clock, 0
        while at < len(batch):
            end = min(len(batch), at + self._pace.chunk)
            part, found = part_of(batch, solutions, at, end)
            begin = clock()
            begin = yield from self._pace.timed(super()._process(part, start + at, found), begin)
            self._pace.events += end - at
            self._see_to(begin, int(self._bounds.places(part, start + at)[-1]))
            at = end

    def _see_to(self, begin: float, place: int) -> None:
        """Sees to the bound after some events: the last of these took since ``begin``."""
        clock, load = self._effort.clock, self._load
        events = self._pace.see()
        units = events * (1 + load)
        if isinstance(clock, WorkClock):
            clock.add(units)
        self._look_over(place, events)
        spent, self._pace.taken = self._pace.taken + clock() - begin, 0.0
        if self._overload is not None:
            self._overload.measure(events, spent, load, units)
            self._pace.learn(spent / events)

    def _found(self) -> Iterator[Block]:
        m = self.families.runs.ints
        match = int(self.families.rows[roster.FOUND])
        for _ in range(self.families.found):
            self._worth.won(int(m[match + matches.FAMILY]), int(m[match + matches.POSITION]))
            self._found_so_far += 1
            match = int(m[match + matches.LINK])
        yield from super()._found()

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from super().close()
        self.end_shedding()

    def _listed(self) -> Ints:
        """All first events, the oldest first; see ``_kernel_shed``."""
        every = self.families
        while True:
            count = k.listed(self._tables, every.runs.ints, every.rows, self._rows.ravel())
            if count <= len(self._rows):
                return self._rows[:count]
            self._rows = np.zeros((2 * count, k.L_SIZE), dtype=np.int64)

    def _look_over(self, place: int, events: int) -> None:
        """Learns from what there is, and sheds what is too much."""
        rows = self._listed()
        self._worth.learn(rows, place, events)
        self._load = int(rows[:, k.L_RUNS].sum())
        share, why = 1.0, ""
        if self._overload is not None:
            share = self._overload.share(float(self._load))
            self._overload.tell(self.shed, self._name)
            why = f"an event takes {1_000 * (self._overload.latency or 0):.3g} ms"
        if (most := self._memory_share()) < share:
            share, why = most, "more would take more memory than it may"
        if share < 1 and self._load:
            self._let_go(rows, share, place)
            self._last_shed = place
            if not self.shed.active:
                self.shed.active = True
                warn_within(f"{self._name} sheds partial matches: {why} (stats.shed says how many)")
        elif self.shed.active and place - self._last_shed > self._bounds.reach:
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

    def _let_go(self, rows: Ints, share: float, place: int) -> None:
        chances = self._worth.chances(rows, place)
        order = np.argsort(-self._worth.values(rows, chances), kind="stable")
        runs = rows[order, k.L_RUNS]
        gone = order[(np.cumsum(runs) > share * self._load) & (runs > 0)]
        k.let_go(self.families.runs.ints, self.families.rows, rows[gone, k.L_FAMILY].copy())
        self._load -= int(rows[gone, k.L_RUNS].sum())
        self._missed += float(chances[gone].sum())
        shed = self.shed
        for gate, count in enumerate(np.bincount(rows[gone, k.L_GATE], rows[gone, k.L_RUNS]).tolist()):
            if count:
                state = f"before {self._gates[gate]}"
                shed.by_state[state] = shed.by_state.get(state, 0) + int(count)
                shed.partial_matches += int(count)
        self._estimate()

    def _estimate(self) -> None:
        found = float(self._found_so_far)
        self.shed.recall, self.shed.error = recall_of(found, self._missed, found)

    def end_shedding(self) -> None:
        """Nothing is shed any more; a warning says so."""
        if self.shed.active:
            self.shed.active = False
            self._estimate()
            warn_within(
                f"{self._name} sheds no more: {self.shed.partial_matches:,} partial matches were shed, and "
                f"some {found_in_words(self.shed)} of its matches were found, by estimate"
            )


class _Worth:
    """What first events come to: by the gate that the longest of their runs waits at, and their age."""

    def __init__(self, gates: int, reach: int, policy: Policy) -> None:
        self._policy, self._reach = policy, max(1, reach)
        self._gates = min(gates, _MOST_CLASSES)
        self._doublings = max(1, min(_DOUBLINGS, _MOST_CLASSES // max(1, self._gates)))
        self._ages = max(1, min(_AGES, _MOST_CLASSES // max(1, self._gates * self._doublings)))
        self._seen: Floats = np.zeros(self._gates * self._ages * self._doublings)
        self._won: Floats = np.zeros_like(self._seen)
        # By a family's place: the classes it has been in, as bits, and its first event's position.
        self._visited: Ints = np.zeros(0, dtype=np.int64)
        self._positions: Ints = np.zeros(0, dtype=np.int64)
        self._lots = np.random.default_rng(1)

    def _classes(self, rows: Ints, place: int) -> Ints:
        age = np.clip((place - rows[:, k.L_FIRST]) * self._ages // self._reach, 0, self._ages - 1)
        runs = np.frexp(rows[:, k.L_RUNS])[1].clip(1, self._doublings) - 1
        gate = np.minimum(rows[:, k.L_GATE], self._gates - 1)
        return np.asarray((gate * self._ages + age) * self._doublings + runs, dtype=np.int64)

    def learn(self, rows: Ints, place: int, events: int) -> None:
        """Counts the first events that are in a class for the first time."""
        if not len(rows):
            return
        slots = rows[:, k.L_FAMILY] // families.SIZE
        most = int(slots.max())
        if most >= len(self._visited):
            more = np.zeros(2 * most + 64 - len(self._visited), dtype=np.int64)
            self._visited = np.concatenate([self._visited, more])
            self._positions = np.concatenate([self._positions, more - 1])
        strange = self._positions[slots] != rows[:, k.L_POSITION]
        self._visited[slots[strange]] = 0
        self._positions[slots] = rows[:, k.L_POSITION]
        bits = np.int64(1) << (classes := self._classes(rows, place))
        new = (self._visited[slots] & bits) == 0
        self._visited[slots] |= bits
        keep = (1 - _FORGET) ** events
        self._seen *= keep
        self._won *= keep
        self._seen += np.bincount(classes[new], minlength=len(self._seen))

    def won(self, family: int, position: int) -> None:
        """A first event has its match."""
        slot = family // families.SIZE
        if slot < len(self._visited) and self._positions[slot] == position:
            bits = int(self._visited[slot]) >> np.arange(len(self._won)) & 1
            self._won += bits

    def chances(self, rows: Ints, place: int) -> Floats:
        """How likely each first event comes to a match."""
        usual = (self._won.sum() + 1.0) / (self._seen.sum() + 1.0)
        by_class = (self._won + min(1.0, usual)) / (self._seen + 1.0)
        found: Floats = np.minimum(1.0, by_class)[self._classes(rows, place)]
        found[rows[:, k.L_HAS] != 0] = 1.0
        return found

    def values(self, rows: Ints, chances: Floats) -> Floats:
        """What it is worth to let each go on: more is better.

        Not for the work that it is: of two first events the one with more runs has more to come, and what
        was shed instead had less.
        """
        if self._policy is Policy.RANDOM_STATE:
            return self._lots.random(len(rows))
        if self._policy is Policy.SELECTIVE:
            by_gate = [counts.reshape(self._gates, -1).sum(axis=1) for counts in (self._won, self._seen)]
            rates: Floats = (by_gate[0] + 1.0) / (by_gate[1] + 1.0)
            return rates[np.minimum(rows[:, k.L_GATE], self._gates - 1)]
        return chances

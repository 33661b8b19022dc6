"""Queries with a common prefix, run by ``nfa``: one kernel runs the automaton of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spaseq.alone import Single
from spaseq.events import EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.matcher import UnsolvedError
from spaseq.matching.host import Key
from spaseq.matching.nfa.exact import Path, RunReplay
from spaseq.matching.nfa.matches import FoundRuns, Ints, RunMatches
from spaseq.matching.nfa.tables.compiling import compile_tables, like_tables
from spaseq.matching.sharing._kernel_given import FoundRows
from spaseq.matching.sharing.canonical import start
from spaseq.matching.sharing.giving import Giving, Lot, PlainSites
from spaseq.matching.sharing.group import PrefixGroup
from spaseq.matching.sharing.member import GroupPart, Member
from spaseq.matching.sharing.merge import Tables, tables
from spaseq.matching.sharing.shared_nfa import SharedNfa
from spaseq.patterns.spectra.solutions import Solutions


class NfaGroup(PrefixGroup):
    """Members as runs of one kernel."""

    # Credits matches to what a bound has learned.
    _finds: Callable[[Lot, int], None] | None = None

    def prepare(self, members: Sequence[Member], offsets: Sequence[int]) -> Sequence[GroupPart]:
        first = members[0]
        patterns = [member.common.pattern for member in members]
        starts = [start(member.pattern, member.common) for member in members]
        self._tables = tables(patterns, starts, first.dictionary.pin)
        self._own = [
            NfaPart(self, member, offset, number, self._tables)
            for number, (member, offset) in enumerate(zip(members, offsets, strict=True))
        ]
        self._kernel = self._together(members)
        gpms = [self._tables.compiled.gpms.index(c.unit.gpm) for c in self._tables.compiled.candidates]
        self._giving = Giving(self._own, [part.plain for part in self._own], np.array(gpms, dtype=np.int64))
        return self._own

    def _together(self, members: Sequence[Member]) -> SharedNfa:
        """Return the common kernel."""
        first, t = members[0], self._tables
        if first.bound is not None:
            from spaseq.matching.sharing.bounded.by_nfa import shedding

            made, self.kept = shedding(self.is_relevant, self.give, t, members, self.widest)
            self._finds = made.find
            return made
        budget = Budget(first.context.budget.limits.times(len(members)))
        alike = SharedNfa(t.merged.pattern, first.dictionary, first.context, self.widest, t.compiled, budget)
        alike.gathers(self.is_relevant)
        return alike

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        if self.kept is not None:
            self.reached = start + len(batch)
        found = self._kernel.found_in(batch, start, solutions)
        self.reached = start + len(batch)
        if found is not None:
            self.give(found)

    def look_one(self, event: Single, start: int) -> bool:
        before = self.reached
        if self.kept is not None:
            self.reached = start + 1
        try:
            found = self._kernel.found_in_one(event, start)
        except UnsolvedError:
            self.reached = before
            return False
        self.reached = start + 1
        if found is not None:
            self.give(found)
        return True

    def alone(self) -> tuple[Taking, Sequence[str]]:
        return self._kernel.taking, self._kernel.gpms

    def narrow(self, live: frozenset[int], reach: int) -> None:
        self._kernel.restrict(self._tables.gates, live)
        self._kernel.reach(reach)

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether events are relevant for a run; the answer is the same for all members that have the
        run.
        """
        number = step[0][1]
        for i in self.live():
            if self._tables.candidates[i][number] >= 0:
                self._own[i].follow(self._kernel.history)
                return self._own[i].is_relevant(path, step, key)
        return False  # no member needs it

    def give(self, runs: FoundRuns) -> None:
        """Give members their matches."""
        history = self._kernel.history
        begins = np.concatenate([[0], np.cumsum(runs.depths)])
        lot = self._lot(runs, begins)
        rows = FoundRows(runs.steps, begins[:-1], begins[1:])
        for i, numbers, block in self._giving.blocks(history, lot, rows, runs.keys):
            part = self._own[i]
            if block is None:
                part.follow(history)
                part.take(_some(runs, begins, numbers), self.reached)
            else:
                part.member.take_found([block], self.reached - part.offset)

    def _lot(self, runs: FoundRuns, begins: Ints) -> Lot:
        """Assign each run to the members that it is a match of."""
        live = [i for i in self.live() if self._own[i].member.has(self._own[i])]
        ends = self._tables.accepts[live] >= 0
        whose = [[live[i] for i in np.flatnonzero(of).tolist()] for of in ends.T]
        several = np.array([len(of) for of in whose], dtype=np.int64)[runs.ways]
        firsts = np.cumsum([0, *map(len, whose)])
        numbers = np.repeat(np.arange(len(runs.ways)), several)
        place = np.arange(len(numbers)) - np.repeat(np.cumsum(several) - several, several)
        members = np.array([i for of in whose for i in of], dtype=np.int64)
        members = members[firsts[runs.ways[numbers]] + place]
        last = runs.steps[begins[1:] - 1, 0]
        lengths = self.lengths(runs.steps[begins[:-1], 0], last, self._kernel.history)
        if lengths is not None:
            sizes = np.array([window.size for window in self.windows], dtype=np.int64)
            wanted = lengths[numbers] <= sizes[members]
            members, numbers = members[wanted], numbers[wanted]
        if any(self._own[i].member.is_over for i in live):
            until = np.array([part.until for part in self._own], dtype=np.int64)
            wanted = last[numbers] < until[members]
            members, numbers = members[wanted], numbers[wanted]
        lot = Lot(members, numbers, runs.ends)
        if self._finds is not None:
            self._finds(lot, len(runs.ways))
        return lot


class NfaPart(GroupPart):
    """A member, under a number: the group's runs as its own."""

    def __init__(self, group: NfaGroup, member: Member, offset: int, number: int, tables: Tables) -> None:
        super().__init__(group, member, offset, tables.compiled.gpms)
        pattern, intern = member.pattern, member.dictionary.pin
        self._replay = RunReplay(lambda: compile_tables(pattern, intern), member.context, self.history)
        compiled = like_tables(pattern, intern, member.common.outline)
        self._matches = RunMatches(pattern, compiled, self.history, self._replay, member.context.order)
        self._candidates, self._accepts = tables.candidates[number], tables.accepts[number]

    @property
    def plain(self) -> PlainSites | None:
        """How the member's matches are made, if they consist only of events in order."""
        matches = self._matches
        is_plain = matches.are_simple and matches.are_in_order
        return PlainSites(self._candidates, matches.sites) if is_plain else None

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether events are relevant for a run of the group that is one of its own."""

        def own(events: Path) -> Path:
            return [(position, int(self._candidates[number])) for position, number in events]

        return self._replay.is_relevant(own(path), own(step), key)

    def take(self, runs: FoundRuns, before: int) -> None:
        """Take runs of the group that are the member's matches; all events before a position were seen."""
        steps = runs.steps.copy()
        steps[:, 1] = self._candidates[steps[:, 1]]
        own = runs._replace(ways=self._accepts[runs.ways], steps=steps)
        self.member.take_found(list(self._matches.of_runs(own)), before - self.offset)


def _some(runs: FoundRuns, offsets: Ints, numbers: Ints) -> FoundRuns:
    """Return some of the runs; ``offsets``: where the events of each run begin."""
    depths = runs.depths[numbers]
    begins = np.cumsum(depths) - depths
    events = np.repeat(offsets[:-1][numbers] - begins, depths) + np.arange(int(depths.sum()))
    return FoundRuns(runs.ends[numbers], runs.keys[numbers], runs.ways[numbers], depths, runs.steps[events])

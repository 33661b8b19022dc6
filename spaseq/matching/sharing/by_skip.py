"""Queries with a common prefix, run by ``nfa`` with AFTER MATCH SKIP: each run has a mask of its queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import END, EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.history import History
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.host import Key
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.exact import Path, RunReplay
from spaseq.matching.nfa.matches import RunMatches
from spaseq.matching.nfa.skip.compiled import _kernel as k
from spaseq.matching.nfa.skip.matcher import Preferred, SkipMatcher
from spaseq.matching.nfa.skip.records import preferences
from spaseq.matching.nfa.skip.tables import MemberMasks, OptionStep, Ordering, ordering
from spaseq.matching.nfa.tables.compiling import compile_tables, like_tables
from spaseq.matching.sharing._kernel_given import FoundRows
from spaseq.matching.sharing.canonical import start
from spaseq.matching.sharing.giving import Giving, Lot, PlainSites
from spaseq.matching.sharing.group import PrefixGroup
from spaseq.matching.sharing.member import GroupPart, Member
from spaseq.matching.sharing.merge import Tables, tables
from spaseq.patterns.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]


class SkipGroup(PrefixGroup):
    """Members as the runs of one priority simulation; each run has the set of its members."""

    def prepare(self, members: Sequence[Member], offsets: Sequence[int]) -> Sequence[GroupPart]:
        first = members[0]
        patterns = [member.common.pattern for member in members]
        starts = [start(member.pattern, member.common) for member in members]
        self._tables = tables(patterns, starts, first.dictionary.pin)
        made = self._ordering(members)
        self._own = [
            SkipPart(self, member, offset, number, self._tables)
            for number, (member, offset) in enumerate(zip(members, offsets, strict=True))
        ]
        gpms = [self._tables.compiled.gpms.index(c.unit.gpm) for c in self._tables.compiled.candidates]
        self._giving = Giving(self._own, [part.plain for part in self._own], np.array(gpms, dtype=np.int64))
        budget = Budget(first.context.budget.limits.times(len(members)))
        self._ordered = SharedSkip(self, self._tables.merged.pattern, first, self.widest, made, budget)
        #: The time up to which the members have advanced.
        self._time: int | None = None
        return self._own

    def _ordering(self, members: Sequence[Member]) -> Ordering:
        """Return the tables, with the members that each part is for."""
        t = self._tables
        skips = [member.pattern.query.skip for member in members]
        targets = [
            None if skip is None or skip.gpm is None else member.common.gpms[skip.gpm]
            for skip, member in zip(skips, members, strict=True)
        ]
        by_target: dict[str, int] = {}
        for number, gpm in enumerate(targets):
            if gpm is not None:
                by_target[gpm] = by_target.get(gpm, 0) | 1 << number
        steps = []
        for number, (candidate, taking) in enumerate(
            zip(t.compiled.candidates, _having(t.candidates), strict=True)
        ):
            takes = 0 if candidate.way is None else taking
            target = by_target.get(candidate.unit.gpm, 0)
            steps.append(OptionStep(takes, _bits(t.rivals[number]), target))
        numbers = {gpm: number for number, gpm in enumerate(t.compiled.gpms)}
        own_gpms = [_bits(numbers[gpm] for gpm in member.common.gpms.values()) for member in members]
        whose = MemberMasks(
            [_bits(of) for of in t.gates],
            _having(t.accepts),
            steps,
            [window.reach for window in self.windows],
            own_gpms if members[0].pattern.query.partition else (),
        )
        assert skips[0] is not None
        return ordering(t.compiled, skips[0].mode, self.widest.sliding, whose)

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        found = self._ordered.found_in(batch, start, solutions)
        self.reached = start + len(batch)
        for some in found:
            self._give(some, start, None)

    def alone(self) -> None:
        """Return None: single events are not taken, since members' time advances with each event."""

    def look_one(self, event: Single, start: int) -> bool:
        del event, start
        return False

    def narrow(self, live: frozenset[int], reach: int) -> None:
        self._ordered.restrict(_bits(live), reach)

    def advance(self, time: int) -> None:
        """Advance to ``time``, for some member and so for all."""
        if self.error is None and (self._time is None or time > self._time):
            self.attempt(lambda: self._let_pass(time, self._ordered.advance(time)))
            self._time = time

    def close(self) -> None:
        """End the streams."""
        if self.error is None:
            self.attempt(lambda: self._let_pass(END, self._ordered.close()))

    def settled(self, part: SkipPart, time: int) -> int:
        """See ``ByColumns.settled``."""
        return self._ordered.settled(time, 1 << self._own.index(part))

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether events are relevant for a run; the answer is the same for all members that have the
        run.
        """
        number = step[0][1]
        for i in self.live():
            if self._tables.candidates[i][number] >= 0:
                self._own[i].follow(self._ordered.history)
                return self._own[i].is_relevant(path, step, key)
        return False  # no member needs it

    def _let_pass(self, time: int, passing: Iterator[Block]) -> None:
        """Give the members the matches that waited for a time."""
        for some in self._ordered.found_by(passing):
            self._give(some, 0, time)

    def _give(self, found: Preferred, start: int, time: int | None) -> None:
        """Give members their matches."""
        history = self._ordered.history
        begins = np.concatenate([[0], np.cumsum(found.depths)])
        lot = self._lot(found, start, time)
        rows = FoundRows(found.steps, begins[:-1], begins[1:])
        for i, numbers, block in self._giving.blocks(history, lot, rows, found.keys):
            part = self._own[i]
            if block is None:
                part.follow(history)
                part.take(_some(found, begins, numbers), self.reached, time)
            else:
                part.member.take_found([block], self.reached - part.offset, time)

    def _lot(self, found: Preferred, start: int, time: int | None) -> Lot:
        """Assign each match to its members."""
        # For each member, the position before which it gets the matches that events deliver.
        until = np.zeros(len(self._own), dtype=np.int64)
        for i in self.live():
            part = self._own[i]
            if part.member.has(part) and not (part.member.is_over and time is not None):
                until[i] = part.until
        members = np.searchsorted(1 << np.arange(len(self._own)), found.members)
        numbers = np.flatnonzero(start + found.turns < until[members])
        return Lot(members[numbers], numbers, None)


class SkipPart(GroupPart):
    """A member, under a number: its own matches among those of the group."""

    group: SkipGroup

    def __init__(self, group: SkipGroup, member: Member, offset: int, number: int, all_: Tables) -> None:
        super().__init__(group, member, offset, all_.compiled.gpms)
        pattern, intern = member.pattern, member.dictionary.pin
        self._replay = RunReplay(lambda: compile_tables(pattern, intern), member.context, self.history)
        compiled = like_tables(pattern, intern, member.common.outline)
        self._matches = RunMatches(
            pattern, compiled, self.history, self._replay, member.context.order, decided=True
        )
        self._candidates, self._accepts = all_.candidates[number], all_.accepts[number]

    @property
    def plain(self) -> PlainSites | None:
        """How the member's matches are made, if they consist only of events."""
        return PlainSites(self._candidates, self._matches.sites) if self._matches.are_simple else None

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether events are relevant for a run of the group that is one of its own."""

        def own(events: Path) -> Path:
            return [(position, int(self._candidates[number])) for position, number in events]

        return self._replay.is_relevant(own(path), own(step), key)

    def take(self, found: Preferred, before: int, time: int | None) -> None:
        """Take matches of the group that are the member's; all events before a position were seen.

        ``time``: the time for which they waited, if they did.
        """
        steps = found.steps.copy()
        steps[:, 1] = self._candidates[steps[:, 1]]
        blocks = list(self._matches.made(found.keys, self._accepts[found.ways], found.depths, steps))
        self.member.take_found(blocks, before - self.offset, time)


class SharedSkip(SkipMatcher):
    """The matcher of a group: its matches go to the members."""

    def __init__(
        self,
        group: SkipGroup,
        pattern: SequencePattern,
        first: Member,
        window: StreamWindow,
        made: Ordering,
        budget: Budget,
    ) -> None:
        super().__init__(pattern, first.dictionary, first.context, window, made, budget)
        self._group = group
        self._taken: list[Preferred] = []

    @property
    def history(self) -> History:
        """The events that runs may still have."""
        return self._columns.history

    def found_in(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> list[Preferred]:
        """Return the matches that events decide; see ``process``."""
        return self.found_by(iter(self.process(batch, start, solutions)))

    def found_by(self, looking: Iterator[Block]) -> list[Preferred]:
        """Return the matches that are decided during a call."""
        self._taken = []
        for _ in looking:
            pass
        return self._taken

    def restrict(self, members: int, reach: int) -> None:
        """Restrict the simulation to these members; ``reach`` is the length of their windows."""
        gone = int(self._options[preferences.MEMBERS]) & ~members
        self._options[preferences.MEMBERS] = members
        self._tables[v.LIMIT] = reach
        if gone:
            k.leave(self.families.runs.ints, self.families.rows, gone)

    def _found(self) -> Iterator[Block]:
        if self.families.found:
            self._taken.append(self._unrolled())
        yield from ()

    def _is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        return self._group.is_relevant(path, step, key)


def _bits(numbers: Iterable[int]) -> int:
    """Return numbers as bits."""
    return sum(1 << number for number in set(numbers))


def _having(numbers: Ints) -> list[int]:
    """Return, for each column, the members that have a number there, as bits. ``numbers`` has a row per
    member; -1 is no number.
    """
    return [_bits(np.flatnonzero(column).tolist()) for column in (numbers >= 0).T]


def _some(found: Preferred, offsets: Ints, numbers: Ints) -> Preferred:
    """Return some of the matches; ``offsets``: where the events of each match begin."""
    depths = found.depths[numbers]
    begins = np.cumsum(depths) - depths
    events = np.repeat(offsets[:-1][numbers] - begins, depths) + np.arange(int(depths.sum()))
    return Preferred(
        found.members[numbers],
        found.turns[numbers],
        found.keys[numbers],
        found.ways[numbers],
        depths,
        found.steps[events],
    )


class SkipMember(Member):
    """A member with matches that may wait for time to pass."""

    @property
    def waits(self) -> bool:
        return True

    def advance(self, time: int) -> Iterator[Block]:
        """Advance to ``time``: yield the matches that waited for that."""
        self._own.group.advance(time)
        while self._found and (due := self._found[0].time) is not None and due <= time:
            yield from self._found.popleft().blocks
        self.check()

    def close(self) -> Iterator[Block]:
        """End every window, as no event will come."""
        self._own.group.close()
        while self._found:
            yield from self._found.popleft().blocks
        self.check()

    def settled(self, time: int) -> int:
        return self._own.group.settled(self._own, time)

    @property
    def _own(self) -> SkipPart:
        return cast(SkipPart, self._part)

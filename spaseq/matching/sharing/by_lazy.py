"""Queries with a common prefix, run by ``lazy``: one memory holds their common events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import UnsolvedError
from spaseq.matching.columns.ranks import ranks
from spaseq.matching.lazy.matcher import LazyMatcher
from spaseq.matching.lazy.matches import ExactMatch, LazyLooks, LazyMatches, looks
from spaseq.matching.lazy.plans import plans
from spaseq.matching.lazy.records import outcome
from spaseq.matching.lazy.tables import LazyTables, compile_all
from spaseq.matching.model import StreamWindow
from spaseq.matching.sharing._kernel_given import FoundRows
from spaseq.matching.sharing.giving import Giving, Lot, PlainSites
from spaseq.matching.sharing.group import PrefixGroup
from spaseq.matching.sharing.member import GroupPart, Member
from spaseq.matching.sharing.merge import together
from spaseq.matching.templates.form import ByOutline
from spaseq.patterns.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]

#: For queries under their own names: the number of plans, the GPMs of all items, the form of matches.
_PLANNED: Final = ByOutline[tuple[int, tuple[str, ...], LazyLooks]]()


class LazyGroup(PrefixGroup):
    """Members as the alternatives of one query."""

    def prepare(self, members: Sequence[Member], offsets: Sequence[int]) -> Sequence[GroupPart]:
        first = members[0]
        patterns = [member.common.pattern for member in members]
        whole = together(patterns)
        compiled = compile_all(whole, patterns, first.dictionary.pin)
        self._own = [
            LazyPart(self, member, offset, compiled.gpms, window)
            for member, offset, window in zip(members, offsets, self.windows, strict=True)
        ]
        #: The first plan and the first site of each member; then the totals.
        self._plans = np.cumsum([0, *(part.plans for part in self._own)])
        self._sites = np.cumsum([0, *(part.sites for part in self._own)])
        self._keys = [outcome.KEY + i for i, _ in enumerate(first.pattern.query.partition)]
        self._dictionary = first.dictionary
        numbers = {gpm: number for number, gpm in enumerate(compiled.gpms)}
        gpms = [numbers[part.member.common.gpms[gpm]] for part in self._own for gpm in part.gpms]
        plain = [
            part.plain(begin, len(gpms)) for part, begin in zip(self._own, self._sites.tolist(), strict=False)
        ]
        self._giving = Giving(self._own, plain, np.array(gpms, dtype=np.int64))
        self._lazy = self._together(whole, members, compiled)
        return self._own

    def _together(
        self, whole: SequencePattern, members: Sequence[Member], compiled: LazyTables
    ) -> LazyMatcher:
        """Return the common matcher."""
        first = members[0]
        if first.bound is not None:
            from spaseq.matching.sharing.bounded.by_lazy import shedding

            made, self.kept = shedding(whole, members, self.widest, compiled, np.diff(self._sites))
            made.give_to(self.give)
            return made
        budget = Budget(first.context.budget.limits.times(len(members)))
        alike = LazyMatcher(
            whole, first.dictionary, first.context, self.widest, compiled=compiled, budget=budget
        )
        alike.give_to(self._gather)
        return alike

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        if self.kept is not None:
            self.reached = start + len(batch)
        self._go_through(self._lazy.process(batch, start, solutions))
        self.reached = start + len(batch)
        self._give_gathered()

    def look_one(self, event: Single, start: int) -> bool:
        before = self.reached
        if self.kept is not None:
            self.reached = start + 1
        try:
            self._go_through(self._lazy.take_single(event, start))
        except UnsolvedError:
            self.reached = before
            return False
        self.reached = start + 1
        self._give_gathered()
        return True

    def _go_through(self, looking: Iterator[Block] | None) -> None:
        """Process events. The matcher passes their results on instead of making blocks."""
        self._taken: list[tuple[Ints, Ints, int]] = []
        for _ in looking or ():
            pass

    def _gather(self, found: Ints, choices: Ints, start: int) -> None:
        self._taken.append((found, choices, start))

    def _give_gathered(self) -> None:
        """Give members all results of the last events."""
        if not self._taken:
            return
        before = 0
        for found, choices, _ in self._taken:
            found[:, [outcome.BEGIN, outcome.END]] += before
            before += len(choices)
        of_all, of_each, starts = zip(*self._taken, strict=True)
        self.give(np.concatenate(of_all), np.concatenate(of_each), starts[0])

    def alone(self) -> tuple[Taking, Sequence[str]]:
        return self._lazy.taking, self._lazy.gpms

    def narrow(self, live: frozenset[int], reach: int) -> None:
        over = [i for i in range(len(self._own)) if i not in live]
        plans_over = [plan for i in over for plan in range(self._plans[i], self._plans[i + 1])]
        self._lazy.memory.restrict(plans_over, reach)

    def give(self, found: Ints, choices: Ints, start: int) -> None:
        """Give members their matches: rows of ``outcome``, and the choices of each."""
        history = self._lazy.history
        if self._keys:
            events, keys = found[:, outcome.EVENT], self._partitions(found)
            found = found[np.lexsort((ranks(events, keys, self._dictionary), events))]
        rows = FoundRows(choices, found[:, outcome.BEGIN].copy(), found[:, outcome.END].copy())
        lot = self._lot(found, choices, start)
        for i, numbers, block in self._giving.blocks(history, lot, rows, self._partitions(found)):
            part = self._own[i]
            if block is None or found[numbers, outcome.UNSURE].any():
                part.follow(history)
                part.take(*_some(found, choices, numbers, int(self._sites[i])), self.reached)
            else:
                part.member.take_found([block], self.reached - part.offset)

    def _partitions(self, found: Ints) -> Ints:
        return found[:, self._keys]

    def _lot(self, found: Ints, choices: Ints, start: int) -> Lot:
        """Assign each match found to its member."""
        begins, ends = found[:, outcome.BEGIN], found[:, outcome.END]
        of = np.searchsorted(self._sites, choices[begins, 1], side="right") - 1
        sizes, until = (np.zeros(len(self._own), dtype=np.int64) for _ in range(2))
        for i in self.live():
            part = self._own[i]
            if part.member.has(part):
                sizes[i], until[i] = self.windows[i].size, part.until
        wanted = start + found[:, outcome.EVENT] < until[of]
        lengths = self.lengths(choices[begins, 0], choices[ends - 1, 0], self._lazy.history)
        if lengths is not None:
            wanted &= lengths <= sizes[of]
        numbers = np.flatnonzero(wanted)
        return Lot(of[numbers], numbers, found[:, [outcome.EVENT, *self._keys]])


class LazyPart(GroupPart):
    """A member: its own matches among those of the group."""

    def __init__(
        self, group: PrefixGroup, member: Member, offset: int, gpms: Sequence[str], window: StreamWindow
    ) -> None:
        super().__init__(group, member, offset, gpms)
        pattern, context = member.pattern, member.context
        self.plans, self.gpms, look = _PLANNED.of(member.common.outline, lambda: _planned(pattern))
        self.sites = len(self.gpms)
        exact = ExactMatch(pattern, context, window, self.history)
        self._matches = LazyMatches(pattern, look, self.history, exact, context.order, member.dictionary)

    def plain(self, begin: int, size: int) -> PlainSites | None:
        """Return how the member's matches are made, if they are plain. Its sites start at ``begin``, among
        ``size`` sites of all.
        """
        if not self._matches.are_plain:
            return None
        own = np.full(size, -1, dtype=np.int64)
        own[begin : begin + self.sites] = np.arange(self.sites)
        return PlainSites(own, self._matches.sites)

    def take(self, found: Ints, choices: Ints, before: int) -> None:
        """Take matches of the member; all events before the position ``before`` were seen."""
        self.member.take_found(list(self._matches.of(found, choices)), before - self.offset)


def _planned(pattern: SequencePattern) -> tuple[int, tuple[str, ...], LazyLooks]:
    own = plans(pattern)
    items = [item for plan in own for item in plan.items]
    return len(own), tuple(item.atom.gpm for item in items), looks(pattern, items)


def _some(found: Ints, choices: Ints, numbers: Ints, site: int) -> tuple[Ints, Ints]:
    """Return some of the matches found, with only their own choices; sites are counted from ``site`` on."""
    own = found[numbers]
    begins, counts = own[:, outcome.BEGIN], own[:, outcome.END] - own[:, outcome.BEGIN]
    ends = np.cumsum(counts)
    chosen = choices[np.repeat(begins - (ends - counts), counts) + np.arange(int(ends[-1]))]
    chosen[:, 1] -= site
    own[:, outcome.BEGIN], own[:, outcome.END] = ends - counts, ends
    return own, chosen

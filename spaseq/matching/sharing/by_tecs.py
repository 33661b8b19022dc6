"""Queries with a common prefix, run by ``tecs``: one memory has the partial matches of all.

An event completes roots. Each member gets the roots of its accepting states, if its window has some of
their matches, and enumerates them on demand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, cast

import numpy as np

from spaseq.alone import Single
from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import Action
from spaseq.events import EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.blocks.plain import Sites
from spaseq.matching.columns.matcher import Enumerating
from spaseq.matching.interpreter.program import ProgramState, RunsProgram
from spaseq.matching.sharing.canonical import start
from spaseq.matching.sharing.group import PrefixGroup
from spaseq.matching.sharing.member import GroupPart, Member
from spaseq.matching.sharing.merge import Merged, merge
from spaseq.matching.tecs.automaton import (
    Configuration,
    DeterministicAutomaton,
    DeterministicTransition,
    sites,
)
from spaseq.matching.tecs.fits import keys
from spaseq.matching.tecs.memory import New, PartitionShare, least_of
from spaseq.matching.tecs.reading import Portion, RootReading, divided
from spaseq.matching.tecs.update import Ints, SingleUpdate, Update
from spaseq.matching.tecs.walking import WalkedRoots, walked_together
from spaseq.matching.templates.form import ByOutline
from spaseq.patterns.spectra.solutions import Solutions

#: The results of ``_own_sites``, by outline: queries of one outline have the same names of their own.
_SITES: Final = ByOutline[Sites | None]()

#: From so many roots on, all members' matches are walked at once.
_WORTH: Final = 1 << 8

#: The matches of some roots, and how many roots these are.
Known = tuple[WalkedRoots, int]


class TecsGroup(PrefixGroup):
    """Members as states of one deterministic automaton."""

    def prepare(self, members: Sequence[Member], offsets: Sequence[int]) -> Sequence[GroupPart]:
        first = members[0]
        starts = [start(member.pattern, member.common) for member in members]
        merged = merge([member.common.pattern for member in members], starts, "tecs")
        common = keys(first.common.pattern)
        self._automaton = _Trie(merged, frozenset(range(len(members))))
        budget = Budget(first.context.budget.limits.times(len(members)))
        self._update = Update(merged.pattern, common, self._automaton, self.widest, budget, first.dictionary)
        self._alone = SingleUpdate(merged.pattern, first.dictionary, self.widest, self._update)
        self._own = [
            TecsPart(self, member, offset, tuple(merged.pattern.gpms), self._update, place)
            for member, offset, place in zip(members, offsets, starts, strict=True)
        ]
        return self._own

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        first = self._begin()
        self._update.take(batch, start, solutions)
        self._end(first, start + len(batch))

    def _begin(self) -> int:
        """Begin with events; return the number of their first root."""
        kept = [least for part in self._own if (least := part.least) is not None]
        return self._update.memory.begin(min(kept, default=None))

    def _end(self, first: int, reached: int) -> None:
        """Give the members the roots of the processed events."""
        self.reached = reached
        if self._update.memory.found_count > first:
            self._give(self._update.memory.since(first))

    def alone(self) -> tuple[Taking, Sequence[str]]:
        return self._alone.taking, tuple(self._update.gpms)

    def look_one(self, event: Single, start: int) -> bool:
        first = self._begin()
        if not self._alone.take(event, start):
            return False
        self._end(first, start + 1)
        return True

    def narrow(self, live: frozenset[int], reach: int) -> None:
        self._automaton.restrict(live)
        self._update.memory.reach(reach)

    def _give(self, new: New) -> None:
        """Give members their roots."""
        # Short numbers are sorted by their digits.
        short = np.int16 if len(self._automaton) < 1 << 15 else np.int64
        order = np.argsort(new.states.astype(short), kind="stable")
        states, begins = np.unique(new.states[order], return_index=True)
        of = dict(zip(states.tolist(), np.split(order, begins[1:]), strict=True))
        numbers: dict[int, list[Ints]] = {}
        for state, found in of.items():
            for member in self._automaton.members(state):
                numbers.setdefault(member, []).append(found)
        given: list[tuple[TecsPart, Ints]] = []
        for member, found_by_state in numbers.items():
            part = self._own[member]
            if part.member.has(part):
                own = found_by_state[0]
                if len(found_by_state) > 1:
                    own = np.sort(np.concatenate(found_by_state))
                roots = new.some(own, self.windows[member].reach)
                if len(roots):
                    given.append((part, roots))
        walked = self._walked(given)
        for part, roots in given:
            part.take(roots, walked.get(part))

    def _walked(self, given: Sequence[tuple[TecsPart, Ints]]) -> dict[TecsPart, Known]:
        """Return the matches of many roots, for the members that enumerate their matches as soon as they see
        events.

        Walking the roots of all members at once takes half the time of walking each member's roots
        separately, each time through the whole memory.
        """
        # A part with older matches left may not need these soon.
        those = [(part, roots) for part, roots in given if part.is_clear]
        if len(those) < 2 or sum(len(roots) for _, roots in those) < _WORTH:
            return {}
        found = walked_together(self._update.memory, [roots for _, roots in those])
        return {part: known for (part, _), known in zip(those, found, strict=True) if known is not None}


class TecsPart(GroupPart):
    """A member: the roots that are its own, and the matches of these."""

    group: PrefixGroup

    def __init__(
        self,
        group: PrefixGroup,
        member: Member,
        offset: int,
        gpms: Sequence[str],
        update: Update,
        begin: ProgramState,
    ) -> None:
        """``gpms``: the group's; ``begin``: the start of the member's automaton, under common names."""
        super().__init__(group, member, offset, gpms)
        self._update = update
        own = {common: name for name, common in member.common.variables.items()}
        names = [own[name] for name in update.keys]
        numbers = {gpm: number for number, gpm in enumerate(member.common.gpms.values())}
        labels = np.array([numbers.get(gpm, -1) for gpm in gpms], dtype=np.int64)
        self._share = PartitionShare(update.memory)
        self._reading = _Own(self, begin, labels, names, self._share)
        # Roots of events that the member has not been given yet: for each event the position after it, the
        # roots, and their matches if known.
        self._coming: deque[tuple[int, Ints, Known | None]] = deque()
        self._is_apart = False

    @property
    def least(self) -> int | None:
        """The least top in a window of a root that is not enumerated; None if there is none."""
        if self._is_apart:
            return None
        least = self._share.least
        if least is None and self._coming:
            least = least_of(self._coming[0][1])
        given = self._reading.least
        return given if least is None else least if given is None else min(least, given)

    @property
    def has_found(self) -> bool:
        """Whether there are roots of events that the member has not been given yet."""
        return bool(self._coming)

    @property
    def waiting(self) -> int:
        """How many of the roots are not completely enumerated."""
        return self._share.unread

    @property
    def is_clear(self) -> bool:
        """Whether all its earlier matches are enumerated."""
        return not self._coming and not self._share.unread

    def take(self, roots: Ints, known: Known | None) -> None:
        """Add roots of the group that belong to the member, and the matches of the first of these roots, if
        known.
        """
        self._coming.append((self.group.reached - self.offset, roots, known))

    def reveal(self, position: int) -> None:
        """Release the roots of events up to the member's own ``position``."""
        while self._coming and self._coming[0][0] <= position:
            _, roots, known = self._coming.popleft()
            self._share.add(roots)
            if known is not None:
                self._reading.know(*known)

    def unread(self) -> Iterator[Block]:
        """Yield the unread matches."""
        return self._reading.unread()

    def divide(self, by_key: bool, keys: Collection[int] | None) -> Iterator[tuple[int, Portion]]:
        """Give away the unread matches."""
        return divided((self._reading,), by_key, keys)

    def drop(self) -> None:
        """Discard the unread matches."""
        self._reading.drop()

    def look(self) -> None:
        """Use the group's current nodes and events."""
        if not self._is_apart:
            self._share.look(self._update.memory)
            self.follow(self._update.history)

    def leave(self) -> None:
        """Leave the group, which need not keep anything for the member from now on."""
        self._coming.clear()
        if self._share.unread or self._reading.least is not None:
            self.look()
            self._share.keep()
        self._is_apart = True


class _Own(RootReading):
    """Matches of a group as a member's own; ``labels``: for each label of the group, the member's label."""

    def __init__(
        self, part: TecsPart, begin: ProgramState, labels: Ints, names: Sequence[str], share: PartitionShare
    ) -> None:
        pattern = part.member.pattern
        # Compiled only if a match must be replayed.
        super().__init__(
            pattern, _SITES.of(part.member.common.outline, lambda: _own_sites(part.member, begin)),
            lambda: DeterministicAutomaton(RunsProgram(compile_pattern(pattern)).start, tuple(pattern.gpms)),
            names, part.member.context, part.history, share,
        )  # fmt: skip
        self._part = part
        self._labels = labels

    def next(self) -> WalkedRoots | None:
        self._part.look()
        found = super().next()
        return None if found is None else found._replace(labels=self._labels[found.labels])


def _own_sites(member: Member, begin: ProgramState) -> Sites | None:
    """Return the sites of a member's labels, under its own names; ``begin`` is under common names."""
    found = sites(member.common.pattern, begin)
    if found is None:
        return None
    gpms = {common: own for own, common in member.common.gpms.items()}
    names = {common: own for own, common in member.common.variables.items()}
    own = [
        replace(site, gpm=gpms[site.gpm], own=frozenset(names[name] for name in site.own))
        for site in found.all
    ]
    return Sites(own, tuple(member.pattern.gpms))


class _Trie(DeterministicAutomaton):
    """The automaton of all members; it has the transitions that the ``live`` ones need."""

    def __init__(self, merged: Merged, live: frozenset[int]) -> None:
        self._merged = merged
        self._live = live
        super().__init__(merged.start, tuple(merged.pattern.gpms))

    def transitions(self, configuration: Configuration) -> Iterator[DeterministicTransition]:
        for transition in super().transitions(configuration):
            if self._merged.wanted[transition.to.place] & self._live:
                yield transition

    def endings(self, configuration: Configuration) -> Iterator[tuple[Action, ...]]:
        for ends in super().endings(configuration):
            if self._merged.ends[configuration.place][ends] & self._live:
                yield ends

    def members(self, state: int) -> frozenset[int]:
        """Return the members with matches that end in a state."""
        ends = self._merged.ends
        found = (ends[c.place][e] for c in self.configurations(state) for e in self.endings(c))
        return frozenset[int]().union(*found) & self._live

    def restrict(self, live: frozenset[int]) -> None:
        """Restrict the automaton to these members."""
        if live != self._live:
            self._live = live
            self.describe()


class TecsMember(Member):
    """A member with roots; its matches are enumerated from them on demand."""

    #: The matcher that it used before it joined a group, as long as that has unread matches.
    _before: Enumerating | None = None

    @property
    def can_share(self) -> bool:
        # Events with several solutions need the member's own variables.
        common = self._common
        return common is not None and len(set(common.gpms.values())) == len(common.gpms)

    @cached_property
    def _parts(self) -> deque[TecsPart]:
        """The parts that may have roots; the last one gets new roots."""
        return deque()

    @property
    def has_found(self) -> bool:
        return any(part.has_found for part in self._parts)

    @property
    def waiting(self) -> int:
        """How many of the roots are not enumerated to their end."""
        before = 0 if self._before is None else self._before.waiting
        return before + sum(part.waiting for part in self._parts)

    def instead_of(self, matcher: Enumerating) -> None:
        """Continue where the member's own matcher stops; some matches of that matcher may not be enumerated
        yet.
        """
        self._before = matcher

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Process events without enumeration."""
        del solutions  # the group has its own
        for part in self._parts:
            part.reveal(start + len(batch))
        self.check()

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        self.take(batch, start, solutions)
        return self.unread()

    def unread(self) -> Iterator[Block]:
        """Yield the matches that were not read, including matches found meanwhile."""
        if self._before is not None:
            yield from self._before.unread()
            self._before = None
        while self._parts:
            yield from self._parts[0].unread()
            if len(self._parts) == 1:
                return
            self._parts.popleft()

    def divide(self, by_key: bool, keys: Collection[int] | None = None) -> Iterator[tuple[int, Portion]]:
        """Give away the unread matches: see ``Enumerating``."""
        for part in self._parts:
            yield from part.divide(by_key, keys)

    def drop(self) -> None:
        """Discard the unread matches."""
        self._before = None
        for part in self._parts:
            part.drop()

    def leave(self, position: int) -> None:
        super().leave(position)
        for part in self._parts:
            part.leave()

    def move(self, since: int) -> None:
        super().move(since)
        self._parts.append(cast(TecsPart, self._part))

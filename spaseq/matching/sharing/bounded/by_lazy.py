"""Queries that begin alike and have one bound, run by ``lazy``: one memory of events, shed for all of them.

An event is worth the matches that it is in, of all of them, each as much as its query weighs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch, Stamp
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import Budget
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.evaluator import UnsolvedError
from spaseq.matching.lazy.tables import Compiled
from spaseq.matching.model import Bounds
from spaseq.matching.sharing.bounded.ledgers import Ledgers, effort_of, weights
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.by_lazy import GatheringLazy, Ints, LazyGroup
from spaseq.matching.sharing.giving import Lot
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.bounded import Bounded, Many
from spaseq.matching.shedding.buffered.evaluator import SheddingLazy


class SheddingLazyGroup(LazyGroup):
    """Members as the alternatives of one query, of whose events some are shed."""

    _lazy: SheddingLazyTogether

    def together(
        self, whole: SequencePattern, members: Sequence[Member], compiled: Compiled
    ) -> SheddingLazyTogether:
        self._members = own = [cast("BoundedMember", member) for member in members]
        made = SheddingLazyTogether(self, whole, own, self.widest, compiled, np.diff(self._sites))
        self._lazy = made  # before members say that they leave, as they do when an interrupt comes here
        for member in own:
            member.leaves = self._left
        return made

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        # Members get matches as they are found: to make these is a part of what events take.
        self.reached = start + len(batch)
        self._lazy.found_in(batch, start, solutions)

    def look_one(self, at: Stamp, graph: int, terms: Sequence[int], start: int) -> bool:
        reached, self.reached = self.reached, start + 1
        try:
            looking = self._lazy.take_single(at, graph, terms, start)
        except UnsolvedError:
            self.reached = reached
            return False
        if looking is not None:
            self._lazy.found_by(looking)
        return True

    def narrow(self, live: frozenset[int], reach: int) -> None:
        super().narrow(live, reach)
        self._lazy.weigh(live)

    def _left(self) -> None:
        """A query is over; with the last of them nothing is shed any more."""
        self._lazy.tell()
        if all(member.is_done for member in self._members):
            self._lazy.end_shedding()

    def _lot(self, found: Ints, choices: Ints, start: int) -> Lot:
        lot = super()._lot(found, choices, start)
        self._lazy.find(lot)
        return lot


class SheddingLazyTogether(SheddingLazy, GatheringLazy):
    """The evaluator of a group that keeps a bound."""

    def __init__(
        self,
        group: SheddingLazyGroup,
        whole: SequencePattern,
        members: Sequence[BoundedMember],
        window: Bounds,
        compiled: Compiled,
        sites: Ints,
    ) -> None:
        """``sites``: how many each member has."""
        first = members[0]
        self._group, self._members = group, members
        self._weights = weights(members)
        # Of each site, whose it is; and where the events in hand begin.
        self._of, self._at = np.repeat(np.arange(len(members)), sites), 0
        own = [{common: name for name, common in member.common.gpms.items()} for member in members]
        states = [[f"buffered {of[gpm]}" if gpm in of else None for gpm in compiled.gpms] for of in own]
        self._ledgers = Ledgers(members, states)
        many = Many(first.name, len(members), Budget(first.context.budget.limits.times(len(members))))
        query = Bounded(whole, first.dictionary, first.context, window, effort_of(members), many)
        super().__init__(query, compiled)
        self.gathers()

    def weigh(self, live: frozenset[int]) -> None:
        """Nobody wants anything but these."""
        some = sorted(live)
        self._rows.weights[:] = np.where(np.isin(self._of, some), self._weights[self._of], 0.0)
        if some and self._effort.pool is not None:
            self._effort = effort_of([self._members[i] for i in some], self._effort)

    def find(self, lot: Lot) -> None:
        """Matches were found, of whom the lot says."""
        self._ledgers.find(np.bincount(lot.members, minlength=len(self._members)))

    def tell(self) -> None:
        """Tells each query what was given up of its own."""
        missed = np.bincount(self._of, self._rows.missed, len(self._members)).astype(np.float64)
        self._ledgers.tell(self.shed, self.gone, missed)

    def end_shedding(self) -> None:
        super().end_shedding()
        if self._effort.pool is not None:
            self._effort.pool.leave(self._effort)
        self.tell()

    def _take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> tuple[Ints, Chunk]:
        self._at = start
        return super()._take(batch, start, solutions)

    def _take_alone(
        self, at: Stamp, graph: int, terms: Sequence[int], start: int, event: Single | None
    ) -> Ints:
        self._at = start
        return super()._take_alone(at, graph, terms, start, event)

    def _matched(self, found: Ints, choices: Ints) -> Iterator[Block]:
        self._group.give(found, choices, self._at)
        yield from ()

    def _estimate(self) -> None:
        super()._estimate()
        self.tell()

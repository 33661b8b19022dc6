"""Queries with a common prefix and one bound, run by ``lazy``: one memory of events, shed for all of them.

The utility of an event counts the matches that it is in, of all queries, each with its query's weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.lazy.tables import LazyTables
from spaseq.matching.model import StreamWindow
from spaseq.matching.sharing.bounded.ledgers import Ledgers, weights
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.bounded.together import BoundedGroup, SharedShedding, query_of
from spaseq.matching.sharing.by_lazy import Ints, LazyGroup, SharedLazy
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.lazy import SheddingLazy
from spaseq.patterns.spectra.solutions import Solutions


class SheddingLazyGroup(BoundedGroup, LazyGroup):
    """Members as the alternatives of one query; some of its buffered events are shed."""

    _lazy: SheddingSharedLazy

    def together(
        self, whole: SequencePattern, members: Sequence[Member], compiled: LazyTables
    ) -> SheddingSharedLazy:
        own = [cast("BoundedMember", member) for member in members]
        made = SheddingSharedLazy(self, whole, own, self.widest, compiled, np.diff(self._sites))
        return self.keep(made, own)


class SheddingSharedLazy(SheddingLazy, SharedLazy, SharedShedding):
    """The matcher of a group that keeps a bound."""

    def __init__(
        self,
        group: SheddingLazyGroup,
        whole: SequencePattern,
        members: Sequence[BoundedMember],
        window: StreamWindow,
        compiled: LazyTables,
        sites: Ints,
    ) -> None:
        """``sites``: the number of sites of each member."""
        self._group, self._members = group, members
        self._weights = weights(members)
        # The member of each site, and where the current events begin.
        self._of, self._at = np.repeat(np.arange(len(members)), sites), 0
        own = [{common: name for name, common in member.common.gpms.items()} for member in members]
        states = [[f"buffered {of[gpm]}" if gpm in of else None for gpm in compiled.gpms] for of in own]
        self._ledgers = Ledgers(members, states)
        super().__init__(query_of(whole, members, window), compiled)
        self.gathers()

    def value(self, live: frozenset[int]) -> None:
        self._rows.weights[:] = np.where(np.isin(self._of, sorted(live)), self._weights[self._of], 0.0)

    def tell(self) -> None:
        self._ledgers.tell(self.shed, self.gone)

    def _take(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> tuple[Ints, SolvedBatch]:
        self._at = start
        return super()._take(batch, start, solutions)

    def _take_alone(self, event: Single, start: int) -> Ints:
        self._at = start
        return super()._take_alone(event, start)

    def _matched(self, found: Ints, choices: Ints) -> Iterator[Block]:
        self._group.give(found, choices, self._at)
        yield from ()

    def _estimate(self) -> None:
        super()._estimate()
        self.tell()

"""Queries with a common prefix and one bound, run by ``nfa``: one kernel runs them all, and sheds for all.

The utility of a partial match counts the expected matches of all of them, each with its query's weight. Where
queries part for good, each side waits at a gate of its own: shedding at one gate does not affect the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import cast

from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.matches import FoundRuns, Ints
from spaseq.matching.nfa.tables.analysis import Analysis
from spaseq.matching.sharing.bounded.ledgers import Ledgers, weights
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.bounded.together import BoundedGroup, SharedShedding, query_of
from spaseq.matching.sharing.by_nfa import NfaGroup, SharedNfa
from spaseq.matching.sharing.giving import Lot
from spaseq.matching.sharing.member import Member
from spaseq.matching.sharing.merge import Tables
from spaseq.matching.shedding.matcher import SheddingNfa
from spaseq.matching.shedding.rates import Queries


class SheddingNfaGroup(BoundedGroup, NfaGroup):
    """Members as runs of one kernel, which sheds some."""

    _kernel: SheddingSharedNfa

    def together(self, members: Sequence[Member]) -> SheddingSharedNfa:
        own = [cast("BoundedMember", member) for member in members]
        return self.keep(SheddingSharedNfa(self, self._tables, own, self.widest), own)

    def _lot(self, runs: FoundRuns, begins: Ints) -> Lot:
        lot = super()._lot(runs, begins)
        self._kernel.find(lot, len(runs.ways))
        return lot


class SheddingSharedNfa(SheddingNfa, SharedNfa, SharedShedding):
    """The kernel of a group that keeps a bound."""

    def __init__(
        self, group: SheddingNfaGroup, tables: Tables, members: Sequence[BoundedMember], window: StreamWindow
    ) -> None:
        self._group, self._members = group, members
        self._ledgers = Ledgers(members, [_states(member, tables.compiled.analysis) for member in members])
        query = query_of(tables.merged.pattern, members, window)
        super().__init__(query, tables.compiled, Queries(tables.accepts >= 0, weights(members)))
        self.gathers(group)

    def value(self, live: Collection[int]) -> None:
        self._observed.model.queries.keep(live)

    def reach(self, limit: int) -> None:
        super().reach(limit)
        self._observed.features.tables[v.LIMIT] = limit

    def find(self, lot: Lot, runs: int) -> None:
        """Credit ``runs`` runs as matches; the lot has their members."""
        self._account.find(len(lot.members))
        self._made += max(0, len(lot.members) - runs)

    def update(self) -> None:
        super().update()
        self.tell()

    def tell(self) -> None:
        self._ledgers.tell(self.shed, self._account.by_gate())

    def _found(self) -> Iterator[Block]:
        yield from super()._found()
        runs = self.gathered()
        if runs is not None:
            self._group.give(runs)

    def _notice(self, events: int) -> None:
        super()._notice(events)
        self.tell()


def _states(member: Member, analysis: Analysis) -> list[str | None]:
    """Return a query's name for each gate; None if none of its GPMs continues there."""
    own = {common: name for name, common in member.common.gpms.items()}
    names = [" | ".join(sorted(own[gpm] for gpm in gate.gpms if gpm in own)) for gate in analysis.gates]
    return [f"before {name}" if name else None for name in names]

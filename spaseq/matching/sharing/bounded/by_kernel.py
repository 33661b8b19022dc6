"""Queries that begin alike and have one bound, run by ``kernel``: one runs them all, and sheds for all.

A partial match is worth what comes of it for all of them, each match as much as its query weighs. Where
queries part for good, each side waits at a gate of its own: what is shed of one lives on for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch, Stamp
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import Budget
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.evaluator import UnsolvedError
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.kernel.matches import Ints, Runs
from spaseq.matching.kernel.tables.analysis import Analysis
from spaseq.matching.model import Bounds
from spaseq.matching.sharing.automata.merge import Tables
from spaseq.matching.sharing.bounded.ledgers import Ledgers, effort_of, weights
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.by_kernel import Gathering, KernelGroup
from spaseq.matching.sharing.giving import Lot
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.bounded import Bounded, Many
from spaseq.matching.shedding.evaluator import Shedding
from spaseq.matching.shedding.learned.queries import Queries

Floats = npt.NDArray[np.float64]


class SheddingGroup(KernelGroup):
    """Members as runs of one kernel, which sheds some."""

    _kernel: SheddingTogether

    def together(self, members: Sequence[Member]) -> SheddingTogether:
        self._members = own = [cast("BoundedMember", member) for member in members]
        self._kernel = made = SheddingTogether(self, self._tables, own, self.widest)
        # From now on: what fails before would be hidden by members that say that they leave nothing yet.
        for member in own:
            member.leaves = self._left
        return made

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        # Members get matches as they are found: to make these is a part of what events take.
        self.reached = start + len(batch)
        self._kernel.found_in(batch, start, solutions)

    def look_one(self, at: Stamp, graph: int, terms: Sequence[int], start: int) -> bool:
        reached, self.reached = self.reached, start + 1
        try:
            self._kernel.found_in_one(at, graph, terms, start)
        except UnsolvedError:
            self.reached = reached
            return False
        return True

    def narrow(self, live: frozenset[int], reach: int) -> None:
        super().narrow(live, reach)
        self._kernel.weigh(live)

    def _left(self) -> None:
        """A query is over; with the last of them nothing is shed any more."""
        self._kernel.tell()
        if all(member.is_done for member in self._members):
            self._kernel.end_shedding()

    def _lot(self, runs: Runs, begins: Ints) -> Lot:
        lot = super()._lot(runs, begins)
        self._kernel.find(lot, len(runs.ways))
        return lot


class SheddingTogether(Shedding, Gathering):
    """The kernel of a group that keeps a bound."""

    def __init__(
        self, group: SheddingGroup, tables: Tables, members: Sequence[BoundedMember], window: Bounds
    ) -> None:
        first = members[0]
        self._group, self._members = group, members
        self._ledgers = Ledgers(members, [_states(member, tables.compiled.analysis) for member in members])
        many = Many(first.name, len(members), Budget(first.context.budget.limits.times(len(members))))
        effort = effort_of(members)
        query = Bounded(tables.merged.pattern, first.dictionary, first.context, window, effort, many)
        super().__init__(query, tables.compiled, Queries(tables.accepts >= 0, weights(members)))
        self.gathers(group)

    def weigh(self, live: Collection[int]) -> None:
        """Nobody wants anything but these."""
        self._sketch.queries.keep(live)
        if live and self._effort.pool is not None:
            self._effort = effort_of([self._members[i] for i in sorted(live)], self._effort)

    def reach(self, limit: int) -> None:
        super().reach(limit)
        self._features.tables[v.LIMIT] = limit

    def find(self, lot: Lot, runs: int) -> None:
        """So many runs are matches, of whom the lot says."""
        self._ledgers.find(np.bincount(lot.members, minlength=len(self._members)))
        self._account.find(len(lot.members))
        self._made += max(0, len(lot.members) - runs)

    def tell(self) -> None:
        """Tells each query what was given up of its own."""
        s = self._sketch
        missed = np.zeros(len(self._members))
        if s.forgone.missed:
            missed = s.shares @ s.forgone.missed_of
        self._ledgers.tell(self.shed, self._account.by_gate(), missed)

    def end_shedding(self) -> None:
        super().end_shedding()
        if self._effort.pool is not None:
            self._effort.pool.leave(self._effort)
        self.tell()

    def _found(self) -> Iterator[Block]:
        yield from super()._found()
        runs = self.gathered()
        if runs is not None:
            self._group.give(runs)

    def _notice(self, events: int) -> None:
        super()._notice(events)
        self.tell()


def _states(member: Member, analysis: Analysis) -> list[str | None]:
    """What a query calls each gate, which is not its own if none of its GPMs goes on there."""
    own = {common: name for name, common in member.common.gpms.items()}
    names = [" | ".join(sorted(own[gpm] for gpm in gate.gpms if gpm in own)) for gate in analysis.gates]
    return [f"before {name}" if name else None for name in names]

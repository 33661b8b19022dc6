"""Queries that begin alike and keep a bound: one kernel runs the automaton of all, and sheds for all.

A partial match is worth what comes of it for all of them, each match as much as its query weighs. Where
queries part, each side waits at a gate of its own: what is shed of one lives on for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from spaseq.effort import Effort
from spaseq.events import EventBatch, Stamp
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.limits import Budget
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.evaluator import UnsolvedError
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.kernel.matches import Ints, Runs
from spaseq.matching.model import Bounds
from spaseq.matching.sharing.automata.merge import Tables
from spaseq.matching.sharing.by_kernel import Gathering, KernelGroup
from spaseq.matching.sharing.giving import Lot
from spaseq.matching.sharing.member import Member
from spaseq.matching.sharing.under_bound import BoundedMember
from spaseq.matching.shedding.bounded import Bounded, Many
from spaseq.matching.shedding.evaluator import Shedding
from spaseq.matching.shedding.ledgers import Ledger, Ledgers

Floats = npt.NDArray[np.float64]


class SheddingGroup(KernelGroup):
    """Members as runs of one kernel, which sheds some."""

    _kernel: SheddingTogether

    @property
    def members(self) -> list[BoundedMember]:
        """Its members, by number."""
        return [cast("BoundedMember", part.member) for part in self._own]

    def together(self, first: Member) -> SheddingTogether:
        return SheddingTogether(self, self._tables, cast("BoundedMember", first), self.widest)

    def look(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        # Members get what was found as it is found: to make that is a part of what events take.
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

    def end_shedding(self) -> None:
        """A query is over; the last of them all tells that nothing is shed any more."""
        self._kernel.tell()
        if not self.live():
            self._kernel.end_shedding()

    def _lot(self, runs: Runs, begins: Ints) -> Lot:
        lot = super()._lot(runs, begins)
        self._kernel.give(lot, len(runs.ways))
        return lot


class SheddingTogether(Shedding, Gathering):
    """The kernel of a group that keeps a bound: what it finds goes to the members as it is found."""

    def __init__(self, group: SheddingGroup, tables: Tables, first: BoundedMember, window: Bounds) -> None:
        self._group, self._of = group, tables
        self._weights = np.array([member.effort.weight for member in group.members])
        self._weights /= self._weights.mean()
        count = len(group.members)
        budget = Budget(first.context.budget.limits.times(count))
        many = Many(tables.compiled, budget, self._ends(range(count)), first.name, count)
        effort = _all(group.members)
        super().__init__(
            Bounded(tables.merged.pattern, first.dictionary, first.context, window, effort, many)
        )
        self.gathers(group)

    @cached_property
    def _ledgers(self) -> Ledgers:
        """What each query has to be told of."""
        of = np.array([[i in members for members in self._of.gates] for i in range(len(self._weights))])
        ledgers = []
        for member in self._group.members:
            own = {common: name for name, common in member.common.gpms.items()}
            gates = [
                " | ".join(sorted(own[gpm] for gpm in gate.gpms if gpm in own))
                for gate in self._compiled.analysis.gates
            ]
            ledgers.append(Ledger(member, gates))
        return Ledgers(ledgers, of, self._of.accepts >= 0)

    def _ends(self, live: Sequence[int] | frozenset[int]) -> Floats:
        """What a match is worth to those that want more, by the way that it ends."""
        some = sorted(live)
        return np.asarray(self._weights[some] @ (self._of.accepts[some] >= 0))

    def weigh(self, live: frozenset[int]) -> None:
        """Nobody wants anything but these."""
        self._sketch.weights[:] = self._ends(live)
        pool, members = self._effort.pool, self._group.members
        if pool is not None and live:
            pool.leave(self._effort)
            self._effort = _all([members[i] for i in live])
            pool.join(self._effort)

    def reach(self, limit: int) -> None:
        super().reach(limit)
        self._features.tables[v.LIMIT] = limit

    def give(self, lot: Lot, runs: int) -> None:
        """So many runs are matches, of whom the lot says."""
        self._ledgers.find(np.bincount(lot.members, minlength=len(self._weights)))
        self._account.find(len(lot.members))
        self._made += max(0, len(lot.members) - runs)

    def tell(self) -> None:
        """Tells each query what was given up of its own."""
        self._ledgers.tell(self._account, self._sketch)

    def end_shedding(self) -> None:
        super().end_shedding()
        self.tell()

    def _found(self) -> Iterator[Block]:
        yield from super()._found()
        runs = self.gathered()
        if runs is not None:
            self._group.give(runs)

    def _notice(self, events: int) -> None:
        super()._notice(events)
        self.tell()


def _all(members: Sequence[BoundedMember]) -> Effort:
    """The bound of several queries, for all together; of memory they have what each would have."""
    effort = members[0].effort
    if effort.pool is not None:
        for member in members:
            effort.pool.leave(member.effort)
    every = replace(effort, weight=sum(member.effort.weight for member in members))
    if every.pool is not None:
        every.pool.join(every)
    return every

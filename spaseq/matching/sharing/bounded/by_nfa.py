"""Queries with a common prefix and one bound, run by ``nfa``: one kernel runs them all, and sheds for all.

The utility of a partial match counts the expected matches of all of them, each with its query's weight. Where
queries part for good, each side waits at a gate of its own: shedding at one gate does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import cast

from spaseq.bounds import Bound
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.host import Key
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.exact import Path
from spaseq.matching.nfa.matches import FoundRuns, Ints
from spaseq.matching.nfa.tables.analysis import Analysis
from spaseq.matching.sharing.bounded.ledgers import Floats, Ledgers, weights
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.bounded.together import GroupBound, query_of
from spaseq.matching.sharing.giving import Lot
from spaseq.matching.sharing.member import Member
from spaseq.matching.sharing.merge import Tables
from spaseq.matching.sharing.shared_nfa import SharedNfa
from spaseq.matching.shedding.matcher import SheddingNfa
from spaseq.matching.shedding.query import BoundedQuery
from spaseq.matching.shedding.rates import Queries


def shedding(
    is_relevant: Callable[[Path, Path, Key], bool],
    give: Callable[[FoundRuns], None],
    tables: Tables,
    members: Sequence[Member],
    window: StreamWindow,
) -> tuple[SheddingSharedNfa, GroupBound]:
    """Return the kernel of all members, which sheds partial matches, and the bound that it keeps.

    It passes runs to ``give`` as they are found. ``is_relevant``: see ``SharedNfa.gathers``.
    """
    own = [cast("BoundedMember", member) for member in members]
    query = query_of(tables.merged.pattern, own, window)
    kernel = SheddingSharedNfa(query, tables, weights(own))
    kernel.give = give
    kernel.gathers(is_relevant)
    ledgers = Ledgers(own, [_states(member, tables.compiled.analysis) for member in own])
    kept = GroupBound(kernel, query.bound, ledgers, own, kernel.value, kernel.shed_by_gate)
    kernel.tells = kept.tell
    return kernel, kept


class SheddingSharedNfa(SheddingNfa, SharedNfa):
    """The kernel of a group that keeps a bound."""

    #: Called when the figures of ``shed`` have changed.
    tells: Callable[[], None] | None = None
    #: Called with the runs found.
    give: Callable[[FoundRuns], None]

    def __init__(self, query: BoundedQuery, tables: Tables, weights: Floats) -> None:
        super().__init__(query, tables.compiled, Queries(tables.accepts >= 0, weights))

    def value(self, live: Collection[int]) -> None:
        """Set the value of matches: matches of members other than the ``live`` ones have value 0."""
        self._observed.model.queries.keep(live)

    def shed_by_gate(self) -> Ints:
        """Return how many partial matches were shed at each gate."""
        return self._account.by_gate()

    def keep_bound(self, bound: Bound) -> None:
        """Keep another bound from now on."""
        self._bound = bound

    def reach(self, limit: int) -> None:
        super().reach(limit)
        self._observed.features.tables[v.LIMIT] = limit

    def find(self, lot: Lot, runs: int) -> None:
        """Count the matches of ``lot`` for the estimate of recall; they are ``runs`` runs, some of several
        members.
        """
        self._account.find(len(lot.members))
        self._made += max(0, len(lot.members) - runs)

    def _found(self) -> Iterator[Block]:
        yield from super()._found()
        runs = self.gathered()
        if runs is not None:
            self.give(runs)

    def _notice(self, events: int) -> None:
        super()._notice(events)
        if self.tells is not None:
            self.tells()


def _states(member: Member, analysis: Analysis) -> list[str | None]:
    """Return a query's description of each gate; None if none of its GPMs continues there."""
    own = {common: name for name, common in member.common.gpms.items()}
    names = [" | ".join(sorted(own[gpm] for gpm in gate.gpms if gpm in own)) for gate in analysis.gates]
    return [f"before {name}" if name else None for name in names]

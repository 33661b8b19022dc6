"""Queries with a common prefix and one bound, run by ``lazy``: one memory of events, shed for all of them.

The utility of an event counts the matches that it is in, of all queries, each with its query's weight.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.matching.lazy.tables import LazyTables
from spaseq.matching.model import StreamWindow
from spaseq.matching.sharing.bounded.ledgers import Ledgers, weights
from spaseq.matching.sharing.bounded.member import BoundedMember
from spaseq.matching.sharing.bounded.together import GroupBound, query_of
from spaseq.matching.sharing.member import Member
from spaseq.matching.shedding.lazy import SheddingLazy

Ints = npt.NDArray[np.int64]


def shedding(
    whole: SequencePattern, members: Sequence[Member], window: StreamWindow, compiled: LazyTables, sites: Ints
) -> tuple[SheddingLazy, GroupBound]:
    """Return a matcher of all members that sheds buffered events, and the bound that it keeps.

    ``sites``: the number of sites of each member.
    """
    own = [cast("BoundedMember", member) for member in members]
    of_site, weight = np.repeat(np.arange(len(own)), sites), weights(own)
    names = [{common: name for name, common in member.common.gpms.items()} for member in own]
    states = [[f"buffered {of[gpm]}" if gpm in of else None for gpm in compiled.gpms] for of in names]
    query = query_of(whole, own, window)
    matcher = SheddingLazy(query, compiled)

    def value(live: Collection[int]) -> None:
        matcher.weights[:] = np.where(np.isin(of_site, sorted(live)), weight[of_site], 0.0)

    kept = GroupBound(matcher, query.bound, Ledgers(own, states), own, value, lambda: matcher.gone)
    matcher.tells = kept.tell
    return matcher, kept

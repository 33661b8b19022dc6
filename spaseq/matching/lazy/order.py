"""In what order a chain takes its items (section 4 of the paper): what is rarest first.

Of items that conditions link to those taken already, fewer are left to look at, and they come earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spaseq.matching.lazy.demands import Demands
from spaseq.matching.lazy.plans import Plan

#: How many events are thought to meet a condition: one in so many.
_SELECTS: Final = 4
#: An order is changed when what would be first is rarer than what is first by this factor.
_RARER: Final = 2


def chain_order(plan: Plan, demanded: Demands, counts: Sequence[float]) -> tuple[int, ...]:
    """The items in order; ``counts`` are how many events each of them has.

    Empty for a plan with closures: these are as many as there are sets of events, and come last in any order.
    """
    if any(item.kleene is not None for item in plan.items):
        return ()
    order: list[int] = []
    taken = 0

    def cost(i: int) -> float:
        linked = sum(1 for c in demanded.conditions if c.needs & taken and not c.needs & ~(taken | 1 << i))
        linked += sum(1 for items in demanded.joined if items >> i & 1 and items & taken)
        return counts[i] / float(_SELECTS**linked)

    while len(order) < len(plan.items):
        rest = (i for i in range(len(plan.items)) if not taken >> i & 1)
        order.append(min(rest, key=cost))
        taken |= 1 << order[-1]
    return tuple(order)


def is_better(new: Sequence[int], old: Sequence[int], counts: Sequence[float]) -> bool:
    """Whether it pays to change an order: what waits must then be made again."""
    return bool(new) and _RARER * counts[new[0]] < counts[old[0]]

"""How far all partial matches are worth the same: then it matters how many are shed, and not which."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Of the work to come, so much is that of those that bring least for it.
_WORST: Final = 0.5
#: What these bring, as a share of what as much work brings on average: from where on they are worth less than
#: the others, and about the same.
_LESS: Final = 0.55
_SAME: Final = 0.75


def evenness(value: Floats, cost: Floats) -> float:
    """From 0 to 1, of the matches to be expected of partial matches, and the units of work that they are."""
    some = np.flatnonzero(cost > 0)
    value, cost = value[some], cost[some]
    if not (whole := float(value.sum())):
        return 0.0
    order = np.argsort(value / cost, kind="stable")
    work = np.concatenate([[0.0], np.cumsum(cost[order])])
    matches = np.concatenate([[0.0], np.cumsum(value[order])])
    share = float(np.interp(_WORST * work[-1], work, matches)) / (_WORST * whole)
    return min(1.0, max(0.0, (share - _LESS) / (_SAME - _LESS)))

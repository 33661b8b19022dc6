"""The rare labels of an expression, where a search begins in the middle and goes both ways.

The places before and after a cheap cut are marked first, each once. The search then begins only where a path
across the cut begins, and only passes marked places. Lazy chain automata do the same with the rarest event of
a sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.paths.search._kernel import Ids, Nodes, distances
from spaseq.paths.search.cut import Cut
from spaseq.paths.search.product import Product
from spaseq.paths.search.running import Stop
from spaseq.paths.search.workspace import Workspace

#: The value of ``inside`` that leaves out no place.
EVERYWHERE: Final[Nodes] = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Marks:
    """The nodes where paths across a cut begin and end, in order.

    The places on these paths have ``inside`` ≥ 0, until the workspace is cleared.
    """

    sources: Ids
    targets: Ids
    inside: Nodes


def mark(forward: Product, backward: Product, cut: Cut, workspace: Workspace) -> Marks:
    """Mark the places that lead to a cut, and the places that a cut leads to.

    The two products read the same paths from opposite ends. Their states have the same numbers.
    """
    relations, nodes = forward.relations, forward.pointers.shape[1] - 1
    inside, marked = workspace.marks(forward.size)
    heads = [state * nodes + relations.begins(row) for state, row, _ in cut.transitions]
    tails = [reached * nodes + relations.ends(row).astype(np.int64) for _, row, reached in cut.transitions]
    before = _mark(backward, np.concatenate(heads), inside, marked, workspace.stop)
    behind = _mark(forward, np.concatenate(tails), inside, marked[before:], workspace.stop)
    workspace.mark(before + behind)
    return Marks(
        _nodes(marked[:before], backward.ends, nodes),
        _nodes(marked[before : before + behind], forward.ends, nodes),
        inside,
    )


def _mark(product: Product, places: Ids, inside: Nodes, marked: Ids, stop: Stop) -> int:
    found = distances(product.machine, places, EVERYWHERE, inside, marked, stop.flag)
    if found < 0:
        stop.check()
    return found


def _nodes(places: Ids, ends: npt.NDArray[np.uint8], nodes: int) -> Ids:
    """Return the sorted nodes of those places where a path can end."""
    states = places // nodes
    return np.unique((places - states * nodes)[ends[states] != 0])

"""One pair of nodes, searched from both ends: how many edges are between them, and which places are."""

from __future__ import annotations

import numpy as np

from spaseq.paths.search._kernel import STOPPED
from spaseq.paths.search._kernel_pair import AHEAD, BEHIND, MET, Side, meet
from spaseq.paths.search.product import Product
from spaseq.paths.search.workspace import Workspace


def length_between(
    ahead: Product, start: int, behind: Product, end: int, workspace: Workspace, *, every: bool = False
) -> int | None:
    """Return the number of edges, at least 1, of the shortest paths between two nodes; None without one.

    ``ahead`` and ``behind`` read the same paths from either end. ``workspace.inside`` then has the distance
    from ``end`` of the places of a shortest path, with ``every`` of all of them, until it is unmarked.
    """
    nodes = ahead.pointers.shape[1] - 1
    distance, marked = workspace.marks(ahead.size)
    near, queue = workspace.ends(ahead.size)
    counts = np.zeros(3, dtype=np.int64)
    counts[AHEAD], counts[BEHIND] = len(ahead.initial), len(behind.initial)
    queue[: counts[AHEAD]] = ahead.initial.astype(np.int64) * nodes + start
    marked[: counts[BEHIND]] = behind.initial.astype(np.int64) * nodes + end
    length = meet(
        ahead.pointers, ahead.targets,
        Side(ahead.leaving, ahead.transitions, near, queue),
        Side(behind.leaving, behind.transitions, distance, marked),
        every, counts, workspace.stop.flag,
    )  # fmt: skip
    if length == STOPPED:
        workspace.stop.check()
    workspace.mark(int(counts[BEHIND]))
    return length if counts[MET] else None

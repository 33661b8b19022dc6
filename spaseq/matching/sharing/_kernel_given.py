"""What several queries have found together → laid out one query after the other."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.events import Ids


@kernel
def lay(
    steps: Ids, begins: Ids, stops: Ids, numbers: Ids, ends: Ids, positions: Ids, sites: Ids, rows: Ids
) -> int:
    """Writes the events of some matches, one match after the other; returns the least number of a solution.

    Match i has the events ``begins[i]`` to ``stops[i]`` of ``steps``: position, site, and solution.
    ``numbers`` are the matches that are written; writes to ``ends`` where the events of each of them end.
    """
    to, least = 0, 0
    for i in range(len(numbers)):
        for at in range(begins[numbers[i]], stops[numbers[i]]):
            positions[to], sites[to], rows[to] = steps[at, 0], steps[at, 1], steps[at, 2]
            least = min(least, rows[to])
            to += 1
        ends[i] = to
    return least


@kernel
def number_paths(positions: Ids, sites: Ids, ends: Ids, members: Ids, ranks: Ids, paths: Ids) -> None:
    """Writes a number for each event, which compares as its position and what its GPM is called.

    ``members``: whose each match is; ``ranks``: for each of them, of each site the place of its GPM's name.
    """
    begin = 0
    for i in range(len(ends)):
        for at in range(begin, ends[i]):
            paths[at] = positions[at] * ranks.shape[1] + ranks[members[i], sites[at]]
        begin = ends[i]

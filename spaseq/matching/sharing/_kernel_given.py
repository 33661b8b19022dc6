"""What several queries have found together → laid out one query after the other."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.events import Ids


@kernel
def tell_apart(members: Ids, numbers: Ids, last: Ids, apart: Ids) -> None:
    """Writes a number for each match: the same for neighbours of one member with the same ``last``.

    ``numbers`` are those of the matches; ``last`` has a row for each number.
    """
    for i in range(1, len(numbers)):
        same = members[i] == members[i - 1]
        for j in range(last.shape[1]):
            same = same and last[numbers[i], j] == last[numbers[i - 1], j]
        apart[i] = apart[i - 1] + (0 if same else 1)


@kernel
def number_paths(
    steps: Ids, begins: Ids, stops: Ids, numbers: Ids, members: Ids, ranks: Ids, ends: Ids, paths: Ids
) -> None:
    """Writes a number for each event of some matches, which compares as its position and its GPM's name.

    Match i has the events ``begins[i]`` to ``stops[i]`` of ``steps``: position, site, and solution.
    ``numbers`` are the matches, ``members`` whose each is; ``ranks``: for each of these, of each site the
    place of its GPM's name. Writes to ``ends`` where the events of each match end.
    """
    to = 0
    for i in range(len(numbers)):
        for at in range(begins[numbers[i]], stops[numbers[i]]):
            paths[to] = steps[at, 0] * ranks.shape[1] + ranks[members[i], steps[at, 1]]
            to += 1
        ends[i] = to


@kernel
def lay(
    steps: Ids, begins: Ids, stops: Ids, numbers: Ids, ends: Ids, positions: Ids, sites: Ids, rows: Ids
) -> int:
    """Writes the same events, one match after the other; returns the least number of a solution."""
    to, least = 0, 0
    for i in range(len(numbers)):
        for at in range(begins[numbers[i]], stops[numbers[i]]):
            positions[to], sites[to], rows[to] = steps[at, 0], steps[at, 1], steps[at, 2]
            least = min(least, rows[to])
            to += 1
        ends[i] = to
    return least

"""The runs that the kernel found, as matches in the order of delivery."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt

from spaseq.language.syntax import Emit
from spaseq.matching.host import Key, select
from spaseq.matching.kernel import _kernel as k
from spaseq.matching.kernel import _kernel_layout as lay
from spaseq.matching.kernel import _kernel_memory as mem
from spaseq.matching.kernel.past import Replay
from spaseq.matching.model import Found, distinct

Ints = npt.NDArray[np.int64]


def matches(m: Ints, keys: int, emit: Emit, replay: Replay) -> Iterator[tuple[Key, Found]]:
    """The runs found since the last call in a kernel's memory, which forgets them.

    ``keys`` is how many variables PARTITION BY has.
    """
    count = int(m[mem.FOUND_COUNT])
    rows = m[m[mem.FOUND] : m[mem.FOUND] + count * lay.FOUND_SIZE].reshape(-1, lay.FOUND_SIZE)
    ends = np.cumsum(m[rows[:, 2] + mem.DEPTH]).tolist()
    found = rows.tolist()
    partitions = {partition: key_of(m, partition, keys) for _, partition, *_ in found}
    steps = np.zeros(3 * ends[-1], dtype=np.int64)
    k.unroll(m, steps)
    path = list(map(tuple, steps.reshape(-1, 3)[:, :2].tolist()))
    begins = [0, *ends[:-1]]
    for (_, partition), same in groupby(range(count), key=lambda i: found[i][:2]):
        key = partitions[partition]
        runs = ((path[begins[i] : ends[i]], found[i][3]) for i in same)
        tried = [replay.match(run, accept, key) for run, accept in runs]
        chosen = [match for match in tried if match is not None]
        if len(chosen) > 1:
            chosen = sorted(select(emit, distinct(chosen)), key=_order)
        for match in chosen:
            yield key, match


def key_of(m: Ints, partition: int, keys: int) -> Key:
    """The values by which a partition is known."""
    at = partition + mem.KEY
    return tuple(m[at : at + keys].tolist())


def _order(match: Found) -> list[tuple[int, str]]:
    return sorted((event.position, gpm) for gpm, event in match.events)

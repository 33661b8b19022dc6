"""A batch for the kernel, with the order of the partition keys where an event has several."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.ranks import ranks
from spaseq.matching.conditions import _kernel_values as v
from spaseq.matching.conditions import batch as heads
from spaseq.matching.kernel.records import header
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


def ranked(tables: Ints, ints: Ints, batch: Ints, dictionary: Dictionary) -> Ints:
    """The batch that a kernel stopped in, since it has no order of keys, with one; its memory knows where."""
    size, gpms, width = int(batch[heads.SIZE]), int(tables[v.N_GPMS]), int(tables[v.N_KEYS])
    begins = batch[batch[heads.ROWS] :][: gpms * (size + 1)].reshape(gpms, size + 1)
    columns = tables[tables[v.PARTITION_COLUMNS] :][: gpms * width].reshape(gpms, width)
    counts = np.diff(begins, axis=1)
    events = np.concatenate([np.repeat(np.arange(size), of_gpm) for of_gpm in counts])
    keys = np.zeros((len(events), width), dtype=np.int64)
    ends = np.cumsum(counts.sum(axis=1))
    firsts = ends - counts.sum(axis=1)
    for g, j in np.argwhere(columns >= 0).tolist():
        at = int(batch[batch[heads.COLUMNS] + columns[g, j]])
        keys[firsts[g] : ends[g], j] = batch[at + begins[g, 0] : at + begins[g, -1]]
    ints[header.RANKS] = len(batch)
    places = len(batch) + gpms + firsts - begins[:, 0]
    return np.concatenate([batch, places, ranks(events, keys, dictionary)])

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


def _begins(batch: Ints, gpms: int, size: int) -> Ints:
    """Where the rows of each GPM begin in each event, and the last ones end; shape ``(gpms, size + 1)``."""
    starts = batch[batch[heads.SHARES] :][: size + 1]
    shares = batch[starts[0] : starts[-1]].reshape(-1, heads.SHARE)
    events = np.repeat(np.arange(size), np.diff(starts) // heads.SHARE)
    counts = np.zeros((gpms, size + 1), dtype=np.int64)
    counts[shares[:, 0], events + 1] = shares[:, 2] - shares[:, 1]
    begins = np.cumsum(counts, axis=1)
    # An event that came alone has rows behind those of others before it.
    firsts = np.zeros(gpms, dtype=np.int64)
    firsts[shares[::-1, 0]] = shares[::-1, 1]
    return np.asarray(begins + firsts[:, None])


def ranked(tables: Ints, ints: Ints, batch: Ints, dictionary: Dictionary) -> Ints:
    """The batch that a kernel stopped in, since it has no order of keys, with one; its memory knows where."""
    size, gpms, width = int(batch[heads.SIZE]), int(tables[v.N_GPMS]), int(tables[v.N_KEYS])
    begins = _begins(batch, gpms, size)
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
    return np.concatenate([batch, places, ranks(events, keys, dictionary, int(tables[v.APART]))])

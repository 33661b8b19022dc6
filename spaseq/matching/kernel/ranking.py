"""The order of the partition keys of a batch for the kernel, where an event has several."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq._fields import address, place
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
    """The order of the keys of a batch that a kernel stopped in for want of it; its memory is told where.

    It has to be kept until the batch is done.
    """
    size, gpms, width = int(batch[heads.SIZE]), int(tables[v.N_GPMS]), int(tables[v.N_KEYS])
    begins = _begins(batch, gpms, size)
    columns = tables[tables[v.PARTITION_COLUMNS] :][: gpms * width].reshape(gpms, width)
    counts = np.diff(begins, axis=1)
    events = np.concatenate([np.repeat(np.arange(size), of_gpm) for of_gpm in counts])
    keys = np.zeros((len(events), width), dtype=np.int64)
    ends = np.cumsum(counts.sum(axis=1))
    firsts = ends - counts.sum(axis=1)
    for g, j in np.argwhere(columns >= 0).tolist():
        at = int(batch[batch[heads.COLUMNS] + columns[g, j]] + begins[g, 0])
        keys[firsts[g] : ends[g], j] = heads.values(batch, at, int(ends[g] - firsts[g]))
    of_rows = ranks(events, keys, dictionary, int(tables[v.APART]))
    order = np.concatenate([np.zeros(gpms, dtype=np.int64), of_rows])
    at = place(order, address(batch))
    order[:gpms] = at + gpms + firsts - begins[:, 0]
    ints[header.RANKS] = at
    return order

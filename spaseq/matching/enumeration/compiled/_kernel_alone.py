"""An event that came alone, for ``_kernel.run``: a batch of one event, with one solution of a GPM at most."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel
from spaseq.matching.conditions import batch as heads

Ints = npt.NDArray[np.int64]


@kernel
def spread(batch: Ints, n_keys: int, label: Ints, keys: Ints, cursors: Ints, ends: Ints) -> int:
    """Writes ``label``, where the solution of each GPM is, and its values of the keys; how many there are.

    ``batch``: see ``columns.alone._kernel_alone``; its columns are the keys of the first GPM, then those of
    the next.
    """
    share, end, count = heads.shares(batch, 0), heads.shares(batch, 1), 0
    label[0] = 0
    for g in range(len(cursors)):
        cursors[g] = count
        if share < end and heads.gpm(batch, share) == g:
            label[0] |= 1 << g
            for i in range(n_keys):
                column = batch[heads.HEAD + g * n_keys + i]
                keys[count * n_keys + i] = batch[column + heads.first(batch, share)]
            count += 1
            share += heads.SHARE
        ends[g] = count
    return count

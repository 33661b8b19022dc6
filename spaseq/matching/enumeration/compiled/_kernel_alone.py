"""An event that came alone, for ``_kernel.run``: a batch of one event, with the solutions of each GPM."""

from __future__ import annotations

from spaseq._jit import kernel
from spaseq.matching.conditions import batch as heads
from spaseq.matching.enumeration.compiled._kernel_layout import Ints


@kernel
def spread(
    batch: Ints, n_keys: int, apart: int, label: Ints, keys: Ints, ranks: Ints, cursors: Ints, ends: Ints
) -> int:  # fmt: skip
    """Writes ``label``, where the solutions of each GPM are, and their keys; how many there are.

    ``batch``: see ``columns.alone._kernel_alone``; its columns are the keys of the first GPM, then those of
    the next. ``ranks`` order the solutions by their first key, as they may be if no other key differs and
    nobody asks for the order of that (``apart``); else the number that is returned is below zero. Where there
    are more than ``ranks`` has room for, none is written.
    """
    share, end, count = heads.shares(batch, 0), heads.shares(batch, 1), 0
    label[0] = 0
    others = False
    for g in range(len(cursors)):
        cursors[g] = count
        if share < end and heads.gpm(batch, share) == g:
            label[0] |= 1 << g
            for row in range(heads.first(batch, share), heads.end(batch, share)):
                if count < len(ranks):
                    for i in range(n_keys):
                        value = batch[batch[heads.HEAD + g * n_keys + i] + row]
                        keys[count * n_keys + i] = value
                        others |= i >= apart and value != keys[i]
                    if n_keys:
                        ranks[count] = keys[count * n_keys]
                count += 1
            share += heads.SHARE
        ends[g] = count
    return -count if others else count

"""Blocks of columns in the order of delivery, and cut where matches come between that are made one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.columns.blocks import _kernel_found as k
from spaseq.matching.columns.blocks.found import Block, blocks
from spaseq.matching.columns.blocks.plain import Columns
from spaseq.matching.host import Key
from spaseq.matching.model import Found

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Blocks of columns are cut where other matches come between if they keep so many matches on average.
_WORTH_IT: Final = 16


def arranged(block: Columns, groups: Ints, positions: Ints) -> tuple[Columns, Mask]:
    """A block with the matches of each group, which are neighbours, in the order of their events.

    Also says which of them are in a group where two have the same events. ``positions`` are those of its
    events.
    """
    paths = block.sites.paths(positions, block.site)
    order, work, again = (np.zeros(len(block), dtype=np.int64) for _ in range(3))
    moved = k.arrange(paths, block.offsets, groups, order, work, again)
    return block.take(order) if moved else block, again != 0


def mixed(
    block: Columns, odd: Mask, matches: Callable[[int, int], Iterable[tuple[Key, Found]]]
) -> Iterator[Block]:
    """A block, but for those matches that are ``odd``: these as ``matches`` makes them, from one to another.

    Where that would cut it into very small ones, all are made so.
    """
    if not odd.any():
        yield block
        return
    cuts = np.flatnonzero(odd[1:] != odd[:-1]) + 1
    if len(cuts) * _WORTH_IT > len(odd) or odd.all():
        yield from blocks(matches(0, len(odd)))
        return
    for begin, end in pairwise([0, *cuts.tolist(), len(odd)]):
        if odd[begin]:
            yield from blocks(matches(begin, end))
        else:
            yield block.part(begin, end)

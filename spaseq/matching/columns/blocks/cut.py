"""Matches that somebody keeps, with their events alone: not with all that came together with these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch
from spaseq.gpm.spectra.solutions import Solutions
from spaseq.matching.columns.blocks.found import Block, Joined
from spaseq.matching.columns.blocks.plain import Columns
from spaseq.matching.columns.blocks.share import Share
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.columns.stretch import Stretch

Ints = npt.NDArray[np.int64]

#: Of so many events as this times those of the matches these are worth a copy, if they are so many at least.
_SPARSE: Final = 8
_WORTH: Final = 1 << 10

#: Of batches, by identity: what was cut out of each, and where its events were there, in order.
Moved = Mapping[int, tuple[EventBatch, Ints]]


def cut_out(block: Block) -> tuple[Block, Moved] | None:
    """The same matches with a copy of their events alone; None if these are much of what the block keeps.

    Whoever reads the old block meanwhile goes on with that.
    """
    if isinstance(block, Joined):
        parts = [(part, cut_out(part)) for part in block.parts]
        moved = {key: to for _, cut in parts if cut for key, to in cut[1].items()}
        return (Joined([cut[0] if cut else part for part, cut in parts]), moved) if moved else None
    if isinstance(block, Share):
        block = block.alone
    if not isinstance(block, Columns) or not len(block):
        return None
    stretch, places = block.stretch, block.places
    if len(stretch) < _WORTH or len(places) * _SPARSE > len(stretch):
        return None
    used, inverse = np.unique(places, return_inverse=True)
    which = stretch.where(used)
    # Rows are told apart by GPM: of each, those of the events that go, by what was before them.
    numbers = block.sites.numbers[block.site]
    rows = None if block.rows is None else block.rows.copy()
    chunks, moved, begins = [], {}, dict.fromkeys(set(block.sites.numbers.tolist()), 0)
    for c in np.unique(which).tolist():
        chunk = stretch.chunks[c]
        kept = used[which == c] - stretch.begins[c]
        batch, tables = chunk.batch.take(kept), []
        for g, table in enumerate(chunk.solutions):
            first, end = (np.searchsorted(table.events, kept, side=side) for side in ("left", "right"))
            counts = end - first
            new = np.cumsum(counts) - counts
            taken = table.take(np.repeat(first - new, counts) + np.arange(counts.sum()))
            tables.append(Solutions(len(taken), np.repeat(np.arange(len(kept)), counts), taken.columns))
            if rows is not None and block.rows is not None and g in begins:
                ours = np.flatnonzero((numbers == g) & (which[inverse] == c))
                at = np.searchsorted(kept, places[ours] - stretch.begins[c])
                before = int(stretch.rows_before(g)[c])
                rows[ours] = block.rows[ours] - before - first[at] + new[at] + begins[g]
                begins[g] += len(taken)
        chunks.append(Chunk(chunk.start, batch, tuple(tables), chunk.last))
        moved[id(chunk.batch)] = batch, kept
    made = block.elsewhere(Stretch(chunks), inverse.astype(np.int64), rows)
    return made, moved

"""Found matches → what users see, computed on access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Clock
from spaseq.language.syntax import Query
from spaseq.matching.columns.blocks.found import Block
from spaseq.results.batch import MatchBatch
from spaseq.results.select import Projector
from spaseq.results.views import QueryView
from spaseq.terms.dictionary import Dictionary

#: Rows that are not simply solutions (see ``Projector.is_plain``) are computed for this many matches at once.
_COMPUTED: Final = 1_000


class Reader:
    """Reads the matches of a query, and of queries that differ only in constants."""

    __slots__ = ("projector", "view")

    def __init__(self, pattern: SequencePattern, projector: Projector, dictionary: Dictionary) -> None:
        self.projector = projector
        self.view = QueryView(pattern, projector, dictionary)

    def batches(
        self, query: Query, block: Block, clock: Clock, left: int | None
    ) -> Iterator[tuple[MatchBatch, int]]:
        """Yield the matches of a query in a block, with their number of rows, up to ``left`` rows."""
        if not self.projector.is_plain:
            for begin in range(0, len(block), _COMPUTED):
                part = block.part(begin, min(begin + _COMPUTED, len(block)))
                batch, rows = self._computed(query, part, clock, left)
                yield batch, rows
                if left is not None:
                    left -= rows
                    if left == 0:
                        return
            return
        if left is None and not self.projector.offset:
            yield MatchBatch(self.view, query, block, clock), block.solution_count()
            return
        sizes = np.maximum(block.sizes() - self.projector.offset, 0)
        total = int(sizes.sum())
        if left is None or total < left:
            yield MatchBatch(self.view, query, block, clock), total
            return
        # The match that completes the rows is the last one.
        ends = np.cumsum(sizes)
        count = int(np.searchsorted(ends, left)) + 1
        last = left - int(ends[count - 1] - sizes[count - 1])
        yield MatchBatch(self.view, query, block.part(0, count), clock, last=last), left

    def _computed(self, query: Query, block: Block, clock: Clock, left: int | None) -> tuple[MatchBatch, int]:
        # Rows are computed now, not on access: only the rows keep terms that are new.
        made, count = [], 0
        for _, found in block:
            rows = self.view.rows(self.projector.rows(found)[: None if left is None else left - count])
            made.append(rows)
            count += len(rows)
            if count == left:
                break
        return MatchBatch(self.view, query, block.part(0, len(made)), clock, made=made), count

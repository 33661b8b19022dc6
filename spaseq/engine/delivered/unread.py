"""Matches that nobody has asked for, kept as what they can be enumerated from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.evaluator import Unenumerated
from spaseq.results.batch import MatchBatch


class Unread:
    """The matches that an evaluator has completed and not enumerated. More come while some are read."""

    def __init__(self, found: Unenumerated, read: Callable[[Iterable[Block]], Iterator[MatchBatch]]) -> None:
        """``read`` makes of blocks what users see."""
        self._found = found
        self._read = read
        # A block may be read in several batches.
        self._reading: Iterator[MatchBatch] | None = None
        # Whether what is being read is that of the evaluator of before alone.
        self._is_moved = False

    def __len__(self) -> int:
        """How many sets of them there are, each of one match at least: what they cost."""
        return self._found.waiting

    def next(self) -> MatchBatch | None:
        """Finds some more, each once; None when there are none."""
        if self._reading is None:
            self._reading = self._read(self._found.unread())
        batch = next(self._reading, None)
        if batch is None:
            self._reading = None
            if self._is_moved:
                self._is_moved = False
                return self.next()
        return batch

    def move(self, found: Unenumerated) -> None:
        """Further ones are another evaluator's, which has those that were not enumerated, too."""
        self._is_moved = self._reading is not None
        self._found = found

    def drop(self) -> None:
        """Forgets all of them, without looking."""
        self._reading, self._is_moved = None, False
        self._found.drop()

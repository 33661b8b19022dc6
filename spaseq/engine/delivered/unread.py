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

    def __len__(self) -> int:
        """How many sets of them there are, each of one match at least: what they cost."""
        return self._found.waiting

    def next(self) -> MatchBatch | None:
        """Finds some more, each once; None when there are none."""
        if self._reading is None:
            self._reading = self._read_all()
        batch = next(self._reading, None)
        if batch is None:
            self._reading = None
        return batch

    def _read_all(self) -> Iterator[MatchBatch]:
        """What there is, and then what another evaluator has that took the place of the first meanwhile."""
        found = None
        while found is not self._found:
            found = self._found
            yield from self._read(found.unread())

    def move(self, found: Unenumerated) -> None:
        """Further ones are another evaluator's, which has those that were not enumerated, too."""
        self._found = found

    def drop(self) -> None:
        """Forgets all of them, without looking."""
        self._reading = None
        self._found.drop()

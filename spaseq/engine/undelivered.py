"""The matches that a query has found and that have not been delivered: as they are, or not enumerated."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final
from weakref import ref

from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import Unenumerated
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match, view

#: So many matches are made before anybody asks for them, at least.
AT_ONCE: Final = 1_000
#: What there is of a query that has found nothing yet: an own one would be a third of what its handle takes.
_NO_MATCHES: Final[deque[MatchBatch]] = deque(maxlen=0)


class Undelivered:
    """Matches from when they are found to when somebody gets them.

    ``size``: how many there are; ``delivered``: how many somebody got; ``again``: so many of those to come
    were delivered before, by the process whose state this one goes on with, and are left out.
    """

    __slots__ = ("_at", "_batches", "_before", "_end", "_given", "_now", "again", "delivered", "size")

    def __init__(self) -> None:
        # A batch of which the matches from ``_at`` to ``_end`` are there; then others, if there are any: of a
        # thousand queries most have one batch, and to begin a list would take longer than to keep that.
        self._now: MatchBatch | None = None
        self._batches = _NO_MATCHES
        self._at = self._end = self.size = self.delivered = self.again = 0
        # The batch that was given last, and the one before, if they are still there.
        self._given: ref[MatchBatch] | None = None
        self._before: ref[MatchBatch] | None = None

    @property
    def before_last(self) -> int:
        """How many there are without those of the last batch."""
        return self.size - len(self._batches[-1]) if self._batches else 0

    def add(self, batch: MatchBatch) -> int:
        """Keeps matches until somebody asks for them; how many they are."""
        if self.again:
            before = min(self.again, len(batch))
            if before == len(batch):
                self.again -= before
                return 0
            batch = batch.part(before, len(batch))
            self.again -= before
        count = len(batch)
        if not self.size:
            self._now, self._at, self._end, self.size = batch, 0, count, count
            return count
        if self._batches is _NO_MATCHES:
            self._batches = deque()
        self.size += count
        self._batches.append(batch)
        return count

    def next(self) -> Match:
        """Delivers the first of them."""
        batch, at, end = self._now, self._at, self._end
        if batch is None:
            batch = self._batches[0]
            at, end = 0, len(batch)
            self._now, self._at, self._end = batch, at, end
            self._batches.popleft()
        if not at:
            self._give(batch)
        match = view(batch, at)
        self._at = at + 1
        if at + 1 == end:
            self._now = None
        self.size -= 1
        self.delivered += 1
        return match

    def take(self, most: int) -> MatchBatch:
        """Delivers the first of them, as many as are there, up to ``most``."""
        now, at, end = self._now, self._at, self._end
        if now is not None and end - at == self.size <= most:
            given = now.part(at, end) if at else now
            self._give(given)
            self.delivered += self.size
            self._now, self.size = None, 0
            return given
        parts: list[MatchBatch] = []
        count = whole = 0
        if now is not None:
            count = min(end - at, most)
            parts.append(now.part(at, at + count))
            at += count
            now = now if at < end else None
        for batch in self._batches:
            stop = min(len(batch), most - count)
            if count == most or (parts and stop < len(batch)):
                break
            parts.append(batch.part(0, stop))
            count += stop
            whole += 1
            if stop < len(batch):
                now, at, end = batch, stop, len(batch)
        given, left = MatchBatch.joined(parts), deque(islice(self._batches, whole, None))
        self._give(given)
        self._batches, self._now, self._at, self._end = left, now, at, end
        self.size -= count
        self.delivered += count
        return given

    def _give(self, batch: MatchBatch) -> None:
        """Somebody gets a batch, or its first match: who still has the last but one keeps that.

        The last one is still what a loop's variable stands for.
        """
        if not batch.is_of_columns:
            return
        kept = None if self._before is None else self._before()
        self._before, self._given = self._given, ref(batch)
        if kept is not None:
            kept.settle()

    def give_back(self, batch: MatchBatch) -> None:
        """What was taken last, and came to nobody, is the first again."""
        if self._batches is _NO_MATCHES:
            self._batches = deque()
        if self._now is not None:
            self._batches.appendleft(self._now.part(self._at, self._end))
            self._now = None
        self._batches.appendleft(batch)
        self.size += len(batch)
        self.delivered -= len(batch)

    def drop(self) -> None:
        """Forgets them all; they count as delivered."""
        self.delivered += self.size
        self.size = 0
        self._now, self._batches = None, _NO_MATCHES


class Unread:
    """The matches that a matcher has completed and not enumerated. More come while some are read."""

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
        """What there is, and then what another matcher has that took the place of the first meanwhile."""
        found = None
        while found is not self._found:
            found = self._found
            yield from self._read(found.unread())

    def move(self, found: Unenumerated) -> None:
        """Further ones are another matcher's, which has those that were not enumerated, too."""
        self._found = found

    def drop(self) -> None:
        """Forgets all of them, without looking."""
        self._reading = None
        self._found.drop()

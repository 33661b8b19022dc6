"""A query's undelivered matches: kept, or not enumerated yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final
from weakref import ref

from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.matcher import Unenumerated
from spaseq.results.batch import Match, MatchBatch, view

#: At least this many matches are enumerated before they are read.
AT_ONCE: Final = 1_000
#: Shared by queries without matches: a deque of its own would be a third of a handle's memory.
_NO_MATCHES: Final[deque[MatchBatch]] = deque(maxlen=0)


class Undelivered:
    """Matches between being found and being read.

    ``size``: how many there are; ``delivered``: how many were read; ``again``: how many of the next ones were
    delivered before, by the process that this one continues; these are skipped.
    """

    __slots__ = ("_at", "_batches", "_before", "_end", "_given", "_now", "again", "delivered", "size")

    def __init__(self) -> None:
        # A batch of which the matches from ``_at`` to ``_end`` are left; then further batches, if any. Most
        # of a thousand queries have one batch, and creating a list takes longer than keeping that.
        self._now: MatchBatch | None = None
        self._batches = _NO_MATCHES
        self._at = self._end = self.size = self.delivered = self.again = 0
        # The last batch given out and the one before, if still referenced.
        self._given: ref[MatchBatch] | None = None
        self._before: ref[MatchBatch] | None = None

    @property
    def before_last(self) -> int:
        """How many there are without the last batch."""
        return self.size - len(self._batches[-1]) if self._batches else 0

    def add(self, batch: MatchBatch) -> int:
        """Keep matches until they are read; return their number."""
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
        """Return the first match, which is then delivered."""
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
        """Return a batch of the first matches, at most ``most``; they are then delivered."""
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
        """Note that a batch, or its first match, is given out; settle the last but one if it is still
        referenced.

        The last one may only be referenced by a loop's variable.
        """
        if not batch.is_of_columns:
            return
        kept = None if self._before is None else self._before()
        self._before, self._given = self._given, ref(batch)
        if kept is not None:
            kept.settle()

    def give_back(self, batch: MatchBatch) -> None:
        """Put back the matches taken last, which reached no reader."""
        if self._batches is _NO_MATCHES:
            self._batches = deque()
        if self._now is not None:
            self._batches.appendleft(self._now.part(self._at, self._end))
            self._now = None
        self._batches.appendleft(batch)
        self.size += len(batch)
        self.delivered -= len(batch)

    def drop(self) -> None:
        """Discard all matches; they count as delivered."""
        self.delivered += self.size
        self.size = 0
        self._now, self._batches = None, _NO_MATCHES


class Unread:
    """The matches that a matcher has completed and not enumerated. More may be added during reading."""

    def __init__(self, found: Unenumerated, read: Callable[[Iterable[Block]], Iterator[MatchBatch]]) -> None:
        """``read`` turns blocks into batches."""
        self._found = found
        self._read = read
        # A block may be read in several batches.
        self._reading: Iterator[MatchBatch] | None = None

    def __len__(self) -> int:
        """Return the number of sets of matches, each of at least one match: their cost."""
        return self._found.waiting

    def next(self) -> MatchBatch | None:
        """Return some more matches, each once; None if there are no more."""
        if self._reading is None:
            self._reading = self._read_all()
        batch = next(self._reading, None)
        if batch is None:
            self._reading = None
        return batch

    def _read_all(self) -> Iterator[MatchBatch]:
        """Yield the matches, then those of another matcher that has replaced the first meanwhile."""
        found = None
        while found is not self._found:
            found = self._found
            yield from self._read(found.unread())

    def move(self, found: Unenumerated) -> None:
        """Continue with another matcher, which also has the matches not enumerated yet."""
        self._found = found

    def drop(self) -> None:
        """Discard all of them, without enumeration."""
        self._reading = None
        self._found.drop()

"""The matches that a query has found and that nobody has yet, in the order of delivery."""

from __future__ import annotations

from collections import deque
from typing import Final

from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match, view

#: What there is of a query that has found nothing yet: an own one would be a third of what its handle takes.
_NO_MATCHES: Final[deque[MatchBatch]] = deque(maxlen=0)


class Undelivered:
    """Matches from when they are found to when somebody gets them.

    ``size``: how many there are; ``delivered``: how many somebody got; ``again``: so many of those to come
    were delivered before, by the process whose state this one goes on with, and are left out.
    """

    __slots__ = ("_at", "_batches", "again", "delivered", "size")

    def __init__(self) -> None:
        # Of the first batch, those from number ``_at`` on.
        self._batches = _NO_MATCHES
        self._at = self.size = self.delivered = self.again = 0

    @property
    def before_last(self) -> int:
        """How many there are without those of the last batch."""
        return self.size - (len(self._batches[-1]) if self._batches else 0)

    def add(self, batch: MatchBatch) -> int:
        """Keeps matches until somebody asks for them; how many they are."""
        if self.again:
            before = min(self.again, len(batch))
            self.again -= before
            if before == len(batch):
                return 0
            batch = batch.part(before, len(batch))
        if self._batches is _NO_MATCHES:
            self._batches = deque()
        self._batches.append(batch)
        self.size += len(batch)
        return len(batch)

    def next(self) -> Match:
        """Delivers the first of them."""
        batch, at = self._batches[0], self._at
        self.size -= 1
        self.delivered += 1
        if at + 1 < len(batch):
            self._at = at + 1
        else:
            self._batches.popleft()
            self._at = 0
        return view(batch, at)

    def take(self, most: int) -> MatchBatch:
        """Delivers the first of them, as many as are there, up to ``most``."""
        parts: list[MatchBatch] = []
        count, at = 0, self._at
        for batch in self._batches:
            end = min(len(batch), at + most - count)
            if count == most or (parts and end < len(batch)):
                break
            parts.append(batch.part(at, end))
            count += end - at
            at = end if end < len(batch) else 0
        # Joined first: that is what may take long, so that an interrupt comes there.
        joined = MatchBatch.joined(parts)
        self._at = at
        self.size -= count
        self.delivered += count
        for _ in range(len(parts) - bool(at)):
            self._batches.popleft()
        return joined

    def give_back(self, batch: MatchBatch) -> None:
        """What was taken last, and came to nobody, is the first again."""
        if self._at:
            first = self._batches.popleft()
            self._batches.appendleft(first.part(self._at, len(first)))
            self._at = 0
        self._batches.appendleft(batch)
        self.size += len(batch)
        self.delivered -= len(batch)

    def drop(self) -> None:
        """Forgets them all; they count as delivered."""
        self._batches.clear()
        self.delivered += self.size
        self._at = self.size = 0

"""Past events that a match may still contain, with their solutions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import Stamp
from spaseq.limits import Budget
from spaseq.matching.columns.alone.singles import Singles, SolvedEvent
from spaseq.matching.columns.chunk import MemberNames, Renamed, SolvedBatch, Stretch
from spaseq.matching.host import Key
from spaseq.matching.model import Occurrence, Solution

Ints = npt.NDArray[np.int64]

#: The list of batch starts is cut after this many batches were dropped.
_SLACK: Final = 64

#: Up to this many consecutive batches are joined, even if some have no needed event.
_FEW: Final = 16

#: This many single events become a batch that is kept, when matches need some of them.
_WORTH: Final = 64

#: The most cached stretches that others have requested.
_ASKED: Final = 4


class History:
    """The batches, from the oldest that a run may need."""

    def __init__(self, gpms: Sequence[str], keys: Sequence[str], budget: Budget) -> None:
        self._budget = budget
        self._size = 0
        self._number = {name: g for g, name in enumerate(gpms)}
        self._keys = keys
        self._chunks: dict[int, SolvedBatch] = {}
        self._starts: list[int] = []
        self._sizes: list[int] = []
        self._gone = 0
        self._seen: dict[tuple[int, Key], Occurrence] = {}
        self._last: Stretch | None = None
        self._made: Singles | None = None
        # Stretches that others requested since the last batch came.
        self._of: dict[tuple[int, ...], Stretch] = {}
        #: Another history with the same events at the same positions, if any: columns are computed there.
        self.beside: History | None = None
        #: The names of its GPMs there.
        self.there: Sequence[MemberNames] = ()

    def __iter__(self) -> Iterator[SolvedBatch]:
        self.end_singles()
        return iter(self._chunks.values())

    @property
    def newest(self) -> int:
        """Where the last batch begins."""
        self.end_singles()
        return self._starts[-1]

    def copy(self) -> History:
        """Return a copy, which does not change with this history."""
        self.end_singles()
        other = copy(self)
        other._chunks, other._starts, other._sizes = dict(self._chunks), [*self._starts], [*self._sizes]
        other._seen, other._of, other._made = {}, {}, None
        return other

    def live_ids(self) -> Iterator[Ints]:
        """Yield the ids in the batches."""
        for chunk in self._chunks.values():
            yield from chunk.live_ids()
        yield from self.loose_ids

    @property
    def loose_ids(self) -> Iterable[Ints]:
        """Return the ids that no batch keeps."""
        singles = self._singles
        return () if singles is None else singles.live_ids()

    def expect(self, singles: Singles) -> None:
        """Let these single events, which are still empty, follow the batches."""
        self._made = singles

    @property
    def _singles(self) -> Singles | None:
        """The single events since the last batch, if there are any."""
        return self._made if self._made is not None and self._made.size else None

    def end_singles(self) -> None:
        """Make a batch of the single events."""
        if (singles := self._singles) is not None:
            self.add(*singles.take())

    def add(self, chunk: SolvedBatch, oldest: int) -> None:
        """Add a batch; drop batches that end before ``oldest`` on the window's axis."""
        self.end_singles()
        while self._gone < len(self._starts) and self._chunks[self._starts[self._gone]].last < oldest:
            del self._chunks[self._starts[self._gone]]
            self._size -= self._sizes[self._gone]
            self._gone += 1
        if self._gone > _SLACK and 2 * self._gone > len(self._starts):
            del self._starts[: self._gone], self._sizes[: self._gone]
            self._gone = 0
        self._chunks[chunk.start] = chunk
        self._starts.append(chunk.start)
        self._sizes.append(chunk.size)
        self._size += self._sizes[-1]
        self._budget.takes("events", self._size)
        self._seen.clear()
        self._last = None
        self._of.clear()

    def held(self, steps: Sequence[int], gpms: Sequence[int]) -> list[SolvedBatch | SolvedEvent]:
        """Return the batch of each of some events, or the event itself if it came alone.

        ``steps``: for each its position, the number of a site, and the row of a solution; ``gpms``: for each
        site the number of its GPM. Equal steps have the same object.
        """
        singles, chunks, starts = self._singles, self._chunks, self._starts
        held: list[SolvedBatch | SolvedEvent] = []
        known: dict[tuple[int, int, int], SolvedEvent] = {}
        for step in zip(steps[0::3], steps[1::3], steps[2::3], strict=True):
            position, site, row = step
            if singles is None or position < singles.first:
                held.append(chunks[starts[bisect_right(starts, position) - 1]])
                continue
            lone = known.get(step)
            if lone is None:
                lone = known[step] = singles.solution(position, gpms[site], row)
            held.append(lone)
        return held

    def rows(self, positions: Sequence[int], gpms: Sequence[int], keys: Sequence[Key]) -> list[int] | None:
        """Return, for each event, the row of a GPM's solution in a partition.

        None if it has several.
        """
        singles, rows = self._singles, []
        place: SolvedBatch | Singles
        for position, g, key in zip(positions, gpms, keys, strict=True):
            if singles is not None and position >= singles.first:
                place, span = singles, singles.span(position, g)
            else:
                chunk = self._chunks[self._starts[bisect_right(self._starts, position) - 1]]
                place, span = chunk, chunk.span(g, position - chunk.start)
            found = span if len(span) == 1 else place.narrowed(span, g, self._keys, key)
            if len(found) != 1:
                return None
            rows.append(found[0])
        return rows

    def since(self, start: int) -> list[SolvedBatch]:
        """Return the batches that begin after a position."""
        self.end_singles()
        first = max(self._gone, bisect_right(self._starts, start))
        return [self._chunks[begin] for begin in self._starts[first:]]

    def chunks(self, positions: Ints) -> list[SolvedBatch]:
        """Return the batches that contain events."""
        self.end_singles()
        first = bisect_right(self._starts, int(positions.min())) - 1
        starts = np.array(self._starts[first:], dtype=np.int64)
        found = starts[np.searchsorted(starts, positions, side="right") - 1]
        return [self._chunks[start] for start in found.tolist()]

    def between(self, least: int, most: int, count: int) -> Stretch | None:
        """Return the batches from one event's to another's; None if there are more than ``count``."""
        starts, singles = self._near(least, most)
        return self._stretch(starts, singles) if len(starts) <= count else None

    def _near(self, least: int, most: int) -> tuple[list[int], Singles | None]:
        """Return where the batches between two events begin, and the single events if they are among them."""
        # A batch made of a few single events lives only as long as its matches. If it were kept, with a batch
        # for each event that completes many matches, so many long-lived objects would make the garbage
        # collector traverse the whole process now and then.
        singles = None if self.beside is not None else self._singles
        if singles is None or singles.size >= _WORTH:
            self.end_singles()
            singles = None
        starts = self._starts[
            max(0, bisect_right(self._starts, least) - 1) : bisect_right(self._starts, most)
        ]
        if singles is not None and most >= singles.first:
            starts = [*(starts if least < singles.first else ()), singles.first]
        return starts, singles

    def stretch(self, positions: Ints) -> tuple[Stretch, Ints]:
        """Return the batches that contain events, as one, and the places of the events there."""
        starts, singles = self._near(int(positions.min()), int(positions.max()))
        if len(starts) > max(_FEW, len(positions)):
            near = np.array(starts, dtype=np.int64)
            numbers, inverse = np.unique(
                np.searchsorted(near, positions, side="right") - 1, return_inverse=True
            )
            used = near[numbers]
            found = self._stretch(used.tolist(), singles)
            return found, positions - (used - found.begins[:-1])[inverse]
        found = self._stretch(starts, singles)
        if starts[-1] - starts[0] == found.begins[-2]:
            return found, positions - starts[0]
        used = np.array(starts, dtype=np.int64)
        numbers = np.searchsorted(used, positions, side="right") - 1
        return found, positions - (used - found.begins[:-1])[numbers]

    def _stretch(self, starts: Sequence[int], singles: Singles | None) -> Stretch:
        """Return these batches as one, the same object for the same batches; ``singles`` may be the last of
        them.
        """
        if singles is not None and starts[-1] == singles.first:
            return Stretch([*(self._chunks[start] for start in starts[:-1]), singles.chunk()])
        last = self._last
        if last is None or last.starts != starts:
            chunks = {start: self._chunks[start] for start in starts}
            beside = None if self.beside is None else self.beside.of(starts)
            if beside is None:
                last = Stretch([*chunks.values()])
            else:
                last = Renamed(beside, self.there, lambda chunk: chunks[chunk.start])
            self._last = last
        return last

    def of(self, starts: Sequence[int]) -> Stretch | None:
        """Return the batches that begin at these positions, as one; None if some were dropped."""
        self.end_singles()
        if not all(start in self._chunks for start in starts):
            return None
        key = tuple(starts)
        found = self._of.pop(key, None) or Stretch([self._chunks[start] for start in starts])
        self._of[key] = found  # the most recently used one is last
        if len(self._of) > _ASKED:
            del self._of[next(iter(self._of))]
        return found

    def stamps(self, positions: Ints) -> list[Stamp]:
        """Return the stamps of events."""
        chunks = self.chunks(positions)
        return [c.batch.stamp(at - c.start) for at, c in zip(positions.tolist(), chunks, strict=True)]

    def occurrence(self, position: int, key: Key, gpm: str) -> Occurrence:
        """Return an event as one partition sees it, with its solutions of one GPM at least."""
        self.end_singles()
        found = self._seen.get((position, key))
        if found is not None and gpm in found.solutions:
            return found
        chunk = self._chunks[self._starts[bisect_right(self._starts, position) - 1]]
        index = position - chunk.start
        if found is None:
            found = Occurrence(chunk.batch.stamp(index), position, {}, chunk.batch, index, chunk)
            self._seen[position, key] = found
        solutions = found.solutions
        assert isinstance(solutions, dict)
        g = self._number[gpm]
        rows = [chunk.row(g, i) for i in chunk.span(g, index)]
        # A single row must belong to the key, since the kernel has matched it.
        solutions[gpm] = tuple(row for row in rows if len(rows) == 1 or self.belongs(row, key))
        return found

    def sees(self, chunk: SolvedBatch, index: int, key: Key) -> bool:
        """Return whether a partition sees an event of a batch: some solution has the whole key."""
        wanted = tuple(zip(self._keys, key, strict=True))
        for g, table in enumerate(chunk.solutions):
            columns = table.columns
            for i in chunk.span(g, index):
                if all(name in columns and columns[name][i] == term for name, term in wanted):
                    return True
        return not wanted

    def solutions(self, chunk: SolvedBatch, index: int, g: int, key: Key) -> tuple[Solution, ...]:
        """Return the solutions of a GPM in an event of a batch that a partition sees."""
        rows = [chunk.row(g, i) for i in chunk.span(g, index)]
        return tuple(row for row in rows if self.belongs(row, key))

    def belongs(self, solution: Solution, key: Key) -> bool:
        """Return whether a solution belongs to a partition."""
        return all(solution.get(name, term) == term for name, term in zip(self._keys, key, strict=True))

"""What happens to an engine's queries, taken down until the next commit, in entries of some thousands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode, Triple

from spaseq.engine.durable.entry import (
    Arrived,
    Cancelled,
    Changed,
    Happening,
    Held,
    Moved,
    Orders,
    Promised,
    Registered,
    encode,
)
from spaseq.events import Clock, EventBatch
from spaseq.terms.dictionary import Dictionary

#: So many events make an entry whole. The last one, which is not, is written anew by each commit.
BLOCK: Final = 2_048


@dataclass(slots=True)
class Kept:
    """An entry in the file, or on its way there.

    ``reach``: the latest times of its events. ``begun``: what the orders were before it. ``graphs``: the
    background graphs that changed, as N-Triples; None for those that went.
    """

    seq: int
    events: int = 0
    reach: dict[tuple[int, Clock], int] = field(default_factory=dict)
    begun: Orders = field(default_factory=list)
    graphs: dict[str, str | None] = field(default_factory=dict)

    def saw(self, stream: int, batch: EventBatch) -> None:
        """These events are in it."""
        key, last = (stream, batch.clock), int(batch.time.max())
        self.events += len(batch)
        self.reach[key] = max(self.reach.get(key, last), last)


@dataclass(slots=True)
class _Entry:
    kept: Kept
    orders: Orders = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)


class Journal:
    """Takes down what happens. ``kept``: the entries there are, in order."""

    def __init__(
        self,
        dictionary: Dictionary,
        orders: Callable[[], Orders],
        joins: Callable[[], bool],
        mixes: Callable[[], bool],
    ) -> None:
        """``orders`` is asked before an entry; ``joins``: whether nobody counts events one by one.

        ``mixes``: whether others, that queries make, may come between simultaneous ones.
        """
        self.kept: deque[Kept] = deque()
        self._dictionary = dictionary
        self._orders, self._joins, self._mixes = orders, joins, mixes
        self._whole: list[_Entry] = []
        self._open = _Entry(Kept(0))
        self._is_written = self._is_moved = True

    def known(self, kept: Kept) -> None:
        """An entry is in the file."""
        self.kept.append(kept)
        self._open = _Entry(Kept(kept.seq + 1))

    @property
    def seq(self) -> int:
        """The number of the entry that is not whole."""
        return self._open.kept.seq

    @property
    def unfinished(self) -> Kept:
        """What it has so far."""
        return self._open.kept

    # --- what happens -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Something is about to happen."""
        if not self._open.happenings:
            self._open.orders = self._open.kept.begun = self._orders()
        self._is_written = self._is_moved = False

    def arrived(self, stream: int, first: int, batch: EventBatch) -> None:
        """Events came of a stream."""
        entry = self._open
        entry.kept.saw(stream, batch)
        entry.happenings.append(Arrived(stream, first, [batch], self._joins()))

    def moved(self) -> None:
        """The queries are to go to their watermarks."""
        if self._is_moved:
            return
        self.begin()
        if not self._join():
            self._open.happenings.append(Moved())
        self._is_moved = True
        if self._open.kept.events >= BLOCK:
            self.close()

    def promised(self, clock: Clock, time: int, stream: int | None) -> None:
        """No event before a time will come."""
        self.begin()
        self._open.happenings.append(Promised(clock, time, stream))

    def held(self, stream: int, holds: bool) -> None:
        """A stream holds the others back, or does not."""
        self.begin()
        self._open.happenings.append(Held(stream, holds))

    def registered(self, number: int) -> None:
        """A query begins."""
        self.begin()
        self._open.happenings.append(Registered(number))

    def cancelled(self, number: int) -> None:
        """A query is out."""
        self.begin()
        self._open.happenings.append(Cancelled(number))

    def changed(self, name: NamedNode, triples: Sequence[Triple] | None) -> None:
        """A background graph has other triples from now on; None: it is gone."""
        what = Changed.of(name, triples)
        self.begin()
        self._open.happenings.append(what)
        self._open.kept.graphs[what.graph] = what.triples

    def _join(self) -> bool:
        """Makes events that came one by one of one piece, if nothing was late, or came between them.

        An event that does not conform to shapes came between them, too: it has a number, and no entry.
        """
        happenings = self._open.happenings
        match happenings[-3:]:
            case [Arrived() as run, Moved(), Arrived(batches=[batch]) as new] if (
                run.joins
                and new.joins
                and run.stream == new.stream
                and run.clock is new.clock
                and run.next == new.first
                and _is_sorted(batch, run.last + self._mixes())
            ):
                run.join(batch)
                happenings.pop()
                return True
        return False

    # --- entries ------------------------------------------------------------------------------------

    def close(self) -> None:
        """The entry that is not whole is so now, if there is anything in it."""
        if self._open.happenings:
            self._whole.append(self._open)
            self.kept.append(self._open.kept)
            self._open = _Entry(Kept(self._open.kept.seq + 1))

    @property
    def events(self) -> int:
        """How many events wait to be written."""
        return sum(entry.kept.events for entry in self._whole) + self._open.kept.events

    def unwritten(self, first: int) -> list[tuple[int, int, bytes]]:
        """The entries from ``first`` on that are to be written: their numbers, events and bytes."""
        entries = [*self._whole, self._open] if self._open.happenings else self._whole
        return [
            (each.kept.seq, each.kept.events, encode(each.orders, each.happenings, self._dictionary))
            for each in ([] if self._is_written else entries)
            if each.kept.seq >= first
        ]

    def written(self, first: int) -> None:
        """They are in the file, and those before ``first`` are not."""
        while self.kept and self.kept[0].seq < first:
            self.kept.popleft()
        self._whole, self._is_written = [], True


def _is_sorted(batch: EventBatch, after: int) -> bool:
    time = batch.time
    if len(batch) == 1:
        return time.item(0) >= after
    return bool(time[0] >= after and (time[1:] >= time[:-1]).all())

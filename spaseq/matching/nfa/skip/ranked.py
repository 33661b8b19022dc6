"""Put the events of several streams in one order: simultaneous events by their streams' IRIs.

Of the events with the newest time, only those of the first stream can be processed at once. The others are
held until time advances, because events of an earlier stream may still arrive.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.events import EventBatch, concatenate
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.nfa.skip.preference import Rank
from spaseq.patterns.sharing import Values
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ready:
    """Due events, the first of which has position ``start`` in the order of all events."""

    batch: EventBatch
    start: int
    solutions: Mapping[str, Solutions]


class HeldEvent(NamedTuple):
    """A held single event; ``solved``: the solutions of the GPMs in it, see ``Taking.solve``."""

    rank: int
    n: int
    event: Single
    solved: Sequence[Values]


class RankedEvents:
    """Orders events. ``gpms``: the GPMs with solutions that are needed.

    Single events are kept in ``held`` until a batch comes; all of them have the same time.
    """

    def __init__(self, gpms: Sequence[str], rank: Rank, dictionary: Dictionary) -> None:
        self._gpms = gpms
        self._rank = rank
        self._held: SolvedBatch | None = None
        #: The position of the next event.
        self.next = 0
        self.held: list[HeldEvent] = []
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ints]:
        """Yield the ids in single events and in their solutions."""
        for held in self.held:
            rows = [term for values in held.solved for row in values for term in row]
            yield np.array(rows, dtype=np.int64)

    @property
    def time(self) -> int | None:
        """The time of the batch that is held, if one is."""
        return None if self._held is None else self._held.batch.time.item(0)

    def oldest(self, otherwise: int) -> int:
        """Return the time of the held events; ``otherwise`` if there are none."""
        if self.held:
            return self.held[0].event.at.time
        return otherwise if self._held is None else self._held.batch.time.item(0)

    def rank(self, stream: int) -> int:
        """Return the rank of a stream."""
        return self._rank(stream)

    def step(self) -> int:
        """Return the position of a single event that is due."""
        self.next += 1
        return self.next - 1

    def hold(self, rank: int, event: Single, solved: Sequence[Values]) -> None:
        """Hold a single event."""
        insort(self.held, HeldEvent(rank, event.at.n, event, solved))

    def due(self, time: int) -> Sequence[HeldEvent]:
        """Remove and return the single events held before a time."""
        if not self.held or self.held[0].event.at.time >= time:
            return ()
        due, self.held = self.held, []
        return due

    def keep(self, batch: EventBatch, tables: Sequence[Solutions]) -> None:
        """Hold a batch of events that are in order; there must be no held batch."""
        self._held = _chunk(batch, tables, np.arange(len(batch)))

    def push(self, batch: EventBatch, solutions: Mapping[str, Solutions]) -> Ready | None:
        """Add events, none of which precedes an earlier one; return the due events."""
        tables = [solutions.get(name, NO_SOLUTIONS) for name in self._gpms]
        held, self._held = self._held, None
        if held is not None:
            before = zip(held.solutions, tables, strict=True)
            tables = [_both(one, other, len(held.batch)) for one, other in before]
            batch = concatenate([held.batch, batch])
        streams, inverse = np.unique(batch.stream, return_inverse=True)
        ranks = np.array([self._rank(stream) for stream in streams.tolist()], dtype=np.int64)[inverse]
        order = np.lexsort((batch.n, ranks, batch.time))
        waits = (batch.time[order] == batch.time.max()) & (ranks[order] > 0)
        count = len(batch) - int(np.count_nonzero(waits))
        if count < len(batch):
            self._held = _chunk(batch, tables, order[count:])
        return self._ready(_chunk(batch, tables, order[:count])) if count else None

    def advance(self, time: int) -> Ready | None:
        """Advance to a time; return the due events."""
        held = self._held
        if held is None or held.batch.time.item(0) >= time:
            return None
        self._held = None
        return self._ready(held)

    def _ready(self, chunk: SolvedBatch) -> Ready:
        start = self.next
        self.next += len(chunk.batch)
        return Ready(chunk.batch, start, dict(zip(self._gpms, chunk.solutions, strict=True)))


def _chunk(batch: EventBatch, tables: Sequence[Solutions], events: Ints) -> SolvedBatch:
    """Return some events with their solutions, in the given order; the result keeps their terms."""
    places = np.full(len(batch), -1, dtype=np.int64)
    places[events] = np.arange(len(events))
    known: dict[int, tuple[Ints, Ints]] = {}
    taken = []
    for table in tables:
        event = table.events
        if id(event) not in known:
            at = places[event]
            rows = np.flatnonzero(at >= 0)
            rows = rows[np.argsort(at[rows], kind="stable")]
            known[id(event)] = rows, at[rows]
        rows, at = known[id(event)]
        taken.append(Solutions(len(rows), at, {name: column[rows] for name, column in table.columns.items()}))
    return SolvedBatch(0, batch.take(events), tuple(taken), 0)


def _both(one: Solutions, other: Solutions, size: int) -> Solutions:
    """Concatenate the solutions of some events and of later ones."""
    names = one.columns | other.columns
    columns = {name: np.concatenate([one.column(name), other.column(name)]) for name in names}
    return Solutions(len(one) + len(other), np.concatenate([one.events, other.events + size]), columns)

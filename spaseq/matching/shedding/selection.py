"""Selection: shedding whole first events, the least room for the rest, random choices, and doubt."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.bounds import Policy
from spaseq.events import EventBatch
from spaseq.language.syntax import Consume, Emit
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.host import Key, emitted
from spaseq.matching.model import Found, Occurrence, StreamWindow
from spaseq.matching.nfa.memory import Capacity
from spaseq.matching.nfa.records import header, waits
from spaseq.matching.shedding import _kernel_passes as k
from spaseq.matching.shedding.cost_model import Utilities
from spaseq.patterns.spectra.solutions import Solutions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Gone(NamedTuple):
    """What was shed: the number of partial matches by cell; and the partition, position and place of each
    first event.
    """

    cells: Ints
    partitions: Ints
    positions: Ints
    places: Ints


def let_go(ints: Ints, rows: Ints, worth: Utilities, share: float, policy: Policy, draw: int) -> Gone:
    """Remove whole first events from an arena, so that a share of the load stays. The arena must be swept
    then.

    ``rows`` are all partial matches (``_kernel_passes.listed``).
    """
    partitions, positions = rows[:, k.L_PARTITION], rows[:, k.L_POSITION]
    order = np.lexsort((partitions, positions))
    changes = (np.diff(partitions[order]) != 0) | (np.diff(positions[order]) != 0)
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    number = np.zeros(len(rows), dtype=np.int64)
    number[order] = np.concatenate([[0], np.cumsum(changes)])
    cells = rows[:, k.L_CELL]
    loads: Floats = np.bincount(number, worth.loads[cells]).astype(np.float64)
    gains: Floats = np.bincount(number, worth.gains[cells]).astype(np.float64)
    best = np.argsort(-_values(loads, gains, policy, draw), kind="stable")
    total = np.cumsum(loads[best])
    gone = np.zeros(len(begins), dtype=np.bool_)
    gone[best] = (total > share * total[-1]) & (loads[best] > 0)
    shed = gone[number]
    ints[rows[shed, k.L_WAIT] + waits.GATE] = 0
    firsts = order[begins[gone]]
    return Gone(
        np.bincount(cells[shed], minlength=len(worth.loads)),
        partitions[firsts],
        positions[firsts],
        rows[firsts, k.L_PLACE],
    )


def _values(loads: Floats, gains: Floats, policy: Policy, draw: int) -> Floats:
    """Return the value of each of some first events relative to the load of all its descendants."""
    if policy is Policy.RANDOM_STATE:
        return np.random.default_rng(draw).random(len(loads))
    return np.asarray(gains / np.maximum(loads, 1e-9))


def least_room(
    tables: Ints, ints: Ints, axis: int, time: int, decided: int, entries: int, start: Capacity
) -> Capacity:
    """Return the room that runs and decisions need, at least ``start``."""
    seen = np.zeros(int(ints[header.MOST_NODES]), dtype=np.int8)
    live, nodes = k.remaining(tables, ints, axis, time, seen)
    waits = live + decided * int(tables[v.MOST_GATES]) + 2
    nodes += decided * max(1, int(tables[v.MOST_PARTS]))
    return Capacity(*map(max, Capacity(waits, nodes, decided * int(tables[v.MOST_ACCEPTS]), entries), start))


def part_of(
    batch: EventBatch, solutions: Mapping[str, Solutions], begin: int, end: int
) -> tuple[EventBatch, Mapping[str, Solutions]]:
    """Return some events of a batch, and the solutions in them."""
    if begin == 0 and end == len(batch):
        return batch, solutions
    return batch.take(np.arange(begin, end)), {
        name: _between(table, begin, end) for name, table in solutions.items()
    }


def _between(table: Solutions, begin: int, end: int) -> Solutions:
    events = table.events
    if len(events) > 1 and (events[1:] < events[:-1]).any():
        rows = np.flatnonzero((events >= begin) & (events < end))
        part = table.take(rows)
    else:
        first, last = np.searchsorted(events, (begin, end)).tolist()
        columns = {name: column[first:last] for name, column in table.columns.items()}
        part = Solutions(last - first, events[first:last], columns)
    return Solutions(part.size, part.events - begin, part.columns)


def lot(position: int) -> float:
    """Return a pseudo-random number from 0 to 1 for an event, always the same."""
    mixed = (position + 1) * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return (mixed ^ mixed >> 31) / 2**64


def admitted_of(
    found: Mapping[str, Solutions], position: int, size: int, share: float
) -> tuple[Mapping[str, Solutions], int]:
    """Return the solutions of the randomly admitted ones among ``size`` events, and how many events are
    dropped.
    """
    lots = np.array([lot(position + i) for i in range(size)])
    kept = lots < share
    admitted = {name: table.take(kept[table.events]) for name, table in found.items()}
    return admitted, int(np.count_nonzero(~kept))


class Doubt:
    """Remembers the first events that were shed completely, by partition, as long as they may make matches
    doubtful.
    """

    def __init__(self, pattern: SequencePattern, window: StreamWindow) -> None:
        self._window = window
        emit = emitted(pattern)
        self._chooses = emit is not Emit.ALL
        # With events of several streams, an earlier place does not imply an earlier arrival.
        self._by_earlier = emit in (Emit.NEXT, Emit.MAX) and len(set(pattern.streams)) == 1
        self._consumes = pattern.query.consume is Consume.ANY
        # Place on the window's axis, and position; in order.
        self._gone: dict[Key, list[tuple[int, int]]] = {}

    @property
    def matters(self) -> bool:
        """Whether dropping a partial match may let another match through at all."""
        return self._chooses or self._consumes

    def add(self, key: Key, place: int, position: int) -> None:
        """Note that all of a first event was shed."""
        insort(self._gone.setdefault(key, []), (place, position))

    def forget(self, place: int) -> None:
        """Forget first events with windows that have ended before a place."""
        oldest = place - 2 * self._window.reach
        for key, gone in list(self._gone.items()):
            del gone[: bisect_left(gone, (oldest, 0))]
            if not gone:
                del self._gone[key]

    def count(self, block: Block) -> int:
        """Return how many of these matches may not be matches without the bound."""
        return sum(self._is_in_doubt(key, match) for key, match in block) if self._gone else 0

    def consumed(self, found: Iterable[tuple[Key, Found]]) -> None:
        """Treat events that doubtful matches consume like shed ones."""
        if self._consumes and self._gone:
            for key, match in found:
                if self._is_in_doubt(key, match):
                    self.add(key, self._place(match.last), match.last.position)

    def _is_in_doubt(self, key: Key, match: Found) -> bool:
        gone = self._gone.get(key)
        if gone is None:
            return False
        reach, first = self._window.reach, match.first
        # A shed partial match might have become a match, which consumes partial matches within its window.
        if self._consumes and gone[-1][0] + reach >= self._place(first):
            return True
        if not self._chooses:
            return False
        # Another match with the same last event, beginning with a shed event, might have been preferred.
        at = bisect_left(gone, (self._place(match.last) - reach, -1))
        return at < len(gone) and (not self._by_earlier or gone[at][1] < first.position)

    def _place(self, event: Occurrence) -> int:
        return self._window.place(event.time, event.position)

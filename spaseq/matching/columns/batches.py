"""Batches in the kernels' form: one array of integers each; and the numbers of their terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._fields import address, place, plain
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns import _kernel_shares as k
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.columns.history import History
from spaseq.matching.columns.matcher import PushedPattern
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters.derived import Derived
from spaseq.matching.filters.numbers import Numbers
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.terms.dictionary import Dictionary

# Reusable arrays, into which the queries write their batches one after the other.

Ints = npt.NDArray[np.int64]

#: Smaller arrays than this are not kept: new ones are as fast.
_WORTH: Final = 1 << 12
#: Larger arrays than this are not kept either: a query has room for them itself.
_MOST: Final = 1 << 20


class Spare:
    """Reusable arrays, since memory that was not written for long is slow to write to.

    A dictionary has one pool for all queries (``of``); several threads may use it.
    """

    @classmethod
    def of(cls, dictionary: Dictionary) -> Spare:
        """Return the pool of a dictionary."""
        return dictionary.beside(cls)

    def __init__(self, _: Dictionary) -> None:
        self._free: list[Ints] = []

    def take(self, size: int) -> Ints:
        """Return an array of at least this many integers, with any contents."""
        try:
            found = self._free.pop()
        except IndexError:
            found = np.empty(0, dtype=np.int64)
        return found if len(found) >= size else np.empty(size, dtype=np.int64)

    def give(self, array: Ints) -> None:
        """Take back an array that is no longer read."""
        if _WORTH <= len(array) <= _MOST and not self._free:
            self._free.append(array)

    def forget_all_but(self, kept: npt.NDArray[np.bool_]) -> None:
        """See ``Beside.forget_all_but``: the contents are not read."""


# Batches in the kernels' form: one array of integers each; and the numbers of their terms.
#
# GPMs that ask the same share their columns (``patterns.sharing``), and a column is processed once.

#: Up to this many ids are processed together, and numbers packed one by one.
_FEW: Final = 64


class BatchColumns:
    """The batches with events that later matches may contain, and the numbers of their terms.

    ``read``: the variables that tables read, each with its GPM's position in ``gpms``; some of them are
    ``derived``. ``constants``: the ids of the terms in tables. ``past`` has the batches, ``numbers`` the
    terms.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        pattern: SequencePattern,
        gpms: Sequence[str],
        read: Sequence[tuple[int, str]],
        constants: Sequence[int],
        derived: Mapping[str, Derived],
        budget: Budget,
    ) -> None:
        self._gpms = gpms
        self._derived = [(g, name, derived[name].column(dictionary)) for g, name in read if name in derived]
        self._read = read
        self._dictionary = dictionary
        # The rank of each stream, by its id.
        streams = map(dictionary.pin, dict.fromkeys(pattern.streams))
        self._streams = {stream: rank for rank, stream in enumerate(streams)}
        self._single = len(self._streams) == 1
        self.history = History(gpms, tuple(variable.name for variable in pattern.query.partition), budget)
        self.numbers = Numbers.of(dictionary)
        self.numbers.cover(np.array(constants, dtype=np.int64))
        self._stale = False
        self._spare = Spare.of(dictionary)
        # The columns to which the array of the current batch refers, and that array.
        self._kept: Sequence[Ints] = ()
        self._packed: Ints | None = None
        #: Takes single events.
        self.taking = Taking(dictionary, self._streams, read, self.history)
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ints]:
        """Return the ids that the kept batches do not hold; called before all other ids are forgotten."""
        self._stale = True
        return self.history.loose_ids

    def add(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions], axis: Ints, oldest: int
    ) -> SolvedBatch:
        """Add a batch, and drop batches that end before ``oldest``; ``axis``: the places of its events."""
        tables = in_order(solutions.get(name, NO_SOLUTIONS) for name in self._gpms)
        more = {(g, name): column(tables[g]) for g, name, column in self._derived}
        chunk = SolvedBatch(start, batch, tables, int(axis[-1]), None, more)
        self.history.add(chunk, oldest)
        return chunk

    def renew(self) -> bool:
        """Return whether ids of dropped events may have been given to other terms since the last call.

        The caller must then drop everything that holds such ids.
        """
        is_stale, self._stale = self._stale, False
        return is_stale

    def packed(self, chunk: SolvedBatch, axis: Ints) -> Ints:
        """Return a batch in the kernel's form."""
        parts = self._parts(chunk)
        self._cover(parts)
        read = [chunk.batch.time, self._numbered(chunk.batch), chunk.batch.n, axis, *parts]
        self._packed, self._kept = packed(chunk, read, self._spare)
        return self._packed

    def done(self) -> None:
        """Release the batch: the kernel has read it."""
        if self._packed is not None:
            packed, self._packed, self._kept = self._packed, None, ()
            self._spare.give(packed)

    def one(self, chunk: SolvedBatch, axis: Ints) -> Ints:
        """Return a batch of one event in the kernel's form, made from a list, which is faster than arrays."""
        parts = [column.tolist() for column in self._parts(chunk)]
        if sum(map(len, parts)) > _FEW:
            return self.packed(chunk, axis)
        self.numbers.cover_few({term for column in parts for term in column})
        batch = chunk.batch
        stream = self._streams.get(batch.stream.item(0), 0)
        at = heads.HEAD + len(parts)
        shares = heads.shares_of_one([(0, len(table)) for table in chunk.solutions], at + 4)
        begins = at + 4 + len(shares)
        places = []
        for column in parts:
            places.append(begins)
            begins += len(column)
        return np.array(
            [1, chunk.start, at, at + 1, at + 2, at + 3, at + 4, heads.HEAD, *places]
            + [batch.time.item(0), stream, batch.n.item(0), axis.item(0), *shares]
            + [term for column in parts for term in column],
            dtype=np.int64,
        )

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """Return whether single events can be taken, by ``taking``, with these GPMs."""
        return not self._derived and self.taking.expect(asked)

    def _parts(self, chunk: SolvedBatch) -> list[Ints]:
        return [
            chunk.derived[g, name] if (g, name) in chunk.derived else chunk.solutions[g].column(name)
            for g, name in self._read
        ]

    def _cover(self, parts: Iterable[Ints]) -> None:
        columns = distinct(parts)
        if len(columns) > 1 and sum(map(len, columns)) <= _FEW:
            columns = [np.concatenate(columns)]
        for column in columns:
            self.numbers.cover(column)

    def _numbered(self, batch: EventBatch) -> Ints:
        """Return the rank of the stream of each event."""
        if self._single:
            return zeros(len(batch))
        streams, inverse = np.unique(batch.stream, return_inverse=True)
        numbers = [self._streams[stream] for stream in streams.tolist()]
        return np.array(numbers, dtype=np.int64)[inverse]


@lru_cache(1)
def _many_zeros(size: int) -> Ints:
    return np.zeros(size, dtype=np.int64)


def zeros(count: int) -> Ints:
    """Return zeros, read-only: the same array for all batches of about the same length."""
    return _many_zeros(1 << max(count - 1, 1).bit_length())[:count]


def in_order(solutions: Iterable[Solutions]) -> tuple[Solutions, ...]:
    """Return each table with its rows sorted by event. Raises ValueError for a table without events."""
    orders: dict[int, Ints | None] = {}
    tables = []
    for table in solutions:
        event = table.events
        if id(event) not in orders:
            unsorted = len(event) > 1 and bool((event[1:] < event[:-1]).any())
            orders[id(event)] = np.argsort(event, kind="stable") if unsorted else None
        order = orders[id(event)]
        tables.append(table if order is None else table.take(order))
    return tuple(tables)


def distinct(columns: Iterable[Ints]) -> list[Ints]:
    """Return the distinct arrays."""
    return list({id(column): column for column in columns}.values())


def packed(chunk: SolvedBatch, read: Iterable[Ints], spare: Spare) -> tuple[Ints, Sequence[Ints]]:
    """Return a batch in the kernels' form, and the arrays that it refers to.

    ``read``: its columns of events in the order of the head, and then those of solutions.
    """
    columns = [*map(plain, read)]
    events = [plain(table.events) for table in chunk.solutions]
    size, sizes = len(chunk.batch), [*map(len, events)]
    at = heads.HEAD + len(columns) - 4
    made = spare.take(at + size + 2 + heads.SHARE * (sum(sizes) + 1))
    begin = address(made)
    of_events, of_rows = [[place(column, begin) for column in some] for some in (columns, events)]
    made[:at] = [size, chunk.start, *of_events[:4], at, heads.HEAD, *of_events[4:]]
    places, counts, begins = np.array([of_rows, sizes, [0] * len(sizes)], dtype=np.int64)
    k.share(made, places, counts, begins, at, size)
    return made, [*columns, *events]

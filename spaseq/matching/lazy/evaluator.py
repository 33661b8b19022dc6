"""The lazy evaluator's readable side: batches of solutions in, matches out.

After lazy chain automata (Kolchinsky, Schuster): events are buffered, and matches put together in
the order of what is rarest, whatever the order of the sequence. The operator ``:`` skips anything, so that
all orders give the same matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.gpm.solutions import Solutions
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.kernel import _kernel_values as v
from spaseq.matching.kernel.columns import NONE, by_event, distinct, packed
from spaseq.matching.kernel.numbers import Numbers
from spaseq.matching.lazy import _kernel_layout as lay
from spaseq.matching.lazy.exact import Exact
from spaseq.matching.lazy.matches import Matches
from spaseq.matching.lazy.memory import Memory
from spaseq.matching.lazy.order import chain_order, is_better
from spaseq.matching.lazy.tables import compile_tables
from spaseq.matching.model import Bounds, Found
from spaseq.matching.past import Chunk, Past
from spaseq.terms import Dictionary

Ints = npt.NDArray[np.int64]


class Lazy:
    """The matches of one query over all its partitions; see ``Matcher`` for the order of delivery."""

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        context: Context,
        bounds: Bounds,
        *,
        tree: bool = False,
    ) -> None:
        """``tree``: the order is found for each match anew, and nothing waits."""
        self._tree = tree
        self._orders: list[tuple[int, ...]] = []
        self._seen = 0
        self._compiled = compile_tables(pattern, dictionary.pin)
        self._bounds = bounds
        self._single = len(set(pattern.streams)) == 1
        self._limit = bounds.size if bounds.sliding else 0
        self._numbers = Numbers(dictionary)
        self._streams: dict[int, int] = {}
        self._past = Past(self._compiled.gpms, tuple(variable.name for variable in pattern.query.partition))
        self._memory = Memory(self._compiled, self._limit, self._single)
        exact = Exact(pattern, context, bounds, self._past)
        self._matches = Matches(pattern, self._compiled, self._past, exact)
        self._constants = np.array(self._compiled.constants, dtype=np.int64)
        self._numbers.cover(self._constants)
        self._stale = False
        dictionary.hold(self)

    @property
    def memory(self) -> Memory:
        """All that is kept of events."""
        return self._memory

    def live_ids(self) -> Iterable[Ints]:
        """No ids, since the past's batches keep theirs; asked when all others are about to be forgotten."""
        self._stale = True
        self._numbers.forget_all_but(ids for chunk in self._past for ids in chunk.live_ids())
        return ()

    def process(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> Iterator[tuple[Key, Found]]:
        """Takes events in processing order, the first at position ``start``; yields the matches found.

        ``solutions`` are those of the GPMs' stateless parts; a GPM without any may be absent.
        """
        if not len(batch):
            return
        columns, begins = self._columns(batch, start, solutions)
        memory, numbers = self._memory, self._numbers
        c = memory.counters
        self._reorder(begins[:, -1])
        c[lay.EVENT] = 0
        while True:
            status = memory.run(columns, numbers.numbers, numbers.codes)
            event = int(c[lay.EVENT])
            if status == lay.FULL and memory.first_found in (-1, event):
                memory.more_found()  # all that an event completes is delivered together
                continue
            yield from self._found(None if status == lay.DONE else event)
            if status == lay.DONE:
                return
            axis = int(columns[columns[v.B_AXIS] + event])
            memory.grow(status, begins[:, event + 1] - begins[:, event], axis)

    def advance(self, time: int) -> Iterator[tuple[Key, Found]]:
        """Time has come to ``time``: no match waits for that."""
        del time
        yield from ()

    def close(self) -> Iterator[tuple[Key, Found]]:
        """No event will come any more: no match waits for that."""
        yield from ()

    def settled(self, time: int) -> int:
        """The time up to which all matches were delivered, when the query's time has come to ``time``."""
        return time

    def _reorder(self, new: Ints) -> None:
        """Orders the items of each plan by how many events they have, when that has changed enough.

        ``new`` are how many come now, by GPM. No more often than the buffers are filled anew.
        """
        self._seen += int(new.sum())
        if self._orders and self._seen < self._memory.buffered:
            return
        counts = (self._memory.counts + new).tolist()
        gpms, numbers = self._compiled.gpms, self._numbers
        orders, better = [], not self._orders
        for i, (plan, demanded) in enumerate(self._compiled.plans):
            of_items = [counts[gpms.index(item.atom.gpm)] for item in plan.items]
            order = () if self._tree else chain_order(plan, demanded, of_items)
            better = better or is_better(order, self._orders[i], of_items)
            orders.append(order)
        if better:
            self._memory.reorder(orders, numbers.numbers, numbers.codes)
            self._orders = orders
        self._seen = 0

    def _found(self, unfinished: int | None) -> Iterator[tuple[Key, Found]]:
        """The matches of all events but one that is not done with."""
        found, choices = self._memory.take(unfinished)
        if len(found):
            yield from self._matches.of(found, choices)

    def _columns(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> tuple[Ints, Ints]:
        """A batch as the kernel reads it, and where the rows of each GPM begin in its events."""
        found = (solutions.get(name, NONE) for name in self._compiled.gpms)
        tables, begins = by_event(found, len(batch))
        axis = start + np.arange(len(batch)) if self._bounds.counted else batch.time
        if not self._bounds.sliding:
            axis = (axis - self._bounds.start) // self._bounds.size
        chunk = Chunk(start, batch, tables, int(axis[-1]), begins)
        self._past.add(chunk, int(axis[0]) - self._limit)
        if self._stale:
            self._renew()
        parts = self._parts(chunk)
        for column in distinct(parts):
            self._numbers.cover(column)
        return packed(start, batch, self._stream_numbers(batch), axis, begins, parts), begins

    def _parts(self, chunk: Chunk) -> list[Ints]:
        """The columns that the kernel reads."""
        return [chunk.solutions[g].column(name) for g, name in self._compiled.columns]

    def _renew(self) -> None:
        """Ids of events that are gone may be given to other terms: looks at all terms again."""
        self._stale = False
        self._numbers.cover(self._constants)
        for chunk in self._past:
            for column in distinct(self._parts(chunk)):
                self._numbers.cover(column)

    def _stream_numbers(self, batch: EventBatch) -> Ints:
        if self._single:
            return np.zeros(len(batch), dtype=np.int64)
        streams, inverse = np.unique(batch.stream, return_inverse=True)
        numbers = [self._streams.setdefault(stream, len(self._streams)) for stream in streams.tolist()]
        return np.array(numbers, dtype=np.int64)[inverse]

"""The lazy matcher: batches of solutions in, matches out.

After lazy chain automata (Kolchinsky, Schuster): events are buffered. Each match is built from its rarest
item first, not in the order of the sequence. Since the operator ``:`` skips any events, every building order
finds the same matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EventBatch
from spaseq.limits import Budget
from spaseq.matching.columns.alone.singles import Counts
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.batches import BatchColumns
from spaseq.matching.columns.blocks.found import Block
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.columns.history import History
from spaseq.matching.columns.matcher import PushedPattern, UnsolvedError
from spaseq.matching.context import Context
from spaseq.matching.filters import batch as heads
from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.demands import chain_order, is_better
from spaseq.matching.lazy.matches import ExactMatch, LazyMatches, looks
from spaseq.matching.lazy.memory import BufferMemory
from spaseq.matching.lazy.records import counter
from spaseq.matching.lazy.tables import LazyTables, compile_tables
from spaseq.matching.model import StreamWindow
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]
#: Receives results: rows of ``outcome``, the choices of each, and the position of the first of their events.
Results = Callable[[Ints, Ints, int], None]


class LazyMatcher:
    """The matches of one query over all its partitions; see ``Matcher`` for the order of delivery."""

    def __init__(
        self,
        pattern: SequencePattern,
        dictionary: Dictionary,
        context: Context,
        window: StreamWindow,
        *,
        tree: bool = False,
        compiled: LazyTables | None = None,
        budget: Budget | None = None,
    ) -> None:
        """``tree``: choose the order for each match anew, and keep no partial match waiting.

        ``compiled``: its tables, if they exist. ``budget``: its limits, if not those of the context.
        """
        self._tree = tree
        self._orders: list[tuple[int, ...]] = []
        self._seen = 0
        self._compiled = compiled or compile_tables(pattern, dictionary.pin)
        budget = budget or context.budget
        self._window = window
        c = self._compiled
        self._columns = BatchColumns(dictionary, pattern, c.gpms, c.columns, c.constants, c.derived, budget)
        self._memory = BufferMemory(c, window.reach, len(set(pattern.streams)) == 1, budget)
        history = self._columns.history
        exact = ExactMatch(pattern, context, window, history)
        look = looks(pattern, c.sites)
        self._matches = LazyMatches(pattern, look, history, exact, context.order, dictionary, context.apart)
        # Takes results instead; the position of the first of the current events.
        self._gives: Results | None = None
        self._at = 0

    @property
    def memory(self) -> BufferMemory:
        """Everything that is kept of events."""
        return self._memory

    def partial_matches(self, time: int) -> int:
        """See ``NfaMatcher.partial_matches``; counts some that have expired."""
        del time
        return self._memory.waiting

    @property
    def history(self) -> History:
        """The events that matches may still have."""
        return self._columns.history

    @property
    def taking(self) -> Taking:
        """Takes single events."""
        return self._columns.taking

    def give_to(self, gives: Results) -> None:
        """Pass results on instead of making matches of them."""
        self._gives = gives

    def process(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> Iterator[Block]:
        """See ``ByColumns.process``."""
        if not len(batch):
            return
        columns, chunk = self._take(batch, start, solutions)
        yield from self._go_on(columns, self._begin(columns, np.array([len(t) for t in chunk.solutions])))

    def _begin(self, columns: Ints, new: Ints) -> int:
        """Begin with a batch, and process it as far as the kernel can; ``new`` are its rows of each GPM."""
        self._reorder(new)
        self._memory.counters[counter.EVENT] = 0
        return self._run(columns)

    def _run(self, columns: Ints) -> int:
        numbers = self._columns.numbers
        return self._memory.run(columns, numbers.numbers, numbers.codes)

    def _go_on(self, columns: Ints, status: int) -> Iterator[Block]:
        """Provide what the kernel stopped for, until the batch is done."""
        memory = self._memory
        while True:
            event = int(memory.counters[counter.EVENT])
            if status == lay.FULL and memory.first_found in (-1, event):
                memory.more_found()  # all matches of an event are delivered together
                status = self._run(columns)
                continue
            if status == lay.DONE:
                self._columns.done()
            yield from self._found(None if status == lay.DONE else event)
            if status == lay.DONE:
                return
            if status == lay.FULL and memory.is_found_small:
                memory.more_found()  # few at first, since few may be read
            axis = heads.values(columns, columns[heads.AXIS] + event).item()
            self._grow(status, heads.counts(columns, event, len(self._compiled.gpms)), axis)
            status = self._run(columns)

    def _grow(self, status: int, wanted: Ints, axis: int) -> None:
        """Enlarge the arrays as the kernel needs."""
        self._memory.grow(status, wanted, axis)

    # --- events that come alone -----------------------------------------------------------------

    @property
    def gpms(self) -> Sequence[str]:
        """See ``Quick.gpms``."""
        return self._compiled.gpms

    def expect(self, asked: Sequence[PushedPattern]) -> bool:
        """See ``Quick.expect``."""
        return self._columns.expect(asked)

    def counts(self) -> Counts | None:
        """See ``Quick.counts``."""
        return self._columns.taking.counts()

    def take_single(self, event: Single, start: int) -> Iterator[Block] | None:
        """See ``Quick.take_single``."""
        return self._completed(self._take_alone(event, start))

    def _take_alone(self, event: Single, start: int) -> Ints:
        """Return a single event in the kernel's form; see ``Quick.take_single``."""
        self._at = start
        axis = self._window.place(event.at.time, start)
        oldest = axis - self._window.reach
        columns = self._columns.taking.take(event, start, axis, oldest)
        if columns is None:
            raise UnsolvedError
        self._columns.renew()
        return columns

    def _begin_one(self, columns: Ints) -> int:
        """Begin with a batch of one event."""
        return self._begin(columns, heads.counts(columns, 0, len(self._compiled.gpms)))

    def _completed(self, columns: Ints) -> Iterator[Block] | None:
        """Return the matches of a batch of one event; None for none."""
        status = self._begin_one(columns)
        if status == lay.DONE and not self._memory.counters.item(counter.FOUND):
            return None
        return self._waited() if status == lay.DONE else self._go_on(columns, status)

    def _waited(self) -> Iterator[Block]:
        """Yield the matches of a single event for a waiting reader."""
        found, choices = self._memory.take(None)
        few = self._matches.few(found, choices) if self._gives is None else None
        yield from self._made(found, choices) if few is None else (few,)

    # --- time: a match is certain at its last event ---

    @property
    def waits(self) -> bool:
        """See ``ByColumns.waits``."""
        return False

    def is_due(self, time: int) -> bool:
        """See ``Quick.is_due``."""
        del time
        return False

    def advance(self, time: int) -> Iterator[Block]:
        """See ``ByColumns.advance``."""
        del time
        yield from ()

    def close(self) -> Iterator[Block]:
        """See ``ByColumns.close``."""
        yield from ()

    def settled(self, time: int) -> int:
        """See ``ByColumns.settled``."""
        return time

    # --- the kernel's needs -----------------------------------------------------------------------

    def _reorder(self, new: Ints) -> None:
        """Order the items of each plan by their numbers of events, when these have changed enough.

        ``new`` are the numbers of new ones, by GPM. At most once per content of the buffers.
        """
        self._seen += int(new.sum())
        if self._orders and self._seen < self._memory.buffered:
            return
        counts = (self._come() + new).tolist()
        gpms, numbers = self._compiled.gpms, self._columns.numbers
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

    def _come(self) -> Ints:
        """Return the recent numbers of rows of each GPM."""
        return self._memory.counts

    def _found(self, unfinished: int | None) -> Iterator[Block]:
        """Yield the matches of all events except an unfinished one."""
        found, choices = self._memory.take(unfinished)
        if len(found):
            yield from self._made(found, choices)

    def _made(self, found: Ints, choices: Ints) -> Iterator[Block]:
        """Yield results as matches, unless they are passed on."""
        if self._gives is None:
            yield from self._matches.of(found, choices)
        else:
            self._gives(found, choices, self._at)

    def _take(
        self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]
    ) -> tuple[Ints, SolvedBatch]:
        """Return a batch in the kernel's form, and with its solutions."""
        self._at = start
        axis = self._window.places(batch, start)
        chunk = self._columns.add(batch, start, solutions, axis, int(axis[0]) - self._window.reach)
        self._columns.renew()
        return self._columns.packed(chunk, axis), chunk

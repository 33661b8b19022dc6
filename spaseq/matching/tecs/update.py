"""The events of the enumerating matcher: partial matches, and the roots of complete ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq._fields import address, plain
from spaseq.alone import Single
from spaseq.automaton.pattern import SequencePattern
from spaseq.events import EARLIEST, EventBatch
from spaseq.language.syntax import Consume
from spaseq.limits import Budget
from spaseq.matching.columns.alone.taking import Taking
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.columns.history import History
from spaseq.matching.columns.ranks import ranks
from spaseq.matching.model import StreamWindow
from spaseq.matching.tecs.automaton import DeterministicAutomaton
from spaseq.matching.tecs.compiled import _kernel_layout as lay
from spaseq.matching.tecs.compiled._kernel import label_events, spread
from spaseq.matching.tecs.memory import TecsMemory
from spaseq.matching.tecs.records import counter, root
from spaseq.patterns.spectra.solutions import NO_SOLUTIONS, Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


class Update:
    """The partial matches of a query, or of several with one automaton; ``keys`` separate its runs.

    ``partition``: the first of these keys, which also separate matches. The first ``apart`` keys take no part
    in the order of matches. Nodes and events are kept as long as a root needs them.
    """

    def __init__(
        self,
        pattern: SequencePattern,
        keys: Sequence[str],
        automaton: DeterministicAutomaton,
        window: StreamWindow,
        budget: Budget,
        dictionary: Dictionary,
        apart: int = 0,
    ) -> None:
        query = pattern.query
        self._gpms = tuple(pattern.gpms)
        self.keys = keys
        self.partition = tuple(keys[: len(query.partition)])
        self._window = window
        self.history = History(self._gpms, self.partition, budget)
        self.memory = TecsMemory(automaton, len(self._gpms), len(keys), window.reach, budget)
        self.memory.counters[counter.SINGLE] = len(set(pattern.streams)) == 1
        self.memory.counters[counter.CONSUME] = query.consume is Consume.ANY
        self._dictionary, self.apart = dictionary, apart
        dictionary.hold(self)

    @property
    def gpms(self) -> Sequence[str]:
        """The GPMs, in the order of their labels."""
        return self._gpms

    def live_ids(self) -> Iterable[Ints]:
        """Return the ids of events that runs may hold; called before all other ids are forgotten."""
        return self.history.live_ids()

    def take(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> None:
        """Process a batch; matches are found, and enumerated later."""
        if not len(batch):
            return
        self.memory.forget_read()
        columns = self._columns(batch, start, solutions)
        self.go_on(columns, columns.packed(start))

    def go_on(self, columns: LabelColumns, packed: Ints) -> None:
        """Process a batch; ``packed``: in the kernel's form."""
        m, c = self.memory, self.memory.counters
        c[counter.EVENT] = c[counter.KEY_NUMBER] = 0
        while True:
            status = m.run(packed)
            if status == lay.DONE:
                return
            if status == lay.ASK:
                m.automaton.find(int(c[counter.STATE_ASKED]), int(c[counter.LABEL_ASKED]))
                c[counter.KNOWN] = m.automaton.unknown == 0
            elif status == lay.UNRANKED:
                keys = columns.keys.reshape(-1, len(self.keys))
                order = ranks(columns.events, keys, self._dictionary, self.apart)
                columns = columns._replace(ranks=plain(order))  # the order may be a column of ``keys``
                packed = columns.packed(int(packed[lay.START]))
            elif status == lay.WIDER:
                m.widen()
            elif status == lay.PARTITIONS_FULL:
                m.make_partitions(max(EARLIEST, int(columns.axis[c[counter.EVENT]]) - int(c[counter.LIMIT])))
            elif status == lay.NODES_FULL:
                m.more_nodes()
            else:
                m.more_found()

    def oldest(self, axis: int) -> int:
        """Return the earliest place of roots' events on the window's axis, when events have come
        to ``axis``.
        """
        m = self.memory
        oldest = axis - m.counters.item(counter.LIMIT)
        return min(oldest, int(m.found[m.counters[counter.READ], root.LEAST])) if m.unread else oldest

    def _columns(self, batch: EventBatch, start: int, solutions: Mapping[str, Solutions]) -> LabelColumns:
        tables = tuple(solutions.get(name, NO_SOLUTIONS) for name in self._gpms)
        sizes = np.cumsum([0, *map(len, tables)])
        labels = np.zeros(len(batch), dtype=np.int64)
        events = np.concatenate([table.events for table in tables])
        several = np.zeros(len(tables), dtype=np.int64)
        ordered = label_events(labels, events, sizes, several)
        if not ordered:
            tables = tuple(table.by_time() for table in tables)
        if self.partition and (not ordered or several.any()):
            tables = tuple(table.by_key(self.partition) for table in tables)
        if not ordered or several.any():
            events = np.concatenate([table.events for table in tables])
        axis = self._window.places(batch, start)
        chunk = SolvedBatch(start, batch, tables, int(axis[-1]))
        self.history.add(chunk, self.oldest(int(axis[0])))
        values = [
            np.stack([table.column(name) for name in self.keys], axis=1) for table in tables if self.keys
        ]
        flat = np.concatenate(values).ravel() if values else np.zeros(0, dtype=np.int64)
        return LabelColumns(
            labels,
            np.ascontiguousarray(axis),
            plain(batch.time),
            plain(batch.stream),
            events,
            flat,
            # If keys only identify the query of a match, any order suffices, such as that of their ids.
            flat if self.apart == len(self.keys) else np.zeros(0, dtype=np.int64),
            cursors=sizes[:-1].copy(),
            ends=sizes[1:].copy(),
        )


class LabelColumns(NamedTuple):
    """A batch as contiguous columns: see ``_kernel_layout.LabelledEvents``."""

    labels: Ints
    axis: Ints
    time: Ints
    stream: Ints
    events: Ints
    keys: Ints
    ranks: Ints
    cursors: Ints
    ends: Ints

    def packed(self, start: int) -> Ints:
        """Return the batch in the kernel's form; this object must be kept as long as the kernel reads it."""
        fields = *map(address, self), len(self.labels), int(len(self.ranks) > 0), start
        return np.array(fields, dtype=np.int64)


# Single events for the enumerating matcher: the kernel takes each as a few numbers.


class SingleUpdate:
    """Passes single events to an ``Update``; ``taking`` evaluates the GPMs on them."""

    def __init__(
        self, pattern: SequencePattern, dictionary: Dictionary, window: StreamWindow, update: Update
    ) -> None:
        streams = map(dictionary.pin, dict.fromkeys(pattern.streams))
        ranks = {stream: rank for rank, stream in enumerate(streams)}
        read = [(g, key) for g in range(len(pattern.gpms)) for key in update.keys]
        self.taking = Taking(dictionary, ranks, read, update.history, ordered_by=update.partition)
        self._window, self._update = window, update
        self._n_keys, count = len(update.keys), len(pattern.gpms)
        # The current event in the kernel's form.
        self._label, self._axis, self._time, self._stream = np.zeros((4, 1), dtype=np.int64)
        self._cursors, self._ends = np.zeros((2, count), dtype=np.int64)
        self._make_room(count)

    def _make_room(self, rows: int) -> None:
        """Make room for this many solutions of an event."""
        self._events, self._ranks = np.zeros((2, rows), dtype=np.int64)
        self._keys = np.zeros(rows * self._n_keys, dtype=np.int64)
        self._packed = self._columns(rows, rows).packed(0)

    def _columns(self, rows: int, ranked: int) -> LabelColumns:
        """Return the event in the kernel's form; it has ``rows`` solutions, of which ``ranked`` have
        ranks.
        """
        return LabelColumns(
            self._label, self._axis, self._time, self._stream, self._events[:rows],
            self._keys[: rows * self._n_keys], self._ranks[:ranked], self._cursors, self._ends,
        )  # fmt: skip

    def take(self, event: Single, start: int) -> bool:
        """Process an event without enumeration; do nothing and return False if it is large."""
        update, axis = self._update, self._window.place(event.at.time, start)
        update.memory.forget_read()
        batch = self.taking.take(event, start, axis, update.oldest(axis))
        if batch is None:
            return False
        rows = self._spread(batch)
        if abs(rows) > len(self._events):
            self._make_room(2 * abs(rows))
            rows = self._spread(batch)
        count = abs(rows)
        self._axis[0], self._time[0], self._stream[0] = axis, event.at.time, event.at.stream
        self._packed[lay.IS_RANKED], self._packed[lay.START] = rows > 0, start
        update.go_on(self._columns(count, max(rows, 0)), self._packed)
        return True

    def _spread(self, batch: Ints) -> int:
        apart = self._update.apart
        return spread(
            batch, self._n_keys, apart, self._label, self._keys, self._ranks, self._cursors, self._ends
        )

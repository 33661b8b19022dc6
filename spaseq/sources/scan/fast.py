"""Lines of N-Quads and N-Triples → ids → events, by compiled kernels.

The kernels take plain lines; pyoxigraph parses the others one by one. If a line is bad, or the quads are not
in a regular order, the slow path reads the whole block: it alone decides what is bad. The two paths share
only the dictionary and the assembler. The slow path also reads the lines before the first whole event of a
block, and those after its last whole event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from pyoxigraph import DefaultGraph, Quad, Triple

from spaseq.events import Clock, Ids
from spaseq.limits import Limits
from spaseq.sources.assembly import assemble as _assemble
from spaseq.sources.assembly._kernel import (
    INSTANT,
    IRREGULAR,
    TICK,
    UNREAD,
    QuadBlock,
    event_room,
    graphs,
    groups,
    read_times,
)
from spaseq.sources.assembly.assemble import GraphAssembler, TripleGroups
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.formats._parse import PieceError, Pieces
from spaseq.sources.scan._kernel import BEGIN, COUNT, LINE, ODD, SEEN, scan
from spaseq.sources.times import Time, read_time
from spaseq.terms._table_kernel import KIND, LABEL, PADDING
from spaseq.terms.dictionary import UNBOUND, Dictionary

_NO_PREDICATE: Final = 0

#: Room for this many new terms or quads is allocated at once.
_AT_ONCE: Final = 1 << 10


class Quads:
    """Lines as ids: the first ``count`` columns of ``rows``. A column with a negative subject is no quad.

    The rows are subjects, predicates, objects, graphs, where the lines begin, and their numbers, from 0.
    """

    def __init__(self, form: str, dictionary: Dictionary, limits: Limits) -> None:
        self._with_graphs = form == "nq"
        self._dictionary = dictionary
        self._pieces = Pieces(form, limits)
        self._longest = limits.term_bytes
        self.rows = np.empty((6, 0), dtype=np.int64)
        self.count = 0
        #: The number of lines read.
        self.lines = 0
        self._room = np.empty(0, dtype=np.uint8)

    def read(self, text: bytes) -> bool:
        """Read whole lines. Return False if a line is bad, is not RDF 1.1, or has a term that is too long."""
        table = self._dictionary.table()
        table.reserve(0, len(text))
        if len(text) + PADDING > len(self._room):
            self._room = np.empty(len(text) + PADDING, dtype=np.uint8)
        data = self._room
        data[: len(text)] = np.frombuffer(text, dtype=np.uint8)
        data[len(text) : len(text) + PADDING] = 0
        seen = np.zeros((SEEN, 4), dtype=np.int64)
        cursor = np.array([0, 0, 0, len(text), self._with_graphs], dtype=np.int64)
        self.count = 0
        while cursor[BEGIN] < len(text):
            table.reserve(_AT_ONCE, 0)
            if self.count == self.rows.shape[1]:
                rows = np.empty((6, max(_AT_ONCE, 2 * self.count)), dtype=np.int64)
                rows[:, : self.count] = self.rows
                self.rows = rows
            scan(data, cursor, table.slots, table.terms, table.arena, table.counts, seen, self.rows)
            self.count = int(cursor[COUNT])
        self.lines = int(cursor[LINE])
        if self._longest is not None and len(text) > self._longest:
            starts = np.append(self.rows[4, : self.count], len(text))
            if int(np.diff(starts).max(initial=0)) > self._longest:
                return False
        odd = np.flatnonzero(self.rows[0, : self.count] == ODD).tolist()
        return not odd or self._judge(text, odd)

    def _judge(self, text: bytes, odd: list[int]) -> bool:
        """Parse the odd lines: together, and one by one if some of them hold no quad."""
        starts = self.rows[4, : self.count]
        ends = np.append(starts[1:], len(text))
        lines = [text[starts[k] : ends[k]] for k in odd]
        together = b"".join(lines)
        if b"\r" in together.replace(b"\r\n", b"\n"):  # a carriage return alone ends a line, too
            return False
        try:
            quads: list[Quad | None] = list(self._pieces.parse(together))
            if len(quads) != len(lines):
                quads = [next(iter(self._pieces.parse(line)), None) for line in lines]
        except PieceError:
            return False
        return all(quad is None or self._enter(k, quad) for k, quad in zip(odd, quads, strict=True))

    def _enter(self, k: int, quad: Quad) -> bool:
        intern = self._dictionary.intern
        s, p, o, graph = quad
        if isinstance(s, Triple) or isinstance(o, Triple) or getattr(o, "direction", None) is not None:
            return False
        name = UNBOUND if isinstance(graph, DefaultGraph) else intern(graph)
        self.rows[:4, k] = intern(s), intern(p), intern(o), name
        return True


class FastLines:
    """Reads blocks of lines by the fast path if they are regular, and otherwise by the slow path."""

    def __init__(
        self,
        form: str,
        sink: EventSink,
        assembler: GraphAssembler | TripleGroups,
        slow: Callable[[int, bytes], None],
    ) -> None:
        """Create a reader; ``slow`` reads lines, given the number of the first, by the slow path."""
        self._sink = sink
        self._assembler = assembler
        self._slow = slow
        self._dictionary = sink.dictionary
        self._quads = Quads(form, sink.dictionary, sink.limits)
        self._last = b""
        self._predicate = _NO_PREDICATE
        if sink.predicate is not None:
            self._predicate = self._dictionary.pin(sink.predicate)
        self._path = [self._dictionary.pin(step) for step in sink.path.steps] if sink.path else []
        self._events = event_room(0)

    def read(self, first: int, text: bytes) -> None:
        """Read whole lines; ``first`` is the number of the first one."""
        self._last = text
        with self._dictionary.lock:
            known = self._quads.read(text)
            found, begin, end = self._assemble() if known else (IRREGULAR, 0, 0)
            if found <= 0:
                self._slow(first, text)
                return
            starts, numbers = self._quads.rows[4:, : self._quads.count]
            if starts[begin]:
                self._slow(first, text[: starts[begin]])
            if not self._deliver(found):
                end = begin
            if end < self._quads.count:
                self._slow(first + int(numbers[end]), text[starts[end] :])

    def count_of(self, text: bytes) -> int | None:
        """Return the number of lines of the text read last; None if ``text`` is another one."""
        return self._quads.lines if text is self._last else None

    def _assemble(self) -> tuple[int, int, int]:
        """Return (number of events, first line of the first, line after the last)."""
        quads = self._quads
        if quads.count > len(self._events.s):
            self._events = event_room(quads.rows.shape[1])
        table = self._dictionary.table()
        block = QuadBlock(table.terms, table.arena, quads.rows, quads.count, self._predicate)
        assembler = self._assembler
        if isinstance(assembler, TripleGroups):
            return groups(block, assembler.missing, assembler.size, self._events)
        started = assembler.started()
        if started is None:
            return IRREGULAR, 0, 0
        barred = np.array([self._dictionary.intern(name) for name in started], dtype=np.int64)
        return graphs(block, barred, assembler.delivered.numbers(), _assemble.HELD, self._events)

    def _deliver(self, count: int) -> bool:
        """Deliver the assembled events; return False, and deliver none, if an event has no plain time."""
        assembler = self._assembler
        if isinstance(assembler, TripleGroups):
            if assembler.missing:
                return False
            graph = np.zeros(count, dtype=np.int64)
        else:
            if not assembler.settle():
                return False
            graph = self._events.graph[:count].copy()
        if self._path and not self._follow(count):
            return False
        clock = self._clock(count)
        if clock is None:
            return False
        time = None if self._sink.is_arrival else self._events.time[:count].copy()
        offset = np.zeros(count + 1, dtype=np.int64)
        offset[1:] = self._events.end[:count]
        if not self._sink.extend(graph, clock, time, offset, self._triples(offset)):
            return False
        if isinstance(assembler, TripleGroups):
            assembler.passed(count)
        else:
            assembler.passed(graph, self._events.time_id[:count] if self._predicate else np.zeros_like(graph))
        return True

    def _follow(self, count: int) -> bool:
        """Write the times at the end of the path; return False if an event has none, or several."""
        end, limit = self._events.end[:count], self._dictionary.limit
        s, p, o = (column[: end[-1]] for column in self._events[:3])
        event = np.repeat(np.arange(count), np.diff(end, prepend=0))
        reached = np.empty(0, dtype=np.int64)
        for number, step in enumerate(self._path):
            rows = np.flatnonzero(p == step)
            if number:
                rows = rows[np.isin(event[rows] * limit + s[rows], reached)]
            reached = event[rows] * limit + o[rows]
        found = np.unique(reached)
        if len(found) != count or (found // limit != np.arange(count)).any():
            return False
        ids = self._events.time_id[:count]
        ids[:] = found % limit
        table = self._dictionary.table()
        read_times(table.terms, table.arena, ids, self._events.status[:count], self._events.time[:count])
        return True

    def _clock(self, count: int) -> Clock | None:
        """Return the one clock of the times; None if there are several, or a time is ill-formed."""
        if self._sink.is_arrival:
            return Clock.TICKS
        status = self._events.status[:count]
        for event in np.flatnonzero(status == UNREAD).tolist():
            try:
                time: Time = read_time(self._dictionary.term(int(self._events.time_id[event])))
            except ValueError:
                return None
            if time.doubtful and not self._sink.has_warned:
                return None
            self._events.time[event] = time.value
            status[event] = TICK if time.clock is Clock.TICKS else INSTANT
        if (status != status[0]).any():
            return None
        return Clock.TICKS if status[0] == TICK else Clock.INSTANTS

    def _triples(self, offset: Ids) -> tuple[Ids, Ids, Ids]:
        """Return the rows of the events, with a fresh blank node for each label of an event."""
        s, p, o = (column[: offset[-1]].copy() for column in self._events[:3])
        table = self._dictionary.table()
        labels = [table.terms[column, KIND] == LABEL for column in (s, o)]
        if labels[0].any() or labels[1].any():
            event = np.repeat(np.arange(len(offset) - 1), np.diff(offset)) << 32
            keys = np.concatenate(
                [(event | column)[where] for column, where in zip((s, o), labels, strict=True)]
            )
            different, which = np.unique(keys, return_inverse=True)
            fresh = table.fresh(len(different))[which]
            s[labels[0]], o[labels[1]] = np.split(fresh, [np.count_nonzero(labels[0])])
        return s, p, o

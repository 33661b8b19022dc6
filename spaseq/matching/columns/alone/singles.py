"""Single events in a row, kept as numbers until their columns are needed: then they become one batch.

Most single events complete no match that is read. A batch of some hundred events costs as much as one of a
few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.alone import Single
from spaseq.events import Clock, EventBatch, Stamp
from spaseq.matching.columns.alone import _kernel_alone as k
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.patterns.sharing import FEW_TRIPLES, Values
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]

#: Events are made a batch when there are this many.
_MOST: Final = 256
#: Room for solutions of each pattern: an event with more is large.
ROWS: Final = 1_024
#: Room for events in the store, in integers.
_LOG: Final = k.FIRSTS
#: Writers of events, by their number of triples; larger events are rare.
_WORDS: Final = [Struct(f"={k.EVENT_HEADER + 3 * count}q") for count in range(FEW_TRIPLES + 1)]


class Counts(NamedTuple):
    """Counts of events with a solution of any GPM; by GPM, of events with solutions, and of solutions."""

    relevant: int
    matched: Ints
    rows: Ints


class SolvedEvent:
    """A single event with one solution, as numbers, from which objects are made on demand.

    ``numbers``: the event as in ``Singles``' log; ``values``: the values of the solution's ``names``. Its
    terms are kept while it is referenced. It has the methods of a ``SolvedBatch`` of this event.
    """

    __slots__ = ("__weakref__", "_clock", "_dictionary", "_event", "_names", "_numbers", "_values")

    def __init__(
        self,
        dictionary: Dictionary,
        clock: Clock,
        numbers: Sequence[int],
        names: Sequence[str],
        values: Sequence[int],
    ) -> None:
        self._dictionary, self._clock = dictionary, clock
        self._event: Single | None = None
        self._numbers, self._names, self._values = numbers, names, values
        dictionary.hold(self)

    def live_ids(self) -> Iterator[Ints]:
        """Yield the ids in the event and the solution."""
        yield np.array((*self._numbers[k.STREAM :], *self._values), dtype=np.int64)

    def time(self, position: int) -> int:
        """Return the time of the event."""
        del position
        return self._numbers[k.TIME]

    def event(self, position: int) -> tuple[Single, int]:
        """Return the event, and its number in itself."""
        del position
        if self._event is None:
            _, time, n, _, _, _, _, _, stream, graph, *terms = self._numbers
            stamp = Stamp(time, stream, n)
            self._event = Single(self._dictionary, self._clock, stamp, graph, tuple(terms))
        return self._event, 0

    def row(self, g: int, i: int) -> dict[str, int]:
        """Return the solution without its unbound variables."""
        del g, i
        return {name: term for name, term in zip(self._names, self._values, strict=True) if term}


class Singles:
    """``size`` events at consecutive positions from ``first`` to ``end``, exclusive.

    Several GPMs may be equal but for the names of variables: ``asked`` has the number of each GPM's distinct
    pattern, ``widths`` the number of values in a solution of each pattern. ``store``: the events, in the
    layout of ``_kernel_alone``; the next event is written at ``used``. ``kept``: by pattern, the solutions,
    ``(rows, width)``, with room for ``ROWS`` rows: views of ``store`` at ``begin``.

    Everything is numbers: the garbage collector would examine the whole process because of objects that live
    for a while.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        clock: Clock,
        ranks: Mapping[int, int],
        names: Sequence[Sequence[str]],
        asked: Sequence[int],
        told: Sequence[bool],
        tells: Sequence[Callable[[Ints, Ints], None] | None] = (),
        watch: Callable[[Ints], None] | None = None,
        ordered_by: Sequence[str] = (),
    ) -> None:
        """``ranks``: of streams by id, 0 for all others; ``told``: by GPM, whether its solutions count as
        relevant; ``tells``: see ``PushedPattern.tell``; ``watch``: called with the number of solutions by
        counted event and GPM; ``ordered_by``: the variables that order the solutions of an event in a batch.
        """
        self.first = self.end = self.size = self.used = self._last = self._oldest = 0
        self._dictionary, self._clock, self._ranks = dictionary, clock, ranks
        self._names, self.asked, self._of = names, asked, np.array(asked, dtype=np.int64)
        self._told = np.array(told, dtype=np.bool_)
        self._tells, self._watch, self._ordered_by = tells, watch, ordered_by
        width = dict(zip(asked, map(len, names), strict=True))
        self.widths = [width[question] for question in range(len(width))]
        # Where each part of the store begins, and where the last one ends.
        sizes = [(_MOST + 1) * len(width), *(ROWS * each for each in self.widths)]
        firsts, *ends = accumulate(sizes, initial=k.FIRSTS)
        self.begin, self.store = ends[:-1], np.zeros(ends[-1], dtype=np.int64)
        self._firsts = self.store[firsts : ends[0]].reshape(_MOST + 1, len(width))
        self.kept = [
            self.store[begin:end].reshape(ROWS, each)
            for (begin, end), each in zip(pairwise(ends), self.widths, strict=True)
        ]
        self._words = self.store.data
        # Where each event begins.
        self._begins: list[int] = []
        self._counted = 0
        self._counts = self._none()

    def _none(self) -> Counts:
        nothing = np.zeros(len(self.asked), dtype=np.int64)
        return Counts(0, nothing, nothing)

    def write(self, event: Single, position: int, axis: int) -> bool:
        """Write an event to the log; ``add`` makes it one of the events.

        ``axis``: its place on the window's axis. Returns False, and writes nothing, if there is no room, or
        if the event at ``position`` does not follow the last one.
        """
        terms, (time, stream, n), used = event.terms, event.at, self.used
        end = used + k.EVENT_HEADER + len(terms)
        if self.size >= _MOST or end > _LOG or (self.size and position != self.end):
            return False
        triples = len(terms) // 3
        rank = self._ranks.get(stream, 0)
        header = position, time, n, axis, self.size, 0, triples, rank, stream, event.named
        if triples <= FEW_TRIPLES:
            _WORDS[triples].pack_into(self._words, 8 * used, *header, *terms)
        else:
            self.store[used:end] = (*header, *terms)
        return True

    def add(self, position: int, terms: int, axis: int, oldest: int) -> None:
        """Add the event that was written, with ``terms`` terms, after its solutions.

        ``oldest``: from this place on the axis, earlier events may still be part of a match.
        """
        if not self.size:
            self.first = position
        self._begins.append(self.used)
        self.size += 1
        self.used += k.EVENT_HEADER + terms
        self.end, self._last, self._oldest = position + 1, axis, oldest

    def span(self, position: int, g: int) -> range:
        """Return the rows of a GPM's solutions in an event."""
        number, question = position - self.first, self.asked[g]
        begin, end = self._firsts[number : number + 2, question].tolist()
        return range(begin, end)

    def narrowed(self, span: range, g: int, keys: Sequence[str], key: Sequence[int]) -> Sequence[int]:
        """Return the rows of a GPM with these values of variables."""
        places = [self._names[g].index(name) for name in keys]
        kept = self.kept[self.asked[g]][span.start : span.stop].tolist()
        wanted = list(key)
        return [row for row, values in zip(span, kept, strict=True) if [values[p] for p in places] == wanted]

    def solution(self, position: int, g: int, row: int) -> SolvedEvent:
        """Return an event with one of a GPM's solutions in it."""
        begins, number = self._begins, position - self.first
        end = begins[number + 1] if number + 1 < self.size else self.used
        question = self.asked[g]
        width = self.widths[question]
        at = self.begin[question] + row * width
        return SolvedEvent(
            self._dictionary,
            self._clock,
            self.store[begins[number] : end].tolist(),
            self._names[g],
            self.store[at : at + width].tolist(),
        )

    def live_ids(self) -> Iterator[Ints]:
        """Yield the ids in the events and their solutions."""
        for kept, end in zip(self.kept, self._firsts[self.size].tolist(), strict=True):
            yield kept[:end]
        headers = self._headers()
        yield headers[:, [k.STREAM, k.GRAPH]]
        yield self._terms(headers)

    def _headers(self) -> Ints:
        """Return the headers of the events, ``(events, EVENT_HEADER)``."""
        begins = np.array(self._begins, dtype=np.int64)
        headers: Ints = self.store[begins[:, None] + np.arange(k.EVENT_HEADER)]
        return headers

    def _terms(self, headers: Ints) -> Ints:
        """Return the terms of all events, one after the other."""
        counts = 3 * headers[:, k.TRIPLES]
        before = np.arange(1, self.size + 1) * k.EVENT_HEADER
        terms: Ints = self.store[np.arange(int(counts.sum())) + np.repeat(before, counts)]
        return terms

    def counts(self) -> Counts:
        """Return the counts since the last call."""
        begin, self._counted = self._counted, self.size
        before, self._counts = self._counts, self._none()
        firsts = self._firsts[begin : self._counted + 1]
        found = np.diff(firsts, axis=0)[:, self._of]
        if begin < self._counted:
            for question, counts, tell in zip(self.asked, found.T, self._tells, strict=False):
                if tell is not None:
                    rows = slice(firsts.item(0, question), firsts.item(-1, question))
                    tell(np.repeat(np.arange(len(counts)), counts), self.kept[question][rows])
            if self._watch is not None:
                self._watch(found)
        some = found > 0
        relevant = int(np.count_nonzero(some[:, self._told].any(axis=1)))
        return Counts(before.relevant + relevant, before.matched + some.sum(0), before.rows + found.sum(0))

    def count(self, solutions: Sequence[Values]) -> None:
        """Count the GPMs' solutions in an event that is not added."""
        of, rows = self._counts, np.array([*map(len, solutions)], dtype=np.int64)
        some = rows > 0
        self._counts = Counts(of.relevant + int(some[self._told].any()), of.matched + some, of.rows + rows)
        for values, names, tell in zip(solutions, self._names, self._tells, strict=False):
            if tell is not None:
                tell(np.zeros(len(values), dtype=np.int64), np.array(values).reshape(-1, len(names)))

    def given(self) -> list[Values]:
        """Return the GPMs' solutions in the written event, joined by compiled code."""
        begins, ends = self._firsts[self.size : self.size + 2].tolist()
        rows = [
            tuple(map(tuple, kept[begin:end].tolist()))
            for kept, begin, end in zip(self.kept, begins, ends, strict=True)
        ]
        return [rows[question] for question in self.asked]

    def take(self) -> tuple[SolvedBatch, int]:
        """Return the events as a batch, and the last ``oldest`` of ``add``; remove them."""
        self._counts = self.counts()
        chunk = self.chunk()
        self.size = self.used = self._counted = 0
        self._begins = []
        return chunk, self._oldest

    def chunk(self) -> SolvedBatch:
        """Return the events as a batch."""
        count = self.size
        batch = self._gathered()
        tables, rows = [], []
        known: dict[int, tuple[Ints, Ints, Ints]] = {}
        for names, question in zip(self._names, self.asked, strict=True):
            if question not in known:
                begins = self._firsts[: count + 1, question].copy()
                at = np.repeat(np.arange(count), np.diff(begins))
                known[question] = at, self.kept[question][: begins[-1]].T.copy(), begins
            at, columns, begins = known[question]
            table = Solutions(len(at), at, dict(zip(names, columns, strict=True)))
            tables.append(table.by_key(self._ordered_by) if self._ordered_by else table)
            rows.append(begins)
        return SolvedBatch(self.first, batch, tuple(tables), self._last, np.array(rows, dtype=np.int64))

    def _gathered(self) -> EventBatch:
        """Return the events as columns."""
        headers = self._headers()
        s, p, o = np.ascontiguousarray(self._terms(headers).reshape(-1, 3).T)
        offset = np.concatenate([[0], np.cumsum(headers[:, k.TRIPLES])])
        columns = np.ascontiguousarray(headers.T)
        stream, graph, time, n = (columns[field] for field in (k.STREAM, k.GRAPH, k.TIME, k.NUMBER))
        return EventBatch(self._dictionary, self._clock, stream, graph, time, n, offset, s, p, o)

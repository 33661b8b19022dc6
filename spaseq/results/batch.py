"""Many matches for users: their columns, and a ``Match`` as a view of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NoReturn, overload

import numpy as np

from spaseq.events import Clock, Ids
from spaseq.language.syntax import Construct, Query
from spaseq.matching.columns.blocks.found import Block, Chosen, Events, Times, joined, shown
from spaseq.matching.columns.blocks.plain import Columns
from spaseq.matching.columns.blocks.share import cut_out
from spaseq.matching.columns.blocks.values import Encoded, all_ids, numbered
from spaseq.results.encoded import Bindings, TermSequence
from spaseq.results.graphs import Graphs, filled, gathered
from spaseq.results.match import Event, Match, Rows, event, view
from spaseq.results.views import EventViews, RowViews
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import from_rdflib

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from spaseq.results.reading import Reader

#: Up to this many matches are read one by one.
_FEW: Final = 16

#: The most rows per match, on average, for which the rows of a batch are made together.
_MANY_ROWS: Final = 16


class MatchBatch(Sequence[Match]):
    """Some matches of a query, in the order of delivery: as columns, or one by one.

    ``batch[i]`` is a ``Match``, made in about a microsecond: a view of row i, which keeps the batch. A batch
    keeps the events of its matches, and their terms. Everything is computed on first access and cached, so do
    not write to the arrays.

    >>> import spaseq
    >>> engine = spaseq.Engine()
    >>> handle = engine.register('''
    ...     SELECT ?x WITHIN 10 SECONDS FROM STREAM S <http://example.org/s>
    ...     WHERE { SEQ(A) DEFINE GPM A ON S { ?s <http://example.org/v> ?x } }''')
    >>> for tick in (3, 4):
    ...     engine.push("http://example.org/s", f"<urn:a> <http://example.org/v> {tick} .", tick)
    >>> (batch,) = handle.batches()
    >>> len(batch), batch.start, batch.events["A"].n
    (2, array([3, 4]), array([0, 1]))
    >>> batch.bindings.columns["x"], [str(term) for term in batch.bindings.terms]
    (array([0, 1], dtype=int32), ['"3"^^<http://www.w3.org/2001/XMLSchema#integer>', '"4"^^<http://www.w3.org/2001/XMLSchema#integer>'])
    """

    # Class attributes for what few batches need: with a thousand queries each may have a batch of few
    # matches. ``cached_property`` would take as long as the slicing itself.
    _last: int | None = None
    _made: Sequence[Rows] | None = None
    _events: dict[str, Events] | None = None
    _bindings: Bindings | None = None
    #: Cached views of events: the range of matches that was read last.
    _near: tuple[int, int, EventViews | None] = 0, 0, None

    def __init__(
        self,
        reader: Reader,
        query: Query,
        block: Block,
        clock: Clock,
        *,
        last: int | None = None,
        made: Sequence[Rows] | None = None,
    ) -> None:
        """Create a batch.

        ``last``: the most rows of the last match. ``made``: the rows, if they are computed.
        """
        self._reader, self._query, self._block, self.clock = reader, query, block, clock
        self._size = len(block)
        if last is not None:
            self._last = last
        if made is not None:
            self._made = made

    @classmethod
    def joined(cls, batches: Sequence[MatchBatch]) -> MatchBatch:
        """Join batches of one query, at least one. Only the last may have a ``last``."""
        if len(batches) == 1:
            return batches[0]
        made = [batch._made for batch in batches]
        return cls(
            batches[0]._reader,
            batches[0]._query,
            joined([batch._block for batch in batches]),
            batches[0].clock,
            last=batches[-1]._last,
            made=None if made[0] is None else [rows for part in made for rows in part or ()],
        )

    @property
    def query(self) -> Query:
        """Return the query of the matches."""
        return self._query

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the columns of SELECT; for ASK and CONSTRUCT all variables that the matches bind."""
        return self._reader.projector.variables

    def __len__(self) -> int:
        return self._size

    def __reduce__(self) -> NoReturn:
        raise TypeError("a MatchBatch belongs to its engine: pickle what to_arrow() gives, or each Match")

    @overload
    def __getitem__(self, i: int) -> Match: ...
    @overload
    def __getitem__(self, i: slice) -> MatchBatch: ...
    def __getitem__(self, i: int | slice) -> Match | MatchBatch:
        size = len(self._block)
        if isinstance(i, slice):
            begin, end, step = i.indices(size)
            if step != 1:
                raise ValueError("a part of a MatchBatch is of neighbours: batch[a:b]")
            return self.part(begin, max(begin, end))
        if not -size <= i < size:
            raise IndexError(f"match {i} of {size}")
        return view(self, i % size)

    def __iter__(self) -> Iterator[Match]:
        return (view(self, i) for i in range(len(self._block)))

    def __repr__(self) -> str:
        return f"<MatchBatch: {len(self)} matches>"

    def part(self, begin: int, end: int) -> MatchBatch:
        """Return the matches in a range."""
        if (begin, end) == (0, len(self)):
            return self
        last = self._last if begin < end == len(self) else None
        made = None if self._made is None else self._made[begin:end]
        block = self._block.part(begin, end)
        return MatchBatch(self._reader, self._query, block, self.clock, last=last, made=made)

    @property
    def is_of_columns(self) -> bool:
        """Return whether its matches are columns, which keep all events that arrived together."""
        return self._block.is_of_columns

    def settle(self) -> None:
        """Keep only the events of its matches, if few of the block's events are theirs.

        For the owner that has given the batch away and sees that it is kept. Other threads may read it
        meanwhile: each sees the old block or the new one, which are equal.
        """
        cut = cut_out(self._block)
        if cut is None:
            return
        block, moved = cut
        for of_block in self._event_views.values():
            for one in of_block.all:
                one.move(moved)
        for one in self._seen.values():
            one.move(moved)
        for made in (self._bindings, self.__dict__.get("partition")):
            if made is not None and isinstance(made.terms, TermSequence):
                made.terms.hold_by(block)
        # Reset what depends on the old block; matches have their events, and the rest is made again.
        self._near = 0, 0, None
        self._block = block
        self._seen, self._event_views = {}, {}

    # --- columns --------------------------------------------------------------------------------

    @cached_property
    def start(self) -> Times:
        """Return the times of the first events: ``datetime64[us]`` in UTC, or ticks."""
        return shown(self.spans[0], self.clock)

    @cached_property
    def end(self) -> Times:
        """Return the times of the last events."""
        return shown(self.spans[1], self.clock)

    @property
    def events(self) -> dict[str, Events]:
        """Return the chosen events, per GPM."""
        found = self._events
        if found is None:
            reader = self._reader
            found = self._events = self._block.events(reader.gpms, self.clock, reader.term.names)
        return found

    @property
    def bindings(self) -> Bindings:
        """Return the rows of all matches."""
        found = self._bindings
        if found is None:
            projector, dictionary = self._reader.projector, self._reader.dictionary
            if self._made is None and self._last is None and not projector.offset:
                found = self._bound(self._block.encoded(projector.variables, dictionary))
            else:
                found = self._some_bindings(projector.offset)
            self._bindings = found
        return found

    def _some_bindings(self, skipped: int) -> Bindings:
        """Return the rows if they are computed, OFFSET skips some, or LIMIT cuts the last match."""
        if self._made is not None:
            return self._of_made(self.variables, self._made)
        solved = self._block.solved(self.variables)
        sizes = np.maximum(np.diff(solved.offsets) - skipped, 0)
        if self._last is not None:
            sizes[-1] = min(int(sizes[-1]), self._last)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(solved.offsets[:-1] + skipped - offsets[:-1], sizes) + np.arange(offsets[-1])
        return self._encoded(
            offsets, {name: all_ids(column)[rows] for name, column in solved.columns.items()}
        )

    @cached_property
    def graphs(self) -> Graphs:
        """Return the graphs that CONSTRUCT makes, one per match; empty ones for other forms."""
        form, projector = self._query.form, self._reader.projector
        if not isinstance(form, Construct):
            return gathered(() for _ in range(len(self)))
        if self._made is not None or self._last is not None or len(self) <= _FEW:
            return gathered(projector.construct(found) for _, found in self._block)
        return filled(form.template, self.bindings)

    @cached_property
    def partition(self) -> Bindings:
        """Return the values of the PARTITION BY variables: one row per match."""
        keys, names = self._block.keys, self._reader.keys
        return self._encoded(np.arange(len(self) + 1), {n: keys[:, i] for i, n in enumerate(names)})

    @property
    def chosen(self) -> Chosen:
        """Return the chosen events in the engine's form."""
        return self._block.chosen()

    @property
    def gpms(self) -> tuple[str, ...]:
        """Return the GPMs that may have chosen events, in the order written."""
        return tuple(self._reader.gpms)

    # --- one by one -----------------------------------------------------------------------------

    def read(self, i: int, part: str) -> object:
        """Return a field of match i, other than its events and rows."""
        match part:
            case "start" | "end":
                return self.clock.show(int(self.spans[part == "end"][i]))
            case "query":
                return self._query
            case "variables":
                return self.variables
            case "partition":
                return self._reader.partition(self._block.key(i))
        return self.graphs.of(i)

    def events_of(self, i: int) -> dict[str, list[Event]]:
        """Return the events of match i."""
        begin, end, views = self._near
        if views is not None and begin <= i < end:
            return views.of(i - begin)
        block, inside = self._block.at(i)
        if isinstance(block, Columns) and len(block) > _FEW:
            known = self._event_views.get(id(block))
            if known is None:
                known = self._event_views[id(block)] = EventViews(block, self._reader)
            self._near = i - inside, i - inside + len(block), known
            return known.of(inside)
        events: dict[str, list[Event]] = {name: [] for name in self._reader.gpms}
        seen, term = self._seen, self._reader.term
        for name, batch, index in block[inside].places:
            one = seen.get((id(batch), index))
            if one is None:
                one = seen[id(batch), index] = event(batch, index, term)
            events[name].append(one)
        return events

    def rows_of(self, i: int) -> Rows:
        """Return the rows of match i."""
        if self._made is not None:
            return self._made[i]
        views = self._row_views
        if views is not None:
            return views.of(i)
        rows = self._reader.projector.rows(self._block[i])
        return self._reader.rows(rows[: self._last] if i == len(self) - 1 else rows)

    @cached_property
    def _seen(self) -> dict[tuple[int, int], Event]:
        """Return the cache of events that matches share; the block keeps their batches."""
        return {}

    @cached_property
    def _event_views(self) -> dict[int, EventViews]:
        """Return the cache of views of events, by block."""
        return {}

    @cached_property
    def _row_views(self) -> RowViews | None:
        """Return the rows of all matches.

        None for few matches, or so many rows that each match is read alone.
        """
        if len(self) <= _FEW or int(self._block.sizes().sum()) > _MANY_ROWS * (len(self) + _MANY_ROWS):
            return None
        return RowViews(self.bindings, self._reader)

    @cached_property
    def spans(self) -> tuple[Ids, Ids]:
        """Return ``start`` and ``end`` in the engine's form."""
        return self._block.spans()

    # --- terms ----------------------------------------------------------------------------------

    def term(self, identifier: int) -> Term:
        """Return the term of an id in the engine."""
        return self._reader.dictionary.term(identifier)

    def _encoded(self, offsets: Ids, columns: Mapping[str, Ids]) -> Bindings:
        """Encode columns of ids as numbers of the distinct terms in them."""
        used, numbers = numbered(list(columns.values()), self._reader.dictionary.limit)
        return self._bound(Encoded(offsets, dict(zip(columns, numbers, strict=True)), used))

    def _bound(self, encoded: Encoded) -> Bindings:
        """Return encoded columns with their terms, which the block keeps."""
        offsets, columns, used = encoded
        return Bindings(offsets, columns, TermSequence(used, self._reader.dictionary, self._block))

    @staticmethod
    def _of_made(names: Sequence[str], made: Sequence[Rows]) -> Bindings:
        numbers: dict[Term, int] = {}
        columns: dict[str, list[int]] = {name: [] for name in names}
        for row in (row for rows in made for row in rows):
            for name in names:
                number = -1
                if name in row:
                    number = numbers.setdefault(from_rdflib(row[name]), len(numbers))
                columns[name].append(number)
        offsets = np.cumsum([0, *map(len, made)])
        return Bindings(offsets, {n: np.array(c, dtype=np.int32) for n, c in columns.items()}, (*numbers,))

    # --- tables ---------------------------------------------------------------------------------

    def to_arrow(self, columns: dict[str, str] | None = None) -> pa.Table:
        """Return a table with a row for each row of each match; see ``spaseq.results.table``."""
        from spaseq.results.table import to_arrow

        return to_arrow(self, columns or {})

    def to_pandas(self, columns: dict[str, str] | None = None) -> pd.DataFrame:
        """Return ``to_arrow`` as a DataFrame of pandas; terms are categorical."""
        return self.to_arrow(columns).to_pandas()

    def to_polars(self, columns: dict[str, str] | None = None) -> pl.DataFrame:
        """Return ``to_arrow`` as a DataFrame of polars."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow(columns))
        assert isinstance(frame, pl.DataFrame)
        return frame

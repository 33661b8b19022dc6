"""Matches as users see them: a batch with its columns, and ``Match`` as a view of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast, overload

import numpy as np
import rdflib

from spaseq.events import Clock, Ids
from spaseq.language.syntax import Construct, Query
from spaseq.matching.columns.blocks.found import Block, Chosen, Events, Times, joined, shown
from spaseq.matching.columns.blocks.plain import Columns
from spaseq.matching.columns.blocks.share import cut_out
from spaseq.matching.columns.blocks.values import Encoded, all_ids, numbered
from spaseq.results.encoded import Bindings, TermSequence
from spaseq.results.event import ConstructedTriple, Event, Rows, event
from spaseq.results.graphs import Graphs, filled, gathered
from spaseq.results.views import EventViews, QueryView, RowViews
from spaseq.terms.dictionary import Term
from spaseq.terms.interop import RdflibTerm, from_rdflib, to_rdflib

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

#: Up to this many matches are read one by one.
_FEW: Final = 16

#: The rows of a batch are made together if its matches have at most about this many rows on average.
_MANY_ROWS: Final = 16


class Match:
    """A match of a query (semantics, section 6).

    ``start`` and ``end`` are the times of its first and its last event: UTC datetimes, or ticks. ``events``
    lists the chosen events per GPM, in order; a GPM that chose none has an empty list. ``bindings`` are the
    rows of SELECT (for ASK and CONSTRUCT: all solutions). Each row maps the names of its bound variables to
    rdflib terms. ``variables`` are the columns, in order. ``partition`` has the values of the PARTITION BY
    variables.

    The engine's matches are views of a row of a ``MatchBatch``: each field is made on first access and
    cached. A kept match keeps its batch, and so the events of all matches there. Two matches are equal if all
    their fields are. They are not hashable, because fields are lists. A pickled match has all its fields, its
    query and its events' triples, and nothing of its engine.
    """

    # Plain slots, without ``__getattr__``: some hundred thousand matches are made per second.
    __slots__ = ("__weakref__", "_at", "_batch", "_bindings", "_events", "_known")
    _batch: MatchBatch | None
    _at: int
    _events: dict[str, list[Event]] | None
    _bindings: Rows | None
    #: The fields other than events and bindings that were computed so far.
    _known: dict[str, Any] | None

    def __init__(
        self,
        query: Query,
        start: datetime | int,
        end: datetime | int,
        events: dict[str, list[Event]],
        variables: tuple[str, ...],
        bindings: Rows,
        partition: dict[str, RdflibTerm],
        constructed: Sequence[ConstructedTriple] = (),
    ) -> None:
        self._batch, self._at = None, 0
        self._events, self._bindings = events, bindings
        self._known = {
            "query": query,
            "start": start,
            "end": end,
            "variables": variables,
            "partition": partition,
            "constructed": constructed,
        }

    @property
    def query(self) -> Query:
        """Return the query, as prepared."""
        return cast("Query", self._field("query"))

    @property
    def start(self) -> datetime | int:
        """Return the time of its first event."""
        return cast("datetime | int", self._field("start"))

    @property
    def end(self) -> datetime | int:
        """Return the time of its last event."""
        return cast("datetime | int", self._field("end"))

    @property
    def events(self) -> dict[str, list[Event]]:
        """Return the chosen events per GPM, in order."""
        events = self._events
        if events is None:
            assert self._batch is not None
            events = self._events = self._batch.events_of(self._at)
        return events

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the columns of its rows, in order."""
        return cast("tuple[str, ...]", self._field("variables"))

    @property
    def bindings(self) -> Rows:
        """Return its rows."""
        rows = self._bindings
        if rows is None:
            assert self._batch is not None
            rows = self._bindings = self._batch.rows_of(self._at)
        return rows

    @property
    def partition(self) -> dict[str, RdflibTerm]:
        """Return the values of the PARTITION BY variables."""
        return cast("dict[str, RdflibTerm]", self._field("partition"))

    @property
    def constructed(self) -> Sequence[ConstructedTriple]:
        """Return the triples of CONSTRUCT; none for other forms."""
        return cast("Sequence[ConstructedTriple]", self._field("constructed"))

    def _field(self, name: str) -> object:
        known = self._known
        if known is None:
            known = self._known = {}
        if name not in known:
            assert self._batch is not None
            known[name] = self._batch.read(self._at, name)
        return known[name]

    def _fields(self) -> tuple[Any, ...]:
        """Return all fields, as ``__init__`` takes them."""
        before = self.query, self.start, self.end, self.events, self.variables
        return *before, self.bindings, self.partition, self.constructed

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Match) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of lists

    def __reduce__(self) -> tuple[Callable[..., Match], tuple[Any, ...]]:
        """Pickle by pyoxigraph's terms: rdflib's terms would change their lexical forms."""
        *before, rows, partition, constructed = self._fields()
        terms = [_from_rdflib(row) for row in rows], _from_rdflib(partition)
        return _match_again, (*before, *terms, tuple(constructed))

    def __repr__(self) -> str:
        chosen = " ".join(f"{name}×{len(events)}" for name, events in self.events.items() if events)
        of = "".join(f" ?{name}={term.n3()}" for name, term in self.partition.items())
        return f"<Match {self.start} to {self.end}{of}: {chosen}, {len(self.bindings)} rows>"

    def graph(self) -> rdflib.Graph:
        """Return the graph of CONSTRUCT. Raises TypeError if the query has another form."""
        if not isinstance(self.query.form, Construct):
            raise TypeError("only a CONSTRUCT query's matches have a graph; this one is not")
        graph = rdflib.Graph()
        for s, p, o in self.constructed:
            graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
        return graph


def view(batch: MatchBatch, i: int) -> Match:
    """Return match i of a batch."""
    match: Match = _new(Match)
    match._batch = batch
    match._at = i
    match._events = match._bindings = match._known = None
    return match


def alone(match: Match) -> MatchBatch:
    """Return a batch of one of the engine's matches."""
    assert match._batch is not None
    return match._batch.part(match._at, match._at + 1)


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

    # Defaults as class attributes, since few batches need these: a thousand queries may each have a batch of
    # a few matches. ``cached_property`` would take as long as the slicing itself.
    _last: int | None = None
    _made: Sequence[Rows] | None = None
    _events: dict[str, Events] | None = None
    _bindings: Bindings | None = None
    #: Cached views of events: the range of matches that was read last.
    _near: tuple[int, int, EventViews | None] = 0, 0, None

    def __init__(
        self,
        of: QueryView,
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
        self._view, self._query, self._block, self.clock = of, query, block, clock
        self._size = len(block)
        if last is not None:
            self._last = last
        if made is not None:
            self._made = made

    @classmethod
    def joined(cls, batches: Sequence[MatchBatch]) -> MatchBatch:
        """Join batches of one query, at least one. Only the last batch may have ``last``."""
        if len(batches) == 1:
            return batches[0]
        made = [batch._made for batch in batches]
        return cls(
            batches[0]._view,
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
        return self._view.projector.variables

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
        """Return the matches from ``begin`` up to, but not including, ``end``."""
        if (begin, end) == (0, len(self)):
            return self
        last = self._last if begin < end == len(self) else None
        made = None if self._made is None else self._made[begin:end]
        block = self._block.part(begin, end)
        return MatchBatch(self._view, self._query, block, self.clock, last=last, made=made)

    @property
    def is_of_columns(self) -> bool:
        """Return whether its matches are stored as columns, which keep all events that arrived together."""
        return self._block.is_of_columns

    def settle(self) -> None:
        """Drop the block's other events if only few of its events belong to these matches.

        Called by the code that delivered the batch, when it sees that the receiver keeps it. Other threads
        may read the batch meanwhile: each sees the old block or the new one, which have equal matches.
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
        # Drop caches of the old block. Matches keep the events they have; other views are made again.
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
            of = self._view
            found = self._events = self._block.events(of.gpms, self.clock, of.term.names)
        return found

    @property
    def bindings(self) -> Bindings:
        """Return the rows of all matches."""
        found = self._bindings
        if found is None:
            projector, dictionary = self._view.projector, self._view.dictionary
            if self._made is None and self._last is None and not projector.offset:
                found = self._bound(self._block.encoded(projector.variables, dictionary))
            else:
                found = self._some_bindings(projector.offset)
            self._bindings = found
        return found

    def _some_bindings(self, skipped: int) -> Bindings:
        """Return the rows if SELECT computes them, or if OFFSET or LIMIT leaves some out.

        ``skipped``: how many first rows of each match OFFSET leaves out.
        """
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
        form, projector = self._query.form, self._view.projector
        if not isinstance(form, Construct):
            return gathered(() for _ in range(len(self)))
        if self._made is not None or self._last is not None or len(self) <= _FEW:
            return gathered(projector.construct(found) for _, found in self._block)
        return filled(form.template, self.bindings)

    @cached_property
    def partition(self) -> Bindings:
        """Return the values of the PARTITION BY variables: one row per match."""
        keys, names = self._block.keys, self._view.keys
        return self._encoded(np.arange(len(self) + 1), {n: keys[:, i] for i, n in enumerate(names)})

    @property
    def chosen(self) -> Chosen:
        """Return the chosen events in the engine's form."""
        return self._block.chosen()

    @property
    def gpms(self) -> tuple[str, ...]:
        """Return the GPMs that may have chosen events, in the order written."""
        return tuple(self._view.gpms)

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
                return self._view.partition(self._block.key(i))
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
                known = self._event_views[id(block)] = EventViews(block, self._view)
            self._near = i - inside, i - inside + len(block), known
            return known.of(inside)
        events: dict[str, list[Event]] = {name: [] for name in self._view.gpms}
        seen, term = self._seen, self._view.term
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
        rows = self._view.projector.rows(self._block[i])
        return self._view.rows(rows[: self._last] if i == len(self) - 1 else rows)

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

        None if the batch has few matches or very many rows: each match is then read by itself.
        """
        if len(self) <= _FEW or int(self._block.sizes().sum()) > _MANY_ROWS * (len(self) + _MANY_ROWS):
            return None
        return RowViews(self.bindings, self._view)

    @cached_property
    def spans(self) -> tuple[Ids, Ids]:
        """Return ``start`` and ``end`` in the engine's form."""
        return self._block.spans()

    # --- terms ----------------------------------------------------------------------------------

    def term(self, identifier: int) -> Term:
        """Return the term of an id in the engine."""
        return self._view.dictionary.term(identifier)

    def _encoded(self, offsets: Ids, columns: Mapping[str, Ids]) -> Bindings:
        """Encode columns of ids as numbers of the distinct terms in them."""
        used, numbers = numbered(list(columns.values()), self._view.dictionary.limit)
        return self._bound(Encoded(offsets, dict(zip(columns, numbers, strict=True)), used))

    def _bound(self, encoded: Encoded) -> Bindings:
        """Return encoded columns with their terms, which the block keeps."""
        offsets, columns, used = encoded
        return Bindings(offsets, columns, TermSequence(used, self._view.dictionary, self._block))

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


_new: Final = object.__new__


def _from_rdflib(row: Mapping[str, RdflibTerm]) -> dict[str, Term]:
    return {name: from_rdflib(term) for name, term in row.items()}


def _to_rdflib(row: Mapping[str, Term]) -> dict[str, RdflibTerm]:
    return {name: to_rdflib(term) for name, term in row.items()}


def _match_again(
    query: Query,
    start: datetime | int,
    end: datetime | int,
    events: dict[str, list[Event]],
    variables: tuple[str, ...],
    rows: Sequence[Mapping[str, Term]],
    partition: Mapping[str, Term],
    constructed: Sequence[ConstructedTriple],
) -> Match:
    """Unpickle a match."""
    bindings, keys = [_to_rdflib(row) for row in rows], _to_rdflib(partition)
    return Match(query, start, end, events, variables, bindings, keys, constructed)

"""Tables in memory (pandas, polars, Arrow, DuckDB) as a source of events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spaseq.errors import SourceError
from spaseq.events import Clock, Ids, OfTriples, Subjects
from spaseq.limits import Limits
from spaseq.sources.assembly.sink import EventSink
from spaseq.terms.dictionary import UNBOUND, Dictionary

if TYPE_CHECKING:
    import pyarrow as pa

    from spaseq.sources.columns.holes import ColumnLiteral, Iri, Slot, Template

#: Rows that become events at once.
_ROWS: Final = 1 << 16

_MICROSECONDS: Final = {"D": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
#: The microseconds of the years 1 to 9999.
_FIRST: Final = -62_135_596_800_000_000
_LAST: Final = 253_402_300_799_999_999

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as a source of events, see ``table``.

    ``read``: contains ``data`` once that was opened, if it is an Arrow reader: it gives its rows once only.
    """

    data: Any
    time: str | None
    template: str
    graph: str | None
    read: list[pa.RecordBatchReader] = field(default_factory=list, init=False, repr=False)


def table(data: Any, *, time: str | None = None, template: str, graph: str | None = None) -> Table:
    """Make a source of a table's rows, in order, for ``run`` and ``Source`` in place of a file.

    ``data``: a DataFrame of pandas or polars, a table of Arrow, a reader (which is read once), a relation of
    DuckDB, or any other object that exports a stream of Arrow. ``time``: a column of timestamps or dates (UTC
    if without a timezone) or of integers, which are ticks; without it the number of the row is its tick.
    ``template``: Turtle in which ``?column`` is replaced by a value as a literal, and ``{column}`` inside an
    IRI by its text; a triple that needs a null is left out. ``graph``: the IRI of an event's graph, with
    ``{column}`` in it.

    Needs pyarrow (``spaseq[arrow]``). A row without a time or a triple is a bad event. Opening the source
    raises ``SourceError`` for an error in the template or the columns.

    >>> import pyarrow
    >>> trades = pyarrow.table({"at": [1, 2], "id": ["acme", "acme"], "price": [14, 12]})
    >>> falls = '''SELECT ?p ?q WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE { SEQ(A , B)
    ...     DEFINE GPM A ON S { ?c <urn:price> ?p }
    ...     DEFINE GPM B ON S { ?c <urn:price> ?q FILTER(?q < ?p) } }'''
    >>> import spaseq
    >>> source = spaseq.table(trades, time="at", template="<urn:{id}> <urn:price> ?price .")
    >>> [(match.start, match.end) for match in spaseq.run(falls, {"S": source})]
    [(1, 2)]
    """
    return Table(data, time, template, graph)


def read_table(source: Table, sink: EventSink) -> Iterator[None]:
    """Yield pauses while the rows of a table become events. The call itself raises SourceError."""
    try:
        import pyarrow as pa

        from spaseq.sources.columns.holes import Template, check_types
    except ImportError as error:
        raise SourceError(
            f"a table needs pyarrow ({error.name} is missing): pip install 'spaseq[arrow]'"
        ) from None
    if not hasattr(source.data, "__arrow_c_stream__"):
        raise SourceError(
            f"a table is a DataFrame, an Arrow table, a DuckDB relation or the like, not a "
            f"{type(source.data).__name__}{': collect() it' * hasattr(source.data, 'collect')}"
        )
    if source.read:
        raise SourceError("a reader gives its rows once, and these were read: give its read_all() as a table")
    try:
        reader = pa.RecordBatchReader.from_stream(source.data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SourceError(f"the table cannot be read: {_said(error)}") from error
    names = reader.schema.names
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise SourceError(f"the table has two columns {twice[0]!r}: give one of them another name")
    template = Template(source.template, names, source.graph)
    check_types(template, reader.schema)
    if source.time is not None:
        if source.time not in names:
            raise SourceError(f"time= names a column {source.time!r}: there are {', '.join(sorted(names))}")
        _clock(reader.schema.field(source.time).type)
    if isinstance(source.data, pa.RecordBatchReader):
        source.read.append(source.data)
    return _Rows(template, source.time, sink).read(reader)


def _said(error: Exception) -> str:
    """Return the message of Arrow, or of the table's library.

    Pandas names the column in a second argument.
    """
    return str(error) if isinstance(error, UnicodeError) else "; ".join(map(str, error.args))


def _clock(kind: pa.DataType) -> Clock:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return Clock.TICKS
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Clock.INSTANTS
    raise SourceError(f"time= is a column of {kind}: give timestamps, dates or integers")


def _times(values: pa.Array) -> tuple[Ids, Mask]:
    """Return the times of a column, and which of them are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, none = values.type, np.asarray(values.is_null())
    if pa.types.is_integer(kind):
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        return numbers.astype(np.int64), none | (numbers > np.iinfo(np.int64).max)
    plain = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    counts = pc.fill_null(plain, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    if unit == "ns":
        return counts // 1000, none  # cut off digits beyond microseconds, as for literals
    factor = _MICROSECONDS[unit]
    beyond = (counts < _FIRST // factor) | (counts > _LAST // factor)
    return np.where(beyond, 0, counts) * factor, none | beyond


def _shown(cell: pa.Scalar) -> Any:
    """Return a cell as a Python value; a time without a Python value as its number."""
    try:
        return cell.as_py()
    except (OverflowError, ValueError, KeyError):  # beyond the years 1 to 9999, or an unknown timezone
        return getattr(cell, "value", None)


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """The rows of a batch as ids: ``graph`` has each row's graph name.

    ``terms`` are s, p and o, each with a column for each triple of the template. ``there``: which triples a
    row has. ``reasons``: which rows are bad events, and why. If s is None, ``subjects`` returns the ids of
    rows' subjects, see ``LateBatch``.
    """

    graph: Ids
    there: Mask
    terms: tuple[Ids | None, Ids, Ids]
    reasons: list[tuple[Mask, str]]
    subjects: Callable[[Ids], Ids] | None = None

    def wrong(self) -> dict[int, str]:
        """Return the bad rows, each with its first reason."""
        found: dict[int, str] = {}
        for mask, reason in self.reasons:
            for row in np.flatnonzero(mask).tolist():
                found.setdefault(row, reason)
        return dict(sorted(found.items()))

    def chosen(self, good: Mask) -> tuple[Ids, OfTriples]:
        """Return where the triples of the chosen rows begin, and the triples."""
        there = self.there[good]
        offset = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        s, *others = self.terms
        p, o = (column[good][there] for column in others)
        if self.subjects is not None:
            rows = np.repeat(np.flatnonzero(good), there.sum(axis=1))
            return offset, (Subjects(rows, self.subjects), p, o)
        assert s is not None
        return offset, (s[good][there], p, o)


class TableLifter:
    """Batches of Arrow → terms of a dictionary, by a template."""

    def __init__(self, template: Template, dictionary: Dictionary, limits: Limits) -> None:
        self._template = template
        self._dictionary = dictionary
        self._limits = limits

    def lift(self, batch: pa.RecordBatch) -> Lifted:
        """Return the triples of each row. Must be called with the dictionary's lock held."""
        known: dict[object, Ids] = {}
        reasons: list[tuple[Mask, str]] = []
        late = self._late(batch)
        columns = [
            [self._ids(slot, batch, known, reasons) for slot in t[late is not None :]]
            for t in self._template.triples
        ]
        graph = np.zeros(len(batch), dtype=np.int64)
        if self._template.graph is not None:
            graph = self._ids(self._template.graph, batch, known, reasons)
            reasons.append((graph == UNBOUND, "no graph: a column of its name is null"))
        parts = [np.stack(each, axis=1) for each in zip(*columns, strict=True)]
        there = np.logical_and.reduce([part != UNBOUND for part in parts])
        for one, other in combinations(range(there.shape[1]), 2):  # a repeated triple counts once
            same = np.all([part[:, one] == part[:, other] for part in parts], axis=0)
            there[:, other] &= ~(same & there[:, one])
        reasons.append((~there.any(axis=1), "no triple: a column that it needs is null"))
        *s, p, o = parts
        if late is None:
            return Lifted(graph, there, (s[0], p, o), reasons)
        return Lifted(graph, there, (None, p, o), reasons, late)

    def _late(self, batch: pa.RecordBatch) -> Callable[[Ids], Ids] | None:
        """Return a function that makes the terms of the subjects of some rows later.

        None unless each row certainly has a valid subject, the same in all its triples, and no other place of
        the template uses it.
        """
        from spaseq.sources.columns.holes import Iri

        subjects = {triple[0] for triple in self._template.triples}
        others = {self._template.graph, *(slot for triple in self._template.triples for slot in triple[1:])}
        subject = subjects.pop()
        if subjects or not isinstance(subject, Iri) or subject in others:
            return None
        texts = subject.certain(batch, self._limits.term_bytes)
        return None if texts is None else lambda rows: self._column(subject, texts.take(rows), [])

    def _ids(
        self, slot: Slot, batch: pa.RecordBatch, known: dict[object, Ids], reasons: list[tuple[Mask, str]]
    ) -> Ids:
        """Return the id of each row's term, 0 for none; append to ``reasons`` why terms of the column are
        invalid.
        """
        if slot not in known:
            known[slot] = self._made(slot, batch, reasons)
        return known[slot]

    def _made(self, slot: Slot, batch: pa.RecordBatch, reasons: list[tuple[Mask, str]]) -> Ids:
        from spaseq.sources.columns.holes import FixedTerm, constant_term

        table = self._dictionary.table()
        if not isinstance(slot, FixedTerm):
            return self._column(slot, batch, reasons)
        if slot.is_blank:
            return table.fresh(len(batch))
        return np.full(len(batch), self._dictionary.intern(constant_term(slot.text)), dtype=np.int64)

    def _column(
        self, slot: ColumnLiteral | Iri, batch: pa.RecordBatch, reasons: list[tuple[Mask, str]]
    ) -> Ids:
        import pyarrow as pa
        import pyarrow.compute as pc

        from spaseq.sources.columns.holes import is_valid

        texts, which, are_valid = slot.coded(batch)
        what = " ".join(slot.columns)
        wrong: list[tuple[Mask, str]] = []
        size, most = pc.binary_length(texts), self._limits.term_bytes
        if most is not None and (pc.max(size).as_py() or 0) > most:
            long = np.asarray(pc.fill_null(pc.greater(size, most), False))
            wrong.append((long, self._limits.beyond("term_bytes", f"a term of {what}")))
        if not are_valid:
            invalid = [text is not None and not is_valid(text) for text in texts.to_pylist()]
            wrong.append((np.array(invalid, dtype=np.bool_), f"no IRI comes of {what}"))
        for mask, _ in wrong:
            if mask.any():
                texts = pc.if_else(pa.array(mask), None, texts)
        ids = self._entered(texts)
        if which is not None:
            rows = np.asarray(pc.fill_null(pc.cast(which, pa.int64()), len(texts)))
            wrong = [(np.append(mask, False)[rows], reason) for mask, reason in wrong]
            ids = np.append(ids, UNBOUND)[rows]
        reasons += wrong
        return ids

    def _entered(self, texts: pa.Array) -> Ids:
        """Return the ids of terms in N-Triples, 0 for null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(texts):
            return np.zeros(0, dtype=np.int64)
        lines = pc.fill_null(pc.binary_join_element_wise(texts, pa.scalar("\n"), ""), "\n")
        lines = pc.cast(lines, pa.large_string())
        _, places, data = lines.buffers()
        ends = np.frombuffer(places, dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
        return self._dictionary.table().enter(bytes(data[ends[0] : ends[-1]]), len(lines))


def shown(batch: pa.RecordBatch, row: int) -> str:
    """Return a row as a line of JSON, for a dead letter."""
    cells = {name: _shown(batch.column(name)[row]) for name in batch.schema.names}
    return json.dumps(cells, default=str, ensure_ascii=False)


class _Rows:
    """Batches of Arrow → events."""

    def __init__(self, template: Template, time: str | None, sink: EventSink) -> None:
        self._lifter = TableLifter(template, sink.dictionary, sink.limits)
        self._time = time
        self._sink = sink
        self._row = 0

    def read(self, reader: pa.RecordBatchReader) -> Iterator[None]:
        for batch in self._batches(reader):
            for start in range(0, len(batch), _ROWS):
                self._batch(batch.slice(start, _ROWS))
                yield

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        try:
            yield from reader
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"the table cannot be read, after row {self._row}: {_said(error)}") from error

    def _batch(self, batch: pa.RecordBatch) -> None:
        size = len(batch)
        clock, time = Clock.TICKS, np.arange(self._row, self._row + size)
        with self._sink.dictionary.lock:
            lifted = self._lifter.lift(batch)
            if self._time is not None:
                clock = _clock(batch.schema.field(self._time).type)
                time, none = _times(batch.column(self._time))
                reason = f"no time: its {self._time} is null, or beyond what a time can be"
                lifted.reasons.insert(0, (none, reason))
            wrong = lifted.wrong()
            good = np.ones(size, dtype=np.bool_)
            good[list(wrong)] = False
            offset, triples = lifted.chosen(good)
            if good.any() and not self._sink.extend(lifted.graph[good], clock, time[good], offset, triples):
                raise AssertionError("a column has one type, and so one clock")
        for row, reason in wrong.items():
            self._sink.bad(f"row {self._row + row + 1}", reason, shown(batch, row))
        self._row += size

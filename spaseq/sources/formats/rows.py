"""CSV and NDJSON: rows, lifted to RDF by a JSON-LD context file; each row is an event.

A CSV row is a JSON object of strings, without its empty cells. The JSON-LD processor defines what a context
makes of a row. If a context maps each column by itself, the processor is called once per column, and the rest
is done by columns (``columns``).

As JSON-LD prescribes, a JSON number with a fraction that a context types as anything but ``xsd:double`` keeps
the form of a double (``1.5E0``), which is no valid ``xsd:decimal``; a warning says so. Write such numbers as
strings (``"1.5"``), or let the context type them as ``xsd:double``.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from pyoxigraph import Literal

from spaseq.errors import SourceError
from spaseq.events import Clock
from spaseq.nesting import check_json
from spaseq.sources._bytes import whole_lines
from spaseq.sources._options import SourceOptions
from spaseq.sources.assembly.sink import EventSink
from spaseq.sources.columns.context import DECIMAL, KeyGroup, Number, Value
from spaseq.sources.formats._lift import lift, load_context, terms_of
from spaseq.sources.formats.jsonld import shortened, split_items
from spaseq.sources.formats.row_times import RowTimes
from spaseq.terms.dictionary import Term

if TYPE_CHECKING:
    from spaseq.sources.columns.rows import FastRows

_LONGEST_RECORD: Final = 1 << 20

#: Rows that are read slowly first, unless the compiled code is loaded: loading takes as long.
WARM_UP: Final = 1 << 12

#: The fewest rows at a time for which columns pay off.
SMALL: Final = 1 << 5


class _Records(NamedTuple):
    """CSV records: the first line of each, its text, its cells."""

    lines: Sequence[int]
    raws: Sequence[str]
    cells: Sequence[list[str]]


@dataclass(frozen=True, slots=True)
class _BlockRows:
    """The rows of a block. ``lines`` and ``raws`` have the first line and the text of each row.

    ``groups`` has the rows by their keys. ``json`` returns a row as a JSON object. ``around``: the documents
    that contain the rows as elements (``items=``).
    """

    lines: Sequence[int | str]
    raws: Sequence[str]
    groups: Sequence[KeyGroup]
    json: Callable[[int], str]
    around: Sequence[str] = ()


def open_lifter(name: str, options: SourceOptions, sink: EventSink) -> RowLifter:
    """Return the lifter of a source's rows. Raises SourceError without a readable context."""
    if options.context is None and sink.contexts is None:
        raise SourceError(
            f"{name}: rows need the JSON-LD context that lifts them: add ?context=FILE, or contexts=FOLDER "
            "if each row names its own"
        )
    context = load_context(options.context, sink.limits, sink.contexts) if options.context else "{}"
    return RowLifter(context, sink, options)


class RowLifter:
    """Rows → events, by the fast path where possible."""

    def __init__(self, context: str, sink: EventSink, options: SourceOptions, *, fast: bool = True) -> None:
        self._context = context
        self._sink = sink
        self._seen = 0
        self._is_fast = fast and sink.path is None and sink.items is None and sink.contexts is None
        is_column = isinstance(options.time, str) and not sink.is_arrival
        #: The column of times, unless the context maps it.
        self.times = RowTimes(str(options.time), options) if is_column else None
        self._fast: FastRows | None = None

    def lift(self, rows: _BlockRows) -> None:
        """Deliver the events of a block's rows, in order."""
        count = len(rows.lines)
        self._seen += count
        is_loaded = self._seen >= WARM_UP or sys.modules.get("spaseq.sources.columns.rows") is not None
        if not self._is_fast or not is_loaded or count < SMALL or self._has_long(rows):
            self._slowly(rows, range(count))
            return
        if self._fast is None:
            from spaseq.sources.columns.rows import FastRows

            self._fast = FastRows(self._context, self._sink, self.times)
        self._fast.deliver(count, rows.groups, lambda numbers: self._slowly(rows, numbers))

    def _has_long(self, rows: _BlockRows) -> bool:
        """Return whether a row is long enough to contain a term that is too long."""
        most = self._sink.limits.term_bytes
        return most is not None and 4 * max(map(len, rows.raws)) > most

    def _slowly(self, rows: _BlockRows, numbers: Sequence[int]) -> None:
        """Deliver the events of some rows as the processor lifts them."""
        for number, found in zip(numbers, lift([rows.json(n) for n in numbers], self._context), strict=True):
            line, raw = rows.lines[number], rows.raws[number]
            if isinstance(found, ValueError):
                self._sink.bad(f"line {line}", str(found), raw)
            else:
                for _, predicate, term in found:
                    if isinstance(term, Literal) and "E" in term.value and term.datatype == DECIMAL:
                        self._sink.warn_of_decimals(predicate)
                problem = "" if found else self._lost(rows.json(number))
                around = rows.around[number] if rows.around else ""
                times: Sequence[Term] = ()
                at = None
                if self.times is not None and not problem:
                    at, problem = self._at(self.times, rows.json(number), around)
                elif around and not self._sink.times_inside(found, None):
                    times = self._times_of(around)
                self._sink.add(found, None, times, f"line {line}", problem, at)

    def _at(self, times: RowTimes, row: str, around: str) -> tuple[tuple[Clock, int] | None, str]:
        """Return the time of a row by its column, None if it has none; and the reason why not."""
        cells = dict(zip(*_object(row), strict=True))
        if around and times.name not in cells:
            cells = dict(zip(*_object(around), strict=True)) | cells
        try:
            return times.of(cells), ""
        except ValueError as error:
            return None, str(error)

    def _times_of(self, around: str) -> list[Term]:
        """Return the times in the document around a row."""
        (found,) = lift([around], self._context)
        return [] if isinstance(found, ValueError) else self._sink.times_inside(found, None)

    def _lost(self, row: str) -> str:
        """Return why a row, which is a JSON object, has no triples."""
        keys = shortened(json.loads(row)) or "no cell with a value"
        terms = shortened(sorted(terms_of(json.loads(self._context))))
        return f"the context lifts nothing of this row: it has {keys}, and the context defines {terms}"


def read_ndjson(blocks: Iterator[bytes], sink: EventSink, lifter: RowLifter) -> Iterator[None]:
    """Read JSON objects, one per line; pause after each block."""
    for first, text in whole_lines(blocks, sink.bad):
        lifter.lift(_ndjson_rows(first, text, sink))
        yield


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=Number, parse_int=Number, parse_constant=_refuse
)


def _ndjson_rows(first: int, text: bytes, sink: EventSink) -> _BlockRows:
    lines: list[int | str] = []
    raws: list[str] = []
    around: list[str] = []
    groups: dict[tuple[str, ...], tuple[list[int], list[tuple[Value, ...]]]] = {}
    for number, line in enumerate(text.split(b"\n"), first):
        try:
            raw = line.decode().strip()
            if not raw:
                continue
            check_json(line, sink.limits)
            raw = sink.contexts.filled(line).decode() if sink.contexts else raw
            items, document = ([raw], "") if sink.items is None else split_items(raw, sink.items)
            objects = [_object(item) for item in items]
        except ValueError as error:
            sink.bad(f"line {number}", str(error), line.decode(errors="replace").strip())
            continue
        for item, (element, (keys, values)) in enumerate(zip(items, objects, strict=True), 1):
            numbers, rows = groups.setdefault(keys, ([], []))
            numbers.append(len(lines))
            rows.append(values)
            lines.append(f"{number}, item {item}" if document else number)
            raws.append(element)
            around += [document] if document else []
    columns = [
        KeyGroup(keys, numbers, list(zip(*rows, strict=True)), skips_empty=False)
        for keys, (numbers, rows) in groups.items()
    ]
    return _BlockRows(lines, raws, columns, raws.__getitem__, around)


def _object(text: str) -> tuple[tuple[str, ...], tuple[Value, ...]]:
    """Return the keys and the values of a JSON object. Raises ValueError."""
    pairs = _DECODER.decode(text)
    if not isinstance(pairs, tuple):
        raise ValueError("a row must be a JSON object")
    return tuple(zip(*pairs, strict=True)) if pairs else ((), ())  # type: ignore[return-value]  # two columns


def read_csv(
    blocks: Iterator[bytes], sink: EventSink, lifter: RowLifter, options: SourceOptions
) -> Iterator[None]:
    """Read CSV rows, with a header line unless ``header`` names the columns; pause after each block."""
    reader = _Csv(sink, lifter, options)
    for first, text in whole_lines(blocks, sink.bad):
        reader.read(first, text)
        yield
    reader.close()


#: A value rather than the name of a column: a number, or text that begins like a date.
_VALUE: Final = re.compile(r"\s*[-+]?\.?\d.*")


class _Csv:
    """Lines → records → rows. Holds the lines of a record with open quotes."""

    def __init__(self, sink: EventSink, lifter: RowLifter, options: SourceOptions) -> None:
        self._sink = sink
        self._lifter = lifter
        self._header = tuple(options.header or ())
        if self._header and lifter.times is not None:
            lifter.times.check(self._header)
        self._delimiter = options.delimiter or ","
        self._held: list[str] = []
        self._start, self._size, self._is_open = 1, 0, False

    def read(self, first: int, text: bytes) -> None:
        """Read whole lines; ``first`` is the number of the first one."""
        lines = text.removesuffix(b"\n").decode("utf-8-sig" if first == 1 else "utf-8", errors="replace")
        is_new = not self._header and not self._held
        if is_new and lines[:1].strip() and '"' not in lines and "\r" not in lines:
            head, _, lines = lines.partition("\n")
            self._name(head.split(self._delimiter))
            first += 1
            if not lines:
                return
        rows = self._table(first, lines)
        if rows is not None:
            self._lifter.lift(rows)
        else:
            self._take(self._plain(first, lines) or self._records(first, lines))

    def _name(self, cells: Iterable[str]) -> None:
        """Take the names of the columns from the first line, which may be a comment."""
        self._header = header_of(cells)
        names = shortened(self._header)
        other = next((d for d in ",;\t|" if d != self._delimiter and d in names), None)
        if len(self._header) == 1 and other is not None:
            hint = f"delimiter={quote(other, safe='')}"
            self._sink.hint = f" (is {hint} missing? There is one column, {names!r})"
        elif any(_VALUE.fullmatch(name) for name in self._header):
            self._sink.hint = f" (is header= missing? The first line names the columns, and it is {names})"
        if self._header and self._lifter.times is not None:
            self._lifter.times.check(self._header)

    def close(self) -> None:
        """End the input."""
        if self._held:
            self._take(self._cells([(self._start, "\n".join(self._held))]))

    def _table(self, first: int, text: str) -> _BlockRows | None:
        """Return the rows of lines without quotes, if each has all its cells."""
        header, delimiter = self._header, self._delimiter
        lines = text.split("\n")
        unix = text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text
        if self._held or len(header) < 2 or '"' in unix or "\r" in unix:
            return None
        if any(line.count(delimiter) != len(header) - 1 for line in lines):
            return None
        if max(map(len, lines)) > csv.field_size_limit():
            return None
        cells = unix.replace("\n", delimiter).split(delimiter)
        columns = [cells[i :: len(header)] for i in range(len(header))]

        def as_json(number: int) -> str:
            return _as_json(header, [column[number] for column in columns])

        group = KeyGroup(header, range(len(lines)), columns, skips_empty=True)
        return _BlockRows(range(first, first + len(lines)), lines, [group], as_json)

    def _plain(self, first: int, text: str) -> _Records | None:
        """Return the records of lines that are one record each; None if that is uncertain."""
        lines = text.split("\n")
        if self._held or text.count("\r") != text.count("\r\n") + text.endswith("\r"):
            return None
        if '"' in text and any(line.count('"') % 2 for line in lines):
            return None
        try:
            cells = list(csv.reader(lines, delimiter=self._delimiter, strict=True))
        except csv.Error:
            return None
        return _Records(range(first, first + len(lines)), lines, cells) if len(cells) == len(lines) else None

    def _records(self, first: int, text: str) -> _Records:
        """Return the records that lines complete: a quoted cell may span lines."""
        records: list[tuple[int, str]] = []
        for number, line in enumerate(text.split("\n"), first):
            if not self._held:
                self._start, self._size = number, 0
            self._held.append(line)
            self._size += len(line)
            self._is_open ^= line.count('"') % 2 == 1
            if not self._is_open or self._size > _LONGEST_RECORD:
                records.append((self._start, "\n".join(self._held)))
                self._held, self._is_open = [], False
        return self._cells(records)

    def _cells(self, records: Sequence[tuple[int, str]]) -> _Records:
        """Return records by first line and text (several lines of text if quotes are unbalanced)."""
        lines: list[int] = []
        raws: list[str] = []
        found: list[list[str]] = []
        for line, raw in records:
            try:
                for cells in csv.reader(StringIO(raw, newline=""), delimiter=self._delimiter, strict=True):
                    lines.append(line)
                    raws.append(raw)
                    found.append(cells)
            except csv.Error as error:
                self._sink.bad(f"line {line}", str(error), raw)
        return _Records(lines, raws, found)

    def _take(self, records: _Records) -> None:
        if not self._header:
            first = next((number for number, cells in enumerate(records.cells) if cells), None)
            self._name(() if first is None else records.cells[first])
            records = _without(records, () if first is None else {first})
        header = self._header
        if any(len(cells) != len(header) for cells in records.cells):
            wrong = [n for n, cells in enumerate(records.cells) if len(cells) != len(header)]
            for n in wrong:
                if records.cells[n]:
                    reason = f"{len(records.cells[n])} cells, but there are {len(header)} columns"
                    self._sink.bad(f"line {records.lines[n]}", reason + self._sink.hint, records.raws[n])
            records = _without(records, set(wrong))

        def as_json(number: int) -> str:
            return _as_json(header, records.cells[number])

        group = KeyGroup(
            header, range(len(records.cells)), list(zip(*records.cells, strict=True)), skips_empty=True
        )
        self._lifter.lift(_BlockRows(records.lines, records.raws, [group], as_json))


def header_of(cells: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the columns from the cells of the header line, without a leading ``# ``."""
    first, *others = [*cells] or [""]
    return (first.removeprefix("# "), *others) if first or others else ()


def _as_json(header: Sequence[str], cells: Sequence[str]) -> str:
    return json.dumps({name: cell for name, cell in zip(header, cells, strict=True) if cell})


def _without(records: _Records, left: Collection[int]) -> _Records:
    kept = [number for number in range(len(records.lines)) if number not in left]
    return _Records(
        [records.lines[number] for number in kept],
        [records.raws[number] for number in kept],
        [records.cells[number] for number in kept],
    )

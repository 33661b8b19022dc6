"""Rows (CSV, NDJSON) → a proposed JSON-LD context that lifts them, and a first query, to be edited.

Types of columns are guessed from the text of the first rows' cells, by XML Schema's forms.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pyoxigraph import NamedNode

from spaseq.errors import SourceError
from spaseq.events import Clock
from spaseq.limits import Limits
from spaseq.sources._bytes import BrokenBytesError, check_location, read_blocks, whole_lines
from spaseq.sources._options import GENERATED_AT, SourceOptions, check_options, read_option, resolve_format
from spaseq.sources.assembly.sink import BadEvent, EventSink
from spaseq.sources.formats.contexts import named_in
from spaseq.sources.formats.jsonld import split_items
from spaseq.sources.formats.row_times import RowTimes
from spaseq.sources.formats.rows import RowLifter, header_of, read_csv, read_ndjson
from spaseq.sources.guessed_times import ColumnReading, readings, shown
from spaseq.sources.spans import epoch_of, window_of
from spaseq.terms.dictionary import Dictionary

#: How many rows are examined.
SAMPLE: Final = 1_000

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"

NAMESPACE: Final = "http://example.org/"

#: Types of a cell, the narrowest first; "text" is the rest.
_WRITTEN_AS: Final = {
    "integer": r"[+-]?\d+",
    "decimal": r"[+-]?(\d+\.\d*|\.?\d+)",
    "double": r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?",
    "boolean": r"true|false",
    "dateTime": r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?",
    "date": r"-?\d{4,}-\d\d-\d\d(Z|[+-]\d\d:\d\d)?",
    "iri": r"(https?|urn|tag|mailto|file):[^\s<>\"{}|\\^`]+",
}
_NUMBERS: Final = ("decimal", "double", "integer")
_TIMES: Final = ("dateTime", "date")
_LIKE_A_TIME: Final = re.compile(r"\d{1,4}[-/.]\d\d?[-/.]\d{1,4}([ T]\d\d?:\d\d.*)?")
_CALLED_TIME: Final = re.compile(
    r"(.*[ _-])?(?i:time|timestamp|datetime|date|at|ts|tick|when|epoch)|[tT]|.*(Time|Date|At)"
)
#: Columns that may identify the subject of events even if they are numbers: ``id``, ``user_id``, ``cardNo``,
#: ``sensor``.
_CALLED_KEY: Final = re.compile(
    r"(.*[ _-])?(?i:id|key|code|no|nr|number|account|bus|car|card|client|customer|device|machine|meter|node"
    r"|order|person|room|route|sensor|station|train|trip|user|vehicle|mmsi|imo)"
    r"|.*(Id|ID|Key|Code|No|Nr|Number)|\w+id"
)
#: Names of columns with identifiers, whatever their values are: ``user_id``, ``userid``.
_CALLED_ID: Final = re.compile(r".*[ _-](?i:id)|.*(Id|ID)|(?i:\w*id|mmsi|imo)")
_NO_ID: Final = frozenset(
    ("acid", "bid", "fluid", "grid", "humid", "kid", "liquid", "paid", "solid", "valid", "void")
)


@dataclass(frozen=True, slots=True)
class ProposedColumn:
    """A column: its name, the type of its cells (of ``_WRITTEN_AS``, or text), and the cells of the first
    rows.
    """

    name: str
    kind: str
    cells: tuple[str, ...]

    @property
    def is_repeated(self) -> bool:
        """Return whether values repeat, as identifiers of subjects do."""
        return 1 < len(set(self.cells)) <= len(self.cells) / 2

    @property
    def is_number_of_a_thing(self) -> bool:
        """Return whether its integers identify a thing rather than measure an amount."""
        is_word = self.name.lower() in _NO_ID
        return self.kind == "integer" and not is_word and _CALLED_KEY.fullmatch(self.name) is not None

    @property
    def is_id(self) -> bool:
        """Return whether its name says that its values are ids, and a value repeats."""
        is_called = _CALLED_ID.fullmatch(self.name) is not None and self.name.lower() not in _NO_ID
        return (
            is_called and self.kind in ("integer", "text", "iri") and len(set(self.cells)) < len(self.cells)
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """The guesses about a file of rows. ``time``, ``key`` and ``measure`` are columns, or None.

    - ``reading``: how the time is read. ``readings``: the ways to read it, if day and month are ambiguous.
    - ``options``: what the source needs beside the context.
    - ``has_contexts``: the rows have contexts of their own, so the proposed one is not needed.
    - ``remote``: URLs of contexts that the rows name, if no option says where local copies are.
    - ``items``: the only column that holds arrays of objects, if rows have no time: each element may be an
      event.
    - ``refusal``: why no run is proposed: the context lifts none of the first rows, or day and month of the
      time are ambiguous.
    """

    location: str
    namespace: str
    columns: tuple[ProposedColumn, ...]
    time: ProposedColumn | None
    key: ProposedColumn | None
    measure: ProposedColumn | None
    warnings: tuple[str, ...]
    reading: ColumnReading | None = None
    options: tuple[tuple[str, str], ...] = ()
    refusal: str | None = None
    readings: tuple[ColumnReading, ...] = ()
    remote: tuple[str, ...] = ()
    has_contexts: bool = False
    items: str | None = None

    def context(self) -> str:
        """Return the JSON-LD context, as JSON: a term for each column.

        The time column becomes prov:generatedAtTime.
        """
        terms = {column.name: self._term(column) for column in self.columns}
        lines = [
            f"    {json.dumps(name, ensure_ascii=False)}: {json.dumps(term, ensure_ascii=False)}"
            for name, term in terms.items()
        ]
        return '{\n  "@context": {\n' + ",\n".join(lines) + "\n  }\n}\n"

    def query(self) -> str:
        """Return a query over the rows: an event B after an event A. B has the same key as A if there is a
        key column, and a smaller number than A if there is a measure.
        """
        names = self._variables()
        key, measure = (None, None) if self.has_contexts else (self.key, self.measure)
        bound = [column for column in (key, measure) if column is not None]
        shown = [f"?{names[key.name]}"] if key else []
        shown += [f"?{names[measure.name]}{n}" for n in (1, 2) if measure]
        gpms = []
        for n, gpm in enumerate("AB", 1):
            asked = " ; ".join(f"{self._predicate(c)} ?{names[c.name]}{'' if c is key else n}" for c in bound)
            falls = f" . FILTER(?{names[measure.name]}2 < ?{names[measure.name]}1)" if measure else ""
            gpms.append(f"  DEFINE GPM {gpm} ON S {{ ?row{n} {asked or '?p ?o'}{falls if n == 2 else ''} }}")
        return "\n".join(
            [
                "# B after A: change what A and B ask, the operator between them, and the window.",
                f"PREFIX : <{self.namespace}>",
                f"SELECT {' '.join(shown) or '*'}",
                f"WITHIN {self._window()} SLIDING",
                *([f"PARTITION BY ?{names[key.name]}"] if key else []),
                f"FROM STREAM S <{self.stream}>",
                "WHERE {",
                "  SEQ(A ; B)",
                *gpms,
                "}",
                "",
            ]
        )

    @property
    def stream(self) -> str:
        """Return the stream's IRI, from the file's name."""
        return self.namespace + quote(Path(self.location).name.partition(".")[0].strip("-") or "rows")

    def _term(self, column: ProposedColumn) -> object:
        if column is self.time and self.reading and not self.reading.options:
            return {"@id": GENERATED_AT.value, "@type": _XSD + column.kind}
        iri = self.namespace + quote(column.name, safe="")
        match column.kind:
            case "text":
                return iri
            case "iri":
                return {"@id": iri, "@type": "@id"}
            case kind:
                return {"@id": iri, "@type": _XSD + kind}

    def _predicate(self, column: ProposedColumn) -> str:
        local = quote(column.name, safe="")
        return f":{local}" if re.fullmatch(r"[A-Za-z]\w*", local) else f"<{self.namespace}{local}>"

    def _variables(self) -> dict[str, str]:
        """Return a distinct variable name for each column, with a number appended where needed."""
        names: dict[str, str] = {}
        for column in self.columns:
            name = re.sub(r"\W+", "_", column.name, flags=re.ASCII).strip("_") or "column"
            name = name if name[0].isalpha() else f"c{name}"
            taken = {other + end for other in names.values() for end in ("", "1", "2")} | {"row1", "row2"}
            while {name, f"{name}1", f"{name}2"} & taken:
                name += "_"
            names[column.name] = name
        return names

    def _window(self) -> str:
        if self.time is None:
            return "10 EVENTS"
        kind, times = self.time.kind, self.time.cells
        if self.reading is not None:
            instants = "date" if kind == "date" else "dateTime"
            kind = instants if self.reading.clock is Clock.INSTANTS else "integer"
            times = self.reading.times
        return window_of(kind, times, self.key.cells if self.key else ())

    def source(self, rows: str, context: Path, reading: ColumnReading | None = None) -> str:
        """Return the source for a run: ``rows`` is the location as it was given, with its options.

        ``reading``: another way to read the time.
        """
        given = {part.partition("=")[0] for part in rows.partition("?")[2].split("&")}
        options = dict(self.options) | (reading.options if reading else {})
        said = [f"{name}={_quoted(value)}" for name, value in options.items() if name not in given]
        said = said if self.has_contexts else [f"context={context}", *said]
        return f"{rows}{'&' if '?' in rows else '?'}{'&'.join(said)}"


def propose(
    location: str | Path, options: SourceOptions | None = None, namespace: str = NAMESPACE
) -> Proposal:
    """Propose a context and a query for a file of CSV or NDJSON rows, from its first rows.

    Raises SourceError if the file cannot be read, has another format, or has no row with a value.
    """
    options = options or SourceOptions()
    form = resolve_format(str(location), options)
    if form not in ("csv", "ndjson"):
        raise SourceError(f"{location} is {form}, which is RDF already: a context is for csv and ndjson")
    check_options(str(location), form, options)
    check_location(location)
    lines = _lines(location)
    unread: list[str] = []
    doubts: list[str] = []
    extra: dict[str, str] = {}
    if form == "csv" and options.header is None and (header := _missing_header(location, options)):
        doubts.append(
            "the first line is data, as all its cells look like those below: header= names the columns, here "
            f"header={','.join(header)}"
        )
        extra["header"] = ",".join(header)
        options = replace(options, header=header)
    rows = _csv_rows(lines, options) if form == "csv" else _json_rows(lines, unread, options.items)
    cells: dict[str, list[Any]] = {}
    unsayable: set[str] = set()
    contexts: dict[str, None] = {}
    count = 0
    for row in islice(rows, SAMPLE):
        count += 1
        contexts.update(dict.fromkeys(named_in(row.get("@context"))))
        for name, value in row.items():
            if not _can_be_a_term(name):
                unsayable |= {name} - {"@context"}
            elif value not in ("", None):
                cells.setdefault(name, []).append(value)
    if not cells:
        why = f" ({unread[0]})" if unread else ""
        raise SourceError(f"{location}: no row has a value{why}: there is nothing to tell the columns from")
    columns = tuple(_column(name, values) for name, values in cells.items())
    time, ways = _time(columns, count, options)
    reading = ways[0] if ways else None
    extra |= reading.options if reading else {} if options.time == "arrival" else {"time": "arrival"}
    others = [column for column in columns if column is not time]
    key = _key(others)
    measure = _measure([column for column in others if column is not key])
    doubts += _doubts(columns, time, reading, cells, unsayable)
    found = Proposal(str(location), namespace, columns, time, key, measure, (), reading, tuple(extra.items()))
    arrays = [name for name, values in cells.items() if _are_arrays(values)]
    if time is None and len(arrays) == 1:
        found = replace(found, items=arrays[0])
    return _tried(found, ways, tuple(contexts), form, options, doubts)


def _tried(
    found: Proposal,
    ways: Sequence[ColumnReading],
    contexts: tuple[str, ...],
    form: str,
    options: SourceOptions,
    doubts: list[str],
) -> Proposal:
    """Return the proposal after a trial on the first rows, with warnings, and a refusal if it cannot run."""
    time = found.time
    if time is not None and len(ways) > 1:
        either = " or ".join(f"{shown(way)} with time_format={way.options['time_format']}" for way in ways)
        said = f"{time.cells[0]!r} in {time.name!r} is {either}"
        return replace(found, warnings=tuple(doubts), refusal=said, readings=tuple(ways))
    if contexts:
        timed = ({"time": time.name} if time else {}) | dict(found.options)
        found = replace(found, has_contexts=True, options=tuple(timed.items()))
        if options.contexts is None:
            return replace(
                found,
                warnings=tuple(doubts),
                options=(("contexts", "FOLDER"), *timed.items()),
                refusal=f"the rows name contexts, as {contexts[0]}, and nothing is fetched",
                remote=contexts,
            )
    events, bad = _lifted(found, form, options)
    if events and bad:
        doubts.append(f"{len(bad)} of the first {events + len(bad)} rows are refused; {_first(bad)}")
    refusal = None if events or not bad else f"every row would be refused, the first since {_first(bad)}"
    return replace(found, warnings=tuple(doubts), refusal=refusal)


def _lifted(found: Proposal, form: str, options: SourceOptions) -> tuple[int, list[BadEvent]]:
    """Return how many of the first rows the proposed context lifts to events, and the rejected rows."""
    bad: list[BadEvent] = []
    given = {name: read_option(name, value) for name, value in found.options}
    options = replace(options, **given)  # type: ignore[arg-type]  # read_option gives the fields' types
    sink = EventSink(NamedNode(found.stream), Dictionary(), options, bad.append, Limits())
    context = "{}" if found.has_contexts else json.dumps(json.loads(found.context())["@context"])
    lifter = RowLifter(context, sink, options, fast=False)
    # At most two pieces: a file's first block of lines, and, of a short file, a last line without line feed.
    texts = islice((text for _, text in whole_lines(read_blocks(found.location), lambda *_: None)), 2)
    rows = iter([b"\n".join(b"".join(texts).split(b"\n")[:SAMPLE]) + b"\n"])
    # Only one step: at the end of the input, the reader would report a record that the cut left open.
    next(read_csv(rows, sink, lifter, options) if form == "csv" else read_ndjson(rows, sink, lifter))
    return len(sink.take() or ()), bad


def _can_be_a_term(name: str) -> bool:
    """Return whether a context may define a name: ``a:b`` and ``a/b`` are IRIs in JSON-LD, ``@a`` is a
    keyword.
    """
    return bool(name) and not name.startswith("@") and not set(name) & {":", "/"}


def _lines(location: str | Path) -> Iterator[str]:
    """Yield the lines of a file with their line ends: a quoted cell may contain line ends."""

    def too_long(position: str, reason: str) -> None:
        raise SourceError(f"{location}, {position}: {reason}")

    try:
        for first, text in whole_lines(read_blocks(location), too_long):
            decoded = text.decode("utf-8-sig" if first == 1 else "utf-8", errors="replace")
            yield from StringIO(decoded, newline="")
    except BrokenBytesError as error:
        raise SourceError(f"{location}, {error}") from None


def _csv_rows(lines: Iterable[str], options: SourceOptions) -> Iterator[dict[str, str]]:
    reader = csv.DictReader(lines, options.header, restkey="", delimiter=options.delimiter or ",")
    try:
        if options.header is None and reader.fieldnames is not None:
            reader.fieldnames = header_of(reader.fieldnames)
        yield from reader
    except csv.Error as error:
        raise SourceError(f"line {reader.line_num}: {error}") from None


def _missing_header(location: str | Path, options: SourceOptions) -> tuple[str, ...] | None:
    """Return names for the columns of a file without a header line; None if its first line is a header."""
    records = csv.reader(_lines(location), delimiter=options.delimiter or ",")
    try:
        first, *others = [record for record in islice(records, SAMPLE) if record] or [[]]
    except csv.Error:
        return None
    others = [record for record in others if len(record) == len(first)]
    if not others or not all(first):
        return None
    names, is_data = [], False
    for number, cell in enumerate(first):
        below = [record[number] for record in others if record[number]]
        both = _column("", [cell, *below])
        if not below or both.kind != _column("", below).kind:
            return None
        is_time = both.kind in _TIMES or _LIKE_A_TIME.fullmatch(cell) is not None
        is_epoch = both.kind == "integer" and epoch_of(both.cells) is not None
        is_data |= both.kind not in ("text", "iri") or is_time or cell in below
        names.append("time" if (is_time or is_epoch) and "time" not in names else f"{both.kind}{number + 1}")
    return tuple(names) if is_data else None


def _first(bad: Sequence[BadEvent]) -> str:
    return f"{bad[0].position}: {bad[0].reason}"


def _quoted(value: str) -> str:
    """Return an option's value as a location has it, with as little encoded as possible."""
    return re.sub(r"&|%(?=[0-9A-Fa-f]{2})", lambda found: quote(found[0], safe=""), value)


def _json_rows(lines: Iterable[str], unread: list[str], items: str | None) -> Iterator[dict[str, Any]]:
    """Yield the rows that are JSON objects, or elements of an array.

    For each line that is left out, the reason is appended to ``unread``.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            unread.append(f"line {number}: {error}")
            continue
        if items is not None:
            try:
                yield from map(json.loads, split_items(line, items)[0])
            except ValueError as error:
                unread.append(f"line {number}: {error}")
        elif isinstance(row, dict):
            yield row
        else:
            unread.append(f"line {number}: a row must be a JSON object")


def _column(name: str, values: Sequence[Any]) -> ProposedColumn:
    """Return a column with its type. JSON numbers with a fraction are doubles, as in JSON-LD."""
    if any(isinstance(value, float) for value in values):
        is_number = all(isinstance(value, (int, float)) for value in values)
        return ProposedColumn(name, "double" if is_number else "text", tuple(map(str, values)))
    texts = tuple(value if isinstance(value, str) else json.dumps(value) for value in values)
    kinds = (kind for kind, form in _WRITTEN_AS.items() if all(re.fullmatch(form, text) for text in texts))
    return ProposedColumn(name, next(kinds, "text"), texts)


def _time(
    columns: Sequence[ProposedColumn], rows: int, options: SourceOptions
) -> tuple[ProposedColumn | None, list[ColumnReading]]:
    """Return the column of the events' times, which every row has, and the ways to read it.

    Columns of instants are preferred, then numbers in a column named like a time, then integers that count
    since 1970 and never decrease.
    """
    if isinstance(options.time, str) and options.time != "arrival":
        RowTimes(options.time, options).check(column.name for column in columns)
        columns = [column for column in columns if column.name == options.time]
    elif options.time == "arrival":
        return None, []
    whole = [column for column in columns if len(column.cells) == rows]
    ways = {c.name: readings(c.name, c.kind, c.cells, options) for c in whole}
    called = [
        column for column in whole if _CALLED_TIME.fullmatch(column.name) or options.time == column.name
    ]
    instants = [c for c in whole if c.kind not in _NUMBERS and ways[c.name]]
    named = [column for column in instants if column in called]
    numbers = [column for column in called if column.kind in _NUMBERS and ways[column.name]]
    since = [
        c for c in whole
        if c.kind == "integer" and not c.is_number_of_a_thing and ways[c.name] and ways[c.name][0].options
        if list(c.cells) == sorted(c.cells, key=int)
    ]  # fmt: skip
    found = next(iter(named or instants or numbers or since), None)
    return found, ways[found.name] if found else []


def _key(columns: Sequence[ProposedColumn]) -> ProposedColumn | None:
    """Return the column of the events' subjects, None if there is none.

    Columns named like ids are preferred, then texts and IRIs that repeat, then integers that identify things.
    """
    repeated = [column for column in columns if column.is_repeated]
    ids = [column for column in columns if column.is_id]
    words = [column for column in repeated if column.kind in ("text", "iri")]
    return next(iter(ids or words or [column for column in repeated if column.is_number_of_a_thing]), None)


def _measure(columns: Sequence[ProposedColumn]) -> ProposedColumn | None:
    """Return a column of numbers to compare: preferably with fractions, and identifiers only if need be."""
    numbers = [column for kind in _NUMBERS for column in columns if column.kind == kind]
    return next(iter([c for c in numbers if not c.is_number_of_a_thing] or numbers), None)


def _doubts(
    columns: Sequence[ProposedColumn],
    time: ProposedColumn | None,
    reading: ColumnReading | None,
    cells: dict[str, list[Any]],
    unsayable: set[str],
) -> Iterator[str]:
    for name in sorted(filter(None, unsayable)):
        yield f"{name!r} is left out: JSON-LD has no term with ':' or '/', or with '@' in front; rename it"
    if time is None:
        names = ", ".join(repr(column.name) for column in columns)
        yield (
            f"no column is an event's time, of {names}: say ?time=COLUMN, or ?time=arrival, and the arrival "
            "number is it, in ticks"
        )
    elif reading is not None and reading.clock is Clock.TICKS:
        yield f"the times in {time.name!r} are integers, so ticks: in WITHIN, a second is one of them"
    elif reading is not None and "unit" in reading.options:
        yield f"the times in {time.name!r} are {reading.options['unit']} since 1970, by their size"
    if len(columns) == 1 and (other := next((d for d in ";\t|" if d in columns[0].name), None)):
        yield f"there is one column, {columns[0].name!r}: is ?delimiter={quote(other)} missing?"
    for column in columns:
        if (
            column is not time
            and column.kind == "text"
            and all(_LIKE_A_TIME.fullmatch(text) for text in column.cells)
        ):
            yield (
                f"{column.name!r} looks like times, as {column.cells[0]!r}: ?time={column.name}&time_format= "
                "says how they are written, as in %d/%m/%Y %H:%M:%S"
            )
        values = cells[column.name]
        if _are_arrays(values):
            yield f"{column.name!r} holds arrays of objects: is each of them an event? ?items={column.name}"
        elif any(isinstance(value, (dict, list)) for value in values):
            yield (
                f"{column.name!r} holds objects or arrays: its context is yours to write; a term "
                '"@vocab": "http://example.org/" lifts all that it holds'
            )


def _are_arrays(values: Sequence[Any]) -> bool:
    """Return whether all values are arrays of objects."""
    return all(isinstance(value, list) and value and isinstance(value[0], dict) for value in values)

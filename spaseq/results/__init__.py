"""Matches → rows, graphs and files.

``writer`` writes the matches of a query in one of nine formats, as a stream: what a match gives is
written and flushed before the next one is looked for.

| format | holds | source |
|---|---|---|
| ``table`` | SELECT, ASK | for people |
| ``json`` ``xml`` ``csv`` ``tsv`` | SELECT, ASK | the W3C SPARQL 1.1 results formats |
| ``ndjson`` | everything | one match a line: start, end, partition, events, and bindings or graph |
| ``trig`` ``nquads`` | CONSTRUCT | one timestamped named graph a match: an event stream again |
| ``count`` | everything | how many matches there are, at the end; nothing of them is looked at |
"""

from __future__ import annotations

from enum import StrEnum
from typing import IO, Final

from spaseq.errors import FormatError
from spaseq.language.syntax import Construct, Query
from spaseq.results.writers._base import ResultWriter, RowFormat, RowWriter

__all__ = ["Format", "ResultWriter", "check_format", "writer"]


class Format(StrEnum):
    """The result formats, by the names the command line gives them."""

    TABLE = "table"
    JSON = "json"
    XML = "xml"
    CSV = "csv"
    TSV = "tsv"
    NDJSON = "ndjson"
    TRIG = "trig"
    NQUADS = "nquads"
    COUNT = "count"


_GRAPHS: Final = (Format.TRIG, Format.NQUADS)


def check_format(format: Format | str, query: Query) -> Format:  # noqa: A002  # the field's word
    """The format of that name, if it can hold what the query gives; FormatError otherwise."""
    if format not in tuple(Format):
        raise FormatError(f"unknown result format {str(format)!r}: known are {', '.join(Format)}")
    fitting = _fitting(query)
    if format not in fitting:
        form = type(query.form).__name__.upper()
        raise FormatError(f"{format} cannot hold the results of {form}: use {', '.join(fitting)}")
    return Format(format)


def writer(format: Format | str, query: Query, out: IO[bytes]) -> ResultWriter:  # noqa: A002  # the field's word
    """A writer of the query's matches to ``out``, which stays open when the writer is closed.

    Raises FormatError for an unknown format, and for one that cannot hold what the query gives.
    """
    chosen = check_format(format, query)
    match chosen:
        case Format.NDJSON:
            from spaseq.results.writers._json import NdjsonWriter

            return NdjsonWriter(query, out)
        case Format.TRIG | Format.NQUADS:
            from spaseq.results.writers._graphs import GraphWriter

            return GraphWriter(query, out, prefixed=chosen is Format.TRIG)
        case Format.COUNT:
            from spaseq.results.writers._count import CountWriter

            return CountWriter(query, out)
    return RowWriter(query, out, _row_format(chosen, query, terminal=out.isatty()))


def _row_format(format: Format, query: Query, *, terminal: bool) -> RowFormat:  # noqa: A002  # the field's word
    match format:
        case Format.JSON:
            from spaseq.results.writers._json import JsonRows

            return JsonRows(query)
        case Format.XML:
            from spaseq.results.writers._xml import XmlRows

            return XmlRows(query)
        case Format.CSV:
            from spaseq.results.writers._delimited import CsvRows

            return CsvRows(query)
        case Format.TSV:
            from spaseq.results.writers._delimited import TsvRows

            return TsvRows(query)
    from spaseq.results.writers._table import TableRows

    return TableRows(query, terminal=terminal)


def _fitting(query: Query) -> tuple[Format, ...]:
    """The formats that can hold what the query gives."""
    if isinstance(query.form, Construct):
        return (*_GRAPHS, Format.NDJSON, Format.COUNT)
    return tuple(f for f in Format if f not in _GRAPHS)

"""Matches → rows, graphs and files. Open ``batch.py`` first; ``writers`` has a file per format.

``writer`` returns a streaming writer of a query's matches: each match is written and flushed before the next
one. The formats ``table``, ``json``, ``xml``, ``csv`` and ``tsv`` hold the results of SELECT and ASK.
``trig`` and ``nquads`` hold those of CONSTRUCT, as a stream of events. ``ndjson`` (one match per line) and
``count`` (their number) are for all queries.
"""

from __future__ import annotations

from enum import StrEnum
from typing import IO, Final

from spaseq.errors import FormatError
from spaseq.language.syntax import Construct, Query
from spaseq.results.writers._base import ResultWriter, RowFormat, RowWriter

__all__ = ["Format", "ResultWriter", "check_format", "writer"]


class Format(StrEnum):
    """The result formats, by their names on the command line."""

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
    """Return the format of this name. Raises FormatError if it cannot hold the query's results."""
    if format not in tuple(Format):
        raise FormatError(f"unknown result format {str(format)!r}: known are {', '.join(Format)}")
    fitting = _fitting(query)
    if format not in fitting:
        form = type(query.form).__name__.upper()
        raise FormatError(f"{format} cannot hold the results of {form}: use {', '.join(fitting)}")
    return Format(format)


def writer(format: Format | str, query: Query, out: IO[bytes]) -> ResultWriter:  # noqa: A002  # the field's word
    """Return a writer of the query's matches to ``out``, which stays open when the writer is closed.

    Raises FormatError for an unknown format, and for one that cannot hold the query's results.
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
            from spaseq.results.writers._base import CountWriter

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
    """Return the formats that can hold the query's results."""
    if isinstance(query.form, Construct):
        return (*_GRAPHS, Format.NDJSON, Format.COUNT)
    return tuple(f for f in Format if f not in _GRAPHS)

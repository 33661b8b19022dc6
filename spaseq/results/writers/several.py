"""Matches of several queries in one document, each with the name of its query.

The name is the key ``query`` in NDJSON, a word beside counts, the first column of a table, and the first
variable ``?query``, a plain literal, in the W3C formats. Rows have the columns of all queries, and leave
columns of other queries unbound, as the rows of a UNION do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO, Final

import numpy as np
from pyoxigraph import Literal

from spaseq.errors import FormatError
from spaseq.language.syntax import Construct, Projection, Query, Select, Var
from spaseq.results import Format, check_format, writer
from spaseq.results.batch import Match, MatchBatch
from spaseq.results.encoded import Bindings
from spaseq.results.writers._base import CountWriter, ResultWriter, RowWriter, columns
from spaseq.results.writers._json import NdjsonWriter
from spaseq.results.writers._table import TableRows
from spaseq.terms.interop import to_rdflib

#: The column of the queries' names.
NAME: Final = "query"

_OTHERWISE: Final = "use ndjson, or a file for each query"


def check_formats(format: Format, queries: Mapping[str, Query]) -> None:  # noqa: A002  # the field's word
    """Raise FormatError if the format cannot hold the matches of these queries in one document."""
    for name, query in queries.items():
        if format in (Format.NDJSON, Format.COUNT):
            continue
        if isinstance(query.form, Construct) and format in (Format.TRIG, Format.NQUADS):
            raise FormatError(f"{format} has no place for the query that a graph is of: {_OTHERWISE}")
        try:
            check_format(format, query)
        except FormatError as error:
            raise FormatError(f"{error} (in {name}; of several queries, {_OTHERWISE})") from None
        if not isinstance(query.form, Select):
            raise FormatError(f"{format} is for rows, and {name} is an ASK: {_OTHERWISE}")
        if format is not Format.TABLE and NAME in columns(query):
            raise FormatError(f"{name} has a variable ?{NAME}, as the column with its name: {_OTHERWISE}")


def writers(
    format: Format,  # noqa: A002  # the field's word
    queries: Mapping[str, Query],
    out: IO[bytes],
) -> tuple[Mapping[str, ResultWriter], Sequence[ResultWriter]]:
    """Return a writer for each query, and the writers that must be closed, in order.

    Raises FormatError as ``check_formats`` does.
    """
    check_formats(format, queries)
    if format is Format.COUNT:
        counts = {name: CountWriter(query, out, name) for name, query in queries.items()}
        return counts, tuple(counts.values())
    if format is Format.NDJSON:
        return {name: NdjsonWriter(query, out, name) for name, query in queries.items()}, ()
    together = _together(queries, named=format is not Format.TABLE)
    if format is Format.TABLE:
        rows = TableRows(together, terminal=out.isatty(), queries=queries)
        table = RowWriter(together, out, rows)
        return {name: _InTable(name, query, out, table, rows) for name, query in queries.items()}, [table]
    document = writer(format, together, out)
    return {name: _NamedRows(name, query, out, document) for name, query in queries.items()}, [document]


def _together(queries: Mapping[str, Query], *, named: bool) -> Query:
    """Return a query with the columns of all, and the prefixes that mean the same in all."""
    every = dict.fromkeys([NAME] * named + [name for query in queries.values() for name in columns(query)])
    means: dict[str, set[str]] = {}
    for query in queries.values():
        for prefix, iri in query.prefixes:
            means.setdefault(prefix, set()).add(iri)
    first = next(iter(queries.values()))
    return replace(
        first,
        form=Select(tuple(Projection(Var(name)) for name in every)),
        prefixes=tuple((prefix, iri) for prefix, (iri, *more) in means.items() if not more),
    )


class _NamedRows(ResultWriter):
    """Writes rows of one query into the document of all, with the query's name as a binding."""

    def __init__(self, name: str, query: Query, out: IO[bytes], document: ResultWriter) -> None:
        super().__init__(query, out)
        self._name = name
        self._document = document
        self.holds_all = document.holds_all

    def match(self, match: Match) -> None:
        label = to_rdflib(Literal(self._name))
        rows = [{NAME: label, **row} for row in match.bindings]
        # These writers read only rows.
        self._document.match(
            Match(match.query, match.start, match.end, {}, match.variables, rows, match.partition)
        )

    def batch(self, batch: MatchBatch) -> None:
        if self.holds_all:
            self._document.batch(_NamedBatch(batch, self._name, columns(self._document.query)))
        else:
            super().batch(batch)

    def close(self) -> None:
        """Do nothing: the document is closed by itself."""


class _NamedBatch(MatchBatch):
    """A batch with the columns of several queries; the first column has the name of its own query."""

    def __init__(self, batch: MatchBatch, name: str, every: Sequence[str]) -> None:
        last, made = batch._last, batch._made
        super().__init__(batch._view, batch.query, batch._block, batch.clock, last=last, made=made)
        self._own = batch.bindings
        self._name = name
        self._every = tuple(every)

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the columns of all the queries."""
        return self._every

    @property
    def bindings(self) -> Bindings:
        """Return the rows, unbound in the columns of others."""
        own = self._own
        count = int(own.offsets[-1])
        unbound = np.full(count, -1, dtype=np.int32)
        found = {name: own.columns.get(name, unbound) for name in self._every}
        found[NAME] = np.full(count, len(own.terms), dtype=np.int32)
        return Bindings(own.offsets, found, (*own.terms, Literal(self._name)))


class _InTable(ResultWriter):
    """Writes rows of one query into the table of all."""

    def __init__(self, name: str, query: Query, out: IO[bytes], table: ResultWriter, rows: TableRows) -> None:
        super().__init__(query, out)
        self._name = name
        self._table = table
        self._rows = rows

    def match(self, match: Match) -> None:
        self._rows.query = self._name
        self._table.match(match)

    def close(self) -> None:
        """Do nothing: the table is closed by itself."""

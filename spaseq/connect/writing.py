"""Matches → records for a sink, by the writers of results."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from spaseq.connect.sinks import Sink, SinkRecord
from spaseq.errors import FormatError, SinkError
from spaseq.language.syntax import Query
from spaseq.results import Format, ResultWriter, check_format, writer
from spaseq.results.batch import Match, MatchBatch
from spaseq.results.writers._json import dump

#: Formats of records, with their media types.
RECORDS: Final = {
    Format.NDJSON: "application/x-ndjson",
    Format.NQUADS: "application/n-quads",
}

#: Records that are given to a sink at once.
_AT_ONCE: Final = 1_000


def check_records(form: Format, query: Query) -> None:
    """Raise FormatError for a format without a record per match, or one that does not fit the query."""
    if form not in RECORDS:
        raise FormatError(f"{form} is a document, not records: to a URL go {', '.join(RECORDS)}")
    check_format(form, query)


class RecordWriter(ResultWriter):
    """Writes each match of a query as a record; in NDJSON ``query`` and ``number`` are the first keys."""

    holds_all = True

    def __init__(self, form: Format, query: Query, name: str, sink: Sink) -> None:
        self._buffer = BytesIO()
        super().__init__(query, self._buffer)
        check_records(form, query)
        self._form = form
        self._name = name
        self._sink = sink
        self._number = 0
        self._has_failed = False
        self._inner = writer(form, query, self._buffer)

    def go_on(self, matches: int) -> None:
        """Continue numbering after this many records."""
        self._number = matches

    def match(self, match: Match) -> None:
        """Write one match."""
        self._send([self._record(match)])

    def batch(self, batch: MatchBatch) -> None:
        """Write several matches."""
        for begin in range(0, len(batch), _AT_ONCE):
            part = batch.part(begin, min(begin + _AT_ONCE, len(batch)))
            self._send([self._record(match) for match in part])

    def close(self) -> None:
        """Return when everything written is delivered, unless ``write`` has failed."""
        if not self._has_failed:
            self._sink.flush()

    def _send(self, records: Sequence[SinkRecord]) -> None:
        try:
            self._sink.write(records)
        except SinkError:
            self._has_failed = True
            raise

    def _record(self, match: Match) -> SinkRecord:
        self._buffer.seek(0)
        self._buffer.truncate()
        self._inner.match(match)
        value = self._buffer.getvalue()
        self._number += 1
        if self._form is Format.NDJSON:
            value = f'{{"query":{dump(self._name)},"number":{self._number},'.encode() + value[1:]
        return SinkRecord(self._name, self._number, value)

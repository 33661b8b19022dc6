"""Matches → records, written by the writers of results."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Final

from spaseq.connect.sinks import Record, Sink
from spaseq.errors import FormatError, SinkError
from spaseq.language.syntax import Query
from spaseq.results import Format, ResultWriter, check_format, writer
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match
from spaseq.results.writers._json import dump

#: What a record may be, and its media type.
RECORDS: Final = {
    Format.NDJSON: "application/x-ndjson",
    Format.NQUADS: "application/n-quads",
}

#: So many records are given to a sink at once.
_AT_ONCE: Final = 1_000


def check_records(form: Format, query: Query) -> None:
    """Raises FormatError for a format that has no record for each match, or not for this query's."""
    if form not in RECORDS:
        raise FormatError(f"{form} is a document, not records: to a URL go {', '.join(RECORDS)}")
    check_format(form, query)


class RecordWriter(ResultWriter):
    """Each match of a query is a record; in NDJSON with ``query`` and ``number`` as its first keys."""

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
        """What is written follows on so many records."""
        self._number = matches

    def match(self, match: Match) -> None:
        """Write one match."""
        self._send([self._record(match)])

    def batch(self, batch: MatchBatch) -> None:
        """Write some."""
        for begin in range(0, len(batch), _AT_ONCE):
            part = batch.part(begin, min(begin + _AT_ONCE, len(batch)))
            self._send([self._record(match) for match in part])

    def close(self) -> None:
        """All that was written has come there when it returns, unless ``write`` has failed."""
        if not self._has_failed:
            self._sink.flush()

    def _send(self, records: Sequence[Record]) -> None:
        try:
            self._sink.write(records)
        except SinkError:
            self._has_failed = True
            raise

    def _record(self, match: Match) -> Record:
        self._buffer.seek(0)
        self._buffer.truncate()
        self._inner.match(match)
        value = self._buffer.getvalue()
        self._number += 1
        if self._form is Format.NDJSON:
            value = f'{{"query":{dump(self._name)},"number":{self._number},'.encode() + value[1:]
        return Record(self._name, self._number, value)

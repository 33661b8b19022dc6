"""Late events: their dead letters, and what the stateful stage must know of events in no chunk.

Only the stateful stage knows the watermark, and so which events are late. Events without a solution can be
late, too. So their stamps (stream, arrival number, time) travel to that stage, but nothing else of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.chunks import (
    Array,
    Chunk,
    events_of,
    narrow,
    pack,
    require,
    unpack,
    unpack_header,
    unpacking,
    within,
)
from spaseq.engine.rejects import late_reason
from spaseq.events import Clock, EventBatch, Ids
from spaseq.language.syntax import Triples, Var
from spaseq.sources import BadEvent
from spaseq.sources.assembly.sink import letter_of
from spaseq.terms.dictionary import UNBOUND, Term

#: By GPM: the result of ``_rows_by_event``.
_Rows = Mapping[str, tuple[Ids, Ids]]


def late_letters(
    pattern: SequencePattern, chunk: Chunk, events: Iterable[int], watermark: int
) -> Iterator[BadEvent]:
    """Return the dead letters of some events of a chunk.

    A letter's payload is the event's graph or, without it, those triples that GPMs asked for, if these came
    along.
    """
    rows = {name: _rows_by_event(events_of(table)) for name, table in chunk.solutions.items()}
    return (_letter(pattern, chunk, rows, index, watermark) for index in events)


def _rows_by_event(event: Ids) -> tuple[Ids, Ids]:
    """Return the rows of a table in the order of their events, and these events."""
    order = np.argsort(event, kind="stable")
    return order, event[order]


def _letter(pattern: SequencePattern, chunk: Chunk, rows: _Rows, index: int, watermark: int) -> BadEvent:
    batch = chunk.batch
    letter = letter_of(batch, index, late_reason(batch.clock, int(batch.time[index]), watermark))
    if letter.payload:
        return letter
    graph = int(batch.graph[index])
    name = f" {batch.dictionary.term(graph)}" if graph != UNBOUND else ""
    known = dict.fromkeys(_asked_for(pattern, chunk, rows, index))
    return replace(letter, payload="\n".join(f"{triple}{name} ." for triple in known))


def _asked_for(pattern: SequencePattern, chunk: Chunk, rows: _Rows, index: int) -> Iterator[str]:
    term = chunk.batch.dictionary.term
    for name, table in chunk.solutions.items():
        groups = [part for part in pattern.gpms[name].gpm.pattern.elements if isinstance(part, Triples)]
        order, event = rows[name]
        begin, end = np.searchsorted(event, [index, index + 1])
        for row in order[begin:end].tolist():
            ids = {variable: int(column[row]) for variable, column in table.columns.items()}
            values = {variable: term(value) for variable, value in ids.items() if value != UNBOUND}
            for group in groups:
                for triple in group.patterns:
                    parts = (triple.subject, triple.predicate, triple.object)
                    terms = [_value(part, values) for part in parts]
                    if None not in terms:
                        yield " ".join(map(str, terms))


def _value(part: object, values: Mapping[str, Term]) -> object | None:
    """Return a part of a triple pattern, with its variable replaced; None for an unknown value, and for a
    path.
    """
    if isinstance(part, Var):
        return values.get(part.name)
    return part if isinstance(part, Term) else None


# --- events in no chunk -----------------------------------------------------------------------


def stamps(batch: EventBatch, events: Ids) -> bytes:
    """Return the stamps of the events at these positions, at least one, as bytes."""
    time, n, stream = batch.time[events], batch.n[events], batch.stream[events]
    begins = np.append(True, stream[1:] != stream[:-1])
    streams = np.unique(stream[begins])
    header = {
        "clock": batch.clock.value,
        "begin": int(time.min()),
        "first": [int(time[0]), int(n[0])],
        "streams": [batch.dictionary.term(identifier).value for identifier in streams.tolist()],
    }
    # Differences of neighbours are small, and so take few bytes.
    columns = {"time": np.diff(time), "n": np.diff(n), "stream": np.searchsorted(streams, stream)}
    return pack(header, {name: narrow(column) for name, column in columns.items()})


def late_among(data: bytes, watermark: int) -> list[BadEvent]:
    """Return dead letters, without payload, of the stamped events before the watermark."""
    if unpack_header(data)["begin"] >= watermark:
        return []
    header, arrays = unpack(data)
    with unpacking():
        return _late(header, arrays, watermark)


def _late(header: Mapping[str, Any], arrays: Mapping[str, Array], watermark: int) -> list[BadEvent]:
    time, n = (
        np.cumsum(np.append(first, arrays[name]), dtype=np.int64)
        for first, name in zip(header["first"], ("time", "n"), strict=True)
    )
    clock, stream = Clock(header["clock"]), arrays["stream"]
    require(len(time) == len(n) == len(stream), "the length of a column")
    require(within(stream, 0, len(header["streams"])), "the number of a stream")
    return [
        BadEvent(
            header["streams"][stream[index]],
            f"event {n[index] + 1}",
            late_reason(clock, int(time[index]), watermark),
            payload="",
        )
        for index in np.flatnonzero(time < watermark).tolist()
    ]

"""Dead letters of late events, whose graphs may have been left behind by the stateless stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.chunks import Chunk, events_of
from spaseq.engine.rejects import late_reason
from spaseq.events import Ids
from spaseq.language.syntax import Triples, Var
from spaseq.sources import BadEvent
from spaseq.sources.assembly.sink import letter_of
from spaseq.terms.dictionary import UNBOUND, Term

#: By GPM: what ``_rows_by_event`` says.
_Rows = Mapping[str, tuple[Ids, Ids]]


def late_letters(
    pattern: SequencePattern, chunk: Chunk, events: Iterable[int], watermark: int
) -> Iterator[BadEvent]:
    """The letters of some events of a chunk.

    Their payload is the event's graph, or else those triples of it that GPMs asked for, if they came along.
    """
    rows = {name: _rows_by_event(events_of(table)) for name, table in chunk.solutions.items()}
    return (_letter(pattern, chunk, rows, index, watermark) for index in events)


def _rows_by_event(event: Ids) -> tuple[Ids, Ids]:
    """The rows of a table in the order of their events, and these events."""
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
    """A part of a triple pattern, its variable replaced; None for an unknown value, and for a path."""
    if isinstance(part, Var):
        return values.get(part.name)
    return part if isinstance(part, Term) else None

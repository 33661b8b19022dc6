"""What the GPMs of an engine share, computed once per batch: its views, and solutions of equal GPMs.

GPMs that differ only in the names of their variables are equal, like the three of a V shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from pyoxigraph import BlankNode

from spaseq.alone import Single
from spaseq.events import EventBatch, Ids
from spaseq.language.syntax import Gpm, Group, Var
from spaseq.patterns.algebra import Row
from spaseq.patterns.expressions.walk import expressions, volatile
from spaseq.patterns.spectra.joins import Views
from spaseq.patterns.spectra.rowwise import Facts
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.terms.dictionary import Dictionary, in_order

Mask = npt.NDArray[np.bool_]

#: Batches of up to this many events and triples are evaluated event by event.
FEW_EVENTS = 8
FEW_TRIPLES = 256

#: Masks of events are remembered for at most this many combinations of arrays.
_MOST_KNOWN = 8

#: The solutions of every event that has some.
ByEvent = Mapping[int, tuple[Row, ...]]

#: The solutions of one event: ids in the order of the pattern's variables, ``UNBOUND`` included.
Values = tuple[tuple[int, ...], ...]


class PatternPart:
    """The events of a batch that are in some streams. ``positions``: which, or None if all are."""

    def __init__(self, batch: EventBatch, streams: frozenset[int] | None) -> None:
        self.positions: Ids | None = None
        self.batch = batch
        if streams is not None:
            # Mostly there is one stream, for which this test is faster.
            ids = [*streams]
            inside = batch.stream == ids[0] if len(ids) == 1 else np.isin(batch.stream, ids)
            if not inside.all():
                self.positions = np.flatnonzero(inside)
                self.batch = batch.take(self.positions)

        self.views = Views(self.batch)


class Shared:
    """One batch, and the solutions and masks found in it so far.

    Solutions are stored under the number of their ``PatternQuestion``, with variables in the question's
    order.
    """

    def __init__(self, batch: EventBatch) -> None:
        self.batch = batch
        triples = len(batch.terms) // 3 if isinstance(batch, Single) else len(batch.p)
        self.few = len(batch) < FEW_EVENTS and triples <= FEW_TRIPLES
        self.columns: dict[int, tuple[tuple[str, ...], Solutions]] = {}
        self.rows: dict[int, tuple[tuple[str, ...], ByEvent]] = {}
        self.values: dict[int, Values] = {}
        self._parts: dict[frozenset[int] | None, PatternPart] = {}
        self._having: dict[tuple[int, ...], tuple[tuple[Ids, ...], Mask, int]] = {}
        self._different_in: dict[int, tuple[Ids, int]] = {}

    def live_ids(self) -> Iterator[Ids]:
        """Yield the ids in the solutions: computed terms are in no event."""
        for _, solutions in self.columns.values():
            yield from solutions.columns.values()
        for _, by_event in self.rows.values():
            ids = [value for rows in by_event.values() for row in rows for value in row.values()]
            yield np.array(ids, dtype=np.int64)
        for values in self.values.values():
            yield np.array(values, dtype=np.int64)

    def having(self, *rows: Ids) -> int:
        """Return how many events have rows in some of these arrays, each of which has the event
        of each row.
        """
        *most, least = sorted(rows, key=len, reverse=True)
        if not most:
            return self._different(least)
        key = tuple(map(id, most))
        if key not in self._having:
            if len(self._having) >= _MOST_KNOWN:
                self._having.clear()
            marks = np.zeros(len(self.batch), dtype=np.bool_)
            for events in most:
                marks[events] = True
            # The arrays are kept, so that no other array gets the same id().
            self._having[key] = rows, marks, int(np.count_nonzero(marks))
        _, marks, count = self._having[key]
        if count == len(marks):
            return count
        return count + different(least[~marks[least]])

    def _different(self, events: Ids) -> int:
        """Return how many distinct events an array has; several queries may need that of the same array."""
        known = self._different_in.get(id(events))
        if known is None or known[0] is not events:
            if len(self._different_in) >= _MOST_KNOWN:
                self._different_in.clear()
            # Kept with the array, as above.
            known = self._different_in[id(events)] = events, different(events)
        return known[1]

    def part(self, streams: frozenset[int] | None) -> PatternPart:
        """Return the events in these streams; None means all."""
        found = self._parts.get(streams)
        if found is None:
            found = self._parts[streams] = PatternPart(self.batch, streams)
        return found

    @cached_property
    def events(self) -> list[tuple[int, Facts]]:
        """Stream and graph of every event."""
        if isinstance(self.batch, Single):
            return [(self.batch.at.stream, Facts(self.batch.triples(0)))]
        return list(graphs(self.batch))


def graphs(batch: EventBatch) -> Iterator[tuple[int, Facts]]:
    """Yield the stream and the graph of every event."""
    of_events = map(batch.triples, range(len(batch)))
    return zip(batch.stream.tolist(), map(Facts, of_events), strict=True)


class Sharing:
    """Numbers an engine's distinct patterns, and caches the results of the current batch.

    Queries process the same batch one after another. The cache keeps the terms of its results alive.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._now: Shared | None = None
        self._dictionary: Dictionary | None = None

    def live_ids(self) -> Iterator[Ids]:
        """Yield the ids in what was found in the current batch."""
        if self._now is not None:
            yield from self._now.live_ids()

    def number(self, key: object) -> int:
        """Return a number for a pattern's key, since hashing a pattern's tree takes long."""
        return self._numbers.setdefault(key, len(self._numbers))

    def of(self, batch: EventBatch) -> Shared:
        """Return what is shared about a batch."""
        if self._now is None or self._now.batch is not batch:
            self._now = Shared(batch)
            if self._dictionary is not batch.dictionary:
                self._dictionary = batch.dictionary
                self._dictionary.hold(self)
        return self._now

    def forget(self) -> None:
        """Drop what is known of the current batch, which may be incomplete."""
        self._now = None


@dataclass(frozen=True, slots=True)
class PatternQuestion:
    """What a GPM asks of an event, regardless of the names of its variables.

    ``key`` is equal for GPMs that ask the same; ``names`` are the GPM's variables in the order in which the
    key numbers them.
    """

    key: object
    names: tuple[str, ...] = field(compare=False)


def different(numbers: Ids) -> int:
    """Return how many distinct numbers there are; fastest if they are sorted."""
    # Imported only here: loading compiled code takes a while, and planning alone does not need it.
    from spaseq import _kernel_events as k

    found = k.different(numbers)
    return len(in_order(numbers)) if found < 0 else found


def question(gpm: Gpm, stateless: Group) -> PatternQuestion:
    """Return the question of a GPM's stateless part.

    A question that may have another answer each time (``RAND()``) equals no other.
    """
    names: dict[Var | BlankNode, Any] = {}
    key = tuple(_renamed(part, names) for part in (gpm.time, gpm.graph, stateless))
    variables = tuple(term.name for term in names if isinstance(term, Var))
    if any(volatile(expression) for expression in expressions(stateless)):
        return PatternQuestion(object(), variables)
    return PatternQuestion(key, variables)


def _renamed(node: Any, names: dict[Var | BlankNode, Any]) -> Any:
    """Return a part of a syntax tree, its variables and blank nodes numbered in order."""
    if isinstance(node, Var | BlankNode):
        if node not in names:
            number = f"{len(names)}"
            names[node] = Var(number) if isinstance(node, Var) else BlankNode(f"b{number}")
        return names[node]
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        return replace(
            node, **{f.name: _renamed(getattr(node, f.name), names) for f in fields(node) if f.compare}
        )
    return node


def renamed_columns(found: Solutions, old: tuple[str, ...], new: tuple[str, ...]) -> Solutions:
    """Return solutions under other names."""
    if old == new:
        return found
    name = dict(zip(old, new, strict=True))
    return Solutions(found.size, found.event, {name[n]: column for n, column in found.columns.items()})


def renamed_rows(found: ByEvent, old: tuple[str, ...], new: tuple[str, ...]) -> ByEvent:
    """Return solutions under other names."""
    if old == new:
        return found
    name = dict(zip(old, new, strict=True))
    return {
        event: tuple([{name[n]: value for n, value in row.items()} for row in rows])
        for event, rows in found.items()
    }

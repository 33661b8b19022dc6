"""From found matches to what users see of them, made when they look."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from spaseq.automaton.pattern import SequencePattern
from spaseq.events import Clock
from spaseq.interop import RdflibTerm
from spaseq.language.syntax import Query
from spaseq.matching.host import Key
from spaseq.matching.model import Found, Solution
from spaseq.results._quick import QuickJson
from spaseq.results.match import ConstructedTriple, Event, Match, Shown, event
from spaseq.results.select import Projector
from spaseq.terms import Dictionary


class Reader:
    """What reads the matches of one query."""

    def __init__(self, pattern: SequencePattern, projector: Projector, dictionary: Dictionary) -> None:
        self.query = pattern.query
        self.projector = projector
        self.keys = tuple(variable.name for variable in pattern.query.partition)
        self.gpms = pattern.positive
        self.shown = Shown(dictionary)
        self.json = QuickJson(self.gpms, dictionary)

    def of(self, query: Query) -> Reader:
        """The same for another query, that asks for the same with other constants."""
        other = copy(self)
        other.query = query
        return other

    def match(self, key: Key, found: Found, clock: Clock, left: int | None) -> tuple[Match, int]:
        """A match and how many rows it has, at most ``left`` of them."""
        size = self.projector.size(found)
        if size is not None:
            size = size if left is None else min(size, left)
            reading = _Reading(self, key, found, clock, size)
            return Match.later(self.query, self.projector.variables, reading), size
        # Their terms may be new ones, which nobody else keeps.
        rows = self.rows(self.projector.rows(found)[:left])
        reading = _Reading(self, key, found, clock, len(rows))
        return Match.later(self.query, self.projector.variables, reading, bindings=rows), len(rows)

    def rows(self, solutions: Sequence[Solution]) -> list[dict[str, RdflibTerm]]:
        """Solutions as users see them."""
        shown = self.shown
        return [{name: shown(term) for name, term in solution.items()} for solution in solutions]


class _Reading:
    """A found match, of which each part is made when it is asked for.

    What it refers to keeps the events' batches, and so their terms.
    """

    __slots__ = ("_clock", "_found", "_key", "_reader", "_size")

    def __init__(self, reader: Reader, key: Key, found: Found, clock: Clock, size: int) -> None:
        self._reader = reader
        self._key = key
        self._found = found
        self._clock = clock
        self._size = size

    def __call__(self, part: str) -> Any:
        """A field of ``Match``."""
        return getattr(self, part)()

    def start(self) -> object:
        return self._clock.show(self._found.span[0])

    def end(self) -> object:
        return self._clock.show(self._found.span[1])

    def events(self) -> dict[str, list[Event]]:
        events: dict[str, list[Event]] = {name: [] for name in self._reader.gpms}
        shown = self._reader.shown
        for name, batch, index in self._found.places:
            events[name].append(event(batch, index, shown))
        return events

    def bindings(self) -> list[dict[str, RdflibTerm]]:
        return self._reader.rows(self._reader.projector.rows(self._found)[: self._size])

    def partition(self) -> dict[str, RdflibTerm]:
        return {name: self._reader.shown(t) for name, t in zip(self._reader.keys, self._key, strict=True)}

    def json_rows(self) -> list[str]:
        """The rows, each as SPARQL JSON has it."""
        rows = self._reader.projector.rows(self._found)[: self._size]
        return [self._reader.json.row(row) for row in rows]

    def line_without_rows(self) -> str:
        """What ``NdjsonWriter`` writes for ASK."""
        json, clock = self._reader.json, self._clock
        start, end = (json.time(time, clock) for time in self._found.span)
        partition = json.row(dict(zip(self._reader.keys, self._key, strict=True)))
        events = json.events(self._found, clock)
        return f'{{"start":{start},"end":{end},"partition":{partition},"events":{events}}}'

    def line(self) -> str:
        """What ``NdjsonWriter`` writes for SELECT."""
        return f'{self.line_without_rows()[:-1]},"bindings":[{",".join(self.json_rows())}]}}'

    def constructed(self) -> tuple[ConstructedTriple, ...]:
        return self._reader.projector.construct(self._found)

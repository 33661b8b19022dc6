"""Single matches of a batch, made from its columns: lists of events and rows, each event and term once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.automaton.pattern import SequencePattern
from spaseq.matching.columns.blocks.plain import Columns
from spaseq.matching.host import Key
from spaseq.matching.model import Solution
from spaseq.results.encoded import Bindings, TermSequence
from spaseq.results.event import Event, TermView, event
from spaseq.results.select import Projector
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.interop import RdflibTerm


class QueryView:
    """How the matches of a query are shown: the names of its GPMs and keys, its projector and terms."""

    __slots__ = ("dictionary", "gpms", "keys", "projector", "term")

    def __init__(self, pattern: SequencePattern, projector: Projector, dictionary: Dictionary) -> None:
        self.projector = projector
        self.dictionary = dictionary
        self.keys = tuple(variable.name for variable in pattern.query.partition)
        self.gpms = pattern.positive
        self.term = TermView(dictionary)

    def rows(self, solutions: Sequence[Solution]) -> list[dict[str, RdflibTerm]]:
        """Return solutions as users see them."""
        to_term = self.term
        return [
            {name: to_term(identifier) for name, identifier in solution.items()} for solution in solutions
        ]

    def partition(self, key: Key) -> dict[str, RdflibTerm]:
        """Return the values of the PARTITION BY variables."""
        return {name: self.term(number) for name, number in zip(self.keys, key, strict=True)}


class EventViews:
    """The events of the matches of a block."""

    def __init__(self, block: Columns, of: QueryView) -> None:
        used, numbers = np.unique(block.places, return_inverse=True)
        which = block.stretch.where(used)
        index = used - block.stretch.begins[which]
        chunks, term = block.stretch.chunks, of.term
        events = [
            event(chunks[c].batch, i, term) for c, i in zip(which.tolist(), index.tolist(), strict=True)
        ]
        #: All events, each once.
        self.all = events
        self._names = of.gpms
        form, gpms = block.form, [site.gpm for site in block.sites.all]
        of_form = [] if form is None else [gpms[site] for site in form]
        #: The event of each GPM in each match, if all matches have exactly one of each.
        self._alike: list[tuple[str, list[Event]]] = []
        if of_form and sorted(of_form) == sorted(self._names):
            of_place = numbers.reshape(-1, len(of_form)).T
            for name in self._names:
                self._alike.append((name, [events[n] for n in of_place[of_form.index(name)].tolist()]))
        else:
            self._offsets = block.offsets.tolist()
            self._events = [events[number] for number in numbers.tolist()]
            self._gpms = [gpms[site] for site in block.site.tolist()]

    def of(self, i: int) -> dict[str, list[Event]]:
        """Return the events of match i, by GPM."""
        events: dict[str, list[Event]] = {}
        if self._alike:
            for name, chosen in self._alike:
                events[name] = [chosen[i]]
            return events
        for name in self._names:
            events[name] = []
        begin, end = self._offsets[i], self._offsets[i + 1]
        for gpm, one in zip(self._gpms[begin:end], self._events[begin:end], strict=True):
            events[gpm].append(one)
        return events


class RowViews:
    """The rows of the matches of a batch."""

    def __init__(self, bindings: Bindings, of: QueryView) -> None:
        self._view = of
        assert isinstance(bindings.terms, TermSequence)
        self._ids = bindings.terms.ids
        offsets = bindings.offsets
        #: Whether each match has one row.
        self._is_single = bool((np.diff(offsets) == 1).all())
        self._offsets = offsets.tolist()
        self._columns = [(name, numbers.tolist()) for name, numbers in bindings.columns.items()]
        self._made: list[RdflibTerm | None] = [None] * len(bindings.terms)

    def of(self, i: int) -> list[dict[str, RdflibTerm]]:
        """Return the rows of match i."""
        if self._is_single:
            return [self._row(i)]
        return [self._row(row) for row in range(self._offsets[i], self._offsets[i + 1])]

    def _row(self, row: int) -> dict[str, RdflibTerm]:
        made, found = self._made, {}
        for name, numbers in self._columns:
            number = numbers[row]
            if number >= 0:
                term = made[number]  # may be falsy: an empty literal, or 0
                found[name] = self._show(number) if term is None else term
        return found

    def _show(self, number: int) -> RdflibTerm:
        term = self._made[number] = self._view.term(int(self._ids[number]))
        return term

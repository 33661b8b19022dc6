"""What single matches of a batch show, made of its columns: lists of them, and each event and term once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spaseq.results.encoded import Bindings, Terms
from spaseq.results.match import Event, event
from spaseq.terms.interop import RdflibTerm

if TYPE_CHECKING:
    from spaseq.matching.columns.plain import Columns
    from spaseq.results.reading import Reader


class EventViews:
    """The events of the matches of a block."""

    def __init__(self, block: Columns, reader: Reader) -> None:
        self._names = reader.gpms
        self._offsets = block.offsets.tolist()
        used, numbers = np.unique(block.places, return_inverse=True)
        which = block.stretch.where(used)
        index = used - block.stretch.begins[which]
        chunks, shown = block.stretch.chunks, reader.shown
        events = [
            event(chunks[c].batch, i, shown) for c, i in zip(which.tolist(), index.tolist(), strict=True)
        ]
        self._events = [events[number] for number in numbers.tolist()]
        form, of_site = block.form, [site.gpm for site in block.sites.all]
        self._gpms: list[str] = []
        #: Where in each match the event of each GPM is, if all matches have one of each.
        self._alike: list[tuple[str, int]] = []
        if form is not None and sorted(of_site[site] for site in form) == sorted(self._names):
            self._alike = [(name, [of_site[site] for site in form].index(name)) for name in self._names]
        else:
            self._gpms = [of_site[site] for site in block.site.tolist()]

    def of(self, i: int) -> dict[str, list[Event]]:
        """Those of match i, by GPM."""
        begin, chosen = self._offsets[i], self._events
        if self._alike:
            return {name: [chosen[begin + place]] for name, place in self._alike}
        end = self._offsets[i + 1]
        events: dict[str, list[Event]] = {name: [] for name in self._names}
        for gpm, one in zip(self._gpms[begin:end], chosen[begin:end], strict=True):
            events[gpm].append(one)
        return events


class RowViews:
    """The rows of the matches of a batch."""

    def __init__(self, bindings: Bindings, reader: Reader) -> None:
        self._reader = reader
        assert isinstance(bindings.terms, Terms)
        self._ids = bindings.terms.ids
        self._offsets = bindings.offsets.tolist()
        self._columns = [(name, numbers.tolist()) for name, numbers in bindings.columns.items()]
        self._shown: list[RdflibTerm | None] = [None] * len(bindings.terms)

    def of(self, i: int) -> list[dict[str, RdflibTerm]]:
        """Those of match i."""
        shown, columns = self._shown, self._columns
        rows = []
        for row in range(self._offsets[i], self._offsets[i + 1]):
            found = {}
            for name, numbers in columns:
                number = numbers[row]
                if number >= 0:
                    term = shown[number]  # which may be an empty literal, or 0
                    found[name] = self._show(number) if term is None else term
            rows.append(found)
        return rows

    def _show(self, number: int) -> RdflibTerm:
        shown = self._shown[number] = self._reader.shown(int(self._ids[number]))
        return shown

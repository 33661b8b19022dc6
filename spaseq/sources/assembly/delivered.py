"""The graphs that a stream has delivered recently, so that no graph continues after it was complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from spaseq.terms.dictionary import UNBOUND, Dictionary, Ids, Term

#: How many graph names are remembered; their terms stay in the dictionary meanwhile.
REMEMBERED: Final = 1 << 14

_SEVERAL: Final = -1


class Delivered:
    """The last ``REMEMBERED`` complete graphs, each with its times."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        # The number of graphs ever added; by id, the number of a remembered graph, from 1.
        self._count = 0
        self._numbers = np.zeros(0, dtype=np.int64)
        # Ring buffers of the last graphs; a time is 0 for none, or refers to `_several`.
        self._graphs = np.zeros(REMEMBERED, dtype=np.int64)
        self._times = np.zeros(REMEMBERED, dtype=np.int64)
        self._several: dict[int, list[int]] = {}
        dictionary.hold(self)

    def live_ids(self) -> Iterable[Ids]:
        """Yield the ids that are remembered."""
        several = [time for times in self._several.values() for time in times]
        used = slice(self._count + 1)  # index 0 of the ring is graph number `REMEMBERED`
        return self._graphs[used], np.maximum(self._times[used], 0), np.array(several, dtype=np.int64)

    def numbers(self) -> Ids:
        """Return by id the number of a remembered graph; 0 for other ids."""
        if len(self._numbers) < self._dictionary.limit:
            grown = np.zeros(2 * self._dictionary.limit, dtype=np.int64)
            grown[: len(self._numbers)] = self._numbers
            self._numbers = grown
        return self._numbers

    def __contains__(self, graph: Term) -> bool:
        with self._dictionary.lock:
            return self._number(self._dictionary.find(graph)) > 0

    def times(self, graph: Term) -> list[Term]:
        """Return the times of a remembered graph."""
        with self._dictionary.lock:
            number = self._number(self._dictionary.find(graph))
            time = int(self._times[number % REMEMBERED])
            ids = self._several[number] if time == _SEVERAL else [time] if time else []
            return [self._dictionary.term(identifier) for identifier in ids]

    def add(self, graph: Term, times: Sequence[Term]) -> None:
        """Add a complete graph; if it is remembered, replace its times."""
        with self._dictionary.lock:
            identifier = self._dictionary.intern(graph)
            ids = [self._dictionary.intern(time) for time in times]
            if not self._number(identifier):
                self.extend(np.array([identifier]), np.array([UNBOUND]))
            number = self._number(identifier)
            self._several.pop(number, None)
            if len(ids) > 1:
                self._several[number] = ids
            self._times[number % REMEMBERED] = _SEVERAL if len(ids) > 1 else ids[0] if ids else UNBOUND

    def extend(self, graphs: Ids, times: Ids) -> None:
        """Add complete graphs that are not remembered, each with one time or ``UNBOUND``."""
        numbers = self.numbers()
        new = np.arange(self._count + 1, self._count + 1 + len(graphs))
        self._count += len(graphs)
        kept = slice(-REMEMBERED, None)
        places = new[kept] % REMEMBERED
        numbers[self._graphs[places]] = 0  # forgotten: these ids may be reused for other terms
        numbers[graphs[kept]] = new[kept]
        self._graphs[places] = graphs[kept]
        self._times[places] = times[kept]
        for number in [number for number in self._several if number <= self._count - REMEMBERED]:
            del self._several[number]

    def _number(self, identifier: int) -> int:
        return int(self.numbers()[identifier])

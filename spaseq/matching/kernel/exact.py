"""Whether nothing is there that a run says is absent: exactly, for what the tables could not tell.

The reference is asked, with nothing to choose from but the run's events, each in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from spaseq.automaton.pattern import Atom, SequencePattern
from spaseq.events import EARLIEST, LATEST
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context
from spaseq.matching.host import Key
from spaseq.matching.kernel.replay import Path, taken
from spaseq.matching.kernel.tables.compiled import Compiled
from spaseq.matching.model import Bounds, Choice, Occurrence
from spaseq.matching.reference import Events, Partial, Search

#: What may be chosen next, by how many events have been: places in the sequence, with an event for each.
_Steps = dict[int, list[tuple[int, Occurrence]]]


class Exact:
    """Judges runs of one query that have ended."""

    def __init__(
        self, pattern: SequencePattern, compiled: Compiled, context: Context, history: History, bounds: Bounds
    ) -> None:
        self._pattern = pattern
        self._compiled = compiled
        self._context = context
        self._history = history
        self._bounds = bounds

    def stands(self, path: Path, key: Key) -> bool:
        """Whether a run is a match, as far as what is absent can be told now."""
        candidates = self._compiled.candidates
        steps: _Steps = {}
        events: dict[Choice, None] = {}
        for step in taken(path, candidates):
            atoms = [candidates[number].unit for _, number in step]
            seen = [
                self._history.occurrence(at, key, atom.gpm) for (at, _), atom in zip(step, atoms, strict=True)
            ]
            steps[len(events)] = [(atom.id, event) for atom, event in zip(atoms, seen, strict=True)]
            events |= {(atom.gpm, event): None for atom, event in zip(atoms, seen, strict=True)}
        told = _Told(self._pattern, self._context, self._bounds, self._around(events, key))
        told.steps = steps
        found = told.partials(told.pool)
        return any(len(m.events) == len(events) and not told.broken(m) for m in found)

    def _around(self, events: Iterable[Choice], key: Key) -> Events:
        """The events of the match's window, as its partition sees them."""
        chosen = sorted((event for _, event in events), key=lambda event: (event.time, event.position))
        opening, closing = self._bounds.opening(chosen[0], chosen[-1]), self._bounds.closing(chosen[0])
        return list(self._seen(max(opening, EARLIEST), min(closing, LATEST), key))

    def _seen(self, opening: int, closing: int, key: Key) -> Iterator[Occurrence]:
        for chunk in self._history:
            batch = chunk.batch
            at = chunk.start + np.arange(len(batch)) if self._bounds.counted else batch.time
            begin, end = int(np.searchsorted(at, opening)), int(np.searchsorted(at, closing, side="right"))
            for index in range(begin, end):
                if self._history.sees(chunk, index, key):
                    solutions = {
                        gpm: rows
                        for g, gpm in enumerate(self._compiled.gpms)
                        if (rows := self._history.solutions(chunk, index, g, key))
                    }
                    stamp, position = batch.stamp(index), chunk.start + index
                    yield Occurrence(stamp, position, solutions, batch, index, chunk)


class _Told(Search):
    """A search that knows which events to choose; what must not be is looked for among all events."""

    #: Stands for the events to choose.
    pool: Events = ()
    steps: _Steps

    def _atom(self, node: Atom, m: Partial) -> Iterator[Partial]:
        if m.pool is not self.pool:
            yield from super()._atom(node, m)
            return
        for place, event in self.steps.get(len(m.events), ()):
            if place == node.id:
                for found in super()._atom(node, replace(m, pool=[event])):
                    yield replace(found, pool=m.pool)

"""One match of a block of columns, as an object: what it is asked for is made of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from spaseq.events import EventBatch
from spaseq.matching.columns.chunk import Chunk
from spaseq.matching.model import Choice, Found, Occurrence, Row

if TYPE_CHECKING:
    from spaseq.matching.columns.blocks.plain import Columns, Site

_Binding = dict[str, int]


class One(Found):
    """A match of a block of columns: the events from ``begin`` to ``end``."""

    __slots__ = ("_begin", "_block", "_end")
    _block: Columns
    _begin: int
    _end: int

    def __init__(self, block: Columns, begin: int, end: int) -> None:
        put = object.__setattr__
        put(self, "_block", block)
        put(self, "_begin", begin)
        put(self, "_end", end)

    @property
    def events(self) -> tuple[Choice, ...]:
        choices = []
        for chunk, index, site, row in self._steps():
            seen = {site.gpm: (chunk.row(site.number, row),)}
            position = chunk.start + index
            event = Occurrence(chunk.batch.stamp(index), position, seen, chunk.batch, index, chunk)
            choices.append((site.gpm, event))
        return tuple(choices)

    @property
    def rows(self) -> tuple[Row, ...]:
        shared, kleenes = self._solutions(None)
        completed = {kleene: tuple((s,) for s in iterations) for kleene, iterations in kleenes.items()}
        return tuple(Row(binding, completed) for binding in combined(shared, kleenes))

    def project(self, names: Sequence[str]) -> list[dict[str, int]]:
        found = combined(*self._solutions(names))
        return [{name: row[name] for name in names if name in row} for row in found]

    @property
    def size(self) -> int:
        counts: dict[int, int] = {}
        for _, _, site, _ in self._steps():
            if site.begins and site.kleene is not None:
                counts[site.kleene] = counts.get(site.kleene, 0) + 1
        return prod(counts.values())

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        # Those of an & stand in any order.
        return tuple(sorted((chunk.start + index, site.gpm) for chunk, index, site, _ in self._steps()))

    @property
    def span(self) -> tuple[int, int]:
        times = [chunk.batch.time.item(index) for chunk, index, _, _ in self._steps()]
        return times[0], times[-1]

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        for chunk, index, site, _ in self._steps():
            yield site.gpm, chunk.batch, index

    def _steps(self) -> Iterator[tuple[Chunk, int, Site, int]]:
        sites, which, indices, rows = self._block._listed
        chunks = self._block.stretch.chunks
        for i in range(self._begin, self._end):
            yield chunks[which[i]], indices[i], sites[i], rows[i]

    def _solutions(self, names: Sequence[str] | None) -> tuple[_Binding, dict[int, list[_Binding]]]:
        """What is bound outside of Kleenes, and in each of their iterations; only ``names``, if given."""
        shared: _Binding = {}
        kleenes: dict[int, list[_Binding]] = {}
        for chunk, _, site, row in self._steps():
            own, columns = shared, chunk.solutions[site.number].columns
            if site.kleene is not None:
                iterations = kleenes.setdefault(site.kleene, [])
                if site.begins:
                    iterations.append({})
                own = iterations[-1]
            for name in columns if names is None else names:
                if name in columns and (term := columns[name].item(row)):
                    (own if name in site.own else shared)[name] = term
        return shared, kleenes


def combined(shared: _Binding, kleenes: dict[int, list[_Binding]]) -> Iterator[_Binding]:
    """The solutions of a match: one for each choice of an iteration of every Kleene."""
    for chosen in product(*kleenes.values()):
        solution = dict(shared)
        for iteration in chosen:
            solution.update(iteration)
        yield solution

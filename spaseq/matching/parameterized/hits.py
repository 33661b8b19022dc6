"""Occurrences as matches that are references to solutions, read when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.events import EventBatch
from spaseq.matching.model import Choice, Found, Occurrence, Row
from spaseq.matching.past import Chunk

#: A place of the sequence: the number of its GPM, and its name.
Place = tuple[int, str]


class Hit(Found):
    """A match each of whose events gave one solution, so that Ω is these side by side."""

    __slots__ = ("_chunks", "_places", "_positions")
    _places: Sequence[Place]
    _chunks: Sequence[Chunk]
    _positions: Sequence[int]

    def __init__(self, places: Sequence[Place], chunks: Sequence[Chunk], positions: Sequence[int]) -> None:
        put = object.__setattr__
        put(self, "_places", places)
        put(self, "_chunks", chunks)
        put(self, "_positions", positions)

    @property
    def events(self) -> tuple[Choice, ...]:
        choices = []
        for (g, gpm), chunk, index in self._steps():
            seen = {gpm: (_solution(chunk, g, index),)}
            position = chunk.start + index
            event = Occurrence(chunk.batch.stamp(index), position, seen, chunk.batch, index, chunk)
            choices.append((gpm, event))
        return tuple(choices)

    @property
    def rows(self) -> tuple[Row, ...]:
        binding: dict[str, int] = {}
        for (g, _), chunk, index in self._steps():
            binding.update(_solution(chunk, g, index))
        return (Row(binding),)

    @property
    def size(self) -> int:
        return 1

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        return tuple(zip(self._positions, (gpm for _, gpm in self._places), strict=True))

    @property
    def span(self) -> tuple[int, int]:
        times = [chunk.batch.time.item(index) for _, chunk, index in self._steps()]
        return times[0], times[-1]

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        for (_, gpm), chunk, index in self._steps():
            yield gpm, chunk.batch, index

    def _steps(self) -> Iterator[tuple[Place, Chunk, int]]:
        for place, chunk, position in zip(self._places, self._chunks, self._positions, strict=True):
            yield place, chunk, position - chunk.start


def is_single(places: Sequence[Place], chunks: Sequence[Chunk], positions: Sequence[int]) -> bool:
    """Whether each event of an occurrence gave one solution."""
    steps = zip(places, chunks, positions, strict=True)
    return all(len(chunk.span(g, position - chunk.start)) == 1 for (g, _), chunk, position in steps)


def _solution(chunk: Chunk, g: int, index: int) -> dict[str, int]:
    return chunk.row(g, chunk.span(g, index).start)

"""A match that somebody waits for, made of its events as they came: columns cost more than they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch
from spaseq.matching.columns.one import combined
from spaseq.matching.columns.plain import Site
from spaseq.matching.model import Choice, Found, Occurrence, Row
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


class Step(NamedTuple):
    """An event of a match: its position, where it is, where in the sequence, and what makes its solution.

    Most callbacks look at few of them.
    """

    position: int
    batch: EventBatch
    at: int
    site: Site
    solution: Callable[[], Mapping[str, int]]


class _Kept:
    """Keeps the terms of solutions as long as it is referenced."""

    __slots__ = ("__weakref__", "_steps")

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def live_ids(self) -> Iterator[Ints]:
        """The ids in the solutions; the batches keep those of the events."""
        yield np.fromiter(chain.from_iterable(s.solution().values() for s in self._steps), dtype=np.int64)


class Few(Found):
    """A match of these events, with their solutions side by side as its Ω; it keeps their terms."""

    __slots__ = ("_kept", "_steps")
    _steps: Sequence[Step]
    _kept: _Kept

    def __init__(self, steps: Sequence[Step], dictionary: Dictionary) -> None:
        kept = _Kept(steps)
        object.__setattr__(self, "_steps", steps)
        object.__setattr__(self, "_kept", kept)
        dictionary.hold(kept)

    @property
    def events(self) -> tuple[Choice, ...]:
        return tuple(
            (
                site.gpm,
                Occurrence(batch.stamp(at), position, {site.gpm: (solution(),)}, batch, at, self._kept),
            )
            for position, batch, at, site, solution in self._steps
        )

    @property
    def rows(self) -> tuple[Row, ...]:
        shared, kleenes = self._solutions()
        completed = {kleene: tuple((s,) for s in iterations) for kleene, iterations in kleenes.items()}
        return tuple(Row(binding, completed) for binding in combined(shared, kleenes))

    def project(self, names: Sequence[str]) -> list[dict[str, int]]:
        found = combined(*self._solutions())
        return [{name: row[name] for name in names if name in row} for row in found]

    @property
    def size(self) -> int:
        counts: dict[int, int] = {}
        for step in self._steps:
            if step.site.begins and step.site.kleene is not None:
                counts[step.site.kleene] = counts.get(step.site.kleene, 0) + 1
        return prod(counts.values())

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        return tuple(sorted((step.position, step.site.gpm) for step in self._steps))

    @property
    def span(self) -> tuple[int, int]:
        times = [step.batch.stamp(step.at).time for step in self._steps]
        return times[0], times[-1]

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        for step in self._steps:
            yield step.site.gpm, step.batch, step.at

    def _solutions(self) -> tuple[dict[str, int], dict[int, list[dict[str, int]]]]:
        """What is bound outside of Kleenes, and in each of their iterations."""
        shared: dict[str, int] = {}
        kleenes: dict[int, list[dict[str, int]]] = {}
        for step in self._steps:
            site, own = step.site, shared
            if site.kleene is not None:
                iterations = kleenes.setdefault(site.kleene, [])
                if site.begins:
                    iterations.append({})
                own = iterations[-1]
            for name, term in step.solution().items():
                (own if name in site.own else shared)[name] = term
        return shared, kleenes

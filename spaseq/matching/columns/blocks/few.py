"""Matches made one by one from their events, and blocks split where such matches belong in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch
from spaseq.matching.columns.alone.singles import SolvedEvent
from spaseq.matching.columns.blocks import _kernel_found as k
from spaseq.matching.columns.blocks.found import Block, blocks
from spaseq.matching.columns.blocks.plain import Columns, EventSite, Sites, combined
from spaseq.matching.columns.chunk import SolvedBatch
from spaseq.matching.columns.history import History
from spaseq.matching.host import Key
from spaseq.matching.model import Choice, Found, Occurrence, Row

# Blocks of columns in the order of delivery, split where matches that are made one by one belong.

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Blocks are split if the parts have at least this many matches on average.
_WORTH_IT: Final = 16


def arranged(block: Columns, groups: Ints, positions: Ints) -> tuple[Columns, Mask]:
    """Return a block with the matches of each group, which are neighbours, sorted by their events.

    Also return which matches are in a group where two have the same events. ``positions``: of the block's
    events.
    """
    paths = block.sites.paths(positions, block.site)
    order, work, again = (np.zeros(len(block), dtype=np.int64) for _ in range(3))
    moved = k.arrange(paths, block.offsets, groups, order, work, again)
    return block.take(order) if moved else block, again != 0


def mixed(
    block: Columns, odd: Mask, matches: Callable[[int, int], Iterable[tuple[Key, Found]]]
) -> Iterator[Block]:
    """Yield a block without its ``odd`` matches, and in their place those of ``matches``, from one to
    another.

    If that would split it into very small blocks, ``matches`` makes all.
    """
    if not odd.any():
        yield block
        return
    cuts = np.flatnonzero(odd[1:] != odd[:-1]) + 1
    if len(cuts) * _WORTH_IT > len(odd) or odd.all():
        yield from blocks(matches(0, len(odd)))
        return
    for begin, end in pairwise([0, *cuts.tolist(), len(odd)]):
        if odd[begin]:
            yield from blocks(matches(begin, end))
        else:
            yield block.part(begin, end)


# Matches for a waiting reader, made from their events: columns would cost more than their content.

#: At most this many matches of an event are made one by one.
FEW: Final = 32


class Few(Found):
    """A match of some events; Ω is their solutions side by side. It keeps their terms.

    It keeps numbers until its fields are read, since most callbacks read little of a match.
    """

    __slots__ = ("_held", "_sites", "_steps")
    _sites: Sequence[EventSite]
    _steps: Sequence[int]
    _held: Sequence[SolvedBatch | SolvedEvent]

    def __init__(
        self,
        sites: Sequence[EventSite],
        steps: Sequence[int],
        held: Sequence[SolvedBatch | SolvedEvent],
    ) -> None:
        """``steps``: for each event its position, the number of its site, and the row of its solution.

        ``held``: the batch of each event, or the event itself if it came alone.
        """
        put = object.__setattr__
        put(self, "_sites", sites)
        put(self, "_steps", steps)
        put(self, "_held", held)

    @property
    def events(self) -> tuple[Choice, ...]:
        choices = []
        for position, site, batch, at, solution in self._looked_at():
            seen = {site.gpm: (solution,)}
            event = Occurrence(batch.stamp(at), position, seen, batch, at, self._held)
            choices.append((site.gpm, event))
        return tuple(choices)

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
        sites = self._sites
        for way in self._steps[1::3]:
            site = sites[way]
            if site.begins and site.kleene is not None:
                counts[site.kleene] = counts.get(site.kleene, 0) + 1
        return prod(counts.values())

    @property
    def path(self) -> tuple[tuple[int, str], ...]:
        gpms = [self._sites[way].gpm for way in self._steps[1::3]]
        return tuple(sorted(zip(self._steps[0::3], gpms, strict=True)))

    @property
    def span(self) -> tuple[int, int]:
        return self._time(0), self._time(len(self._held) - 1)

    def _time(self, event: int) -> int:
        """Return the time of an event of the match."""
        return self._held[event].time(self._steps[3 * event])

    @property
    def places(self) -> Iterator[tuple[str, EventBatch, int]]:
        for _, site, batch, at, _ in self._looked_at():
            yield site.gpm, batch, at

    def _looked_at(self) -> Iterator[tuple[int, EventSite, EventBatch, int, Mapping[str, int]]]:
        """Yield for each event its position, its site, its batch, its index there, and its solution."""
        steps = self._steps
        for position, way, row, of in zip(steps[0::3], steps[1::3], steps[2::3], self._held, strict=True):
            site = self._sites[way]
            yield position, site, *of.event(position), of.row(site.number, row)

    def _solutions(self) -> tuple[dict[str, int], dict[int, list[dict[str, int]]]]:
        """Return the variables bound outside of Kleenes, and those of each iteration."""
        shared: dict[str, int] = {}
        kleenes: dict[int, list[dict[str, int]]] = {}
        steps = self._steps
        for way, row, of in zip(steps[1::3], steps[2::3], self._held, strict=True):
            site, own = self._sites[way], shared
            if site.kleene is not None:
                iterations = kleenes.setdefault(site.kleene, [])
                if site.begins:
                    iterations.append({})
                own = iterations[-1]
            for name, term in of.row(site.number, row).items():
                (own if name in site.own else shared)[name] = term
        return shared, kleenes


def apart(sites: Sites, steps: Sequence[int], ends: Sequence[int], history: History) -> list[Few]:
    """Return matches of consecutive events; each ends where ``ends`` says.

    ``steps``: for each event its position, the number of its site, and the row of its solution in its batch.
    """
    held = history.held(steps, [site.number for site in sites.all])
    return [
        Few(sites.all, steps[3 * begin : 3 * end], held[begin:end]) for begin, end in pairwise((0, *ends))
    ]

"""What work the matches need themselves: that of who knows of each partial match whether one comes of it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.nfa.records import header, nodes, waits
from spaseq.matching.shedding.matcher import SheddingNfa

Ids = npt.NDArray[np.int64]
Names = npt.NDArray[np.uint64]

#: No partial match has so many events.
_LONGEST: Final = 16


def mixed(positions: Ids) -> Names:
    """A number for each event; that of a match, and of what may become one, is the sum of its events'."""
    code = (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    code = (code ^ code >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    return code ^ code >> np.uint64(32)


class Foreseen:
    """The partial matches that matches come of, and when the last event comes that one waits for."""

    def __init__(self, matches: list[tuple[Ids, Ids]]) -> None:
        """Of matches, the positions of their events, one after the other, and where each begins."""
        names, lasts = [np.zeros(1, dtype=np.uint64)], [np.zeros(1, dtype=np.int64)]
        for positions, offsets in matches:
            begins, sizes = offsets[:-1], np.diff(offsets)
            codes = mixed(positions)
            for length in range(1, int(sizes.max(initial=1))):
                some = begins[sizes > length]
                names.append(sum((codes[some + i] for i in range(length)), np.zeros(len(some), np.uint64)))
                lasts.append(positions[some + length])
        self._names, inverse = np.unique(np.concatenate(names), return_inverse=True)
        self._lasts: Ids = np.zeros(len(self._names), dtype=np.int64)
        np.maximum.at(self._lasts, inverse, np.concatenate(lasts))

    def comes(self, names: Names, now: int) -> npt.NDArray[np.bool_]:
        """Of which partial matches a match comes yet, after ``now``."""
        at = np.minimum(np.searchsorted(self._names, names), len(self._names) - 1)
        return np.asarray((self._names[at] == names) & (self._lasts[at] > now))


class Oracle(SheddingNfa):
    """Sheds, after each event, what no match comes of; nothing else."""

    foreseen: Foreseen

    def _look(self, axis: int, time: int, most: int) -> None:
        super()._look(axis, time, most)
        self._pause = 0.0  # the next look is after the next event

    def _keep(self, share: float, axis: int, time: int, events: int) -> None:
        del share, events
        m = self._memory.ints
        width = int(m[header.WIDTH])
        those = np.arange(int(m[header.WAITS]) + width, int(m[header.NEXT_WAIT]), width)
        those = those[m[those + waits.GATE] != 0]
        node, names = m[those + waits.NODE], np.zeros(len(those), dtype=np.uint64)
        for _ in range(_LONGEST):
            names += np.where(node != 0, mixed(m[node + nodes.POSITION]), np.uint64(0))
            node = np.where(node != 0, m[node + nodes.PREVIOUS], 0)
        gone = those[~self.foreseen.comes(names, self._observed.position - 1)]
        if len(gone):
            m[gone + waits.GATE] = 0
            self._sweep(axis, time, 0)

"""The quantiles of features: the values that partial matches had come in, edges between them go out."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as k
from spaseq.matching.shedding.learned.features import Features

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: From so many values edges are learned, anew when so many times as many were seen.
_FEW: Final = 64
#: Partial matches are of the same few events; of events themselves fewer are enough.
_FEW_EVENTS: Final = 16
_AGAIN: Final = 4
#: Edges are given up when such a share of what comes lies between two of them.
_SKEWED: Final = 0.4


class Quantiles:
    """Of each feature its ``rows`` (see ``Features``), ``edges``, and ``rings`` of its latest values."""

    def __init__(self, features: Features) -> None:
        self.rows: Ints = features.rows.copy()
        count = len(self.rows) // k.F_SIZE
        self.edges: Floats = np.zeros(count * k.EDGES)
        self.rings: Floats = np.zeros(count * (k.RING + 1))
        self._due = np.zeros(count)

    @property
    def arrays(self) -> tuple[Ints, Floats, Floats]:
        """Rows, edges and rings."""
        return self.rows, self.edges, self.rings

    def learn(self, feature: int, brought: Floats | None) -> bool:
        """Learns the edges of a feature anew, where that is due; whether they are others now.

        Where a condition compares it with what events bring, edges are quantiles of these.
        ``brought`` is a ring of such values.
        """
        ring = self.rings[feature * (k.RING + 1) :] if brought is None else brought
        seen, few = ring[0], _FEW if brought is None else _FEW_EVENTS
        if seen < max(few, self._due[feature]):
            return False
        self._due[feature] = seen * _AGAIN if seen < k.RING else seen + _AGAIN * k.RING
        values = np.sort(latest(ring, 0))
        count = int(self.rows[feature * k.F_SIZE + k.F_COUNT])
        # Of a single value that events bring, it matters what is above it.
        if (count or brought is None) and self._fits(feature, values):
            return False
        cut = np.unique(np.quantile(values, np.linspace(0, 1, k.EDGES + 2)[1:-1], method="lower"))
        self.edges[feature * k.EDGES :][: len(cut)] = cut
        self.rows[feature * k.F_SIZE + k.F_COUNT] = len(cut)
        return True

    def values(self, feature: int) -> Floats:
        """The latest values of a feature."""
        return latest(self.rings, feature)

    def shares(self, feature: int, values: Floats) -> Floats:
        """By level of a feature, which share of some values is there; as much in each if there are none."""
        if not len(values):
            return np.full(k.LEVELS, 1 / k.LEVELS)
        return np.bincount(1 + np.searchsorted(self.own(feature), values), minlength=k.LEVELS) / len(values)

    def own(self, feature: int) -> Floats:
        """The edges of a feature."""
        return self.edges[feature * k.EDGES :][: self.rows[feature * k.F_SIZE + k.F_COUNT]]

    def _fits(self, feature: int, values: Floats) -> bool:
        """Whether the edges cut these values, too, into parts of about one size."""
        edges = self.own(feature)
        count = len(edges)
        if count < min(k.EDGES, len(np.unique(values)) - 1) // 2:
            return False
        sizes = np.bincount(np.searchsorted(edges, values), minlength=count + 1)
        return bool(sizes.max() <= max(_SKEWED, 3 / (count + 1)) * len(values))


def latest(rings: Floats, number: int) -> Floats:
    """The latest values of one of several rings."""
    ring = rings[number * (k.RING + 1) :][: k.RING + 1]
    return ring[1 : 1 + min(int(ring[0]), k.RING)]

"""The cost model: what is to be expected of partial matches, learned from those that went before.

It is kept by *cells*: the gate that a partial match waits at, the quantiles of what later conditions compare
of it (``features``), and its age in its window. All counts halve within a window, so that they follow drift.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.effort import Policy
from spaseq.matching.shedding import _kernel_passes as k
from spaseq.matching.shedding.features import Features

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A cell's rates are mixed with those of its gate, as if it had lived so many ages with these.
_PRIOR: Final = 1.0
#: The price of work follows latency so fast: by such a power of what is too much, in a window.
_FOLLOWS: Final = 20.0
#: A price begins at, and is forgotten below, such a part of what work brings on average.
_CHEAP: Final = 0.05
#: What brings a little less than the price is kept in part, from 1 less this to 1 more.
_MARGIN: Final = 0.25
#: From so many values edges are learned, anew when so many times as many were seen.
_FEW: Final = 64
_AGAIN: Final = 4
#: Edges are given up when such a share of what comes lies between two of them.
_SKEWED: Final = 0.4


class Sketch:
    """What was counted of each cell, and what follows from it. ``alive``: the partial matches there are."""

    def __init__(self, features: Features) -> None:
        self.features = features
        cells = features.classes * k.AGES
        self.counts: Floats = np.zeros(cells * k.COUNTS)
        self.alive: Ints = np.zeros(cells, dtype=np.int64)
        self.rows = features.rows.copy()
        count = len(self.rows) // k.F_SIZE
        self.edges: Floats = np.zeros(features.edges)
        self.rings: Floats = np.zeros(count * (k.RING + 1))
        self._due = np.full(count, _FEW)
        gates = len(features.bases)
        self.gates: Ints = np.zeros(features.classes, dtype=np.int64)
        for gate in np.argsort(features.bases, kind="stable").tolist():
            self.gates[features.bases[gate] :] = gate
        # Of each gate, how many events in one have something that is looked for there.
        self.visits: Floats = np.full(gates, 0.5)
        # The matches that a unit of work must bring, as there is too much of it; 0 while there is not.
        self._price = 0.0
        #: So many events are in an eighth of a window.
        self.age = 16.0

    # --- what was seen --------------------------------------------------------------------------

    def decay(self, events: float) -> None:
        """So many events have passed."""
        self.age = max(self.age, 1.0)
        self.counts *= 0.5 ** (events / (k.AGES * self.age))

    def learn(self) -> bool:
        """Learns the edges of features anew, where that is due; whether codes mean something else now."""
        changed = False
        for begin, end, gates in self.features.places:
            for feature in range(begin, end):
                ring = self.rings[feature * (k.RING + 1) :][: k.RING + 1]
                if ring[0] < self._due[feature]:
                    continue
                self._due[feature] = ring[0] * _AGAIN if ring[0] < k.RING else ring[0] + _AGAIN * k.RING
                values = np.sort(ring[1 : 1 + min(int(ring[0]), k.RING)])
                if self._fits(feature, values):
                    continue
                self._cut(feature, values)
                for gate in gates:
                    self._level(gate)
                changed = True
        return changed

    def _own(self, feature: int) -> tuple[int, int, int]:
        """Where a feature's edges stand, how many there are, and for how many there is room."""
        row = self.rows[feature * k.F_SIZE :][: k.F_SIZE]
        begin = int(row[k.F_EDGES])
        after = (feature + 1) * k.F_SIZE
        end = int(self.rows[after + k.F_EDGES]) if after < len(self.rows) else len(self.edges)
        return begin, int(row[k.F_COUNT]), end - begin

    def _fits(self, feature: int, values: Floats) -> bool:
        """Whether the edges cut these values, too, into parts of about one size."""
        begin, count, room = self._own(feature)
        if count < min(room, len(np.unique(values)) - 1) // 2:
            return False
        sizes = np.bincount(np.searchsorted(self.edges[begin : begin + count], values), minlength=count + 1)
        return bool(sizes.max() <= max(_SKEWED, 3 / (count + 1)) * len(values))

    def _cut(self, feature: int, values: Floats) -> None:
        begin, _, room = self._own(feature)
        cut = np.unique(np.quantile(values, np.linspace(0, 1, room + 2)[1:-1], method="lower"))
        self.edges[begin : begin + len(cut)] = cut
        self.rows[feature * k.F_SIZE + k.F_COUNT] = len(cut)

    def _level(self, gate: int) -> None:
        """What was counted at a gate is that of all its classes alike: which was which is not known."""
        cells = self.counts.reshape(-1, k.AGES, k.COUNTS)
        cells[self.gates == gate] = cells[self.gates == gate].mean(axis=0)

    # --- what follows ---------------------------------------------------------------------------

    def load(self) -> Floats:
        """What a partial match costs at an event, on average, by class: the conditions asked of it."""
        return np.asarray((self.visits * self.features.conditions)[self.gates])

    def _ahead(self, column: int) -> Floats:
        """What is to be expected of one partial match of each cell for the rest of its window."""
        cells = self.counts.reshape(-1, k.AGES, k.COUNTS)
        total, lived = cells[:, :, column], cells[:, :, k.LIVED]
        prior = _PRIOR * self.age
        gates = len(self.features.bases)
        by_gate = np.zeros((gates, k.AGES))
        of_gate = np.zeros((gates, k.AGES))
        np.add.at(by_gate, self.gates, total)
        np.add.at(of_gate, self.gates, lived)
        usual = by_gate / np.maximum(of_gate, 1e-9)
        rate = (total + prior * usual[self.gates]) / (lived + prior)
        later = rate[:, ::-1].cumsum(axis=1)[:, ::-1] - rate / 2
        return np.asarray(later * self.age)

    def worth(self) -> Floats:
        """The matches to be expected of one partial match of each cell, as things go."""
        return self._ahead(k.MATCHED)

    def lost(self) -> Floats:
        """The same if nothing was shed."""
        return self._ahead(k.MATCHED) + self._ahead(k.LOST)

    def kept(self, share: float, policy: Policy, *, by_size: bool = False) -> Floats:
        """Of each cell, which share of its partial matches is kept, so that ``share`` of the load remains.

        ``by_size``: it is not the work at the next events that counts, but the memory.
        """
        alive = self.alive.reshape(-1, k.AGES)
        load = np.ones(len(alive)) if by_size else self.load()
        if policy is Policy.RANDOM_STATE or not load.any():
            return np.full(alive.size, share)
        if policy is Policy.SELECTIVE:
            value = self._selectivity()[:, None].repeat(k.AGES, axis=1)
        else:
            value = self.worth() / self.costs().reshape(alive.shape)
        loads = (alive * load[:, None]).ravel()
        some = np.flatnonzero(loads)
        order = some[np.argsort(-value.ravel()[some], kind="stable")]
        total = np.cumsum(loads[order])
        kept = np.ones(alive.size)
        if len(order):
            most = share * total[-1]
            kept[order] = np.clip((most - (total - loads[order])) / loads[order], 0.0, 1.0)
        return kept

    def priced(self, excess: float, events: float) -> Floats | None:
        """Of each cell, which share is worth what it costs, with all that comes of it; None if all is.

        The price of work rises while there is too much of it, ``excess`` times what there may be, and else
        falls, so that work is about what it may be: what it buys are whole families of partial matches.
        """
        cells = self.counts.reshape(-1, k.AGES, k.COUNTS)
        work = float((cells[:, :, k.LIVED].sum(axis=1) * self.load()).sum())
        # All matches are told to the gate of their last event, and to each before it.
        brings = max(float(cells[self.gates == g][:, :, k.MATCHED].sum()) for g in range(len(self.visits)))
        least = _CHEAP * brings / max(work, 1e-9)
        if self._price <= 0 and excess <= 1:
            return None
        power = min(max(excess - 1, -0.5), 1.0) * _FOLLOWS * events / (k.AGES * self.age)
        self._price = max(self._price, least) * float(np.exp(power))
        if excess < 1 and self._price < least:
            self._price = 0.0
        if self._price <= 0:
            return None
        later = np.maximum(self._ahead(k.SPENT), 0)  # it may seem less, where it was shed just now
        value = self.worth() / (self.costs().reshape(later.shape) + later)
        return np.asarray(np.clip((value / self._price - 1) / (2 * _MARGIN) + 0.5, 0.0, 1.0).ravel())

    def costs(self) -> Floats:
        """What one partial match of each cell will cost itself for the rest of its window."""
        left = (k.AGES - 0.5 - np.arange(k.AGES)) * self.age
        return np.asarray((1 + self.load()[:, None] * left).ravel())

    def _selectivity(self) -> Floats:
        """How often a partial match of a gate becomes a match, by class."""
        cells = self.counts.reshape(-1, k.AGES, k.COUNTS).sum(axis=1)
        by_gate = np.zeros((len(self.features.bases), k.COUNTS))
        np.add.at(by_gate, self.gates, cells)
        return np.asarray((by_gate[:, k.MATCHED] / np.maximum(by_gate[:, k.LIVED], 1e-9))[self.gates])

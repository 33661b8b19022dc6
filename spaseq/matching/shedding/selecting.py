"""Which partial matches go: a share of the load at hand, or what there is no memory for."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.effort import Policy, Shed
from spaseq.matching.kernel import sizing
from spaseq.matching.kernel.memory import Room, runs_size
from spaseq.matching.kernel.records import header as mem
from spaseq.matching.kernel.records import partitions
from spaseq.matching.kernel.tables.analysis import Compiled
from spaseq.matching.shedding.account import Account
from spaseq.matching.shedding.bounded import Bounded
from spaseq.matching.shedding.compiled import _kernel_firsts as firsts
from spaseq.matching.shedding.compiled import _kernel_passes as k
from spaseq.matching.shedding.doubt import Doubt
from spaseq.matching.shedding.firsts import let_go
from spaseq.matching.shedding.learned.queries import Queries
from spaseq.matching.shedding.learned.sketch import Worth
from spaseq.matching.shedding.least import least_room
from spaseq.matching.shedding.observed import Observed

Floats = npt.NDArray[np.float64]

#: Where memory runs out, so much of it is in use afterwards.
_FILLED: Final = 0.8
_FULL: Final = 0.95
#: What several partial matches begin with goes with the last of them only: so often more are shed.
_ROUNDS: Final = 6
#: Scratch space, which no shedding makes smaller, leaves at least so much of it to partial matches.
_STATE: Final = 0.5


class Selecting(Observed):
    """The kernel, whose partial matches can be taken out by what they are worth; ``shed`` counts them.

    A bound of memory is kept so.
    """

    def __init__(
        self, query: Bounded, compiled: Compiled | None = None, queries: Queries | None = None
    ) -> None:
        super().__init__(query, compiled, queries)
        self._name = query.name
        self._doubt = Doubt(query.pattern, query.bounds)
        gates = [" | ".join(sorted(gate.gpms)) for gate in self._compiled.analysis.gates]
        self._account = Account(self._name, gates, query.effort.policy, is_chosen=self._doubt.matters)
        # Of each cell, the share that was kept when something was shed last.
        self._kept: npt.NDArray[np.float64] = np.ones(self._sketch.alive.size)
        # So often partial matches have drawn lots.
        self._draws = 0

    @property
    def shed(self) -> Shed:
        """What was given up; who reads it may bring the object."""
        return self._account.shed

    @shed.setter
    def shed(self, shed: Shed) -> None:
        self._account.shed = shed

    def _shed(self, share: float, axis: int, time: int, *, by_size: bool = False) -> int:
        """Takes all but a share of the load out of the arena, which must be swept then; how many.

        ``by_size``: it is not the work at the next events that counts, but the memory.
        """
        s, policy = self._sketch, self._effort.policy
        policy = Policy.SHARP if policy is Policy.RANDOM_INPUT else policy
        if self._doubt.matters:
            return self._let_go(s.worth(policy, by_size=by_size), share, axis, time)
        kept = s.kept(share, policy, by_size=by_size)
        if not by_size:
            self._kept = kept
        return self._mark(kept, axis, time)

    def _let_go(self, worth: Worth, share: float, axis: int, time: int) -> int:
        """The same by first events, each with all that begins with it."""
        m, s = self._memory.ints, self._sketch
        # A look that is spread over events ends when some have come that it has not seen.
        self._observe(axis, time)
        rows = np.zeros((int(s.alive.sum()), firsts.L_SIZE), dtype=np.int64)
        now = s.window.passed(self._given)
        firsts.listed(self._tables, m, self._known, self._features.bases, rows.ravel(), axis, time, now)
        if not len(rows):
            return 0
        self._draws += 1
        gone = let_go(m, rows, worth, share, self._effort.policy, self._draws)
        self._account.add(gone.cells, s)
        self._doubt.forget(axis)
        keys = m[gone.partitions[:, None] + (partitions.KEY + np.arange(len(self._keys)))].tolist()
        for key, place, position in zip(keys, gone.places.tolist(), gone.positions.tolist(), strict=True):
            self._doubt.add(tuple(key), place, position)
        return int(gone.cells.sum())

    def _mark(self, kept: npt.NDArray[np.float64], axis: int, time: int) -> int:
        """Takes partial matches out of the arena, which must be swept then; how many."""
        s, f = self._sketch, self._features
        shed = np.zeros_like(s.alive)
        now = s.window.passed(self._given)
        self._draws += 1
        k.mark(
            self._tables, self._memory.ints, self._known, f.bases, kept, shed, axis, time, now, self._draws
        )  # fmt: skip
        self._account.add(shed, self._sketch)
        return int(shed.sum())

    def _room(self, live: int, remembered: int, decided: int, axis: int, time: int) -> Room:
        room = super()._room(live, remembered, decided, axis, time)
        pool = self._effort.pool
        if pool is None:
            return room
        most = pool.share(self._effort, self._budget.size) - self._budget.but("runs")
        most = max(most - self._memory.scratch_bytes, int(_STATE * most))
        if runs_size(self._compiled, room) <= most:
            return room
        entries = max(remembered + int(self._memory.ints[mem.WANTED]), sizing.ENOUGH.entries)
        least = self._least(axis, time, decided, entries)
        enough = max(_FULL * most, runs_size(self._compiled, sizing.ENOUGH._replace(entries=entries)))
        for _ in range(_ROUNDS):
            size = runs_size(self._compiled, least)
            if size <= enough or not self._lighten(_FILLED * most / size, axis, time):
                break
            self._account.begin(f"more would take more memory than its {most:,} bytes")
            # What was decided is decided again, for fewer.
            decided = int(_FILLED * most / size * decided)
            least = self._least(axis, time, decided, entries)
        size = runs_size(self._compiled, least)
        more = max(1.0, min(2.0, most / size))
        grown = least._replace(waits=int(more * least.waits), nodes=int(more * least.nodes))
        return grown if runs_size(self._compiled, grown) <= most else least

    def _lighten(self, share: float, axis: int, time: int) -> int:
        """Leaves this share of the partial matches; how many are gone."""
        self._observe(axis, time)
        if not self._sketch.price:
            # There may be time enough, so that nothing was planned yet.
            self._sketch.plan(math.inf)
        return self._shed(share, axis, time, by_size=True)

    def _least(self, axis: int, time: int, decided: int, entries: int) -> Room:
        return least_room(self._tables, self._memory.ints, axis, time, decided, entries, sizing.ENOUGH)

"""Rows are taken out of the lazy evaluator's memory between two events, and counted."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.memory import Memory
from spaseq.matching.lazy.records import counter, frame, moment, outcome, plan, ring, waiting
from spaseq.matching.lazy.tables import Compiled
from spaseq.matching.shedding.buffered.worth import Worth
from spaseq.matching.shedding.compiled import _kernel_rows as k

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

#: So many of the matches found at once are looked at, about.
_SOME: Final = 64
#: The matches of one event say of their rows no more than so many would.
_AT_ONCE: Final = 2


class Rows:
    """The rows of a memory, as they are shed; what is known of them is in ``worth``."""

    def __init__(self, compiled: Compiled, memory: Memory, worth: Worth) -> None:
        self._tables, self._memory, self._worth = compiled.tables, memory, worth
        self.begin()
        # Up to where rows have been counted.
        self._seen: Ints = np.zeros(len(compiled.gpms), dtype=np.int64)
        sites = len(worth.classes.sites)
        #: What a match is worth, and how many matches are thought to be missing, by its first item.
        self.weights, self.missed = np.ones(sites), np.zeros(sites)
        self._goes = worth.classes.goes
        of: list[tuple[int, int, int]] = []
        for number, (one, _) in enumerate(compiled.plans):
            items = int(self._tables[int(self._tables[lay.T_PLANS]) + number * plan.SIZE + plan.ITEMS])
            pairs = waiting.RECORD + memory.width - frame.SIZE + len(one.items) * moment.SIZE
            of += [(items, level, pairs) for level in range(len(one.items))]
        self._waiting: Ints = np.array(of, dtype=np.int64)

    @property
    def new(self) -> Ints:
        """Of each buffer, how many rows came since they were looked at last."""
        rings = self._memory.rings
        return np.asarray(rings[:, ring.TAIL] - np.maximum(self._seen, rings[:, ring.HEAD]))

    def let_go(self, kept: Floats, numbers: Floats, codes: Codes, *, every: bool) -> int:
        """Counts new rows, and sheds of these, or of all, all but the shares ``kept`` by class; how many."""
        m, w = self._memory, self._worth
        head, tail = m.rings[:, ring.HEAD], m.rings[:, ring.TAIL]
        np.maximum(self._seen, head, out=self._seen)
        begins = np.where(self._goes, head if every else self._seen, self._seen)
        offsets = np.concatenate([[0], np.cumsum(tail - begins)])
        gone = k.let_go(
            self._tables, m.counters, m.frames, m.rings.ravel(), m.rows.ravel(), m.ordered, m.index, m.lists,
            m.waits, m.spans, m.size, self._waiting.ravel(), begins, offsets,
            np.empty(int(offsets[-1]) + 1, dtype=np.int64), self._seen, w.classes.buffers.ravel(),
            w.features.ravel(), w.edges, w.samples, kept, w.sampled, w.came, w.declined, w.shed, every,
            numbers, codes, m.bounded,
        )  # fmt: skip
        self.begin()
        return gone

    def alive(self, numbers: Floats, codes: Codes) -> tuple[Floats, Floats]:
        """How many rows there are of each class, and would be if no share of them were to stay."""
        w, m = self._worth, self._memory
        alive, least = np.zeros((2, len(w.classes.of)))
        k.count(
            self._tables, m.rings.ravel(), m.rows.ravel(), w.classes.buffers.ravel(), w.features.ravel(),
            w.edges, w.sampled, w.low, w.high, alive, least, numbers, codes, m.bounded,
        )  # fmt: skip
        return alive, least

    def credit(self, found: Ints, choices: Ints, numbers: Floats, codes: Codes) -> None:
        """Counts the rows of what was found, and how many matches are thought to be missing beside them."""
        w = self._worth
        count = len(found)
        events = 1 + int((found[1:, outcome.EVENT] != found[:-1, outcome.EVENT]).sum())
        weight = min(1.0, _AT_ONCE * events / max(1, count))
        k.credit(
            self._tables, self._memory.rings.ravel(), self._memory.rows.ravel(), self._begins, found,
            choices, max(1, count // _SOME), weight, w.classes.sites, w.classes.buffers.ravel(),
            w.features.ravel(), w.edges, w.won, self.weights, self.missed, numbers, codes,
            self._memory.bounded,
        )  # fmt: skip
        self.begin()

    def begin(self) -> None:
        """Events are looked at from now on: rows that go out of the window meanwhile count in ``credit``."""
        self._begins = self._memory.rings[:, ring.HEAD].copy()

    @property
    def tested(self) -> int:
        """How many rows were looked at so far, to match them."""
        return int(self._memory.counters[counter.TESTED])

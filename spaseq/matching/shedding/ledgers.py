"""What each of several queries that run as one gave up: gates of all come in, a ``Shed`` each goes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spaseq.effort import Shed
from spaseq.matching.shedding.account import Account, recall_of
from spaseq.matching.shedding.learned.sketch import Sketch
from spaseq.matching.shedding.learned.whose import shares

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Told(Protocol):
    """Who is told what it gave up."""

    shed: Shed


class Ledger(NamedTuple):
    """A query; and what its partial matches wait for at each gate of all, in its own words."""

    query: Told
    gates: Sequence[str]


class Ledgers:
    """Of several queries. ``gates`` and ``ends``: which gates, and which ways to end, are whose.

    Shapes ``(queries, gates)`` and ``(queries, ways)``.
    """

    def __init__(self, ledgers: Sequence[Ledger], gates: Mask, ends: Mask) -> None:
        self._ledgers, self._gates, self._ends = ledgers, gates, ends
        # Of each query, the matches found; and of those found at once, squared.
        self._found = np.zeros(len(ledgers))
        self._squares = np.zeros(len(ledgers))

    def find(self, matches: Ints) -> None:
        """So many matches of each query were found at once."""
        self._found += matches
        self._squares += matches.astype(np.float64) ** 2

    def tell(self, account: Account, sketch: Sketch) -> None:
        """Brings what each was told up to date."""
        all_, s = account.shed, sketch
        missed = np.zeros(len(self._ledgers))
        if s.forgone.missed:
            of = shares(s.features, s.gates, s.ended, s.counts, s.steps, self._ends, s.weights)
            missed = (of * self._gates) @ s.forgone.missed_at
        at = account.by_gate(len(self._gates[0]))
        for i, (query, gates) in enumerate(self._ledgers):
            shed, own = query.shed, np.where(self._gates[i], at, 0)
            shed.latency, shed.least, shed.too_tight = all_.latency, all_.least, all_.too_tight
            shed.active, shed.passed_over = all_.active, all_.passed_over
            shed.partial_matches = int(own.sum())
            states: dict[str, int] = {}
            for gate in np.flatnonzero(own).tolist():
                state = f"before {gates[gate]}"
                states[state] = states.get(state, 0) + int(own[gate])
            shed.by_state = states
            shed.recall, shed.error = recall_of(
                float(self._found[i]), float(missed[i]), float(self._squares[i])
            )

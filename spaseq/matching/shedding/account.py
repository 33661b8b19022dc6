"""The account of a query's shedding: counts, a rough recall (``stats.shed``), and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spaseq.bounds import Policy, Shed
from spaseq.errors import warn_within
from spaseq.matching.shedding import _kernel_known as cells
from spaseq.matching.shedding.cost_model import CostModel

Ints = npt.NDArray[np.int64]


class Account:
    """Counts in ``shed`` what a query called ``name`` sheds; ``gates``: for each gate, the GPMs that partial
    matches wait for.
    """

    def __init__(self, name: str, gates: Sequence[str], policy: Policy, *, is_chosen: bool) -> None:
        """``is_chosen``: a match may be left out in favour of another one."""
        self.shed = Shed()
        self._name, self._gates, self._policy = name, gates, policy
        # It is unknown how many matches the shed ones would have excluded.
        self._estimates = policy is not Policy.RANDOM_INPUT and not is_chosen
        # Partial matches made; matches found; and matches expected of shed partial matches at the time of
        # shedding.
        self._made = self._found = self._missed = 0.0
        self._by_gate: Counter[int] = Counter()
        # Events since the last shedding.
        self._calm = 0

    def make(self, runs: int) -> None:
        """Count partial matches that were made."""
        self._made += runs

    def find(self, matches: int) -> None:
        """Count matches that were found."""
        self._found += matches

    def add(self, shed: Ints, sketch: CostModel) -> None:
        """Count the partial matches that were shed, by cell."""
        self._calm = 0
        self._missed += float(shed @ sketch.expected)
        by_class = shed.reshape(-1, cells.AGES).sum(axis=1)
        by_gate = np.bincount(sketch.gates, by_class, minlength=len(self._gates))
        self._by_gate.update({gate: int(n) for gate, n in enumerate(by_gate) if n})
        states: Counter[str] = Counter()
        for gate, count in self._by_gate.items():
            states[f"before {self._gates[gate]}"] += count
        # A new dictionary each time: a reader may be iterating over the last one.
        self.shed.by_state, self.shed.partial_matches = dict(states), states.total()

    def pass_over(self, passed: Ints, sketch: CostModel) -> None:
        """Count how often partial matches were not shown an event, by cell."""
        self._calm = 0
        self._missed += float(passed @ sketch.expected_by_show)
        self.shed.passed_over += int(passed.sum())

    def by_gate(self) -> Ints:
        """Return how many partial matches were shed, by the gate that they waited at."""
        return np.array([self._by_gate[gate] for gate in range(len(self._gates))], dtype=np.int64)

    def pass_by(self, events: int) -> None:
        """Count events."""
        self._calm += events
        self.estimate()

    def begin(self, why: str) -> None:
        """Note that shedding happens; the first time, a warning says so."""
        self._calm = 0
        if not self.shed.active:
            self.shed.active = True
            warn_within(f"{self._name} sheds partial matches: {why} (stats.shed says how many)")

    def is_over(self, sketch: CostModel) -> bool:
        """Return whether shedding has begun, and a window has passed without it."""
        return self.shed.active and self._calm > cells.AGES * sketch.window.age

    def end(self) -> None:
        """Note that shedding has ended; a warning says so."""
        self.shed.active = False
        if self._policy is Policy.RANDOM_INPUT:
            warn_within(f"{self._name} passes over no events any more: it did over {self.shed.events:,}")
        else:
            doubtful = self.shed.doubtful
            others = f"; {doubtful:,} may be others" if doubtful else ""
            warn_within(f"{self._name} sheds no more: {given_up(self.shed)}{others}")

    def estimate(self) -> None:
        """Update the estimate of recall."""
        if not self._estimates:
            self.shed.recall = None
            return
        # Partial matches that are shed or passed over have the lowest utility: on average they miss no more
        # matches than each of the others finds.
        shed, passed = self.shed.partial_matches, self.shed.passed_over
        kept = max(0.0, self._made - shed) / max(self._made + passed, 1.0) if self._found else 0.0
        self.shed.recall = max(recall_of(self._found, self._missed, self.shed), kept)


def given_up(shed: Shed, what: str = "partial matches") -> str:
    """Describe what a query shed."""
    found = "" if shed.recall is None else f", and about {shed.recall:.0%} of its matches were found"
    return f"{shed.partial_matches:,} {what} were shed{found}"


def recall_of(found: float, missed: float, shed: Shed) -> float:
    """Return the share of all matches that was found; ``missed``: how many matches are expected to be
    missing.

    It is 0 as long as a query has ``shed`` something and found nothing.

    >>> recall_of(30.0, 10.0, Shed(partial_matches=1)), recall_of(0.0, 0.0, Shed(partial_matches=1))
    (0.75, 0.0)
    """
    if found:
        return found / (found + max(missed, 0.0))
    return 0.0 if shed.partial_matches or shed.passed_over else 1.0

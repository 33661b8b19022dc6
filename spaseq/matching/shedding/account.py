"""What a query gave up: shed cells come in, ``stats.shed`` (counts, an estimate) and warnings go out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.effort import Policy, Shed
from spaseq.errors import warn_within
from spaseq.matching.shedding.compiled import _kernel_known as cells
from spaseq.matching.shedding.learned.sketch import Sketch

Ints = npt.NDArray[np.int64]

#: What was missed is known up to a factor. The variance of its logarithm, and what comes to it if one event
#: brought all matches: measured on Q1 to Q6 of Sharp.
_MODEL: Final = 0.6
_BY_EVENTS: Final = 3.0
#: So many such deviations leave out one of ten.
_NINE_OF_TEN: Final = 1.645
#: Of a sample one of ten times none is seen where so many are to be expected.
_UNSEEN: Final = math.log(10)


class Account:
    """Keeps ``shed`` of a query called ``name``; ``gates``: what its partial matches wait for, by gate."""

    def __init__(self, name: str, gates: Sequence[str], policy: Policy, *, is_chosen: bool) -> None:
        """``is_chosen``: a match that is found may be left out for another one."""
        self.shed = Shed()
        # How many matches were found; and of those found at once, squared.
        self._found = self._squares = 0.0
        self._name, self._gates, self._policy = name, gates, policy
        # Who knows what was shed does not know which matches it would have kept out.
        self._estimates = policy is not Policy.RANDOM_INPUT and not is_chosen
        # The matches thought to be missed.
        self._missed = 0.0
        self._by_gate: Counter[int] = Counter()
        # Events since something was shed last.
        self._calm = 0

    def find(self, matches: int) -> None:
        """So many matches were found at once."""
        self._found += matches
        self._squares += matches * matches

    def add(self, shed: Ints, sketch: Sketch) -> None:
        """So many partial matches of each cell were shed."""
        self._calm = 0
        by_class = shed.reshape(-1, cells.AGES)
        sketch.forgone.add(shed)
        by_gate = np.bincount(sketch.gates, by_class.sum(axis=1), minlength=len(self._gates))
        self._by_gate.update({gate: int(n) for gate, n in enumerate(by_gate) if n})
        states: Counter[str] = Counter()
        for gate, count in self._by_gate.items():
            states[f"before {self._gates[gate]}"] += count
        # Another one each time: who reads it may go through the last one.
        self.shed.by_state, self.shed.partial_matches = dict(states), states.total()

    def pass_over(self, passed: Ints, sketch: Sketch) -> None:
        """So many partial matches of each cell were not shown an event."""
        self._calm = 0
        self.shed.passed_over += int(passed.sum())
        sketch.pass_over(passed)

    def by_gate(self) -> Ints:
        """How many partial matches were shed, by the gate that they waited at."""
        return np.array([self._by_gate[gate] for gate in range(len(self._gates))], dtype=np.int64)

    def pass_by(self, events: int, sketch: Sketch) -> None:
        """So many events have passed."""
        self._calm += events
        if sketch.window.is_open:
            sketch.forgone.stay_open(events, 2 * sketch.window.age, sketch.lost())
        elif sketch.window.is_timed:
            sketch.forgone.pass_by(events / sketch.window.age, sketch.lost(), sketch.arrivals)
        self._missed = sketch.forgone.missed
        self.estimate()

    def begin(self, why: str) -> None:
        """Something is shed; if that is new, a warning says so."""
        self._calm = 0
        if not self.shed.active:
            self.shed.active = True
            warn_within(f"{self._name} sheds partial matches: {why} (stats.shed says how many)")

    def is_over(self, sketch: Sketch) -> bool:
        """Whether it has begun, and nothing was shed for a window."""
        return self.shed.active and self._calm > cells.AGES * sketch.window.age

    def end(self) -> None:
        """Nothing is shed any more; a warning says so."""
        self.shed.active = False
        gone = f"{self.shed.partial_matches:,} partial matches"
        if self._policy is Policy.RANDOM_INPUT:
            warn_within(f"{self._name} passes over no events any more: it did over {self.shed.events:,}")
        else:
            recall, doubtful = self.shed.recall, self.shed.doubtful
            found = (
                ""
                if recall is None
                else f", and some {found_in_words(self.shed)} of its matches were found, by estimate"
            )
            others = f"; {doubtful:,} may be others" if doubtful else ""
            warn_within(f"{self._name} sheds no more: {gone} were shed{found}{others}")

    def estimate(self) -> None:
        """Brings the estimate up to date."""
        if not self._estimates:
            self.shed.recall, self.shed.error = None, 0.0
            return
        self.shed.recall, self.shed.error = recall_of(self._found, self._missed, self._squares, self.shed)


def found_in_words(shed: Shed) -> str:
    """The share of its matches that a query found, with the bounds between which it is nine of ten times."""
    recall = shed.recall or 0.0
    least, most = max(0.0, recall - shed.error), min(1.0, recall + shed.error)
    return f"{100 * recall:.3g} % ({100 * least:.3g} to {100 * most:.3g} %)"


def recall_of(
    found: float, missed: float, squares: float, shed: Shed, one_in: float = 0.0
) -> tuple[float, float]:
    """The share of all matches that was found, by what is thought to be missed; and how far it may be off.

    Nine of ten times it is not off by more. Who has ``shed`` and found nothing does not know of what.
    ``squares``: of the matches found at once, by an event or a few. Few events bring most matches: what is
    ``missed`` on average is that of few streams that missed one of these, and as often as not it is less (of
    a lognormal number, the median). ``one_in``: what was missed is told by a sample of what was shed, one in
    so many at least. Who found few may have seen none of that in a match, however much was missed. And what
    is in one match is in as many, about, as are found at once.
    """
    has_shed = bool(shed.partial_matches or shed.passed_over)
    if not found and (missed > 0.0 or has_shed):
        return 0.0, 1.0
    # What one of the sample stands for, if it is in matches.
    each = one_in * max(1.0, squares / found) if has_shed and found else 0.0
    unseen = _UNSEEN * each
    if missed <= 0.0:  # of many shares summed up, it may be next to nothing below 0
        return 1.0, unseen / (found + unseen) if unseen else 0.0
    by_events = _BY_EVENTS * squares / found**2
    usual = missed * math.exp(-by_events / 2)
    factor = math.exp(_NINE_OF_TEN * math.sqrt(_MODEL + by_events + math.log1p(each / missed)))
    least = found / (found + max(usual * factor, unseen))
    recall, most = (found / (found + usual * f) for f in (1.0, 1 / factor))
    return recall, max(recall - least, most - recall)

"""How often partial matches of each class go on: what was counted comes in, what follows goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_ahead as k
from spaseq.matching.shedding.compiled import _kernel_known as known
from spaseq.matching.shedding.learned.features import Features
from spaseq.matching.shedding.learned.queries import Queries

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Until a class has gone on so often, it counts as much as its gate as a whole.
PRIOR: Final = 2.0
#: Where a step leads back to its place, so many rounds of a loop are foreseen.
ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is to be expected of one partial match of each class and age: matches, and units of work.

    ``root``: units of work for an event, of all that begins with it.
    """

    value: Floats
    cost: Floats
    root: float


class Rates:
    """The matches that a partial match of each class becomes in an event, and where it goes on to.

    ``matched``, by class: of several queries, what these are worth.
    """

    def __init__(self, features: Features, queries: Queries) -> None:
        self._features, self._queries = features, queries
        self.matched: Floats = np.zeros(features.classes)
        self._table, self._gates = _table(features)
        steps, places = features.steps, features.places
        # By step, code and target.
        self._rates: Floats = np.zeros(features.counted)
        # What steps bring; what comes of classes at once; their rates, and what follows.
        most = max((place.size for place in places), default=1)
        self._brings: Floats = np.zeros(most * k.WHATS * known.AGES)
        self._rate: Floats = np.zeros(features.classes * k.WHATS * known.AGES)
        self._ahead: Floats = np.zeros_like(self._rate)
        leads_back = any(gate <= step.gate for step in steps for gate in places[step.target].gates)
        self.rounds = ROUNDS if leads_back else 1

    def count(self, counts: Floats, steps: Floats, window: float) -> None:
        """By what was counted of classes and of ``steps``; a window has so many events."""
        features = self._features
        counted = counts.reshape(-1, known.COUNTS)
        for gate in range(len(features.bases)):
            own = features.own(gate)
            ends = any(step.gate == gate and step.accepts for step in features.steps)
            # Before anything is seen of a gate, it is as if in a window one had gone on there.
            went, lived = counted[own, known.MATCHED, None], counted[own, known.LIVED]
            self.matched[own] = shrunk(went, lived, ends / window)[:, 0]
        for number, step in enumerate(features.steps):
            # There is one empty run: it lives through each event once.
            usual = 1.0 if step.source == 0 else 1 / window
            lived = counted[features.own(step.gate), known.LIVED]
            self.set(number, shrunk(features.block(steps, step), lived, usual))

    def end(self, classes: slice, rates: Mapping[int, Floats]) -> None:
        """Sets the matches that classes become, by the rates of each step from there, by code and target."""
        self.matched[classes] = 0.0
        for number, goes in rates.items():
            for way in self._features.steps[number].accepts:
                self.matched[classes] += goes.sum(axis=1) * self._queries.worth[way]

    def set(self, number: int, rates: Floats) -> None:
        """Sets the rates of a step, by code and target."""
        self._features.block(self._rates, self._features.steps[number])[:] = rates

    def follow(self, load: Floats, dying: Floats, age: float, price: float) -> Ahead:
        """What is to be expected, if what is not worth the price is shed as it is made. See
        ``_kernel_ahead``.
        """
        k.follow(
            self._table, self._gates, len(self._features.bases), self.matched, self._rates, load, dying,
            age, price, self.rounds, self._brings, self._rate, self._ahead,
        )  # fmt: skip
        shape = self._features.classes, k.WHATS, known.AGES
        found, rate = self._ahead.reshape(shape), self._rate.reshape(shape)
        # What the empty run brings in one event has a whole window before it.
        begins = [self._features.bases[gate] for gate in self._features.places[0].gates]
        return Ahead(found[:, 0].copy(), found[:, 1].copy(), 1.0 + float(rate[begins, 1, 0].sum()))

    def at_once(self, load: Floats, value: Floats) -> tuple[Floats, Floats]:
        """In an event, of one partial match of each class and age: the matches to be expected of what becomes
        of it there, and by class the units of work that this is at once.

        In an event it is shown it so often (``load``). ``value``: the matches to be expected of one.
        """
        k.at_once(
            self._table, self._gates, self.matched, self._rates, load, value.ravel(), self._brings, self._rate
        )
        found = self._rate[: self._features.classes * (known.AGES + 1)].reshape(-1, known.AGES + 1)
        return found[:, :-1].copy(), found[:, -1].copy()


def _table(features: Features) -> tuple[Ints, Ints]:
    """The table of steps, and the gates of the places that they lead to, by their first classes."""
    rows, gates = list[tuple[int, ...]](), list[int]()
    for step in features.steps:
        source, target = features.places[step.source], features.places[step.target]
        begin = len(gates)
        gates += [int(features.bases[gate]) for gate in target.gates]
        base = int(features.bases[step.gate])
        rows.append((step.gate, base, source.size, target.size, step.at, begin, len(gates)))
    none = np.zeros((0, k.S_SIZE), dtype=np.int64)
    return np.array(rows or none, dtype=np.int64).ravel(), np.array(gates or [0], dtype=np.int64)


def shrunk(went: Floats, lived: Floats, usual: float) -> Floats:
    """How often in an event a partial match of each class goes on to each target (James-Stein shrinkage).

    ``went``: by class and target, how often one did, in the events that those of its class ``lived`` through.
    A class of which little was seen goes on as all of its gate do. ``usual``: the rate of a gate of which
    nothing was seen.
    """
    prior = 1.0 / max(usual, 1e-12)
    gate = (went.sum(axis=0) + 1.0 / went.shape[1]) / (lived.sum() + prior)
    weight = PRIOR / max(float(gate.sum()), 1e-12)
    return np.asarray((went + weight * gate) / (lived + weight)[:, None])


def deaths(counts: Floats, features: Features, window: float) -> Floats:
    """In an event, how many of the partial matches of each class die; a window has so many events."""
    counted = counts.reshape(-1, known.COUNTS)
    dying = np.zeros(len(counted))
    for gate in range(len(features.bases)):
        own = features.own(gate)
        died, lived = counted[own, known.DIED], counted[own, known.LIVED]
        if died.any():
            dying[own] = shrunk(died[:, None], lived, 1 / window)[:, 0]
    return dying


def by_show(gain: Floats, load: Floats) -> Floats:
    """The matches that one event brings of those that an average event does; 0 of what is shown none."""
    return np.asarray(gain * np.where(load > 0, 1 / np.maximum(load, 1e-12), 0.0)[:, None])

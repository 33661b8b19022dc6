"""How often partial matches of each class go on: what was counted comes in, what follows goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_ahead as k
from spaseq.matching.shedding.compiled import _kernel_known as known
from spaseq.matching.shedding.learned.features import DEPTHS, Features, Steps
from spaseq.matching.shedding.learned.queries import Queries
from spaseq.matching.shedding.learned.shrinking import Scratch, shrunk

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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

    ``matched``, by class: of several queries, what these are worth. Of each step and code, the rates of
    targets that are listed, and that of each other one: most targets are of other depths of a run, so that
    nothing ever went there.
    """

    def __init__(self, features: Features, queries: Queries) -> None:
        self._features, self._queries = features, queries
        self.matched: Floats = np.zeros(features.classes)
        self._table, self._gates = _table(features)
        rows = self._table.reshape(-1, k.S_SIZE)
        most = int(rows[:, k.S_TARGETS].max(initial=1))
        numbers = (rows[:, k.S_CODES] * rows[:, k.S_TARGETS]).sum()
        self._listed: Floats = np.zeros(max(1, numbers))
        self._others: Floats = np.zeros(max(1, rows[:, k.S_CODES].sum()))
        self._columns: Ints = np.zeros(
            max(1, (rows[:, k.S_DEPTHS] * rows[:, k.S_TARGETS]).sum()), dtype=np.int64
        )
        self._seen: Ints = np.zeros(max(1, rows[:, k.S_DEPTHS].sum()), dtype=np.int64)
        self._scratch = Scratch(max((p.size // p.depths for p in features.places), default=1), most)
        # What steps bring, and some of them; what comes of classes at once; their rates, and what follows.
        self._brings: Floats = np.zeros((most + 1) * k.WHATS * known.AGES)
        self._rate: Floats = np.zeros(features.classes * k.WHATS * known.AGES)
        self._ahead: Floats = np.zeros_like(self._rate)
        self._repeats = any(place.depths > 1 for place in features.places)

    @property
    def _all(self) -> tuple[Floats, Floats, Floats, Ints, Ints]:
        return self.matched, self._listed, self._others, self._columns, self._seen

    def count(self, counts: Floats, steps: Floats, window: float) -> None:
        """By what was counted of classes and of ``steps``; a window has so many events."""
        features = self._features
        counted = counts.reshape(-1, known.COUNTS)
        for place in features.places:
            for gate in place.gates:
                own = slice(features.bases[gate], features.bases[gate] + place.size)
                ends = any(step.gate == gate and step.accepts for step in features.steps)
                # Before anything is seen of a gate, it is as if in a window one had gone on there.
                self.matched[own] = shrunk(
                    counted[own, known.MATCHED, None], counted[own, known.LIVED], features.shape(place),
                    ends / window,
                )[:, 0]  # fmt: skip
        for row, step in zip(self._table.reshape(-1, k.S_SIZE).tolist(), features.steps, strict=True):
            place, base = features.places[step.source], int(features.bases[step.gate])
            self._scratch.shrink(
                features.block(steps, step), counted[base : base + place.size, known.LIVED].copy(),
                features.shape(place), _usual(step, window), self._listed[row[k.S_RATES] :],
                self._others[row[k.S_ROWS] :], self._columns[row[k.S_LISTED] :], self._seen[row[k.S_SEEN] :],
            )  # fmt: skip

    def end(self, classes: slice, rates: Mapping[int, Floats]) -> None:
        """Sets the matches that classes become, by the rates of each step from there, by code and target."""
        self.matched[classes] = 0.0
        for number, goes in rates.items():
            for way in self._features.steps[number].accepts:
                self.matched[classes] += goes.sum(axis=1) * self._queries.worth[way]

    def set(self, number: int, rates: Floats) -> None:
        """Sets the rates of a step, by code and target; its place has one depth."""
        row = self._table[number * k.S_SIZE :]
        at, rows, columns = row[k.S_RATES], row[k.S_ROWS], row[k.S_LISTED]
        codes, targets = rates.shape
        self._listed[at : at + rates.size] = rates.ravel()
        self._others[rows : rows + codes] = 0.0
        self._columns[columns : columns + targets] = np.arange(targets)
        self._seen[row[k.S_SEEN]] = targets

    def follow(self, load: Floats, dying: Floats, stands: Floats, age: float, price: float) -> Ahead:
        """What is to be expected, if what is not worth the price is shed as it is made. See
        ``_kernel_ahead``.
        """
        k.follow(
            self._table, self._gates, len(self._features.bases), *self._all, load, dying, stands, age, price,
            DEPTHS if self._repeats else 1, self._brings, self._rate, self._ahead,
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
        k.at_once(self._table, self._gates, *self._all, load, value.ravel(), self._brings, self._rate)
        found = self._rate[: self._features.classes * (known.AGES + 1)].reshape(-1, known.AGES + 1)
        return found[:, :-1].copy(), found[:, -1].copy()


def _usual(step: Steps, window: float) -> float:
    """How often in an event a step is taken before anything is seen of it.

    There is one empty run, which lives through each event once: as if in the first one something had begun.
    To say that in a window one had gone on would weigh as much as all that this run ever lives through.
    """
    return 1.0 if step.source == 0 else 1 / window


def _table(features: Features) -> tuple[Ints, Ints]:
    """The table of steps, and the gates of the places that they lead to, by their first classes."""
    rows, gates = list[tuple[int, ...]](), list[int]()
    row = listed = seen = 0
    for step in features.steps:
        source, target = features.places[step.source], features.places[step.target]
        begin = len(gates)
        gates += [int(features.bases[gate]) for gate in target.gates]
        rows.append(
            (
                step.gate, int(features.bases[step.gate]), source.size, source.depths, target.size, step.at,
                row, listed, seen, begin, len(gates),
            )
        )  # fmt: skip
        row += source.size
        listed += source.depths * target.size
        seen += source.depths
    none = np.zeros((0, k.S_SIZE), dtype=np.int64)
    return np.array(rows or none, dtype=np.int64).ravel(), np.array(gates or [0], dtype=np.int64)


def by_show(gain: Floats, load: Floats) -> Floats:
    """The matches that one event brings of those that an average event does; 0 of what is shown none."""
    return np.asarray(gain * np.where(load > 0, 1 / np.maximum(load, 1e-12), 0.0)[:, None])

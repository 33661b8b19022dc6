"""How often partial matches of each class go on: what was counted comes in, what follows goes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.filters.numbers import Numbers
from spaseq.matching.shedding import _kernel_ahead as k
from spaseq.matching.shedding import _kernel_known as known
from spaseq.matching.shedding import _kernel_rehearsed as ghosts
from spaseq.matching.shedding.features import Features, Quantiles, Rehearsed, latest

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
    """Return the matches per event shown, from those per event; 0 where none is shown."""
    return np.asarray(gain * np.where(load > 0, 1 / np.maximum(load, 1e-12), 0.0)[:, None])


#: What was tried so often at each gate is known.
_ENOUGH: Final = 32.0
#: Of so many events it is known what conditions compare.
_FEW: Final = 16
#: Before anything was tried, this share meets a condition.
_USUAL: Final = 0.5
#: How often events come with a partial match's key is as at other gates, as if so many had gone on here.
_PRIOR: Final = 4.0


class _Gate(NamedTuple):
    """What is known of a gate's classes: of each step what was rehearsed; how many partial matches went on,
    and how many would have if each event had the key of all.
    """

    classes: slice
    shares: dict[int, Floats]
    went: float
    expected: float


class Rehearsal:
    """How often events were tried on ghosts of each code, and what these became."""

    def __init__(self, features: Features, rehearsed: Rehearsed, quantiles: Quantiles) -> None:
        self._features, self._own, self._quantiles = features, rehearsed, quantiles
        self._tried: Floats = np.zeros(rehearsed.trials)
        blocks = (features.size(s.source) * features.size(s.target) for s in features.steps)
        self._went: Floats = np.zeros(sum(blocks))
        self._ghosts: Ints = np.zeros(rehearsed.ghosts, dtype=np.int64)
        self._unread: Floats = np.zeros_like(quantiles.rings)
        # Of each step, what its condition compares of the latest events.
        self._values: Floats = np.zeros(len(features.steps) * (known.RING + 1))

    def take(self, ints: Ints, floats: Floats, numbers: Numbers, columns: Ints, most: int) -> int:
        """Tries the events of a batch, on so many ghosts at most; on how many."""
        f, q = self._features, self._quantiles
        return int(
            ghosts.rehearse(
                f.tables, ints, floats, numbers.numbers, numbers.codes, columns, f.ways, q.rows, q.edges,
                self._unread, self._values, self._ghosts, self._own.slots, self._tried, self._went,
                most,
            )
        )  # fmt: skip

    def forget(self) -> None:
        """Ids of terms may be others' now: ghosts are made anew."""
        self._ghosts[:] = 0

    def decay(self, keep: float) -> None:
        """Of what was counted, a share is kept."""
        self._tried *= keep
        self._went *= keep

    def brought(self, place: int) -> Floats | None:
        """A ring of the values of events that the feature of a place is compared with, if it is."""
        for i, step in enumerate(self._features.steps):
            if step.source == place and self._own.signs[i] is not None:
                return self._values[i * (known.RING + 1) :][: known.RING + 1]
        return None

    def level(self, place: int) -> None:
        """What was counted at a place is that of all its codes, as often as ghosts have them now."""
        feature = self._features.places[place].feature
        shares = self._quantiles.shares(feature, latest(self._unread, feature))
        for i, step in enumerate(self._features.steps):
            block = self._features.block(self._went, step)
            if step.source == place:
                self._trials(i)[:] = self._trials(i).sum() * shares
                block[:] = block.sum(axis=0) * shares[:, None]
            if step.target == place:
                block[:] = block.sum(axis=1, keepdims=True) * shares

    def replace(self, rates: Rates, counts: Floats, steps: Floats) -> None:
        """Puts what was rehearsed in the place of rates that were counted, where it is enough.

        ``counts`` and ``steps`` are the cost model's: an event comes with a partial match's key as often as
        it takes for as many to have gone on as did.
        """
        f, gates = self._features, list[_Gate]()
        for gate in sorted({step.gate for step in f.steps} - set(f.places[0].gates)):
            own = [i for i, step in enumerate(f.steps) if step.gate == gate]
            if any(self._trials(i).sum() < _ENOUGH for i in own):
                continue
            shares = {i: self._share(i) for i in own}
            classes = slice(f.bases[gate], f.bases[gate] + len(shares[own[0]]))
            went = counts[classes, known.MATCHED].sum() + sum(f.block(steps, f.steps[i]).sum() for i in own)
            goes = np.sum([share.sum(axis=1) for share in shares.values()], axis=0)
            expected = counts[classes, known.LIVED] @ goes
            gates.append(_Gate(classes, shares, float(went), float(expected)))
        all_went, all_expected = sum(one.went for one in gates), sum(one.expected for one in gates)
        if not all_went or not all_expected:
            return
        for one in gates:
            often = (one.went + _PRIOR) / (one.expected + _PRIOR * all_expected / all_went)
            goes = {i: often * share for i, share in one.shares.items()}
            rates.end(one.classes, goes)
            for i, own in goes.items():
                rates.set(i, own)

    def _trials(self, step: int) -> Floats:
        begin = self._own.begins[step]
        return self._tried[begin : begin + self._features.places[self._features.steps[step].source].size]

    def _share(self, step: int) -> Floats:
        """Of events that come with a key, by code, how many go on to each; times how many come."""
        f, tried = self._features, self._trials(step)
        own = f.steps[step]
        place = f.places[own.source]
        share = shrunk(f.block(self._went, own), tried, _USUAL)
        sign, values = self._own.signs[step], latest(self._values, step)
        if sign is not None and len(values) >= _FEW:
            share *= (self._met(sign, values, place.feature) / share.sum(axis=1))[:, None]
        return np.asarray(share * tried.sum())

    def _met(self, sign: str, values: Floats, feature: int) -> Floats:
        """By level of a feature, of how many of the values of events the comparison is true."""
        edges, others = self._quantiles.own(feature), latest(self._unread, feature)
        ends = np.concatenate([edges, edges[-1:]])
        met = np.full(known.LEVELS, 0.5)
        if len(others):
            means = _expected_of(sign, others, values)
            at = 1 + np.searchsorted(edges, others)
            count = np.bincount(at, minlength=known.LEVELS)
            met[1 : 1 + len(ends)] = _expected_of(sign, ends, values)
            met = np.where(count > 0, np.bincount(at, means, known.LEVELS) / np.maximum(count, 1), met)
            met[0] = means.mean()
        return met


def _expected_of(sign: str, left: Floats, right: Floats) -> Floats:
    """The same of a number to come, if those on the right are all that is known of it: as if one more were
    known, which is half true.
    """
    return np.asarray((_share_of(sign, left, right) * len(right) + 0.5) / (len(right) + 1))


def _share_of(sign: str, left: Floats, right: Floats) -> Floats:
    """Of each number on the left, with which share of those on the right the comparison is true."""
    ordered = np.sort(right)
    below = np.searchsorted(ordered, left, "left" if sign in ("<=", ">") else "right") / len(right)
    return np.asarray(1 - below if sign.startswith("<") else below)


Mask = npt.NDArray[np.bool_]


class Queries:
    """Queries whose matches are found together."""

    def __init__(self, ends: Mask, weights: Floats) -> None:
        """``ends``: in which ways those of each end, of shape ``(queries, ways)``; ``weights``: what a match
        of each query is worth.
        """
        self._ends, self._weights = ends, weights
        #: What a match is worth, by the way that it ends.
        self.worth: Floats = weights @ ends

    def keep(self, live: Collection[int]) -> None:
        """No query wants anything but these, by number."""
        some = sorted(live)
        self.worth[:] = self._weights[some] @ self._ends[some]


def only(ways: int) -> Queries:
    """Return a single query whose matches end in ``ways`` ways."""
    return Queries(np.ones((1, ways), dtype=np.bool_), np.ones(1))

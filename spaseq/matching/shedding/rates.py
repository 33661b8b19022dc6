"""Rates: how often partial matches of each class advance, from counts; and the expectations that follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.filters._kernel_values import RunMachine
from spaseq.matching.shedding import _kernel_ahead as k
from spaseq.matching.shedding import _kernel_known as known
from spaseq.matching.shedding import _kernel_rehearsed as ghosts
from spaseq.matching.shedding.features import Features, Quantiles, Rehearsed, latest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A class's rate is its own count, plus this many events at the rate of its gate.
PRIOR: Final = 2.0
#: The number of rounds of a loop that are computed, if a step leads back to its place.
ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class Ahead:
    """The expected matches and units of work of one partial match of each class and age.

    ``root``: the units of work per event of everything that begins with it.
    """

    value: Floats
    cost: Floats
    root: float


class Rates:
    """The rates at which a partial match of each class becomes matches, and advances, per event.

    ``matched``: the rates of matches by class; if there are several queries, weighted by their values.
    """

    def __init__(self, features: Features, queries: Queries) -> None:
        self._features, self._queries = features, queries
        self.matched: Floats = np.zeros(features.classes)
        steps, places = features.steps, features.places
        most = max((place.size for place in places), default=1)
        rate = np.zeros(features.classes * k.WHATS * known.AGES)
        self._steps = k.StepRates(
            *_table(features),
            self.matched,
            rates=np.zeros(features.counted),
            brings=np.zeros(most * k.WHATS * known.AGES),
            rate=rate,
            ahead=np.zeros_like(rate),
        )
        leads_back = any(gate <= step.gate for step in steps for gate in places[step.target].gates)
        self.rounds = ROUNDS if leads_back else 1

    def count(self, counts: Floats, steps: Floats, window: float) -> None:
        """Set the rates from the counts of classes and of ``steps``; ``window``: the number of events in a
        window.
        """
        features = self._features
        counted = counts.reshape(-1, known.COUNTS)
        for gate in range(len(features.bases)):
            own = features.own(gate)
            ends = any(step.gate == gate and step.accepts for step in features.steps)
            # Initially, as if one per window had advanced at each gate.
            went, lived = counted[own, known.MATCHED, None], counted[own, known.LIVED]
            self.matched[own] = shrunk(went, lived, ends / window)[:, 0]
        for number, step in enumerate(features.steps):
            # There is one empty run: it lives through each event once.
            usual = 1.0 if step.source == 0 else 1 / window
            lived = counted[features.own(step.gate), known.LIVED]
            self.set(number, shrunk(features.block(steps, step), lived, usual))

    def end(self, classes: slice, rates: Mapping[int, Floats]) -> None:
        """Set the rates of matches of some classes, from the rates of each step that they may take, by code
        and target.
        """
        self.matched[classes] = 0.0
        for number, goes in rates.items():
            for way in self._features.steps[number].accepts:
                self.matched[classes] += goes.sum(axis=1) * self._queries.worth[way]

    def set(self, number: int, rates: Floats) -> None:
        """Set the rates of a step, by code and target."""
        self._features.block(self._steps.rates, self._features.steps[number])[:] = rates

    def follow(self, load: Floats, dying: Floats, age: float, price: float) -> Ahead:
        """Return the expectations if partial matches not worth the price are shed as they are made. See
        ``_kernel_ahead``.
        """
        k.follow(self._steps, len(self._features.bases), load, dying, age, price, self.rounds)
        shape = self._features.classes, k.WHATS, known.AGES
        found, rate = self._steps.ahead.reshape(shape), self._steps.rate.reshape(shape)
        # The results of the empty run in one event have a whole window ahead.
        begins = [self._features.bases[gate] for gate in self._features.places[0].gates]
        return Ahead(found[:, 0].copy(), found[:, 1].copy(), 1.0 + float(rate[begins, 1, 0].sum()))

    def at_once(self, load: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Return, for one event, the expected matches of what becomes of a partial match, and the immediate
        work.

        The matches are by class and age, the work by class in units. A partial match is shown an event
        ``load`` times per event that comes. ``value``: the expected matches of a partial match.
        """
        found = np.zeros((self._features.classes, known.AGES + 1))
        k.at_once(self._steps, load, value.ravel(), found.ravel())
        return found[:, :-1].copy(), found[:, -1].copy()


def _table(features: Features) -> tuple[Ints, Ints]:
    """Return the table of steps, and the gates of their target places, by their first classes."""
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
    """Return the rates per event at which each class advances to each target (James-Stein shrinkage).

    ``went``: counts by class and target, in the events that the partial matches of the class ``lived``
    through. A class with few counts is shrunk towards its gate. ``usual``: the rate of a gate without counts.
    """
    prior = 1.0 / max(usual, 1e-12)
    gate = (went.sum(axis=0) + 1.0 / went.shape[1]) / (lived.sum() + prior)
    weight = PRIOR / max(float(gate.sum()), 1e-12)
    return np.asarray((went + weight * gate) / (lived + weight)[:, None])


def deaths(counts: Floats, features: Features, window: float) -> Floats:
    """Return the rate of dying per event of each class; ``window``: the number of events in a window."""
    counted = counts.reshape(-1, known.COUNTS)
    dying = np.zeros(len(counted))
    for gate in range(len(features.bases)):
        own = features.own(gate)
        died, lived = counted[own, known.DIED], counted[own, known.LIVED]
        if died.any():
            dying[own] = shrunk(died[:, None], lived, 1 / window)[:, 0]
    return dying


def by_show(gain: Floats, load: Floats) -> Floats:
    """Return the matches per event that is shown, from the matches per event (``gain``); 0 where no event is
    shown.
    """
    return np.asarray(gain * np.where(load > 0, 1 / np.maximum(load, 1e-12), 0.0)[:, None])


#: Enough trials at a gate for its rates to be used.
_ENOUGH: Final = 32.0
#: The number of latest events from which compared values are used.
_FEW: Final = 16
#: The assumed share that meets a condition before any trial.
_USUAL: Final = 0.5
#: The prior for how often events have a partial match's key, as at other gates: this many advances.
_PRIOR: Final = 4.0


class _Gate(NamedTuple):
    """The estimates for a gate's classes: the rehearsed shares of each step; how many partial matches
    advanced, and how many would have advanced if each event had their key.
    """

    classes: slice
    shares: dict[int, Floats]
    went: float
    expected: float


class Rehearsal:
    """How often events were tried on ghosts of each code, and the results."""

    def __init__(self, features: Features, rehearsed: Rehearsed, quantiles: Quantiles) -> None:
        self._features, self._own, self._quantiles = features, rehearsed, quantiles
        self._tried: Floats = np.zeros(rehearsed.trials)
        blocks = (features.size(s.source) * features.size(s.target) for s in features.steps)
        self._went: Floats = np.zeros(sum(blocks))
        self._ghosts: Ints = np.zeros(rehearsed.ghosts, dtype=np.int64)
        self._unread: Floats = np.zeros_like(quantiles.rings)
        # For each step, the compared values of the latest events.
        self._values: Floats = np.zeros(len(features.steps) * (known.RING + 1))
        arrays = self._unread, self._values, self._tried, self._went
        self._arrays = ghosts.Ghosts(self._ghosts, rehearsed.slots, *arrays)

    def take(self, machine: RunMachine, learned: known.Learned, columns: Ints, most: int) -> int:
        """Try the events of a batch on at most ``most`` ghosts; return the number of trials."""
        return int(ghosts.rehearse(machine, learned, self._arrays, columns, most))

    def forget(self) -> None:
        """Forget the ghosts: ids may have been given to other terms."""
        self._ghosts[:] = 0

    def decay(self, keep: float) -> None:
        """Keep this share of the counts."""
        self._tried *= keep
        self._went *= keep

    def brought(self, place: int) -> Floats | None:
        """Return the ring of events' values with which a place's feature is compared; None if it is compared
        with none.
        """
        for i, step in enumerate(self._features.steps):
            if step.source == place and self._own.signs[i] is not None:
                return self._values[i * (known.RING + 1) :][: known.RING + 1]
        return None

    def level(self, place: int) -> None:
        """Spread the counts of a place over its codes, in proportion to its ghosts' codes now."""
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
        """Replace counted rates by rehearsed ones, where there are enough trials.

        ``counts`` and ``steps`` are the cost model's. The frequency of a partial match's key among events is
        estimated so that the rehearsed rates give as many advances as were counted.
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
        """Return, for each code of a partial match, the expected number of results of each code, for an event
        with its key.
        """
        f, tried = self._features, self._trials(step)
        own = f.steps[step]
        place = f.places[own.source]
        share = shrunk(f.block(self._went, own), tried, _USUAL)
        sign, values = self._own.signs[step], latest(self._values, step)
        if sign is not None and len(values) >= _FEW:
            share *= (self._met(sign, values, place.feature) / share.sum(axis=1))[:, None]
        return np.asarray(share * tried.sum())

    def _met(self, sign: str, values: Floats, feature: int) -> Floats:
        """Return, by level of a feature, the share of the events' values for which the comparison is true."""
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
    """Return ``_share_of`` for future numbers, of which the numbers on the right are a sample. One more
    comparison is assumed, which is true with probability one half.
    """
    return np.asarray((_share_of(sign, left, right) * len(right) + 0.5) / (len(right) + 1))


def _share_of(sign: str, left: Floats, right: Floats) -> Floats:
    """Return, for each number on the left, the share of those on the right for which the
    comparison is true.
    """
    ordered = np.sort(right)
    below = np.searchsorted(ordered, left, "left" if sign in ("<=", ">") else "right") / len(right)
    return np.asarray(1 - below if sign.startswith("<") else below)


Mask = npt.NDArray[np.bool_]


class Queries:
    """Queries that run together."""

    def __init__(self, ends: Mask, weights: Floats) -> None:
        """``ends``: the ways in which each query's matches end, of shape ``(queries, ways)``; ``weights``:
        the value of a match of each query.
        """
        self._ends, self._weights = ends, weights
        #: The value of a match, by the way that it ends.
        self.worth: Floats = weights @ ends

    def keep(self, live: Collection[int]) -> None:
        """Note that only these queries, by number, need matches from now on."""
        some = sorted(live)
        self.worth[:] = self._weights[some] @ self._ends[some]


def only(ways: int) -> Queries:
    """Return a single query with ``ways`` ways for matches to end."""
    return Queries(np.ones((1, ways), dtype=np.bool_), np.ones(1))

"""What would become of partial matches, whatever is shed: events are tried on *ghosts* (``compiled``).

Of what is shed nothing is learned, and the partial matches before a condition are often of a few events: who
counts these alone takes for impossible what did not happen to them. Here every event counts, whatever there
is. Where a condition compares a feature with what an event brings, the latest values of events say how often
it is true, and trials only what follows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.matching.conditions.numbers import Numbers
from spaseq.matching.shedding.compiled import _kernel_known as known
from spaseq.matching.shedding.compiled import _kernel_rehearsed as k
from spaseq.matching.shedding.learned.features import Features, Rehearsed
from spaseq.matching.shedding.learned.quantiles import Quantiles, latest
from spaseq.matching.shedding.learned.rates import Rates, shrunk

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

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
            k.rehearse(
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

        ``counts`` and ``steps`` are the sketch's: an event comes with the key of a partial match as often as
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

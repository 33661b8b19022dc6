"""The cost model: the expected matches and work of partial matches, learned from earlier ones.

Its *classes* are: the gate at which a partial match waits, and the quantiles of the values that later
conditions compare (``features``). For each class, it counts how often its partial matches advance to each
following class, or become matches. These single steps are not distorted by later shedding. The expectations
for the rest of the window are computed from the steps, from the last gate to the first. All counts are halved
within a window, so that they follow drift.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.bounds import Policy
from spaseq.matching.shedding import _kernel_known as k
from spaseq.matching.shedding.features import Features, Quantiles
from spaseq.matching.shedding.overload import WindowLength
from spaseq.matching.shedding.rates import Ahead, Queries, Rates, Rehearsal, by_show, deaths

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: If there is time for less than the share ``_LITTLE`` of all work, shedding is not due to bursts alone; from
#: the share ``_MOST`` on, it is.
_LITTLE: Final = 0.2
_MOST: Final = 0.4
#: The price reduces work to this multiple of what there is time for. The rest is shed when events are to be
#: shown, by what is known then. Fewer matches were found with a price that alone kept work within its bound.
_LATER: Final = 2.0
#: The number of bisection steps for the price.
_STEPS: Final = 12


class Utilities(NamedTuple):
    """The value of keeping a partial match of each cell, and its load."""

    gains: Floats
    loads: Floats


class CostModel:
    """The counts of each class, and the expectations. ``alive``: the number of partial matches of each
    cell.
    """

    def __init__(self, features: Features, limit: int, queries: Queries) -> None:
        """``limit``: the reach of a window on its axis; 0 for tumbling ones, with their numbers as axis.

        ``queries``: the queries of the matches.
        """
        self.features = features
        self.counts: Floats = np.zeros(features.classes * k.COUNTS)
        self.steps: Floats = np.zeros(features.counted)
        self.queries = queries
        self.alive: Ints = np.zeros(features.classes * k.AGES, dtype=np.int64)
        self.quantiles = Quantiles(features)
        gates = len(features.bases)
        self.gates: Ints = np.zeros(features.classes, dtype=np.int64)
        for gate in np.argsort(features.bases, kind="stable").tolist():
            self.gates[features.bases[gate] :] = gate
        #: The length of a window, in events.
        self.window = WindowLength(limit)
        #: For each gate, how often its partial matches were shown an event, or passed over.
        self.shows: Floats = np.zeros(gates)
        #: The matches that a unit of work must bring, if there is too much work; otherwise 0.
        self.price = 0.0
        #: The units of work of an event if nothing were shed.
        self.coming = 0.0
        #: Whether there is a plan.
        self.is_planned = False
        #: How equal the utilities of all partial matches were at the time of the plan.
        self.even = 0.0
        nothing = np.zeros((features.classes, k.AGES))
        self._ahead = Ahead(nothing, nothing, 0.0)
        #: By cell, the expected matches of a partial match, and of showing it one event.
        self.expected, self.expected_by_show = nothing.ravel(), nothing.ravel()
        self._rates = Rates(features, queries)
        rehearsed = features.rehearsed
        #: Rehearsals; None for queries in which the effect of an event depends on more than the bindings.
        self.rehearsal = None if rehearsed is None else Rehearsal(features, rehearsed, self.quantiles)

    # --- counting ---------------------------------------------------------------------------------

    def decay(self, events: float) -> None:
        """Decay the counts after this many events."""
        self.window.age = max(self.window.age, 1.0)
        keep = 0.5 ** (events / (k.AGES * self.window.age))
        for counted in (self.counts, self.steps, self.shows):
            counted *= keep
        if self.rehearsal is not None:
            self.rehearsal.decay(keep)
        # The empty run lives through all events.
        for gate in self.features.places[0].gates:
            self.counts[self.features.bases[gate] * k.COUNTS + k.LIVED] += events

    def outlive(self, events: int) -> None:
        """Count the events that some partial matches lived through since ``alive`` was counted: those with a
        window that ended during the last ``events``.

        These partial matches are not seen again. Without their events, rates would be too high.
        """
        counts = self.counts.reshape(-1, k.COUNTS)
        counts[:, k.LIVED] += self.alive.reshape(-1, k.AGES) @ ended(events, self.window.age)

    def learn(self) -> bool:
        """Learn the edges of features again where due; return whether codes have changed."""
        changed = False
        for number, place in enumerate(self.features.places):
            brought = None if self.rehearsal is None else self.rehearsal.brought(number)
            if place.feature >= 0 and self.quantiles.learn(place.feature, brought):
                self._level(number)
                changed = True
        return changed

    def _level(self, place: int) -> None:
        """Spread the counts of a place over its codes, in proportion to the latest values of its feature."""
        codes = self.features.places[place]
        counts = self.counts.reshape(-1, k.COUNTS)
        shares = self.quantiles.shares(codes.feature, self.quantiles.values(codes.feature))
        for gate in codes.gates:
            own = counts[self.features.own(gate)]
            own[:] = own.sum(axis=0) * shares[:, None]
        for step in self.features.steps:
            block = self.features.block(self.steps, step)
            if step.source == place:
                block[:] = block.sum(axis=0) * shares[:, None]
            if step.target == place:
                block[:] = block.sum(axis=1, keepdims=True) * shares
        if self.rehearsal is not None:
            self.rehearsal.level(place)

    # --- expectations -----------------------------------------------------------------------------

    def load(self) -> Floats:
        """Return, by class, how often a partial match is shown an event, per event that comes."""
        return self._each(self.shows)

    def _each(self, shows: Floats) -> Floats:
        return np.asarray((shows / np.maximum(self._by_gate(self._lived), 1.0))[self.gates])

    @property
    def _lived(self) -> Floats:
        """The events that partial matches have lived through, by class."""
        return self.counts.reshape(-1, k.COUNTS)[:, k.LIVED]

    def _by_gate(self, numbers: Floats) -> Floats:
        return np.bincount(self.gates, numbers, len(self.shows)).astype(np.float64)

    def begin(self) -> None:
        """Load compiled code, which takes a while."""
        self._rate()
        nothing = np.zeros(self.features.classes)
        self._follow(nothing, nothing, 0.0)
        self._rates.at_once(nothing, self._ahead.value)

    def plan(self, most: float) -> None:
        """Set the price of work; it is 0 if there is not too much work. ``most``: the units per event that
        there is time for.
        """
        self.is_planned = True
        load, dying = self.load(), self._dying()
        self._rate()
        self._ahead = self._follow(load, dying, 0.0)
        self.coming = self._ahead.root
        self.price = self._priced(load, dying, _LATER * most)
        self.expected = self._ahead.value.ravel()
        alive = self.alive.reshape(-1, k.AGES)
        self.even = evenness((alive * self._ahead.value).ravel(), (alive * self._ahead.cost).ravel())
        self.even *= min(1.0, max(0.0, (most / self.coming - _LITTLE) / (_MOST - _LITTLE)))
        if self.price:
            self._ahead = self._follow(load, dying, self.price)

    def _priced(self, load: Floats, dying: Floats, most: float) -> float:
        """Return about the least price at which an event takes at most ``most`` units."""
        if self.coming <= most:
            return 0.0
        low, high = 0.0, 1.0  # a match costs a unit itself
        for _ in range(_STEPS):
            price = (low + high) / 2 if low else high / 8
            if self._follow(load, dying, price).root > most:
                low = price
            else:
                high = price
        return high

    def _rate(self) -> None:
        """Compute how often per event a partial match of each class advances, from the counts."""
        self._rates.count(self.counts, self.steps, k.AGES * self.window.age)
        if self.rehearsal is not None:
            counts = self.counts.reshape(-1, k.COUNTS)
            self.rehearsal.replace(self._rates, counts, self.steps)

    def _follow(self, load: Floats, dying: Floats, price: float) -> Ahead:
        """Return the expectations if partial matches not worth the price are shed as soon as they
        are made.
        """
        return self._rates.follow(load, dying, self.window.age, price)

    def _dying(self) -> Floats:
        return deaths(self.counts, self.features, k.AGES * self.window.age)

    def at_once(self) -> tuple[Floats, Floats]:
        """Return ``Rates.at_once`` at the current rates."""
        self._rate()
        load = self.load()
        gain, work = self._rates.at_once(load, self._ahead.value)
        self.expected_by_show = by_show(gain, load).ravel()
        return gain, work

    def kept(self, share: float, policy: Policy, *, by_size: bool = False) -> Floats:
        """Return the share of each cell to keep, so that ``share`` of the load remains.

        ``by_size``: the load is memory, not the work at the next events.

        The best partial matches to keep bring most matches, minus the price of the work that they will cause,
        relative to their load *now*. Later work can be shed later, and first events, from which many matches
        grow, are little load.
        """
        alive = self.alive.reshape(-1, k.AGES)
        load = np.ones(len(alive)) if by_size else self.load()
        if policy is Policy.RANDOM_STATE or not load.any():
            return np.full(alive.size, share)
        if policy is Policy.SELECTIVE:
            value = self._selectivity()[:, None].repeat(k.AGES, axis=1)
        else:
            gain = self._ahead.value - self.price * self._ahead.cost
            value = gain / np.maximum(load, 1e-9)[:, None]
        loads = (alive * load[:, None]).ravel()
        some = np.flatnonzero(loads)
        order = some[np.argsort(-value.ravel()[some], kind="stable")]
        total = np.cumsum(loads[order])
        kept = np.ones(alive.size)
        if len(order):
            most = share * total[-1]
            kept[order] = np.clip((most - (total - loads[order])) / loads[order], 0.0, 1.0)
        return kept

    def worth(self, policy: Policy, *, by_size: bool = False) -> Utilities:
        """Return the utilities by which ``kept`` ranks, for shedding several partial matches together."""
        load = np.ones(len(self.alive) // k.AGES) if by_size else self.load()
        if policy is Policy.SELECTIVE:
            gain = (self._selectivity() * load)[:, None].repeat(k.AGES, axis=1)
        else:
            gain = self._ahead.value - self.price * self._ahead.cost
        return Utilities(gain.ravel(), load.repeat(k.AGES))

    def _selectivity(self) -> Floats:
        """Return how often per event the partial matches of a gate advance or become matches, by class."""
        counts = self.counts.reshape(-1, k.COUNTS)
        went = self._by_gate(counts[:, k.MATCHED])
        for step in self.features.steps:
            went[step.gate] += self.features.block(self.steps, step).sum()
        return np.asarray((went / np.maximum(self._by_gate(self._lived), 1e-9))[self.gates])


def ended(events: float, age: float) -> Floats:
    """Return, for each age, how many of the last ``events`` a partial match lived through if its window ended
    among them.

    This is an average over an age, which has ``age`` events. It is 0 for ages in which no window has ended.

    >>> ended(4, 16.0)[-2:].tolist()  # in the last age, the window of a quarter ends, of each after two
    [0.0, 0.5]
    """
    left = age * np.arange(k.AGES)[::-1]
    return np.asarray((np.clip(events, left, left + age) ** 2 - left**2) / (2 * age))


#: The share of the expected work, caused by the partial matches of lowest utility, that is compared.
_WORST: Final = 0.5
#: The value of this share of the work, relative to the average value of as much work: below ``_LESS`` it is
#: clearly worse, above ``_SAME`` about equal.
_LESS: Final = 0.55
_SAME: Final = 0.75


def evenness(value: Floats, cost: Floats) -> float:
    """Return how equal utilities are, from 0 to 1, given the expected matches and units of work."""
    some = np.flatnonzero(cost > 0)
    value, cost = value[some], cost[some]
    if not (whole := float(value.sum())):
        return 0.0
    order = np.argsort(value / cost, kind="stable")
    work = np.concatenate([[0.0], np.cumsum(cost[order])])
    matches = np.concatenate([[0.0], np.cumsum(value[order])])
    share = float(np.interp(_WORST * work[-1], work, matches)) / (_WORST * whole)
    return min(1.0, max(0.0, (share - _LESS) / (_SAME - _LESS)))

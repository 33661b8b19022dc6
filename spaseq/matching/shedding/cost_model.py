"""The cost model: the matches and work to be expected of partial matches, learned from earlier ones.

It is kept by *classes*: the gate that a partial match waits at, and the quantiles of what later conditions
compare of it (``features``). Of each class it is counted how often its partial matches went on to each class
behind it, or became matches: one step each, which what is shed later does not distort. What follows of a
partial match in the rest of its window is calculated of these steps, from the last gate to the first. All
counts halve within a window, so that they follow drift.
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

#: Of all work that comes there is time for such a part, or less: then it is not bursts that anything is shed
#: for. From such a part on it is bursts alone.
_LITTLE: Final = 0.2
_MOST: Final = 0.4
#: What the price leaves is so many times the work that there is time for: the rest is shed when it is to be
#: shown events, by what is known of it then. If the price alone kept work within its bound, less was found.
_LATER: Final = 2.0
#: So often the price is halved or doubled towards what keeps work within its bound.
_STEPS: Final = 12


class Utilities(NamedTuple):
    """Of a partial match of each cell: what it is worth to keep it, and the load that it is."""

    gains: Floats
    loads: Floats


class CostModel:
    """What was counted of each class, and what follows from it. ``alive``: the partial matches there are."""

    def __init__(self, features: Features, limit: int, queries: Queries) -> None:
        """``limit``: how far a window reaches on its axis; 0 for tumbling ones, whose numbers that is.

        ``queries``: whose the matches are.
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
        #: How many events a window has.
        self.window = WindowLength(limit)
        #: Of each gate, how often its partial matches were shown an event, or passed over.
        self.shows: Floats = np.zeros(gates)
        #: The matches that a unit of work must bring, as there is too much of it; 0 while there is not.
        self.price = 0.0
        #: The units of work that an event would take if nothing were shed.
        self.coming = 0.0
        #: Whether these were asked for.
        self.is_planned = False
        #: How far all partial matches that there were when it was are worth the same.
        self.even = 0.0
        nothing = np.zeros((features.classes, k.AGES))
        self._ahead = Ahead(nothing, nothing, 0.0)
        #: By cell, the matches to be expected of a partial match, and of an event that it is shown.
        self.expected, self.expected_by_show = nothing.ravel(), nothing.ravel()
        self._rates = Rates(features, queries)
        rehearsed = features.rehearsed
        #: What is tried beside what there is; none of queries in which more matters than what is bound.
        self.rehearsal = None if rehearsed is None else Rehearsal(features, rehearsed, self.quantiles)

    # --- what was seen --------------------------------------------------------------------------

    def decay(self, events: float) -> None:
        """So many events have passed."""
        self.window.age = max(self.window.age, 1.0)
        keep = 0.5 ** (events / (k.AGES * self.window.age))
        for counted in (self.counts, self.steps, self.shows):
            counted *= keep
        if self.rehearsal is not None:
            self.rehearsal.decay(keep)
        # The empty run lives through all of them.
        for gate in self.features.places[0].gates:
            self.counts[self.features.bases[gate] * k.COUNTS + k.LIVED] += events

    def outlive(self, events: int) -> None:
        """So many events after ``alive`` was counted: counts those that a window's end came for meanwhile.

        These are not seen again. Without the events that they lived through, rates would be too high.
        """
        counts = self.counts.reshape(-1, k.COUNTS)
        counts[:, k.LIVED] += self.alive.reshape(-1, k.AGES) @ ended(events, self.window.age)

    def learn(self) -> bool:
        """Learns the edges of features anew, where that is due; whether codes mean something else now."""
        changed = False
        for number, place in enumerate(self.features.places):
            brought = None if self.rehearsal is None else self.rehearsal.brought(number)
            if place.feature >= 0 and self.quantiles.learn(place.feature, brought):
                self._level(number)
                changed = True
        return changed

    def _level(self, place: int) -> None:
        """What was counted at a place is that of all its codes, as its latest values lie."""
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

    # --- what follows ---------------------------------------------------------------------------

    def load(self) -> Floats:
        """How many partial matches of a class an event is to be shown, of one there is, by class."""
        return self._each(self.shows)

    def _each(self, shows: Floats) -> Floats:
        return np.asarray((shows / np.maximum(self._by_gate(self._lived), 1.0))[self.gates])

    @property
    def _lived(self) -> Floats:
        """How many events partial matches have lived through, by class."""
        return self.counts.reshape(-1, k.COUNTS)[:, k.LIVED]

    def _by_gate(self, numbers: Floats) -> Floats:
        return np.bincount(self.gates, numbers, len(self.shows)).astype(np.float64)

    def begin(self) -> None:
        """Has compiled code ready, which takes a while to be loaded."""
        self._rate()
        nothing = np.zeros(self.features.classes)
        self._follow(nothing, nothing, 0.0)
        self._rates.at_once(nothing, self._ahead.value)

    def plan(self, most: float) -> None:
        """Sets the price of work, where an event is to take so many units and would take too many; else 0."""
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
        """The least price, about, at which an event takes no more than so many units."""
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
        """Learns how often in an event a partial match of each class goes on, by what was counted."""
        self._rates.count(self.counts, self.steps, k.AGES * self.window.age)
        if self.rehearsal is not None:
            counts = self.counts.reshape(-1, k.COUNTS)
            self.rehearsal.replace(self._rates, counts, self.steps)

    def _follow(self, load: Floats, dying: Floats, price: float) -> Ahead:
        """What is to be expected if a partial match not worth the price is shed as soon as it is made."""
        return self._rates.follow(load, dying, self.window.age, price)

    def _dying(self) -> Floats:
        return deaths(self.counts, self.features, k.AGES * self.window.age)

    def at_once(self) -> tuple[Floats, Floats]:
        """See ``Rates.at_once``: as things go."""
        self._rate()
        load = self.load()
        gain, work = self._rates.at_once(load, self._ahead.value)
        self.expected_by_show = by_show(gain, load).ravel()
        return gain, work

    def kept(self, share: float, policy: Policy, *, by_size: bool = False) -> Floats:
        """Of each cell, which share of its partial matches is kept, so that ``share`` of the load remains.

        ``by_size``: it is not the work at the next events that counts, but the memory.

        What is best to keep brings most, less the price of the work that will come of it, for the load it is
        *now*: what comes later can be shed later, and first events that many matches grow of are little load.
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
        """Return the utilities that ``kept`` ranks by, for shedding several partial matches together."""
        load = np.ones(len(self.alive) // k.AGES) if by_size else self.load()
        if policy is Policy.SELECTIVE:
            gain = (self._selectivity() * load)[:, None].repeat(k.AGES, axis=1)
        else:
            gain = self._ahead.value - self.price * self._ahead.cost
        return Utilities(gain.ravel(), load.repeat(k.AGES))

    def _selectivity(self) -> Floats:
        """How often the partial matches of a gate go on, or become matches, in an event, by class."""
        counts = self.counts.reshape(-1, k.COUNTS)
        went = self._by_gate(counts[:, k.MATCHED])
        for step in self.features.steps:
            went[step.gate] += self.features.block(self.steps, step).sum()
        return np.asarray((went / np.maximum(self._by_gate(self._lived), 1e-9))[self.gates])


def ended(events: float, age: float) -> Floats:
    """By age, how many of so many events one lives through whose window ends before the last of them.

    On average over all of an age, which has ``age`` events: 0 of the others.

    >>> ended(4, 16.0)[-2:].tolist()  # in the last age, the window of a quarter ends, of each after two
    [0.0, 0.5]
    """
    left = age * np.arange(k.AGES)[::-1]
    return np.asarray((np.clip(events, left, left + age) ** 2 - left**2) / (2 * age))


#: The share of the work to come that is caused by the partial matches of lowest utility.
_WORST: Final = 0.5
#: What these bring, as a share of what as much work brings on average: from where on they are worth less than
#: the others, and about the same.
_LESS: Final = 0.55
_SAME: Final = 0.75


def evenness(value: Floats, cost: Floats) -> float:
    """From 0 to 1, of the matches to be expected of partial matches, and the units of work that they are."""
    some = np.flatnonzero(cost > 0)
    value, cost = value[some], cost[some]
    if not (whole := float(value.sum())):
        return 0.0
    order = np.argsort(value / cost, kind="stable")
    work = np.concatenate([[0.0], np.cumsum(cost[order])])
    matches = np.concatenate([[0.0], np.cumsum(value[order])])
    share = float(np.interp(_WORST * work[-1], work, matches)) / (_WORST * whole)
    return min(1.0, max(0.0, (share - _LESS) / (_SAME - _LESS)))

"""What a sketch expects of partial matches, in plain Python: what kernels calculate is compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding import _kernel_known as k
from spaseq.matching.shedding._kernel_ahead import MARGIN
from spaseq.matching.shedding.cost_model import CostModel
from spaseq.matching.shedding.rates import Rates, deaths, shrunk

Floats = npt.NDArray[np.float64]


@dataclass
class Plain:
    """Rates: of each class the matches that one becomes in an event, of each step where it goes on to, and
    whether a match may end there.
    """

    matched: Floats
    ways: list[Floats]
    ends: list[bool]

    def end(self, classes: slice, rates: Mapping[int, Floats]) -> None:
        """See ``Rates.end``: of one query, whose matches are worth one each."""
        self.matched[classes] = sum(
            (goes.sum(axis=1) for i, goes in rates.items() if self.ends[i]), np.zeros(1)
        )

    def set(self, number: int, rates: Floats) -> None:
        """What is rehearsed of a step."""
        self.ways[number] = rates


def rates(of: CostModel) -> Plain:
    """The rates of a sketch."""
    f, counts, window = of.features, of.counts.reshape(-1, k.COUNTS), k.AGES * of.window.age
    plain = Plain(np.zeros(len(counts)), [], [bool(step.accepts) for step in f.steps])
    for place in f.places:
        for gate in place.gates:
            own = slice(f.bases[gate], f.bases[gate] + place.size)
            ends = any(s.gate == gate and not f.places[s.target].gates for s in f.steps)
            became, lived = counts[own, k.MATCHED, None], counts[own, k.LIVED]
            plain.matched[own] = shrunk(became, lived, ends / window)[:, 0]
    for step in f.steps:
        block = f.block(of.steps, step)
        lived = counts[f.bases[step.gate] :][: len(block), k.LIVED]
        # Of the empty run, as if in the first event something had begun.
        usual = 1 / window if step.source else 1.0
        plain.ways.append(shrunk(block, lived, usual))
    if of.rehearsal is not None:
        of.rehearsal.replace(cast(Rates, plain), counts, of.steps)
    return plain


def follow(of: CostModel, plain: Plain, price: float) -> Floats:
    """Matches and units of work to be expected, by class and age, if what is not worth the price is shed."""
    f, load = of.features, of.load()
    ahead = np.zeros((2, f.classes, k.AGES))
    dying = deaths(of.counts, of.features, k.AGES * of.window.age)
    for _ in range(of._rates.rounds):
        last = ahead.sum(axis=(1, 2))
        for gate in reversed(range(len(of.shows))):
            base = f.bases[gate]
            steps = [(s, way) for s, way in zip(f.steps, plain.ways, strict=True) if s.gate == gate]
            if not steps:
                continue
            own = slice(base, base + f.size(steps[0][0].source))
            always = np.stack([plain.matched[own], plain.matched[own] + load[own]])
            rate = np.zeros((2, own.stop - own.start, k.AGES)) + always[:, :, None]
            for step, way in steps:
                brings = np.zeros((2, f.size(step.target), k.AGES))
                brings[1] = 1.0
                if not f.places[step.target].gates:
                    continue  # a match, which is counted
                for other in f.places[step.target].gates:
                    part = slice(f.bases[other], f.bases[other] + brings.shape[1])
                    kept = worth(ahead[0, part], ahead[1, part], price)
                    brings += kept * ahead[:, part]
                rate += way @ brings
            ahead[:, own] = rest(rate, dying[own], of.window.age)
        if np.allclose(last, ahead.sum(axis=(1, 2)), rtol=0.01):
            break
    return ahead


def at_once(of: CostModel, plain: Plain, value: Floats) -> tuple[Floats, Floats]:
    """Matches to be expected of what becomes of one at once, by class and age; units of work, by class."""
    gain, work = np.repeat(plain.matched[:, None], k.AGES, axis=1), of.load() + plain.matched
    for step, way in zip(of.features.steps, plain.ways, strict=True):
        base = of.features.bases[step.gate]
        own = slice(base, base + len(way))
        for gate in of.features.places[step.target].gates:
            behind = of.features.bases[gate]
            gain[own] += way @ value[behind : behind + way.shape[1]]
            work[own] += way.sum(axis=1)
    return gain, work


def worth(value: Floats, cost: Floats, price: float) -> Floats:
    """Which share of those is kept that bring so many matches for so much work."""
    if price <= 0:
        return np.ones_like(value)
    return np.clip((value / np.maximum(price * cost, 1e-12) - 1) / (2 * MARGIN) + 0.5, 0.0, 1.0)


def rest(rate: Floats, dying: Floats, age: float) -> Floats:
    """What comes in the rest of the window, at so much an event by age, of one that may die before.

    ``rate`` (what, class, age) and what is returned are on average over an age, which has ``age`` events;
    ``dying``: so many die in each.
    """
    whole, half = _lasts(dying, age), _lasts(dying, age / 2)
    stays, stays_half = np.exp(-dying * age), np.exp(-dying * age / 2)
    found, later = np.empty_like(rate), np.zeros_like(rate[:, :, 0])
    for number in reversed(range(k.AGES)):
        # Of those of an age, half of it is over.
        found[:, :, number] = rate[:, :, number] * half + stays_half * later
        later = rate[:, :, number] * whole + stays * later
    return found


def _lasts(dying: Floats, events: float) -> Floats:
    """How many of so many events one lives through of which so many die in an event."""
    return np.asarray(np.where(dying > 1e-9, -np.expm1(-dying * events) / np.maximum(dying, 1e-9), events))

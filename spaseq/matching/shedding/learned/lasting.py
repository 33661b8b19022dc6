"""How long partial matches last, by age in their window: events that they live through come out."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as k

Floats = npt.NDArray[np.float64]

#: Of what many steps in an age bring, the second half of it brings so much of the whole at least, twice.
_CONVEX: Final = 0.25


def ended(events: float, age: float) -> Floats:
    """By age, how many of so many events one lives through whose window ends before the last of them.

    On average over all of an age, which has ``age`` events: 0 of the others.

    >>> ended(4, 16.0)[-2:].tolist()  # in the last age, the window of a quarter ends, of each after two
    [0.0, 0.5]
    """
    left = age * np.arange(k.AGES)[::-1]
    return np.asarray((np.clip(events, left, left + age) ** 2 - left**2) / (2 * age))


def rest(rate: Floats, always: Floats, dying: Floats, age: float) -> Floats:
    """What comes in the rest of the window, at so much an event by age, of one that may die before.

    ``rate`` and what is returned are on average over an age, and maybe when it begins; ``always`` is what is
    left of the rate when the window ends. An age has ``age`` events; ``dying``: so many die in each.
    """
    whole, half = _lasts(dying, age), _lasts(dying, age / 2)
    stays, stays_half = np.exp(-dying * age), np.exp(-dying * age / 2)
    found = np.empty_like(rate)
    later, ends = np.zeros_like(always), always
    for number in reversed(range(k.AGES)):
        # Of those of an age, half of it is over; in the rest the rate falls from ``begins`` to ``ends``.
        mean, begins = rate[:, 0, :, number], rate[:, -1, :, number]
        falls = rate.shape[1] > 1
        falling = np.clip(mean - (begins - ends) / 6, _CONVEX * mean, mean) if falls else mean
        found[:, 0, :, number] = falling * half + stays_half * later
        later = mean * whole + stays * later
        if falls:
            found[:, 1, :, number] = later
        ends = begins
    return found


def _lasts(dying: Floats, events: float) -> Floats:
    """How many of so many events one lives through of which so many die in an event."""
    return np.asarray(np.where(dying > 1e-9, -np.expm1(-dying * events) / np.maximum(dying, 1e-9), events))

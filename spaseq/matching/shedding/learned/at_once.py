"""What an event brings: rates at which partial matches go on come in, matches and work of each go out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as k
from spaseq.matching.shedding.learned.features import Features

Floats = npt.NDArray[np.float64]


def at_once(
    features: Features, matched: Floats, ways: Sequence[Floats], load: Floats, value: Floats
) -> tuple[Floats, Floats]:
    """In an event, of one partial match of each class and age: the matches to be expected of what becomes
    of it there, and the units of work that this is at once.

    In an event it becomes so many matches (``matched``), goes on so often (``ways``, by step and class), and
    is shown it so often (``load``). ``value``: the matches to be expected of one.
    """
    gain = np.repeat(matched[:, None], k.AGES, axis=1)
    work = np.repeat((load + matched)[:, None], k.AGES, axis=1)
    for step, way in zip(features.steps, ways, strict=True):
        base = features.bases[step.gate]
        own = slice(base, base + len(way))
        for gate in features.places[step.target].gates:
            behind = features.bases[gate]
            gain[own] += way @ value[behind : behind + way.shape[1]]
            work[own] += way.sum(axis=1)[:, None]
    return gain, work


def by_show(gain: Floats, load: Floats) -> Floats:
    """The same matches each time that one is shown an event; none of what never is."""
    return np.asarray(gain * np.where(load > 0, 1 / np.maximum(load, 1e-12), 0.0)[:, None])

"""Partial matches of one first event are shed together, where one alone could let another one through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.effort import Policy
from spaseq.matching.kernel.records import waits
from spaseq.matching.shedding.compiled import _kernel_firsts as k
from spaseq.matching.shedding.learned.sketch import Worth

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Gone(NamedTuple):
    """What is shed: partial matches by cell, and of their first events partition, position and place."""

    cells: Ints
    partitions: Ints
    positions: Ints
    places: Ints


def let_go(ints: Ints, rows: Ints, worth: Worth, share: float, policy: Policy, draw: int) -> Gone:
    """Takes whole first events out of an arena, which must be swept then, so that a share of the load stays.

    ``rows`` are all partial matches (``compiled._kernel_firsts.listed``).
    """
    partitions, positions = rows[:, k.L_PARTITION], rows[:, k.L_POSITION]
    order = np.lexsort((partitions, positions))
    changes = (np.diff(partitions[order]) != 0) | (np.diff(positions[order]) != 0)
    begins = np.flatnonzero(np.concatenate([[True], changes]))
    number = np.zeros(len(rows), dtype=np.int64)
    number[order] = np.concatenate([[0], np.cumsum(changes)])
    cells = rows[:, k.L_CELL]
    loads: Floats = np.bincount(number, worth.loads[cells]).astype(np.float64)
    gains: Floats = np.bincount(number, worth.gains[cells]).astype(np.float64)
    best = np.argsort(-_values(loads, gains, policy, draw), kind="stable")
    total = np.cumsum(loads[best])
    gone = np.zeros(len(begins), dtype=np.bool_)
    gone[best] = (total > share * total[-1]) & (loads[best] > 0)
    shed = gone[number]
    ints[rows[shed, k.L_WAIT] + waits.GATE] = 0
    firsts = order[begins[gone]]
    return Gone(
        np.bincount(cells[shed], minlength=len(worth.loads)),
        partitions[firsts],
        positions[firsts],
        rows[firsts, k.L_PLACE],
    )


def _values(loads: Floats, gains: Floats, policy: Policy, draw: int) -> Floats:
    """What it is worth to keep each of some first events, for the load of all that belongs to it."""
    if policy is Policy.RANDOM_STATE:
        return np.random.default_rng(draw).random(len(loads))
    return np.asarray(gains / np.maximum(loads, 1e-9))

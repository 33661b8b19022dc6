"""What little was counted of a class, made up for by what was counted of those next to it."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as known
from spaseq.matching.shedding.compiled._kernel_shrunk import shrink
from spaseq.matching.shedding.learned.features import Features

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: A quantile's neighbours say of it what they do, the less the farther away: to 1/e so many quantiles off.
_WIDTHS: Final = (4.0, 1.0)


class Scratch:
    """Room to calculate rates in; see ``_kernel_shrunk``."""

    def __init__(self, leaves: int, targets: int) -> None:
        self._counts: Floats = np.zeros(leaves * targets)
        self._events: Floats = np.zeros(leaves)
        self._around: Floats = np.zeros(targets)

    def shrink(
        self, went: Floats, lived: Floats, shape: tuple[int, ...], usual: float, rates: Floats,
        others: Floats, columns: Ints, seen: Ints,
    ) -> None:  # fmt: skip
        """See there; ``shape``: how many trees there are, and of each level how many children a node has."""
        size = shape[1] if len(shape) > 1 else 1
        shrink(
            went.ravel(), lived, shape[0], len(shape) - 1, size, went.shape[1], usual, _near(size),
            len(_WIDTHS) + 1, self._counts, self._events, self._around, rates, others, columns, seen,
        )  # fmt: skip


def shrunk(went: Floats, lived: Floats, shape: tuple[int, ...], usual: float) -> Floats:
    """How often in an event a partial match of each class goes on to each of the next, by what was counted.

    Classes are the leaves of trees, one for each depth of a run, with a level for each further number of
    ``shape``. A class of which little was seen goes on as those next to it do, of which that is said by ever
    wider neighbourhoods, and in the end by their parent: as if it had gone on as often as two would, in as
    many events as these take for that. ``usual``: the rate of a tree of which nothing was seen; runs of one
    depth say nothing of others, since a Kleene may end there.
    """
    classes, targets = went.shape
    rates, others = np.zeros(went.size), np.zeros(classes)
    columns, seen = np.zeros(shape[0] * targets, dtype=np.int64), np.zeros(shape[0], dtype=np.int64)
    own = classes // shape[0]
    Scratch(own, targets).shrink(
        np.ascontiguousarray(went), np.ascontiguousarray(lived), shape, usual, rates, others, columns, seen
    )
    found = others[:, None].repeat(targets, axis=1)
    for tree, count in enumerate(seen.tolist()):
        those = slice(tree * own, (tree + 1) * own)
        found[those, columns[tree * targets :][:count]] = rates.reshape(classes, targets)[those, :count]
    return found


@cache
def _near(size: int) -> Floats:
    """How much each quantile of a feature says of each other one, the widest neighbourhood first.

    It itself comes last. The first of ``size`` is of no number, and has no neighbours.
    """
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    apart[0, :] = apart[:, 0] = np.inf
    np.fill_diagonal(apart, np.inf)
    return np.concatenate([*(np.exp(-apart / width).ravel() for width in _WIDTHS), np.eye(size).ravel()])


def deaths(counts: Floats, features: Features, window: float) -> Floats:
    """In an event, how many of the partial matches of each class die; a window has so many events."""
    counted = counts.reshape(-1, known.COUNTS)
    dying = np.zeros(len(counted))
    for place in features.places:
        for gate in place.gates:
            own = slice(features.bases[gate], features.bases[gate] + place.size)
            died, lived = counted[own, known.DIED], counted[own, known.LIVED]
            if died.any():
                dying[own] = shrunk(died[:, None], lived, features.shape(place), 1 / window)[:, 0]
    return dying

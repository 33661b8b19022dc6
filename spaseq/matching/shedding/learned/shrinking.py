"""What little was counted of a class, made up for by what was counted of those next to it."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: What is not known of a class is as in those next to it, and in its parent: as if it had gone on so often.
_PRIOR: Final = 2.0
#: A quantile's neighbours say of it what they do, the less the farther away: to 1/e so many quantiles off.
_WIDTHS: Final = (4.0, 1.0)


def shrunk(went: Floats, lived: Floats, shape: tuple[int, ...], usual: float) -> Floats:
    """How often in an event a partial match of each class goes on to each of the next, by what was counted.

    Classes are the leaves of trees, one for each depth of a run, with a level for each further number of
    ``shape``. A class of which little was seen goes on as those next to it do, of which that is said by ever
    wider neighbourhoods, and in the end by their parent: as if it had gone on so often as ``_PRIOR``, in as
    many events as these take for that. ``usual``: the rate of a tree of which nothing was seen; runs of one
    depth say nothing of others, since a Kleene may end there.
    """
    targets = went.shape[1]
    rate = np.full((shape[0], targets), usual / targets)
    for level, size in enumerate(shape):
        if level:
            rate = rate.repeat(size, axis=0)
        count = went.reshape(len(rate), -1, targets).sum(axis=1)
        events = lived.reshape(len(rate), -1).sum(axis=1)[:, None]
        if not level:
            prior = 1.0 / np.maximum(rate.sum(axis=1, keepdims=True), 1e-12)
            rate = (count + prior * rate) / (events + prior)
            continue
        for near in _near(size):
            prior = _PRIOR / np.maximum(rate.sum(axis=1, keepdims=True), 1e-12)
            around = (near @ count.reshape(-1, size, targets)).reshape(len(rate), targets)
            lives = (near @ events.reshape(-1, size, 1)).reshape(len(rate), 1)
            rate = (around + prior * rate) / (lives + prior)
    return rate


@cache
def _near(size: int) -> tuple[Floats, ...]:
    """How much each quantile of a feature says of each other one, the widest neighbourhood first.

    It itself comes last. The first of ``size`` is of no number, and has no neighbours.
    """
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    apart[0, :] = apart[:, 0] = np.inf
    np.fill_diagonal(apart, np.inf)
    return *(np.exp(-apart / width) for width in _WIDTHS), np.eye(size)

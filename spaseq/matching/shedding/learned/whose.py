"""Of queries that run as one: whose matches come of the partial matches that wait at each gate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq.matching.shedding.compiled import _kernel_known as k
from spaseq.matching.shedding.learned.features import DEPTHS, Features

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def shares(
    features: Features, gates: Ints, ended: Floats, counts: Floats, steps: Floats, ways: Mask, weights: Floats
) -> Floats:
    """For what is worth one at a gate: how many matches that is of each query, shape ``(queries, gates)``.

    ``gates``: of each class; ``ended``: how often a partial match at a gate ended in each way, shape
    ``(gates, ways)``; ``weights``: what a match that ended so is worth. ``ways``: those in which matches of
    each query end, shape ``(queries, ways)``. Where nothing has come of anything, all are as likely.
    """
    made = np.bincount(gates, counts.reshape(-1, k.COUNTS)[:, k.MADE], len(ended))
    went = [(step, float(features.block(steps, step).sum())) for step in features.steps]
    comes = np.zeros_like(ended)
    for _ in range(DEPTHS * len(features.places)):
        before, comes = comes, ended.copy()
        for step, often in went:
            for gate in features.places[step.target].gates:
                comes[step.gate] += often * before[gate]
        comes /= np.maximum(made, 1.0)[:, None]
        if np.allclose(before, comes, rtol=0.01, atol=0.0):
            break
    worth = comes @ weights
    comes[worth <= 0] = 1.0 / weights.sum()
    worth[worth <= 0] = 1.0
    return np.asarray(ways @ (comes / worth[:, None]).T)

"""Rows of events that have several partition keys → the order of the keys by term, independent of ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spaseq.patterns.spectra.solutions import group_codes
from spaseq.terms.dictionary import Dictionary

Ints = npt.NDArray[np.int64]


def ranks(events: Ints, keys: Ints, dictionary: Dictionary, apart: int = 0) -> Ints:
    """Return the rank of each row's key among those of its event, as numbers for sorting.

    ``events`` has, for each row, its event, as a number from 0; ``keys``, of shape ``(rows, variables)``, has
    the ids of its key. Terms are read only if an event has several keys. Keys that differ in the first
    ``apart`` variables, at most one, are in an arbitrary but fixed order: terms cost most here.
    """
    if apart:
        rest = ranks(events, keys[:, apart:], dictionary)
        return group_codes([keys[:, 0], rest]) if rest.any() else keys[:, 0]
    found = np.zeros(len(events), dtype=np.int64)
    if not len(events):
        return found
    some = np.zeros(int(events.max()) + 1, dtype=np.int64)
    some[events] = np.arange(len(events))
    width = keys.shape[1]
    others = keys != keys[some[events]]
    others = others[:, 0] if width == 1 else others.any(axis=1)
    if others.any():
        several = np.zeros(len(some), dtype=np.bool_)
        several[events[others]] = True
        rows = several[events]
        of_keys = dictionary.ranks(keys[rows])
        found[rows] = of_keys[:, 0] if width == 1 else group_codes(list(of_keys.T))
    return found

"""Some of a batch's events: how many, a stretch with the solutions in it, and the lots that events draw."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spaseq.events import EventBatch
from spaseq.gpm.spectra.solutions import Solutions


def part_of(
    batch: EventBatch, solutions: Mapping[str, Solutions], begin: int, end: int
) -> tuple[EventBatch, Mapping[str, Solutions]]:
    """Some events of a batch, and the solutions in them."""
    if begin == 0 and end == len(batch):
        return batch, solutions
    return batch.take(np.arange(begin, end)), {
        name: _between(table, begin, end) for name, table in solutions.items()
    }


def _between(table: Solutions, begin: int, end: int) -> Solutions:
    events = table.events
    if len(events) > 1 and (events[1:] < events[:-1]).any():
        rows = np.flatnonzero((events >= begin) & (events < end))
        part = table.take(rows)
    else:
        first, last = np.searchsorted(events, (begin, end)).tolist()
        columns = {name: column[first:last] for name, column in table.columns.items()}
        part = Solutions(last - first, events[first:last], columns)
    return Solutions(part.size, part.events - begin, part.columns)


def lot(position: int) -> float:
    """A number from 0 to 1 for an event, always the same."""
    mixed = (position + 1) * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return (mixed ^ mixed >> 31) / 2**64


def admitted_of(
    found: Mapping[str, Solutions], position: int, size: int, share: float
) -> tuple[Mapping[str, Solutions], int]:
    """The solutions in those of ``size`` events that have drawn so, and how many events are passed over."""
    lots = np.array([lot(position + i) for i in range(size)])
    kept = lots < share
    admitted = {name: table.take(kept[table.events]) for name, table in found.items()}
    return admitted, int(np.count_nonzero(~kept))

"""A batch as the kernel reads it: one array of integers.

GPMs that ask the same share their columns (``gpm.sharing``), and what is done to a column is done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.events import EventBatch
from spaseq.gpm.solutions import Solutions
from spaseq.matching.kernel import _kernel_values as v

Ints = npt.NDArray[np.int64]

#: The solutions of a GPM that has none.
NONE: Final = Solutions(0, np.zeros(0, dtype=np.int64), {})


def by_event(solutions: Iterable[Solutions], size: int) -> tuple[tuple[Solutions, ...], Ints]:
    """The rows in the order of their events; and where those of each event begin, shape (GPMs, size + 1)."""
    events = np.arange(size + 1)
    known: dict[int, tuple[Ints | None, Ints]] = {}
    tables, rows = [], []
    for table in solutions:
        event = table.event
        if event is None:
            raise ValueError("these solutions belong to no event")
        if id(event) not in known:
            unsorted = len(event) > 1 and (event[1:] < event[:-1]).any()
            order = np.argsort(event, kind="stable") if unsorted else None
            known[id(event)] = order, np.searchsorted(event, events, sorter=order)
        order, begins = known[id(event)]
        tables.append(table if order is None else table.take(order))
        rows.append(begins)
    return tuple(tables), np.array(rows, dtype=np.int64)


def distinct(columns: Iterable[Ints]) -> list[Ints]:
    """The arrays, each once."""
    return list({id(column): column for column in columns}.values())


def packed(
    start: int, batch: EventBatch, streams: Ints, axis: Ints, rows: Ints, columns: Sequence[Ints]
) -> Ints:
    """All columns one after the other, behind a header and the places of ``columns``."""
    read = [batch.time, streams, batch.n, axis, rows.ravel(), *columns]
    parts = distinct(read)
    at, place = v.B_HEADER + len(columns), {}
    for part in parts:
        place[id(part)] = at
        at += len(part)
    header = [len(batch), start, *(place[id(column)] for column in read[:5]), v.B_HEADER]
    header += [place[id(column)] for column in columns]
    return np.concatenate([np.array(header, dtype=np.int64), *parts])

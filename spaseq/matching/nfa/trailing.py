"""Matches that wait for the end of a window: their order of delivery, and which windows are open."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spaseq.events import BEGINNING, EARLIEST
from spaseq.matching.host import Key, Order
from spaseq.matching.nfa.exact import Path, RunReplay
from spaseq.matching.nfa.records import findings
from spaseq.matching.nfa.tables.analysis import NfaTables

Ints = npt.NDArray[np.int64]


class Ended(NamedTuple):
    """A run of the kernel: its events, how it ended, and whether it waited."""

    path: Path
    accept: int
    key: Key
    waited: bool


class Open:
    """The events with a window that has not ended; ``limit`` is the window's length on its axis."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._batches: deque[tuple[Ints, Ints]] = deque()
        self._now = 0

    def add(self, axis: Ints, times: Ints) -> None:
        """Add the events of a batch: their places on the axis, and their times."""
        self._batches.append((axis, times))
        self.advance(int(axis[-1]))

    def advance(self, now: int) -> None:
        """Advance to a place on the axis."""
        self._now = max(self._now, now) if self._batches else now
        while self._batches and self._now - int(self._batches[0][0][-1]) > self._limit:
            self._batches.popleft()

    def close(self) -> None:
        """End all windows, as no event will come."""
        self._batches.clear()

    def since(self, time: int) -> int:
        """Return the time of the first event with an open window, if that is before ``time``."""
        for axis, times in self._batches:
            first = int(np.searchsorted(axis, max(EARLIEST, self._now - self._limit)))
            if first < len(times):
                return min(time, int(times[first]))
        return time


def arranged(rows: Ints, last: Sequence[Order]) -> Ints:
    """Return a kernel's findings (a row each) in the order of delivery. In EVENT, write the number of the
    finding's group: one delivering event, partition and last event.

    ``last``: the place of each finding's last event in the order of all events. Matches that an event makes
    due come before the matches it completes. They are ordered by due place, then by partition, then by last
    event.
    """
    places = {event: i for i, event in enumerate(sorted(set(last)))}
    by_event = np.array([places[event] for event in last], dtype=np.int64)
    # A match that an event completes has this event as its last one; the event's partitions are in order
    # already.
    by_event[rows[:, findings.RANK] == findings.LAST] = 0
    keys = (findings.RANK, findings.DUE, findings.TURN)
    order = np.lexsort((by_event, *(rows[:, key] for key in keys)))
    rows = rows[order]
    rows[:, findings.EVENT] = by_event[order]
    ends_at = [findings.TURN, findings.RANK, findings.EVENT, findings.PARTITION]
    changes = (rows[1:, ends_at] != rows[:-1, ends_at]).any(axis=1)
    rows[1:, findings.EVENT] = np.cumsum(changes)
    rows[0, findings.EVENT] = 0
    return rows


class Certain:
    """The matches that did not wait. A waiting match with the same events is the same match."""

    def __init__(self, compiled: NfaTables, replay: RunReplay, limit: int) -> None:
        self._candidates = compiled.candidates
        self._replay = replay
        self._limit = limit
        self._runs: dict[object, tuple[int, Path, int]] = {}
        self._before = BEGINNING

    def repeated(self, runs: Sequence[Ended], now: int) -> list[bool]:
        """Return which of the runs repeat a certain match; ``now``: their place on the axis."""
        chosen = [self._chosen(run) for run in runs]
        for run, events in zip(runs, chosen, strict=True):
            if not run.waited:
                self._runs[events] = now, run.path, run.accept
        out = [run.waited and self._is_certain(run, events) for run, events in zip(runs, chosen, strict=True)]
        # Earlier findings may wait up to here.
        gone = [events for events, (then, *_) in self._runs.items() if self._before - then > self._limit]
        for events in gone:
            del self._runs[events]
        self._before = now
        return out

    def _chosen(self, run: Ended) -> object:
        gpms = self._candidates
        return run.key, frozenset((gpms[number].unit.gpm, position) for position, number in run.path)

    def _is_certain(self, run: Ended, events: object) -> bool:
        known = self._runs.get(events)
        return known is not None and self._replay.match(known[1], known[2], run.key) is not None

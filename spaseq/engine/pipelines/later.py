"""Visits that wait until somebody asks, or until they are enough to be worth it.

Of a few hundred events that were pushed, a query among many may have a few, and taking these costs as much as
taking many.
"""

from __future__ import annotations

from typing import Final

from spaseq.engine.pipelines.intake import Visit
from spaseq.engine.registered import Registered
from spaseq.events import EventBatch, concatenate

#: So many events of one query are worth a visit.
ENOUGH: Final = 128
#: So many events wait at most.
MOST: Final = 4_096


class Later:
    """What waits, by query, in the order of coming. A query without events waits for time to pass."""

    def __init__(self, visits: dict[Registered, list[Visit]] | None = None) -> None:
        self.visits = visits or {}

    def add(self, visit: Visit) -> Visit | None:
        """One visit more; what waits of the query if that is enough. The same visit again counts once."""
        waiting = self.visits.setdefault(visit.query, [])
        if visit.batch is not None and not (waiting and waiting[-1] is visit):
            waiting.append(visit)
        return _joined(visit.query, waiting, {}) if _size(waiting) >= ENOUGH else None

    def has(self, visit: Visit) -> bool:
        """Whether a visit waits here, though an interrupt has left it among those that are due, too."""
        waiting = self.visits.get(visit.query)
        return waiting is not None and len(waiting) > 0 and waiting[-1] is visit

    @property
    def is_too_much(self) -> bool:
        """Whether too many events wait."""
        return sum(map(_size, self.visits.values())) > MOST

    def but(self, most: int) -> tuple[list[Visit], Later]:
        """What has waited longest, all but so many events, in the order of the queries; and what is left."""
        known: dict[tuple[int, ...], EventBatch] = {}
        over = sum(map(_size, self.visits.values())) - most
        due, left = [], {}
        for query, waiting in self.visits.items():
            if over > 0 or not most:
                due.append(_joined(query, waiting, known))
                over -= _size(waiting)
            else:
                left[query] = waiting
        return sorted(due, key=lambda visit: visit.query.rank), Later(left)


def _size(visits: list[Visit]) -> int:
    return sum(len(visit.batch) for visit in visits if visit.batch is not None)


def _joined(query: Registered, visits: list[Visit], known: dict[tuple[int, ...], EventBatch]) -> Visit:
    """Several visits as one; ``known`` are batches by those that they were made of."""
    batches = [visit.batch for visit in visits if visit.batch is not None]
    if not batches:
        return Visit(query, None, 0)
    key = tuple(map(id, batches))
    if key not in known:
        known[key] = concatenate(batches)
    return Visit(query, known[key], visits[0].position)

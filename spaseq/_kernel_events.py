"""Compiled loops over columns of events: their order, the predicates that they have, sums of their times."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._fields import pointer
from spaseq._jit import inlined, kernel

# Some events of a batch, by position → their columns, for several parts in one pass; distinct events.

Ids = npt.NDArray[np.int64]

#: Events are processed for all parts in blocks of this many, so that their columns stay in the cache.
_NEAR: Final = 1 << 11
#: The number of columns of events that are copied unchanged; the next one has where each event's triples
#: begin.
_OF_EVENTS: Final = 4
_OF_TRIPLES: Final = 3


@kernel
def different(events: Ids) -> int:
    """Return how many distinct events there are in sorted ones; -1 if they are not sorted."""
    if len(events) == 0:
        return 0
    # Branch-free, so that several are compared at once.
    found, is_unordered = 1, 0
    for i in range(1, len(events)):
        found += int(events[i] != events[i - 1])
        is_unordered |= int(events[i] < events[i - 1])
    return -1 if is_unordered else found


@kernel
def count(base: Ids, columns: Ids, events: Ids, ends: Ids, triples: Ids) -> None:
    """Write the number of triples of each part's events; ``ends``: where the events of each part end.

    ``base`` and ``columns`` as for ``spread``.
    """
    b, offset, at = pointer(base), columns[_OF_EVENTS], 0
    for part in range(len(ends)):
        found = 0
        while at < ends[part]:
            found += b[offset + events[at] + 1] - b[offset + events[at]]
            at += 1
        triples[part] = found


@kernel
def spread(base: Ids, columns: Ids, parts: Ids, events: Ids, ends: Ids, triples: Ids, size: int) -> None:
    """Write the columns of each part: four of its events, the begins of their triples, three of the triples.

    ``columns``: the places of the batch's columns. ``parts``: the places of each part's columns, one part
    after the other. Places count from ``base``, an array of two zeros for each part, which is overwritten.
    ``events``, ``ends`` and ``triples`` as for ``count``. ``size``: how many events the batch has.
    """
    b = pointer(base)
    offset, near = columns[_OF_EVENTS], 0
    while near < size:
        near += _NEAR
        for part in range(len(ends)):
            begin = ends[part - 1] if part > 0 else 0
            own, triple, to = ends[part] - begin, base[2 * part + 1], parts[part]
            at = begin + base[2 * part]
            while at < ends[part] and events[at] < near:
                event, new = events[at], to + at - begin
                for column in range(_OF_EVENTS):
                    b[new + column * own] = b[columns[column] + event]
                b[new + _OF_EVENTS * own] = triple
                for row in range(b[offset + event], b[offset + event + 1]):
                    new = to + (_OF_EVENTS + 1) * own + 1 + triple
                    for column in range(_OF_TRIPLES):
                        b[new + column * triples[part]] = b[columns[_OF_EVENTS + 1 + column] + row]
                    triple += 1
                at += 1
            base[2 * part], base[2 * part + 1] = at - begin, triple
            b[to + (_OF_EVENTS + 1) * own] = triple


# The predicates of a batch → for each of several sets of predicates, the events that have some of them.

Numbers = npt.NDArray[np.int32]


@kernel
def concern(
    ends: Ids, p: int, offset: int, size: int, numbers: Numbers, begins: Ids, sets: Ids, last: Ids,
    events: Ids,
) -> None:  # fmt: skip
    """Find, for each of several sets of predicates, the events that have a predicate of the set.

    Each such event adds 1 to ``ends`` of the set. Unless ``events`` is empty, the event is first written
    there at ``ends`` of the set; it must be long enough. ``size``: the number of events. ``p``: the place,
    counted from ``ends``, of the predicates of all triples. ``offset``: the place of the column with each
    event's first triple. ``numbers``, by id: 0, or a number for a predicate of some set. The sets of number n
    are ``sets[begins[n]:begins[n + 1]]``. ``last`` is -1 for each set.
    """
    b = pointer(ends)
    for event in range(size):
        for row in range(b[offset + event], b[offset + event + 1]):
            predicate = b[p + row]
            number = numbers[predicate] if predicate < len(numbers) else 0
            for i in range(begins[number], begins[number + 1]):
                each = sets[i]
                if last[each] != event:
                    last[each] = event
                    if len(events) > 0:
                        events[ends[each]] = event
                    ends[each] += 1


# Sums and differences of times saturate at 64 bits, so that windows of extreme times do not wrap around.
#
# Compare inclusively: ``time <= reach_after(first, limit)`` is exact over all 64 bits, and so is
# ``reach_before(now, limit) <= time``. In compiled code nothing may wrap around: LLVM assumes that signed
# numbers do not.

#: The values of ``spaseq.events``, which is not imported: a change of an imported file recompiles kernels.
EARLIEST: Final = -(1 << 63)
LATEST: Final = (1 << 63) - 1


@inlined
def reach_after(time: int, limit: int) -> int:
    """Return the last time that is at most ``limit`` (at least 0) after another one."""
    return time + limit if time <= LATEST - limit else LATEST


@inlined
def reach_before(time: int, limit: int) -> int:
    """Return the first time that is at most ``limit`` (at least 0) before another one."""
    return time - limit if time >= EARLIEST + limit else EARLIEST

"""Some events of a batch, by their numbers → their columns, of several in one go; how many they are."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel
from spaseq._places import pointer

Ids = npt.NDArray[np.int64]

#: So many events are looked at for all parts, before the next ones are: their columns stay near.
_NEAR: Final = 1 << 11
#: Columns of events that are copied as they are; then comes where the triples of each begin.
_OF_EVENTS: Final = 4
_OF_TRIPLES: Final = 3


@kernel
def different(events: Ids) -> int:
    """How many different ones there are of some that are in order; -1 if they are not."""
    if len(events) == 0:
        return 0
    # Without a branch, so that several are compared at once.
    found, is_unordered = 1, 0
    for i in range(1, len(events)):
        found += int(events[i] != events[i - 1])
        is_unordered |= int(events[i] < events[i - 1])
    return -1 if is_unordered else found


@kernel
def count(base: Ids, columns: Ids, events: Ids, ends: Ids, triples: Ids) -> None:
    """Writes how many triples the events of each part have; ``ends``: where those of each end.

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
    """Writes the columns of each part: four of its events, where their triples begin, and three of these.

    ``columns``: where those of the batch stand, and ``parts``: where those of each part are to, one after the
    other, as places that are told from ``base`` on, which are zeros, two a part, and written. ``events``,
    ``ends`` and ``triples`` as for ``count``. ``size``: how many events the batch has.
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

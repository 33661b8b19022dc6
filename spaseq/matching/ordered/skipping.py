"""Where the next match may begin (semantics, section 6, AFTER MATCH SKIP)."""

from __future__ import annotations

import math
from collections.abc import Callable

from spaseq.events import Stamp
from spaseq.language.syntax import Skip, SkipMode
from spaseq.matching.model import Found

#: Where an event stands: its time, its stream by the order of their IRIs, its number there.
Moment = tuple[float, ...]

#: The place of a stream, given by its id, in the order of their IRIs.
Rank = Callable[[int], int]


def moment(stamp: Stamp, rank: Rank) -> Moment:
    """Where an event stands in the order of all events."""
    return stamp.time, rank(stamp.stream), stamp.n


def resumed_at(skip: Skip, found: Found, rank: Rank) -> Moment:
    """The moment from which on the next match may begin."""
    moments = sorted(moment(event.stamp, rank) for _, event in found.events)
    if skip.mode is SkipMode.PAST_LAST_EVENT:
        return _after(moments[-1])
    target = _target(skip, found, rank)
    if target is None or target == moments[0]:
        return _after(moments[0])
    return target


def falls_back(skip: Skip, found: Found, rank: Rank) -> bool:
    """Whether SKIP TO names no event of a match, or its first, from which no other match may begin."""
    if skip.gpm is None:
        return False
    first = min(moment(event.stamp, rank) for _, event in found.events)
    return _target(skip, found, rank) in (None, first)


def _target(skip: Skip, found: Found, rank: Rank) -> Moment | None:
    """The event that SKIP TO names."""
    moments = [moment(event.stamp, rank) for name, event in found.events if name == skip.gpm]
    if not moments:
        return None
    return min(moments) if skip.mode is SkipMode.TO_FIRST else max(moments)


def _after(earlier: Moment) -> Moment:
    """Less than all moments that are later."""
    return (*earlier, math.inf)

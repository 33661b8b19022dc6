"""Where the next match may begin (semantics, section 6, AFTER MATCH SKIP)."""

from __future__ import annotations

import math
from collections.abc import Callable

from spaseq.events import Stamp
from spaseq.language.syntax import Skip, SkipMode
from spaseq.matching.model import Found, Occurrence

#: Where an event stands: its time, its stream by the order of their IRIs, its number there.
Moment = tuple[float, ...]


def resumed_at(skip: Skip, found: Found, moment: Callable[[Stamp], Moment]) -> Moment:
    """The moment from which on the next match may begin."""
    moments = sorted(moment(event.stamp) for _, event in found.events)
    if skip.mode is SkipMode.PAST_LAST_EVENT:
        return _after(moments[-1])
    target = _target(skip, found, moment)
    if target is None or target == moments[0]:
        return _after(moments[0])
    return target


def falls_back(skip: Skip, found: Found, moment: Callable[[Stamp], Moment]) -> bool:
    """Whether SKIP TO names no event of a match, or its first, from which no other match may begin."""
    if skip.gpm is None:
        return False
    first = min(moment(event.stamp) for _, event in found.events)
    return _target(skip, found, moment) in (None, first)


def _target(skip: Skip, found: Found, moment: Callable[[Stamp], Moment]) -> Moment | None:
    """The event that SKIP TO names."""
    if skip.mode is SkipMode.TO_NEXT_EVENT:
        return None
    moments = [moment(event.stamp) for name, event in found.events if name == skip.gpm]
    if not moments:
        return None
    return min(moments) if skip.mode is SkipMode.TO_FIRST else max(moments)


def _after(moment: Moment) -> Moment:
    """Less than all moments that are later."""
    return (*moment, math.inf)

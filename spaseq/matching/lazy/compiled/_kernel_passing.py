"""Limit work in a burst: how much work an event may take, and which rows its search passes over.

Consecutive events have a common budget of work. An event gets the usual work of its kind from the rest of the
budget. If less is left, its search passes over rows that promise little, except one row in ``SAMPLED``.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import part
from spaseq.matching.filters._kernel_values import Ints
from spaseq.matching.lazy.compiled._kernel_buffers import place, promise
from spaseq.matching.lazy.compiled._kernel_layout import LazyMachine, item_at, item_count
from spaseq.matching.lazy.records import counter, element, ordering, passing, stored
from spaseq.matching.nfa.compiled._kernel_memory import mix

#: One row in this many is searched regardless of its promise.
SAMPLED: Final = 4
#: The usual work of a kind of events is an average over about this many of the last ones.
_KNOWN_BY: Final = 8
#: The work of a search that passed over rows is extrapolated to all rows, by at most this factor.
_MORE: Final = 8


@part
def is_shown(m: LazyMachine, g: int, number: int, p: Ints) -> bool:
    """Return whether the current search is shown a row of a buffer."""
    if passing.rank(p, promise(m.tables, m.rings, g, number)) <= p[passing.SHOWN]:
        return True
    position = stored.position(m.rows, place(m.tables, m.rings, g, number))
    shown = (mix(mix(mix(1, m.counters[counter.AT]), position), 7) >> 11 & 0xFFFF) % SAMPLED == 0
    p[passing.PASSED] += int(not shown)
    return shown


@part
def pass_by(p: Ints, position: int) -> None:
    """Begin an event: the work of the oldest of the recent events no longer counts."""
    p[passing.SPENT] -= p[passing.LATEST + position % passing.EVENTS]
    p[passing.LATEST + position % passing.EVENTS] = 0


@part
def allow(m: LazyMachine, p: Ints) -> None:
    """Set which share of the current event's work is done."""
    p[passing.BEFORE] = m.counters[counter.TESTED] + p[passing.EMITTED]
    p[passing.SHARE] = passing.SURE
    left = max(0, p[passing.MOST] - p[passing.SPENT]) * passing.PARTS
    usual = p[passing.SIZE + m.counters[counter.FIRST_GPM]]
    if left < usual:
        p[passing.SHARE] = int(passing.SURE * (left / usual))


@part
def spend(m: LazyMachine, p: Ints) -> None:
    """Record the work of the current event."""
    c = m.counters
    units = c[counter.TESTED] + p[passing.EMITTED] - p[passing.BEFORE]
    p[passing.LATEST + c[counter.AT] % passing.EVENTS] = units
    p[passing.SPENT] += units
    usual = passing.SIZE + c[counter.FIRST_GPM]
    whole = units * min(passing.SURE / max(1, p[passing.SHARE]), _MORE)
    p[usual] += (int(whole * passing.PARTS) - p[usual]) // _KNOWN_BY


@part
def shows(m: LazyMachine, chain: int, level: int, p: Ints) -> int:
    """Return the share of the current event's work as an item of a chain that is done: all, if a partial
    match may wait then.
    """
    before = element.before(m.tables, item_at(m, ordering.item(m.orders, chain, level)))
    for k in range(level + 1, item_count(m)):
        if not before >> ordering.item(m.orders, chain, k) & 1:
            return passing.SURE
    return int(p[passing.SHARE])


@part
def is_resumed(m: LazyMachine, number: int, one: int, level: int, p: Ints) -> bool:
    """Return whether the current event is shown a waiting partial match, which it is if it is shown all rows
    of the match.
    """
    pairs = (number * m.counters[counter.WAIT_ROOM] + one + 1) * m.size - 2 * level
    for k in range(level):
        g = element.gpm(m.tables, item_at(m, m.waits[pairs + 2 * k]))
        if not is_shown(m, g, m.waits[pairs + 2 * k + 1], p):
            return False
    return True

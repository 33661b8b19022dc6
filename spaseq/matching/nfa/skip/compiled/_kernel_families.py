"""Families: creation, contents, and removal."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters._kernel_values import Ints
from spaseq.matching.nfa.compiled._kernel_memory import (
    forget,
)
from spaseq.matching.nfa.records import partitions, waits
from spaseq.matching.nfa.skip.compiled._kernel_index import end_run
from spaseq.matching.nfa.skip.records import families, roster


@part
def new_family(m: Ints, a: Ints, p: int, first: int, position: int, time: int, members: int) -> int:
    """Return a new family of an event, the last one of its partition."""
    family = roster.free(a)
    if family != 0:
        roster.set_free(a, families.next(a, family))
    else:
        family = roster.next(a)
        roster.set_next(a, roster.next(a) + families.SIZE)
    families.set_partition(a, family, p)
    families.set_members(a, family, members)
    families.set_head(a, family, 0)
    families.set_running(a, family, 0)
    families.set_best(a, family, 0)
    families.set_has(a, family, 0)
    families.set_first(a, family, first)
    families.set_position(a, family, position)
    families.set_time(a, family, time)
    families.set_next(a, family, 0)
    families.set_soon(a, family, 0)
    families.set_called(a, family, 0)
    head = partitions.head(m, p)
    if head == 0:
        partitions.set_head(m, p, family)
        families.set_back(a, family, family)
    else:
        last = families.back(a, head)
        families.set_next(a, last, family)
        families.set_back(a, family, last)
        families.set_back(a, head, family)
    youngest = roster.youngest(a)
    families.set_earlier(a, family, youngest)
    families.set_later(a, family, 0)
    if youngest != 0:
        families.set_later(a, youngest, family)
    else:
        roster.set_oldest(a, family)
    roster.set_youngest(a, family)
    for level in range(roster.levels(a)):
        if roster.level(a, 0, level) == 0:
            roster.set_level(a, 0, level, family)
    return int(family)


@part
def append(m: Ints, a: Ints, family: int, last: int, w: int) -> int:
    """Append a run to a family; return it as the new last one."""
    waits.set_link(m, w, 0)
    if last == 0:
        families.set_head(a, family, w)
    else:
        waits.set_link(m, last, w)
    families.set_running(a, family, families.running(a, family) | waits.members(m, w))
    return w


@part
def begin_again(a: Ints, family: int) -> int:
    """Empty a family's list of runs; return its first run, which is still linked to the others."""
    w = families.head(a, family)
    families.set_head(a, family, 0)
    families.set_running(a, family, 0)
    return int(w)


@part
def end_runs(m: Ints, a: Ints, family: int, members: int) -> None:
    """End the runs of a family for these members."""
    w, last = begin_again(a, family), 0
    while w != 0:
        following = waits.link(m, w)
        left = waits.members(m, w) & ~members
        if left == 0:
            end_run(m, w)
        else:
            waits.set_members(m, w, left)
            last = append(m, a, family, last, w)
        w = following


@part
def _unlink(m: Ints, a: Ints, family: int) -> None:
    """Remove a family from its partition, and from the order of all families."""
    p, after, before = families.partition(a, family), families.next(a, family), families.back(a, family)
    head = partitions.head(m, p)
    if family == head:
        partitions.set_head(m, p, after)
        if after != 0:
            families.set_back(a, after, before)
    else:
        families.set_next(a, before, after)
        families.set_back(a, after if after != 0 else head, before)
    later, earlier = families.later(a, family), families.earlier(a, family)
    if later != 0:
        families.set_earlier(a, later, earlier)
    else:
        roster.set_youngest(a, earlier)
    if earlier != 0:
        families.set_later(a, earlier, later)
    else:
        roster.set_oldest(a, later)
    for level in range(roster.levels(a)):
        if roster.level(a, 0, level) == family:
            roster.set_level(a, 0, level, later)


@part
def free_family(a: Ints, family: int) -> None:
    if families.soon(a, family) != 0:
        families.set_partition(a, family, 0)  # until it is out of the chain
        return
    families.set_next(a, family, roster.free(a))
    roster.set_free(a, family)


@part
def forget_best(m: Ints, a: Ints, family: int, members: int) -> None:
    """Discard what these members have found in a family so far."""
    w, kept = families.best(a, family), 0
    while w != 0:
        following = waits.link(m, w)
        if waits.members(m, w) & members != 0:
            forget(m, w)
        else:
            waits.set_link(m, w, kept)
            kept = w
        w = following
    families.set_best(a, family, kept)
    families.set_has(a, family, families.has(a, family) & ~members)


@part
def drop(m: Ints, a: Ints, family: int, members: int) -> None:
    """Drop a family for these members, with its matches; it is freed when no member needs it."""
    left = families.members(a, family) & ~members
    families.set_members(a, family, left)
    if families.running(a, family) & members != 0:
        end_runs(m, a, family, members)
    if families.has(a, family) & members != 0:
        forget_best(m, a, family, members)
    if left == 0:
        _unlink(m, a, family)
        free_family(a, family)

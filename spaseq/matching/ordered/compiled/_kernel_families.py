"""Families: how they begin, are decided, delivered and dropped."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import LIMIT, Ints
from spaseq.matching.kernel.compiled._kernel_memory import (
    forget,
)
from spaseq.matching.kernel.records import nodes, partitions, waits
from spaseq.matching.kernel.records.tables import gates
from spaseq.matching.ordered.compiled._kernel_index import end_run
from spaseq.matching.ordered.compiled._kernel_layout import (
    BOUND_SIZE,
    PAST_LAST,
    TO_FIRST,
    TO_NEXT,
)
from spaseq.matching.ordered.records import families, preferences, roster


@part
def new_family(m: Ints, a: Ints, p: int, first: int, position: int, time: int) -> int:
    """The family of an event, the last one of its partition."""
    family = roster.free(a)
    if family != 0:
        roster.set_free(a, families.next(a, family))
    else:
        family = roster.next(a)
        roster.set_next(a, roster.next(a) + families.SIZE)
    families.set_partition(a, family, p)
    families.set_head(a, family, 0)
    families.set_best(a, family, 0)
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
    return int(family)


@part
def append(m: Ints, a: Ints, family: int, last: int, w: int) -> int:
    """Puts a run behind the last one of a family; it is the last one now."""
    waits.set_link(m, w, 0)
    if last == 0:
        families.set_head(a, family, w)
    else:
        waits.set_link(m, last, w)
    return w


@part
def end_runs(m: Ints, a: Ints, family: int) -> None:
    """No run of a family goes on."""
    w = families.head(a, family)
    families.set_head(a, family, 0)
    while w != 0:
        following = waits.link(m, w)
        end_run(m, w)
        w = following


@part
def _unlink(m: Ints, a: Ints, family: int) -> None:
    """Takes a family out of its partition, and out of the order of all."""
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


@part
def free_family(a: Ints, family: int) -> None:
    if families.soon(a, family) != 0:
        families.set_partition(a, family, 0)  # until it is out of the chain
        return
    families.set_next(a, family, roster.free(a))
    roster.set_free(a, family)


@part
def drop(m: Ints, a: Ints, family: int) -> None:
    """Forgets a family, whatever it has found."""
    end_runs(m, a, family)
    if families.best(a, family) != 0:
        forget(m, families.best(a, family))
    _unlink(m, a, family)
    free_family(a, family)


@part
def _deliver(m: Ints, a: Ints, family: int, turn: int, rank: int) -> None:
    """The best of a family is its match."""
    _unlink(m, a, family)
    families.set_turn(a, family, turn)
    families.set_rank(a, family, rank)
    families.set_later(a, family, 0)
    if roster.count(a) == 0:
        roster.set_found(a, family)
    else:
        families.set_later(a, roster.found_last(a), family)
    roster.set_found_last(a, family)
    roster.set_count(a, roster.count(a) + 1)


@part
def _resumed(o: Ints, m: Ints, a: Ints, family: int) -> int:
    """The position from which on the next match may begin after that of a family."""
    node, first = waits.node(m, families.best(a, family)), families.position(a, family)
    if preferences.mode(o) == PAST_LAST:
        return int(nodes.position(m, node) + 1)
    target = -1
    while node != 0:
        if o[preferences.gpms(o) + nodes.way(m, node)] == preferences.gpm(o):
            target = nodes.position(m, node)
            if preferences.mode(o) != TO_FIRST:
                break
        node = nodes.previous(m, node)
    # Where nothing is skipped, the next event is meant.
    return int(max(target, first + 1))


@part
def pass_over(o: Ints, m: Ints, a: Ints, p: int) -> None:
    """Drops the families that the match of the first one, its best so far or a later one, passes over."""
    head = partitions.head(m, p)
    if preferences.mode(o) != PAST_LAST or head == 0 or families.best(a, head) == 0:
        return
    partitions.set_dropped(m, p, nodes.position(m, waits.node(m, families.best(a, head))))
    family = families.next(a, head)
    while family != 0 and families.position(a, family) <= partitions.dropped(m, p):
        following = families.next(a, family)
        drop(m, a, family)
        family = following


@part
def deliver_decided(o: Ints, m: Ints, a: Ints, p: int, turn: int, rank: int) -> None:
    """Delivers what is decided in a partition: in the order of first events, from the first one on."""
    if preferences.mode(o) == TO_NEXT:
        family = partitions.head(m, p)
        while family != 0:
            following = families.next(a, family)
            if families.head(a, family) == 0:
                if families.best(a, family) != 0:
                    _deliver(m, a, family, turn, rank)
                else:
                    drop(m, a, family)
            family = following
        return
    while partitions.head(m, p) != 0 and families.head(a, partitions.head(m, p)) == 0:
        family = partitions.head(m, p)
        if families.best(a, family) == 0:
            drop(m, a, family)
            continue
        resumed = _resumed(o, m, a, family)
        partitions.set_dropped(m, p, resumed - 1)
        _deliver(m, a, family, turn, rank)
        while partitions.head(m, p) != 0 and families.position(a, partitions.head(m, p)) < resumed:
            drop(m, a, partitions.head(m, p))


@part
def expire(t: Ints, o: Ints, m: Ints, a: Ints, now: int, turn: int) -> None:
    """The families end whose windows are over at a place on the window's axis."""
    family = roster.oldest(a)
    while family != 0 and now - families.first(a, family) > t[LIMIT]:
        p = families.partition(a, family)
        end_runs(m, a, family)
        deliver_decided(o, m, a, p, turn, partitions.newest(m, p))
        family = roster.oldest(a)


# --- time goes on ---------------------------------------------------------------------------------


@part
def is_past(t: Ints, o: Ints, m: Ints, w: int, time: int) -> bool:
    """Whether no event at a time or later can take a run on: one came before, or a bound of time is over."""
    if waits.barred(m, w) != 0 and time > waits.bar_time(m, w):
        return True
    if preferences.bounded(o) != 0:
        bounds = preferences.bounds(o) + 2 * gates.number(t, waits.gate(m, w))
        for i in range(o[bounds], o[bounds + 1], BOUND_SIZE):
            if time - m[w + o[i]] > t[o[i + 1]]:
                return True
    return False


@part
def _prune(t: Ints, o: Ints, m: Ints, a: Ints, family: int, time: int) -> None:
    """Ends the runs of a family that are past at a time."""
    w, last = families.head(a, family), 0
    families.set_head(a, family, 0)
    while w != 0:
        following = waits.link(m, w)
        if is_past(t, o, m, w, time):
            end_run(m, w)
        else:
            last = append(m, a, family, last, w)
        w = following


@part
def look_out(t: Ints, o: Ints, m: Ints, a: Ints, p: int) -> None:
    """Notes when a bound of time may decide a match of a partition, if one waits there."""
    family, best = partitions.head(m, p), 0
    while family != 0:
        best = max(best, families.best(a, family))
        family = families.next(a, family)
    family = partitions.head(m, p) if best != 0 else 0
    while family != 0:
        w = families.head(a, family)
        while w != 0:
            bounds = preferences.bounds(o) + 2 * gates.number(t, waits.gate(m, w))
            for i in range(o[bounds], o[bounds + 1], BOUND_SIZE):
                roster.set_due(a, min(roster.due(a), m[w + o[i]] + t[o[i + 1]]))
            w = waits.link(m, w)
        family = families.next(a, family)


@part
def call_soon(a: Ints, family: int) -> None:
    """Some run of a family ends when time goes on."""
    if families.soon(a, family) == 0:
        families.set_soon(a, family, roster.soon(a) if roster.soon(a) != 0 else families.END)
        roster.set_soon(a, family)


@part
def go_on(t: Ints, o: Ints, m: Ints, a: Ints, time: int, turn: int) -> None:
    """Time goes on: what no event can take on any more ends, and what that decides is delivered."""
    family = roster.soon(a)
    roster.set_soon(a, 0)
    while family > families.END:
        following = families.soon(a, family)
        families.set_soon(a, family, 0)
        p = families.partition(a, family)
        if p == 0:
            free_family(a, family)
        else:
            _prune(t, o, m, a, family, time)
            deliver_decided(o, m, a, p, turn, partitions.newest(m, p))
        family = following
    if time <= roster.due(a):
        return
    roster.set_due(a, roster.NEVER_DUE)
    family = roster.oldest(a)
    while family != 0:
        p, earlier = families.partition(a, family), families.earlier(a, family)
        if partitions.head(m, p) == family:
            x = family
            while x != 0:
                _prune(t, o, m, a, x, time)
                x = families.next(a, x)
            deliver_decided(o, m, a, p, turn, partitions.newest(m, p))
            look_out(t, o, m, a, p)
        following = families.later(a, earlier) if earlier != 0 else roster.oldest(a)
        family = families.later(a, family) if following == family else following

"""Families: how they begin, are decided, delivered and dropped."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import LIMIT, Ints
from spaseq.matching.kernel.compiled._kernel_memory import (
    forget,
)
from spaseq.matching.kernel.records import gates, nodes, partitions, waits
from spaseq.matching.ordered.compiled._kernel_layout import (
    A_COUNT,
    A_DUE,
    A_FOUND,
    A_FOUND_LAST,
    A_FREE,
    A_NEXT,
    A_OLDEST,
    A_SOON,
    A_YOUNGEST,
    BOUND_SIZE,
    END,
    F_BACK,
    F_BEST,
    F_EARLIER,
    F_FIRST,
    F_HEAD,
    F_LATER,
    F_NEXT,
    F_PARTITION,
    F_POSITION,
    F_RANK,
    F_SIZE,
    F_SOON,
    F_TIME,
    F_TURN,
    NEVER_DUE,
    O_BOUNDED,
    O_BOUNDS,
    O_GPM,
    O_GPMS,
    O_MODE,
    PAST_LAST,
    TO_FIRST,
    TO_NEXT,
)


@part
def new_family(m: Ints, a: Ints, p: int, first: int, position: int, time: int) -> int:
    """The family of an event, the last one of its partition."""
    family = a[A_FREE]
    if family != 0:
        a[A_FREE] = a[family + F_NEXT]
    else:
        family = a[A_NEXT]
        a[A_NEXT] += F_SIZE
    a[family + F_PARTITION] = p
    a[family + F_HEAD] = 0
    a[family + F_BEST] = 0
    a[family + F_FIRST] = first
    a[family + F_POSITION] = position
    a[family + F_TIME] = time
    a[family + F_NEXT] = 0
    a[family + F_SOON] = 0
    head = partitions.head(m, p)
    if head == 0:
        partitions.set_head(m, p, family)
        a[family + F_BACK] = family
    else:
        last = a[head + F_BACK]
        a[last + F_NEXT] = family
        a[family + F_BACK] = last
        a[head + F_BACK] = family
    youngest = a[A_YOUNGEST]
    a[family + F_EARLIER] = youngest
    a[family + F_LATER] = 0
    if youngest != 0:
        a[youngest + F_LATER] = family
    else:
        a[A_OLDEST] = family
    a[A_YOUNGEST] = family
    return int(family)


@part
def append(m: Ints, a: Ints, family: int, last: int, w: int) -> int:
    """Puts a run behind the last one of a family; it is the last one now."""
    waits.set_link(m, w, 0)
    if last == 0:
        a[family + F_HEAD] = w
    else:
        waits.set_link(m, last, w)
    return w


@part
def end_runs(m: Ints, a: Ints, family: int) -> None:
    """No run of a family goes on."""
    w = a[family + F_HEAD]
    a[family + F_HEAD] = 0
    while w != 0:
        following = waits.link(m, w)
        forget(m, w)
        w = following


@part
def _unlink(m: Ints, a: Ints, family: int) -> None:
    """Takes a family out of its partition, and out of the order of all."""
    p, after, before = a[family + F_PARTITION], a[family + F_NEXT], a[family + F_BACK]
    head = partitions.head(m, p)
    if family == head:
        partitions.set_head(m, p, after)
        if after != 0:
            a[after + F_BACK] = before
    else:
        a[before + F_NEXT] = after
        a[(after if after != 0 else head) + F_BACK] = before
    later, earlier = a[family + F_LATER], a[family + F_EARLIER]
    if later != 0:
        a[later + F_EARLIER] = earlier
    else:
        a[A_YOUNGEST] = earlier
    if earlier != 0:
        a[earlier + F_LATER] = later
    else:
        a[A_OLDEST] = later


@part
def free_family(a: Ints, family: int) -> None:
    if a[family + F_SOON] != 0:
        a[family + F_PARTITION] = 0  # until it is out of the chain
        return
    a[family + F_NEXT] = a[A_FREE]
    a[A_FREE] = family


@part
def drop(m: Ints, a: Ints, family: int) -> None:
    """Forgets a family, whatever it has found."""
    end_runs(m, a, family)
    if a[family + F_BEST] != 0:
        forget(m, a[family + F_BEST])
    _unlink(m, a, family)
    free_family(a, family)


@part
def _deliver(m: Ints, a: Ints, family: int, turn: int, rank: int) -> None:
    """The best of a family is its match."""
    _unlink(m, a, family)
    a[family + F_TURN] = turn
    a[family + F_RANK] = rank
    a[family + F_LATER] = 0
    if a[A_COUNT] == 0:
        a[A_FOUND] = family
    else:
        a[a[A_FOUND_LAST] + F_LATER] = family
    a[A_FOUND_LAST] = family
    a[A_COUNT] += 1


@part
def _resumed(o: Ints, m: Ints, a: Ints, family: int) -> int:
    """The position from which on the next match may begin after that of a family."""
    node, first = waits.node(m, a[family + F_BEST]), a[family + F_POSITION]
    if o[O_MODE] == PAST_LAST:
        return int(nodes.position(m, node) + 1)
    target = -1
    while node != 0:
        if o[o[O_GPMS] + nodes.way(m, node)] == o[O_GPM]:
            target = nodes.position(m, node)
            if o[O_MODE] != TO_FIRST:
                break
        node = nodes.previous(m, node)
    # Where nothing is skipped, the next event is meant.
    return int(max(target, first + 1))


@part
def pass_over(o: Ints, m: Ints, a: Ints, p: int) -> None:
    """Drops the families that the match of the first one, its best so far or a later one, passes over."""
    head = partitions.head(m, p)
    if o[O_MODE] != PAST_LAST or head == 0 or a[head + F_BEST] == 0:
        return
    partitions.set_dropped(m, p, nodes.position(m, waits.node(m, a[head + F_BEST])))
    family = a[head + F_NEXT]
    while family != 0 and a[family + F_POSITION] <= partitions.dropped(m, p):
        following = a[family + F_NEXT]
        drop(m, a, family)
        family = following


@part
def deliver_decided(o: Ints, m: Ints, a: Ints, p: int, turn: int, rank: int) -> None:
    """Delivers what is decided in a partition: in the order of first events, from the first one on."""
    if o[O_MODE] == TO_NEXT:
        family = partitions.head(m, p)
        while family != 0:
            following = a[family + F_NEXT]
            if a[family + F_HEAD] == 0:
                if a[family + F_BEST] != 0:
                    _deliver(m, a, family, turn, rank)
                else:
                    drop(m, a, family)
            family = following
        return
    while partitions.head(m, p) != 0 and a[partitions.head(m, p) + F_HEAD] == 0:
        family = partitions.head(m, p)
        if a[family + F_BEST] == 0:
            drop(m, a, family)
            continue
        resumed = _resumed(o, m, a, family)
        partitions.set_dropped(m, p, resumed - 1)
        _deliver(m, a, family, turn, rank)
        while partitions.head(m, p) != 0 and a[partitions.head(m, p) + F_POSITION] < resumed:
            drop(m, a, partitions.head(m, p))


@part
def expire(t: Ints, o: Ints, m: Ints, a: Ints, now: int, turn: int) -> None:
    """The families end whose windows are over at a place on the window's axis."""
    family = a[A_OLDEST]
    while family != 0 and now - a[family + F_FIRST] > t[LIMIT]:
        p = a[family + F_PARTITION]
        end_runs(m, a, family)
        deliver_decided(o, m, a, p, turn, partitions.newest(m, p))
        family = a[A_OLDEST]


# --- time goes on ---------------------------------------------------------------------------------


@part
def is_past(t: Ints, o: Ints, m: Ints, w: int, time: int) -> bool:
    """Whether no event at a time or later can take a run on: one came before, or a bound of time is over."""
    if waits.barred(m, w) != 0 and time > waits.bar_time(m, w):
        return True
    if o[O_BOUNDED] != 0:
        bounds = o[O_BOUNDS] + 2 * gates.number(t, waits.gate(m, w))
        for i in range(o[bounds], o[bounds + 1], BOUND_SIZE):
            if time - m[w + o[i]] > t[o[i + 1]]:
                return True
    return False


@part
def _prune(t: Ints, o: Ints, m: Ints, a: Ints, family: int, time: int) -> None:
    """Ends the runs of a family that are past at a time."""
    w, last = a[family + F_HEAD], 0
    a[family + F_HEAD] = 0
    while w != 0:
        following = waits.link(m, w)
        if is_past(t, o, m, w, time):
            forget(m, w)
        else:
            last = append(m, a, family, last, w)
        w = following


@part
def look_out(t: Ints, o: Ints, m: Ints, a: Ints, p: int) -> None:
    """Notes when a bound of time may decide a match of a partition, if one waits there."""
    family, best = partitions.head(m, p), 0
    while family != 0:
        best = max(best, a[family + F_BEST])
        family = a[family + F_NEXT]
    family = partitions.head(m, p) if best != 0 else 0
    while family != 0:
        w = a[family + F_HEAD]
        while w != 0:
            bounds = o[O_BOUNDS] + 2 * gates.number(t, waits.gate(m, w))
            for i in range(o[bounds], o[bounds + 1], BOUND_SIZE):
                a[A_DUE] = min(a[A_DUE], m[w + o[i]] + t[o[i + 1]])
            w = waits.link(m, w)
        family = a[family + F_NEXT]


@part
def call_soon(a: Ints, family: int) -> None:
    """Some run of a family ends when time goes on."""
    if a[family + F_SOON] == 0:
        a[family + F_SOON] = a[A_SOON] if a[A_SOON] != 0 else END
        a[A_SOON] = family


@part
def go_on(t: Ints, o: Ints, m: Ints, a: Ints, time: int, turn: int) -> None:
    """Time goes on: what no event can take on any more ends, and what that decides is delivered."""
    family = a[A_SOON]
    a[A_SOON] = 0
    while family > END:
        following = a[family + F_SOON]
        a[family + F_SOON] = 0
        p = a[family + F_PARTITION]
        if p == 0:
            free_family(a, family)
        else:
            _prune(t, o, m, a, family, time)
            deliver_decided(o, m, a, p, turn, partitions.newest(m, p))
        family = following
    if time <= a[A_DUE]:
        return
    a[A_DUE] = NEVER_DUE
    family = a[A_OLDEST]
    while family != 0:
        p, earlier = a[family + F_PARTITION], a[family + F_EARLIER]
        if partitions.head(m, p) == family:
            x = family
            while x != 0:
                _prune(t, o, m, a, x, time)
                x = a[x + F_NEXT]
            deliver_decided(o, m, a, p, turn, partitions.newest(m, p))
            look_out(t, o, m, a, p)
        following = a[earlier + F_LATER] if earlier != 0 else a[A_OLDEST]
        family = a[family + F_LATER] if following == family else following

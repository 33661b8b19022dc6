"""The decisions about families: which best runs are matches, which families these skip, what time decides."""

from __future__ import annotations

from spaseq._jit import part
from spaseq._kernel_events import LATEST, reach_after
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import N_GPMS, N_KEYS, SINCES, SINCES_END, Ints
from spaseq.matching.nfa.compiled._kernel_judge import belongs
from spaseq.matching.nfa.records import gates, header, nodes, partitions, waits
from spaseq.matching.nfa.skip.compiled._kernel_families import (
    append,
    begin_again,
    drop,
    end_runs,
    free_family,
)
from spaseq.matching.nfa.skip.compiled._kernel_index import end_run
from spaseq.matching.nfa.skip.records import (
    BOUND_SIZE,
    LEVEL_SIZE,
    PAST_LAST,
    STEP_SIZE,
    STEP_TARGET,
    TO_FIRST,
    TO_NEXT,
    SkipMachine,
    families,
    matches,
    preferences,
    roster,
)


@part
def see_partition(skip: SkipMachine, b: Ints, e: int, key: int, p: int) -> None:
    """Record an event as the newest of a partition. If members have different GPMs, also record it for each
    GPM.
    """
    t, m, n = skip.t, skip.m, skip.n
    partitions.set_newest(m, p, header.serial(m))
    if preferences.own(skip.o) == 0:
        return
    at = newest_place(t, m, p)
    for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
        g = batch.gpm(b, share)
        for r in range(batch.first(b, share), batch.end(b, share)):
            if belongs(t, m, b, g, r, key):
                n[at + g] = header.serial(m)
                break


@part
def newest_place(t: Ints, m: Ints, p: int) -> int:
    """Return the place of a partition's newest events, one per GPM, in ``n``."""
    return int((p - header.partitions(m)) // (partitions.KEY + t[N_KEYS]) * t[N_GPMS])


@part
def _newest(skip: SkipMachine, p: int, member: int) -> int:
    """Return the serial number of a partition's newest event among those of a member, given as a bit."""
    t, m, o, n = skip.t, skip.m, skip.o, skip.n
    if preferences.own(o) == 0:
        return int(partitions.newest(m, p))
    number = preferences.own(o)
    while member > 1:
        member >>= 1
        number += 1
    at, newest = newest_place(t, m, p), 0
    for g in range(t[N_GPMS]):
        if (o[number] >> g) & 1:
            newest = max(newest, n[at + g])
    return int(newest)


@part
def _conclude(skip: SkipMachine, family: int, members: int, turn: int, rank: int) -> None:
    """Deliver the best run of a family as the match of these members, which no longer need the family.

    ``rank``: -1 if time decides.
    """
    m, a = skip.m, skip.a
    w, kept, p = families.best(a, family), 0, families.partition(a, family)
    while w != 0:
        following = waits.link(m, w)
        if waits.members(m, w) & members != 0:
            by_time = rank < 0
            matches.set_rank(m, w, _newest(skip, p, waits.members(m, w)) if by_time else rank)
            matches.set_turn(m, w, turn)
            matches.set_partition(m, w, p)
            matches.set_position(m, w, families.position(a, family))
            matches.set_family(m, w, family)
            matches.set_link(m, w, 0)
            if roster.count(a) == 0:
                roster.set_found(a, w)
            else:
                matches.set_link(m, roster.found_last(a), w)
            roster.set_found_last(a, w)
            roster.set_count(a, roster.count(a) + 1)
        else:
            waits.set_link(m, w, kept)
            kept = w
        w = following
    families.set_best(a, family, kept)
    families.set_has(a, family, families.has(a, family) & ~members)
    drop(m, a, family, members)


@part
def _resumed(o: Ints, m: Ints, a: Ints, family: int, best: int) -> int:
    """Return the position from which the next match may begin, after the match ``best`` of a family."""
    node, first = waits.node(m, best), families.position(a, family)
    if preferences.mode(o) == PAST_LAST:
        return int(nodes.position(m, node) + 1)
    target, member = -1, waits.members(m, best)
    while node != 0:
        if o[preferences.steps(o) + STEP_SIZE * nodes.way(m, node) + STEP_TARGET] & member != 0:
            target = nodes.position(m, node)
            if preferences.mode(o) != TO_FIRST:
                break
        node = nodes.previous(m, node)
    # If SKIP names no later event, the next match may begin with the next event.
    return int(max(target, first + 1))


@part
def _skip(m: Ints, a: Ints, family: int, resumed: int, member: int) -> None:
    """Drop the later families with first events before a position, for a member."""
    other = families.next(a, family)
    while other != 0 and families.position(a, other) < resumed:
        following = families.next(a, other)
        if families.members(a, other) & member != 0:
            drop(m, a, other, member)
        other = following


@part
def pass_over(o: Ints, m: Ints, a: Ints, p: int, members: int, position: int) -> int:
    """Drop the families that a member's first match will skip. This match is the best one so far, or one that
    ends later.

    Returns the ``members`` with a first match that also skips the event at ``position``: they need no family
    of it.
    """
    if preferences.mode(o) != PAST_LAST:
        return 0
    blocked, family = 0, partitions.head(m, p)
    while family != 0 and members != 0:
        mine = families.members(a, family) & members
        members &= ~mine
        if families.has(a, family) & mine != 0:
            best = families.best(a, family)
            while best != 0:
                if waits.members(m, best) & mine != 0:
                    resumed = _resumed(o, m, a, family, best)
                    if position < resumed:
                        blocked |= waits.members(m, best)
                    _skip(m, a, family, resumed, waits.members(m, best))
                best = waits.link(m, best)
        family = families.next(a, family)
    return blocked


@part
def deliver_decided(skip: SkipMachine, p: int, members: int, turn: int, rank: int) -> None:
    """Deliver the decided matches of members in a partition, in the order of first events."""
    o, m, a = skip.o, skip.m, skip.a
    in_turn = preferences.mode(o) != TO_NEXT
    family = partitions.head(m, p)
    while family != 0 and members != 0:
        mine = families.members(a, family) & members
        decided = mine & ~families.running(a, family)
        if in_turn:
            members &= ~mine | decided
            if families.has(a, family) & decided != 0:
                best = families.best(a, family)
                while best != 0:
                    if waits.members(m, best) & decided != 0:
                        _skip(m, a, family, _resumed(o, m, a, family, best), waits.members(m, best))
                    best = waits.link(m, best)
        following = families.next(a, family)
        if decided != 0:
            _conclude(skip, family, decided, turn, rank)
        family = following


@part
def expire(skip: SkipMachine, now: int, turn: int, closes: bool) -> None:
    """End the families with windows that end before a place on the window's axis; with ``closes``, all
    families.
    """
    o, m, a = skip.o, skip.m, skip.a
    for level in range(roster.levels(a)):
        i = preferences.levels(o) + level * LEVEL_SIZE
        family = roster.level(a, 0, level)
        while family != 0 and (closes or now > reach_after(families.first(a, family), o[i])):
            roster.set_level(a, 0, level, families.later(a, family))
            mine = families.members(a, family) & o[i + 1]
            if mine != 0:
                p = families.partition(a, family)
                end_runs(m, a, family, mine)
                deliver_decided(skip, p, mine, turn, -1)
            family = roster.level(a, 0, level)


# --- time advances ----------------------------------------------------------------------------


@part
def is_past(t: Ints, o: Ints, m: Ints, w: int, time: int) -> bool:
    """Return whether no event at a time or later can extend a run, because an event bars later ones or a time
    bound has passed.
    """
    if waits.barred(m, w) != 0 and time > waits.bar_time(m, w):
        return True
    if preferences.bounded(o) != 0:
        bounds = preferences.bounds(o) + 2 * gates.number(t, waits.gate(m, w))
        for i in range(o[bounds], o[bounds + 1], BOUND_SIZE):
            has_begun = m[w + o[i] + t[SINCES_END] - t[SINCES]] == 0
            if has_begun and time > reach_after(m[w + o[i]], t[o[i + 1]]):
                return True
    return False


@part
def _prune(t: Ints, o: Ints, m: Ints, a: Ints, family: int, time: int) -> None:
    """End the runs of a family that no event at a time or later can extend."""
    w, last = begin_again(a, family), 0
    while w != 0:
        following = waits.link(m, w)
        if is_past(t, o, m, w, time):
            end_run(m, w)
        else:
            last = append(m, a, family, last, w)
        w = following


@part
def look_out(t: Ints, o: Ints, m: Ints, a: Ints, p: int) -> None:
    """If a match waits in a partition, note the earliest time at which a time bound may decide it."""
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
                roster.set_due(a, min(roster.due(a), reach_after(m[w + o[i]], t[o[i + 1]])))
            w = waits.link(m, w)
        family = families.next(a, family)


@part
def call_soon(a: Ints, family: int) -> None:
    """Note that some run of a family ends when time advances."""
    if families.soon(a, family) == 0:
        families.set_soon(a, family, roster.soon(a) if roster.soon(a) != 0 else families.END)
        roster.set_soon(a, family)


@part
def go_on(skip: SkipMachine, time: int, turn: int) -> None:
    """Advance time: end runs that no event can extend, and deliver the matches decided by that."""
    t, o, m, a = skip.t, skip.o, skip.m, skip.a
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
            deliver_decided(skip, p, preferences.members(o), turn, -1)
        family = following
    if time <= roster.due(a):
        return
    roster.set_due(a, LATEST)
    family = roster.oldest(a)
    while family != 0:
        p, earlier = families.partition(a, family), families.earlier(a, family)
        if partitions.head(m, p) == family:
            x = family
            while x != 0:
                _prune(t, o, m, a, x, time)
                x = families.next(a, x)
            deliver_decided(skip, p, preferences.members(o), turn, -1)
            look_out(t, o, m, a, p)
        following = families.later(a, earlier) if earlier != 0 else roster.oldest(a)
        family = families.later(a, family) if following == family else following

"""The ordered kernel: a priority simulation over columns, by tables.

For each first event, the runs stand in a list in order of preference, as the threads of Pike's simulation of
a backtracking matcher do: an event goes through the list from the front, what takes it is replaced by its
options in their order, and a complete match cuts all behind it. A run that agrees with one before it in all
that the rest of the sequence reads can only find the same, less preferred, and is left out.

As the runs kernel, whose memory and conditions it shares, it first *decides* what an event does, and can stop
and be called again before it *applies* that.
"""

from __future__ import annotations

from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import (
    B_AXIS,
    B_NUMBER,
    B_SIZE,
    B_START,
    B_STREAM,
    B_TIME,
    N_KEYS,
    SINGLE,
    START,
    WONDERS,
    Codes,
    Floats,
    Ints,
    pointer,
)
from spaseq.matching.kernel.compiled._kernel import find_keys
from spaseq.matching.kernel.compiled._kernel_apply import copy, follow, may
from spaseq.matching.kernel.compiled._kernel_layout import (
    ASK,
    BAR,
    C_NUMBER,
    C_PLACE,
    DECISION_SIZE,
    DECISIONS_FULL,
    DONE,
    G_ACTIONS,
    G_ACTIONS_END,
    G_CODE,
    G_CODE_END,
    G_OPERATOR,
    MORE_KEYS,
    P_SIZE,
    ROOM,
    STRICT,
    X_ACTIONS,
    X_ACTIONS_END,
    X_CODE,
    X_CODE_END,
)
from spaseq.matching.kernel.compiled._kernel_memory import (
    ANSWERED,
    ASKED,
    BAR_TIME,
    BARRED,
    DECIDED,
    DECISIONS,
    DEPTH,
    DROPPED,
    EVENT,
    EVENT_KEY,
    FIRST,
    GATE,
    KEYS,
    KINDS,
    LINK,
    LIVE_NODES,
    LIVE_WAITS,
    MOST_DECISIONS,
    MOST_NODES,
    MOST_WAITS,
    NEWEST,
    NODE,
    NOW,
    POSITION,
    PREVIOUS,
    ROW,
    SERIAL,
    USES,
    WAY,
    find_partition,
    forget,
    move_partition,
)
from spaseq.matching.kernel.compiled._kernel_places import carry
from spaseq.matching.ordered.compiled._kernel_decide import decide, follows, takes
from spaseq.matching.ordered.compiled._kernel_families import (
    append,
    call_soon,
    deliver_decided,
    drop,
    expire,
    free_family,
    go_on,
    is_past,
    look_out,
    new_family,
    pass_over,
)
from spaseq.matching.ordered.compiled._kernel_layout import (
    A_COUNT,
    A_END,
    A_FOUND,
    A_FREE,
    A_NEXT,
    A_OLDEST,
    A_TIME,
    COMPLETED,
    F_BEST,
    F_FIRST,
    F_FOREMOST,
    F_HEAD,
    F_LATER,
    F_NEXT,
    F_PARTITION,
    F_POSITION,
    F_RANK,
    F_TURN,
    FOUND_ACCEPT,
    FOUND_FIRST,
    FOUND_LAST,
    FOUND_NODE,
    FOUND_PARTITION,
    FOUND_RANK,
    FOUND_SIZE,
    FOUND_TURN,
    O_BOUNDED,
    O_MOST,
    O_PLACES,
    OPTION_SIZE,
    REFUSED,
)
from spaseq.matching.ordered.compiled._kernel_merge import is_known

# --- apply ----------------------------------------------------------------------------------------


@part
def _take(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes,
    e: int, key: int, family: int, last: int, w: int, c: int, row: int, refused: int,
) -> tuple[int, bool]:  # fmt: skip
    """A run takes the event: its options stand behind ``last``; the new last, and whether one is a match."""
    time, stream, number = b[b[B_TIME] + e], b[b[B_STREAM] + e], b[b[B_NUMBER] + e]
    taken = copy(m, f, w, family, time, stream, number)
    takes(t, m, f, b, numbers, codes, e, key, taken, c, row)
    before = m[w + NODE]
    if before != 0:
        m[before + USES] += 1
    node = follow(m, before, b[B_START] + e, t[c + C_NUMBER], row)
    m[taken + NODE] = node
    options = o[O_PLACES] + 2 * ((t[c + C_PLACE] - t[START]) // P_SIZE)
    complete = False
    for i in range(o[options], o[options + 1], OPTION_SIZE):
        at, is_gate = o[i], o[i + 1] != 0
        if (refused >> ((i - o[options]) // OPTION_SIZE)) & 1:
            continue
        new = copy(m, f, taken, family, time, stream, number)
        actions, actions_end = (
            (at + G_ACTIONS, at + G_ACTIONS_END) if is_gate else (at + X_ACTIONS, at + X_ACTIONS_END)
        )
        code, code_end = (at + G_CODE, at + G_CODE_END) if is_gate else (at + X_CODE, at + X_CODE_END)
        if not may(
            t, m, f, b, numbers, codes, new, t[actions], t[actions_end], t[code], t[code_end]
        ):  # fmt: skip
            forget(m, new)
            continue
        m[new + GATE] = at
        m[new + NODE] = node
        m[node + USES] += 1
        m[new + FIRST] = a[family + F_FIRST]
        m[new + BARRED] = 0
        if not is_gate:
            if a[family + F_BEST] != 0:
                forget(m, a[family + F_BEST])
            a[family + F_BEST] = new
            complete = True
            break
        if is_known(t, o, m, f, a, s, size, new):
            forget(m, new)
        else:
            last = append(m, a, family, last, new)
    forget(m, taken)
    return last, complete


@part
def _refused_then(m: Ints, decision: int) -> int:
    """What the decision before this one is refused."""
    at = m[DECISIONS] + decision * DECISION_SIZE
    return int(m[at + 2] if decision < m[DECIDED] and m[at + 1] == REFUSED else 0)


@part
def _extend(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes,
    e: int, key: int, family: int, decision: int,
) -> int:  # fmt: skip
    """Applies an event to the runs of a family, from a decision on; the next one."""
    w = a[family + F_HEAD]
    a[family + F_HEAD] = 0
    last = 0
    complete = False
    time, stream = b[b[B_TIME] + e], b[b[B_STREAM] + e]
    while w != 0:
        following = m[w + LINK]
        over = is_past(t, o, m, w, time)
        bars = t[m[w + GATE] + G_OPERATOR] == STRICT and follows(t, m, w, time, stream)
        while decision < m[DECIDED]:
            at = m[DECISIONS] + decision * DECISION_SIZE
            if m[at] != w:
                break
            decision += 1
            if m[at + 1] == BAR:
                bars = True
            elif m[at + 1] != REFUSED and not complete:
                last, complete = _take(
                    t, o, m, f, a, s, size, b, numbers, codes, e, key, family, last, w, m[at + 1], m[at + 2],
                    _refused_then(m, decision),
                )  # fmt: skip
        if bars and t[SINGLE] == 0:
            bars = False
            m[w + BARRED] |= 1 << stream
            m[w + BAR_TIME] = time
            call_soon(a, family)
        if complete or over or bars or is_known(t, o, m, f, a, s, size, w):
            forget(m, w)
        else:
            last = append(m, a, family, last, w)
        w = following
    return decision


@part
def _apply(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes,
    e: int, key: int, p: int,
) -> None:  # fmt: skip
    decision, foremost = 0, 1
    family = m[p]
    while family != 0:
        a[family + F_FOREMOST] = foremost
        decision = _extend(t, o, m, f, a, s, size, b, numbers, codes, e, key, family, decision)
        following = a[family + F_NEXT]
        if a[family + F_BEST] != 0:
            foremost = 0
        elif a[family + F_HEAD] == 0:
            drop(m, a, family)
        family = following
    pass_over(o, m, a, p)
    if decision == m[DECIDED] or b[B_START] + e <= m[p + DROPPED]:
        return
    family = new_family(m, a, p, m[NOW], b[B_START] + e, b[b[B_TIME] + e])
    a[family + F_FOREMOST] = foremost
    last = 0
    complete = False
    while decision < m[DECIDED] and not complete:
        at = m[DECISIONS] + decision * DECISION_SIZE
        decision += 1
        if m[at + 1] != REFUSED:
            last, complete = _take(
                t, o, m, f, a, s, size, b, numbers, codes, e, key, family, last, m[at], m[at + 1], m[at + 2],
                _refused_then(m, decision),
            )  # fmt: skip
    if a[family + F_BEST] == 0 and a[family + F_HEAD] == 0:
        drop(m, a, family)


# --- batches --------------------------------------------------------------------------------------


@part
def _has_room(o: Ints, m: Ints, a: Ints) -> bool:
    """Whether all that was decided can be applied."""
    decided = m[DECIDED]
    return bool(
        m[LIVE_WAITS] + decided * (o[O_MOST] + 1) + 2 <= m[MOST_WAITS]
        and m[LIVE_NODES] + decided <= m[MOST_NODES]
        and (a[A_FREE] != 0 or a[A_NEXT] < a[A_END])
    )


@kernel
def run(
    tables: Ints, options: Ints, ints: Ints, floats: Floats, families: Ints, seen: Ints, batch: Ints,
    numbers: Floats, codes: Codes,
) -> int:  # fmt: skip
    """Takes a batch on from event ``EVENT``, key ``EVENT_KEY``; says why it stopped.

    ``seen`` are pairs, a power of two of them: the runs of the list that an event has made so far, hashed.
    """
    return _run(
        pointer(tables), pointer(options), pointer(ints), pointer(floats), pointer(families), pointer(seen),
        len(seen) // 2, pointer(batch), pointer(numbers), pointer(codes),
    )  # fmt: skip


@part
def _run(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes
) -> int:
    e = m[EVENT]
    while e < b[B_SIZE]:
        m[NOW] = b[b[B_AXIS] + e]
        expire(t, o, m, a, m[NOW], e)
        if b[b[B_TIME] + e] > a[A_TIME]:
            a[A_TIME] = b[b[B_TIME] + e]
            go_on(t, o, m, a, a[A_TIME], e)
        count = find_keys(t, m, b, e)
        if count < 0:
            return MORE_KEYS
        for k in range(m[EVENT_KEY], count):
            m[EVENT_KEY] = k
            key = m[KEYS] + k * t[N_KEYS]
            p = find_partition(m, t[N_KEYS], key)
            if p == 0:
                m[DECIDED] = 0
                return ROOM
            if count == 1 and t[N_KEYS] <= 1:
                key = 0
            decide(t, o, m, f, a, b, numbers, codes, e, key, p)
            if m[m[KINDS] + WONDERS] > 0:
                return ASK
            if m[DECIDED] > m[MOST_DECISIONS] or m[ASKED] > m[MOST_DECISIONS]:
                return DECISIONS_FULL
            if m[ASKED] > m[ANSWERED]:
                return ASK
            m[p + NEWEST] = m[SERIAL]
            if m[DECIDED] > 0 or m[p] != 0:
                if not _has_room(o, m, a):
                    m[ANSWERED] = 0
                    return ROOM
                _apply(t, o, m, f, a, s, size, b, numbers, codes, e, key, p)
                deliver_decided(o, m, a, p, e, COMPLETED + k)
                if o[O_BOUNDED] != 0:
                    look_out(t, o, m, a, p)
            m[ANSWERED] = 0
        m[EVENT_KEY] = 0
        e += 1
        m[EVENT] = e
    return DONE


@kernel
def finish(tables: Ints, options: Ints, ints: Ints, families: Ints, axis: int, time: int) -> None:
    """The families end whose windows are over at a place on its axis, and what else no event can take on."""
    t: Ints = pointer(tables)
    o: Ints = pointer(options)
    m: Ints = pointer(ints)
    a: Ints = pointer(families)
    expire(t, o, m, a, axis, 0)
    if time > a[A_TIME]:
        a[A_TIME] = time
        go_on(t, o, m, a, time, 0)


@kernel
def found(ints: Ints, families: Ints, rows: Ints) -> None:
    """What was found since the last time, a row each."""
    m: Ints = pointer(ints)
    a: Ints = pointer(families)
    family, at = a[A_FOUND], 0
    while at < a[A_COUNT] * FOUND_SIZE:
        best = a[family + F_BEST]
        node = m[best + NODE]
        rows[at + FOUND_TURN] = a[family + F_TURN]
        rows[at + FOUND_RANK] = a[family + F_RANK]
        rows[at + FOUND_LAST] = m[node + POSITION]
        rows[at + FOUND_FIRST] = a[family + F_POSITION]
        rows[at + FOUND_NODE] = node
        rows[at + FOUND_ACCEPT] = m[best + GATE]
        rows[at + FOUND_PARTITION] = a[family + F_PARTITION]
        family = a[family + F_LATER]
        at += FOUND_SIZE


@kernel
def unroll(ints: Ints, nodes: Ints, paths: Ints) -> None:
    """Position, candidate and row of the events of some runs, one run after the other."""
    m: Ints = pointer(ints)
    at = 0
    for i in range(len(nodes)):
        node = nodes[i]
        at += 3 * m[node + DEPTH]
        j = at
        while node != 0:
            j -= 3
            paths[j] = m[node + POSITION]
            paths[j + 1] = m[node + WAY]
            paths[j + 2] = m[node + ROW]
            node = m[node + PREVIOUS]


@kernel
def forget_found(ints: Ints, families: Ints) -> None:
    """Frees what was found."""
    m: Ints = pointer(ints)
    a: Ints = pointer(families)
    family = a[A_FOUND]
    for _ in range(a[A_COUNT]):
        following = a[family + F_LATER]
        forget(m, a[family + F_BEST])
        free_family(a, family)
        family = following
    a[A_COUNT] = 0
    a[A_FOUND] = 0


@kernel
def sweep(
    tables: Ints, ints: Ints, floats: Floats, families: Ints, new_ints: Ints, new_floats: Floats
) -> None:
    """Moves all families into an empty memory; the old one is worth nothing. Nothing is found."""
    t: Ints = pointer(tables)
    old: Ints = pointer(ints)
    old_f: Floats = pointer(floats)
    new: Ints = pointer(new_ints)
    new_f: Floats = pointer(new_floats)
    a: Ints = pointer(families)
    family = a[A_OLDEST]
    while family != 0:
        if a[family + F_PARTITION] > 0:
            # The first one of its partition, which all others of it follow.
            to = move_partition(t, old, a[family + F_PARTITION], new)
            new[to] = family
            x = family
            while x != 0:
                a[x + F_PARTITION] = -to
                x = a[x + F_NEXT]
        a[family + F_PARTITION] = -a[family + F_PARTITION]
        if a[family + F_BEST] != 0:
            a[family + F_BEST] = carry(old, old_f, a[family + F_BEST], new, new_f)
        last, w = 0, a[family + F_HEAD]
        a[family + F_HEAD] = 0
        while w != 0:
            following = old[w + LINK]
            last = append(new, a, family, last, carry(old, old_f, w, new, new_f))
            w = following
        family = a[family + F_LATER]

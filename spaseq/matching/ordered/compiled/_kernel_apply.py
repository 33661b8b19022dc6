"""Apply: an event goes through the runs of each family, and what takes it is replaced by its options."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import (
    B_NUMBER,
    B_START,
    B_STREAM,
    B_TIME,
    SINGLE,
    START,
    Codes,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_actions import may
from spaseq.matching.kernel.compiled._kernel_apply import copy, follow
from spaseq.matching.kernel.compiled._kernel_memory import (
    forget,
)
from spaseq.matching.kernel.records import decisions, header, nodes, partitions, waits
from spaseq.matching.kernel.records.tables import accepts, candidates, gates, places
from spaseq.matching.ordered.compiled._kernel_decide import follows, takes
from spaseq.matching.ordered.compiled._kernel_families import (
    append,
    call_soon,
    drop,
    is_past,
    new_family,
    pass_over,
)
from spaseq.matching.ordered.compiled._kernel_index import end_run, enter
from spaseq.matching.ordered.compiled._kernel_layout import (
    OPTION_SIZE,
    REFUSED,
)
from spaseq.matching.ordered.compiled._kernel_merge import is_known
from spaseq.matching.ordered.records import families, preferences, roster


@part
def _take(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes,
    e: int, key: int, family: int, last: int, w: int, c: int, row: int, refused: int,
) -> tuple[int, bool]:  # fmt: skip
    """A run takes the event: its options stand behind ``last``; the new last, and whether one is a match."""
    time, stream, number = b[b[B_TIME] + e], b[b[B_STREAM] + e], b[b[B_NUMBER] + e]
    taken = copy(m, f, w, family, time, stream, number)
    takes(t, m, f, b, numbers, codes, e, key, taken, c, row)
    before = waits.node(m, w)
    if before != 0:
        nodes.hold(m, before)
    node = follow(m, before, b[B_START] + e, candidates.number(t, c), row)
    waits.set_node(m, taken, node)
    options = preferences.places(o) + 2 * ((candidates.place(t, c) - t[START]) // places.SIZE)
    complete = False
    for i in range(o[options], o[options + 1], OPTION_SIZE):
        at, is_gate = o[i], o[i + 1] != 0
        if (refused >> ((i - o[options]) // OPTION_SIZE)) & 1:
            continue
        new = copy(m, f, taken, family, time, stream, number)
        actions, actions_end = (
            (gates.actions(t, at), gates.actions_end(t, at))
            if is_gate
            else (accepts.actions(t, at), accepts.actions_end(t, at))
        )
        code, code_end = (
            (gates.code(t, at), gates.code_end(t, at))
            if is_gate
            else (accepts.code(t, at), accepts.code_end(t, at))
        )
        if not may(
            t, m, f, b, numbers, codes, new, actions, actions_end, code, code_end
        ):  # fmt: skip
            forget(m, new)
            continue
        waits.set_gate(m, new, at)
        waits.set_node(m, new, node)
        nodes.hold(m, node)
        waits.set_first(m, new, families.first(a, family))
        waits.set_barred(m, new, 0)
        if not is_gate:
            if families.best(a, family) != 0:
                forget(m, families.best(a, family))
            families.set_best(a, family, new)
            complete = True
            break
        if is_known(t, o, m, f, a, s, size, new):
            forget(m, new)
        else:
            last = append(m, a, family, last, new)
            if preferences.is_indexed(o) != 0:
                enter(t, m, a, new)
    forget(m, taken)
    return last, complete


@part
def _refused_then(m: Ints, decision: int) -> int:
    """What the decision before this one is refused."""
    at = header.decisions(m) + decision * decisions.SIZE
    if decision < header.decided(m) and decisions.what(m, at) == REFUSED:
        return decisions.row(m, at)
    return 0


@part
def _extend(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes,
    e: int, key: int, family: int, decision: int,
) -> int:  # fmt: skip
    """Applies an event to the runs of a family, from a decision on; the next one."""
    w = families.head(a, family)
    families.set_head(a, family, 0)
    last = 0
    complete = False
    time, stream = b[b[B_TIME] + e], b[b[B_STREAM] + e]
    while w != 0:
        following = waits.link(m, w)
        over = is_past(t, o, m, w, time)
        bars = gates.operator(t, waits.gate(m, w)) == gates.STRICT and follows(t, m, w, time, stream)
        while decision < header.decided(m):
            at = header.decisions(m) + decision * decisions.SIZE
            if decisions.wait(m, at) != w:
                break
            decision += 1
            what = decisions.what(m, at)
            if what == decisions.BAR:
                bars = True
            elif what != REFUSED and not complete:
                last, complete = _take(
                    t, o, m, f, a, s, size, b, numbers, codes, e, key, family, last, w, what,
                    decisions.row(m, at), _refused_then(m, decision),
                )  # fmt: skip
        if bars and t[SINGLE] == 0:
            bars = False
            waits.set_barred(m, w, waits.barred(m, w) | (1 << stream))
            waits.set_bar_time(m, w, time)
            call_soon(a, family)
        if complete or over or bars or is_known(t, o, m, f, a, s, size, w):
            end_run(m, w)
        else:
            last = append(m, a, family, last, w)
        w = following
    return decision


@part
def apply(
    t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, b: Ints, numbers: Floats, codes: Codes,
    e: int, key: int, p: int,
) -> None:  # fmt: skip
    """An event goes through the families of a partition, and may begin one of its own."""
    decision, foremost = 0, 1
    indexed = preferences.is_indexed(o) != 0
    family = roster.called(a) if indexed else partitions.head(m, p)
    while family != 0:
        families.set_foremost(a, family, foremost)
        decision = _extend(t, o, m, f, a, s, size, b, numbers, codes, e, key, family, decision)
        following = families.after(a, family) if indexed else families.next(a, family)
        if families.best(a, family) != 0:
            foremost = 0
        elif families.head(a, family) == 0:
            drop(m, a, family)
        family = following
    pass_over(o, m, a, p)
    if decision == header.decided(m) or b[B_START] + e <= partitions.dropped(m, p):
        return
    family = new_family(m, a, p, header.now(m), b[B_START] + e, b[b[B_TIME] + e])
    families.set_foremost(a, family, foremost)
    last = 0
    complete = False
    while decision < header.decided(m) and not complete:
        at = header.decisions(m) + decision * decisions.SIZE
        decision += 1
        what = decisions.what(m, at)
        if what != REFUSED:
            last, complete = _take(
                t, o, m, f, a, s, size, b, numbers, codes, e, key, family, last, decisions.wait(m, at), what,
                decisions.row(m, at), _refused_then(m, decision),
            )  # fmt: skip
    if families.best(a, family) == 0 and families.head(a, family) == 0:
        drop(m, a, family)

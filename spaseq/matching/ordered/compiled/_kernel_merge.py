"""Which runs have the same future: those that agree in all that is read of them later."""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.conditions._kernel_values import (
    BEYOND,
    MANY,
    SINGLE,
    Floats,
    Ints,
)
from spaseq.matching.kernel.compiled._kernel_memory import (
    mix,
)
from spaseq.matching.kernel.records import header, waits
from spaseq.matching.kernel.records.tables import gates
from spaseq.matching.ordered.compiled._kernel_layout import (
    ALIKE_SIZE,
    AS_SUM,
    AS_TIME,
    EXACTLY,
)
from spaseq.matching.ordered.records import families, preferences, roster


@part
def _agree(o: Ints, m: Ints, f: Floats, w: int, x: int, start: int, end: int) -> bool:
    """Whether two runs agree in all that is read of them later."""
    for i in range(start, end, ALIKE_SIZE):
        at, limit = o[i], o[i + 1]
        if limit == AS_SUM:
            p, q = waits.sums(m, w) + at, waits.sums(m, x) + at
            if f[p] != f[q] or f[p + 1] != f[q + 1] or f[p + 2] != f[q + 2] or f[p + 2] == BEYOND:
                return False
            continue
        p, q = m[w + at], m[x + at]
        if limit == EXACTLY:
            if p != q or p == MANY:
                return False
        elif limit == AS_TIME:
            if p != q:
                return False
        elif min(p, limit) != min(q, limit):
            return False
    return True


@part
def _busy(m: Ints, a: Ints, w: int) -> int:
    """The stream whose event a run has taken right now: it takes no simultaneous ones of others; -1: none."""
    return int(waits.stream(m, w) if waits.time(m, w) == roster.time(a) else -1)


@part
def unknown(t: Ints, o: Ints, m: Ints, f: Floats, a: Ints, s: Ints, size: int, w: int, members: int) -> int:
    """Those of a run's members for which no run before it in the list agrees with it.

    Unless there are none, later runs may agree with this one.

    One of another family will do where that family's match, if this leads to one, passes over this one's
    first event; and where none before it has a match to be left with that ends before that.
    """
    gate = waits.gate(m, w)
    live = preferences.gates(o) + 2 * gates.number(t, gate)
    start, end = o[live], o[live + 1]
    several = t[SINGLE] == 0
    code = mix(1, gate)
    if several:
        code = mix(mix(code, _busy(m, a, w)), waits.barred(m, w))
    for i in range(start, end, ALIKE_SIZE):
        at, limit = o[i], o[i + 1]
        if limit != AS_SUM:
            code = mix(code, m[w + at] if limit in (EXACTLY, AS_TIME) else min(m[w + at], limit))
    mask = size - 1
    at = code & mask
    # The list is of this event only if it says so.
    while s[2 * at] == header.serial(m):
        x = s[2 * at + 1]
        if (
            waits.gate(m, x) == gate
            and (
                not several or (_busy(m, a, x) == _busy(m, a, w) and waits.barred(m, x) == waits.barred(m, w))
            )
            and members & _known(o, m, a, w, x) != 0
            and _agree(o, m, f, w, x, start, end)
        ):
            members &= ~_known(o, m, a, w, x)
            if members == 0:
                return 0
        at = (at + 1) & mask
    s[2 * at] = header.serial(m)
    s[2 * at + 1] = w
    return members


@part
def _known(o: Ints, m: Ints, a: Ints, w: int, x: int) -> int:
    """The members for which a run before another one in the list will do, if they agree."""
    known, family = waits.members(m, x), waits.partition(m, x)
    if family == waits.partition(m, w):
        return int(known)
    return int(known & families.foremost(a, family) if preferences.across(o) != 0 else 0)

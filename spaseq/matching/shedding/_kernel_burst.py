"""Pass over partial matches in a burst: events are not shown to the ones that promise least.

Only at gates of ``:``, where a run that is not shown an event is as if the event had not come: a run that
continues without it is a run of its own. No event excludes such runs from others, so a run excluded from all
events is one that is passed over.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import kernel, part
from spaseq._kernel_events import LATEST
from spaseq.matching.filters import batch as heads
from spaseq.matching.filters._kernel_values import N_KEYS, WOKEN, Floats, Ints, pointer
from spaseq.matching.nfa.compiled._kernel import find_keys
from spaseq.matching.nfa.compiled._kernel_layout import rows_of
from spaseq.matching.nfa.compiled._kernel_memory import find_bucket, find_partition
from spaseq.matching.nfa.compiled._kernel_places import bucket_of_row
from spaseq.matching.nfa.records import buckets, candidates, gates, header, waits
from spaseq.matching.shedding._kernel_known import AGES, CODE, age, known_at

#: Excluded from the events of all streams, until long after the last of them.
PASSED_OVER: Final = -1


@part
def is_free(t: Ints, gate: int) -> bool:
    """Return whether a run at a gate loses only an event that it is not shown."""
    if gates.operator(t, gate) != gates.ANY or gates.gathers(t, gate) != 0 or gates.parted(t, gate) != 0:
        return False
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        if candidates.rival(t, c) != 0:
            return False
    return True


@part
def _admit(m: Ints, w: int) -> None:
    """Show events to a wait again."""
    waits.set_barred(m, w, 0)
    waits.set_bar_time(m, w, 0)


@part
def _cell(t: Ints, m: Ints, known: Ints, bases: Ints, w: int, gate: int, axis: int, now: int) -> int:
    """Return the cell of a wait at a gate; -1 if it is unknown."""
    at = known_at(m, known, waits.node(m, w))
    if at < 0:
        return -1
    return int(
        (bases[gates.number(t, gate)] + known[at + CODE]) * AGES + age(t, axis, waits.first(m, w), now)
    )


@part
def _list(
    t: Ints, m: Ints, b: Ints, known: Ints, bases: Ints, p: int, gate: int, e: int, g: int, listed: Ints,
    times: Ints, cells: Ints, count: int, most: int, axis: int, now: int,
) -> int:  # fmt: skip
    """List the partial matches of a partition that wait at a gate for a GPM's rows in an event; return how
    many.

    ``times``: how often each would be shown a row. A listed wait has its place in the list.
    """
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        if candidates.gpm(t, c) != g:
            continue
        first, last = rows_of(b, g, e)
        for r in range(first, last):
            bucket = 0
            if gates.keys_end(t, gate) == gates.keys(t, gate):
                bucket = find_bucket(m, gate, p, 0, 0, 0, 0, False)
            else:
                bucket = bucket_of_row(t, m, b, gate, p, r, candidates.keys(t, c))
            w = buckets.head(m, bucket) if bucket != 0 else 0
            while w != 0 and count < most:
                if waits.barred(m, w) == 0:
                    waits.set_barred(m, w, PASSED_OVER)
                    waits.set_bar_time(m, w, LATEST)
                    waits.set_listed(m, w, count)
                    listed[count], times[count] = w, 1
                    cells[count] = _cell(t, m, known, bases, w, gate, axis, now)
                    count += 1
                elif waits.barred(m, w) == PASSED_OVER:
                    times[waits.listed(m, w)] += 1
                w = waits.link(m, w)
    return count


@kernel
def to_show(
    tables: Ints, ints: Ints, batch: Ints, known_: Ints, bases_: Ints, listed_: Ints, times_: Ints,
    cells_: Ints, loads_: Ints, axis: int, now: int,
) -> tuple[int, int]:  # fmt: skip
    """List the partial matches that the events of a batch would be shown to, once each, and may be passed
    over.

    They are passed over until ``show`` or ``show_all``. Returns their number, at most the room of the list,
    and how often one would be shown a row. ``times``: how often each; ``cells``: the cell of each; ``loads``:
    how often those of each cell and, at the end, those without a cell.
    """
    t, m, b, listed, times = pointer(tables), pointer(ints), pointer(batch), pointer(listed_), pointer(times_)
    known, bases, cells, loads = pointer(known_), pointer(bases_), pointer(cells_), pointer(loads_)
    count = 0
    for e in range(heads.size(b)):
        for k in range(max(0, find_keys(t, m, b, e, False))):
            p = find_partition(m, t[N_KEYS], header.keys(m) + k * t[N_KEYS])
            if p == 0:
                continue
            for share in range(heads.shares(b, e), heads.shares(b, e + 1), heads.SHARE):
                g = heads.gpm(b, share)
                for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
                    if is_free(t, t[i]):
                        count = _list(
                            t, m, b, known, bases, p, t[i], e, g, listed, times, cells, count, len(listed_),
                            axis, now,
                        )  # fmt: skip
    shows = 0
    for i in range(len(loads_)):
        loads[i] = 0
    for i in range(count):
        shows += times[i]
        loads[cells[i] if cells[i] >= 0 else len(loads_) - 1] += times[i]
    return count, shows


@kernel
def pass_over(
    ints: Ints, promise_: Floats, least: float, share: float, listed_: Ints, times_: Ints, cells_: Ints,
    count: int, passed_: Ints,
) -> int:  # fmt: skip
    """Show events to the listed ones that promise more than ``least``, and to a ``share`` of the ones that
    promise as much; return how many are passed over.

    These are moved to the beginning of the list. ``passed``: how often one was not shown a row, by cell.
    """
    m, promise, listed = pointer(ints), pointer(promise_), pointer(listed_)
    times, cells, passed = pointer(times_), pointer(cells_), pointer(passed_)
    gone, due = 0, 0.5
    for i in range(count):
        w, cell = listed[i], cells[i]
        # Waits without a known cell are shown.
        is_shown = cell < 0 or promise[cell] > least
        if cell >= 0 and promise[cell] == least:
            due += share
            is_shown = due >= 1.0
            due -= 1.0 if is_shown else 0.0
        if is_shown:
            _admit(m, w)
        else:
            passed[cell] += times[i]
            listed[gone] = w
            gone += 1
    return gone


@kernel
def show(ints: Ints, listed_: Ints, count: int) -> None:
    """Show events again to the first ``count`` of the list. None may have been moved since."""
    m, listed = pointer(ints), pointer(listed_)
    for i in range(count):
        _admit(m, listed[i])


@kernel
def show_all(tables: Ints, ints: Ints) -> None:
    """Show events again to all that were passed over, wherever they are now."""
    t, m = pointer(tables), pointer(ints)
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if waits.gate(m, w) != 0 and waits.bucket(m, w) != waits.IS_PARKED and is_free(t, waits.gate(m, w)):
            _admit(m, w)

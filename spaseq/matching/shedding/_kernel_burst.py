"""Pass over partial matches in a burst: events are not shown to the ones that promise least.

This is possible only at gates of ``:``. A run that takes an event there also continues without the event, as
a run of its own. So for a run that is not shown an event, it is as if the event had not come. At these gates,
no event bars a run from later events. So a run that is barred from all events is one that is passed over.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from spaseq._jit import kernel, part
from spaseq._kernel_events import LATEST
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import N_KEYS, WOKEN, Floats, Ints, RunMachine, pointer
from spaseq.matching.nfa.compiled._kernel import find_keys
from spaseq.matching.nfa.compiled._kernel_judge import with_batch
from spaseq.matching.nfa.compiled._kernel_memory import find_bucket, find_partition
from spaseq.matching.nfa.compiled._kernel_places import bucket_of_row
from spaseq.matching.nfa.records import buckets, candidates, gates, header, waits
from spaseq.matching.shedding._kernel_known import Instant, Learned, cell_of, class_of, known_at

#: In the field ``barred`` of a wait: it is barred from the events of all streams. Its ``bar_time`` is after
#: all events.
PASSED_OVER: Final = -1


class Listing(NamedTuple):
    """Waits that the events of a batch would be shown to, once each: arrays, or their addresses.

    ``times``: how often each wait would be shown a row; ``cells``: the cell of each wait, -1 if unknown.
    ``loads``: the sum of ``times`` for each cell and, at the end, for waits without a cell. ``room``: the
    most waits.
    """

    waits: Ints
    times: Ints
    cells: Ints
    loads: Ints
    room: int


@part
def is_free(t: Ints, gate: int) -> bool:
    """Return whether a run at a gate that is not shown an event loses nothing but this event."""
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
def _list(
    machine: RunMachine, learned: Learned, instant: Instant, listing: Listing, p: int, gate: int, share: int,
    count: int,
) -> int:  # fmt: skip
    """List the partial matches of a partition that wait at a gate for a share of an event's rows; return how
    many are listed in all. ``count`` were listed before.

    A listed wait records its number in the list.
    """
    t, m, b = machine.t, machine.m, machine.b
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        if candidates.gpm(t, c) != batch.gpm(b, share):
            continue
        for r in range(batch.first(b, share), batch.end(b, share)):
            bucket = 0
            if gates.keys_end(t, gate) == gates.keys(t, gate):
                bucket = find_bucket(m, gate, p, 0, 0, 0, 0, False)
            else:
                bucket = bucket_of_row(t, m, b, gate, p, r, candidates.keys(t, c))
            w = buckets.head(m, bucket) if bucket != 0 else 0
            while w != 0 and count < listing.room:
                if waits.barred(m, w) == 0:
                    waits.set_barred(m, w, PASSED_OVER)
                    waits.set_bar_time(m, w, LATEST)
                    waits.set_listed(m, w, count)
                    listing.waits[count], listing.times[count] = w, 1
                    at, cell = known_at(m, learned.known, waits.node(m, w)), -1
                    if at >= 0:
                        cell = cell_of(t, class_of(machine, learned, w, at), waits.first(m, w), instant)
                    listing.cells[count] = cell
                    count += 1
                elif waits.barred(m, w) == PASSED_OVER:
                    listing.times[waits.listed(m, w)] += 1
                w = waits.link(m, w)
    return count


@kernel
def to_show(
    machine_: RunMachine, learned_: Learned, instant: Instant, batch_: Ints, listing_: Listing
) -> tuple[int, int]:
    """List, once each, the partial matches that the events of a batch would be shown to and that may be
    passed over.

    They are passed over until ``show`` or ``show_all``. Returns their number, at most the room of the list,
    and how often a row would be shown to one of them.
    """
    machine: RunMachine = with_batch(pointer(machine_), pointer(batch_))
    learned: Learned = pointer(learned_)
    listing: Listing = pointer(listing_)
    t, m, b, last = machine.t, machine.m, machine.b, len(listing_.loads) - 1
    count = 0
    for e in range(batch.size(b)):
        for k in range(max(0, find_keys(t, m, b, e, False))):
            p = find_partition(m, t[N_KEYS], header.keys(m) + k * t[N_KEYS])
            if p == 0:
                continue
            for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
                woken = t[WOKEN] + 2 * batch.gpm(b, share)
                for i in range(t[woken], t[woken + 1]):
                    if is_free(t, t[i]):
                        count = _list(machine, learned, instant, listing, p, t[i], share, count)
    shows = 0
    for i in range(last + 1):
        listing.loads[i] = 0
    for i in range(count):
        shows += listing.times[i]
        cell = listing.cells[i]
        listing.loads[cell if cell >= 0 else last] += listing.times[i]
    return count, shows


@kernel
def pass_over(
    ints: Ints, listing_: Listing, count: int, promise_: Floats, least: float, share: float, passed_: Ints
) -> int:
    """Show events to the listed ones that promise more than ``least``, and to a ``share`` of the ones that
    promise as much; return how many are passed over.

    Those passed over are moved to the beginning of the list. ``passed``: how often a partial match was not
    shown a row, by cell.
    """
    m, promise, passed = pointer(ints), pointer(promise_), pointer(passed_)
    listing: Listing = pointer(listing_)
    gone, due = 0, 0.5
    for i in range(count):
        w, cell = listing.waits[i], listing.cells[i]
        # Waits without a known cell are shown.
        is_shown = cell < 0 or promise[cell] > least
        if cell >= 0 and promise[cell] == least:
            due += share
            is_shown = due >= 1.0
            due -= 1.0 if is_shown else 0.0
        if is_shown:
            _admit(m, w)
        else:
            passed[cell] += listing.times[i]
            listing.waits[gone] = w
            gone += 1
    return gone


@kernel
def show(ints: Ints, listed_: Ints, count: int) -> None:
    """Show events again to the first ``count`` waits of the list. No wait may have been moved since it was
    listed.
    """
    m, listed = pointer(ints), pointer(listed_)
    for i in range(count):
        _admit(m, listed[i])


@kernel
def show_all(tables: Ints, ints: Ints) -> None:
    """Show events again to all waits that were passed over, wherever they are now."""
    t, m = pointer(tables), pointer(ints)
    for w in range(header.waits(m) + header.width(m), header.next_wait(m), header.width(m)):
        if waits.gate(m, w) != 0 and waits.bucket(m, w) != waits.IS_PARKED and is_free(t, waits.gate(m, w)):
            _admit(m, w)

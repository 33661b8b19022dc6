"""The families that an event concerns: runs indexed by the gate before which they wait, and their join key.

In a bucket, ``child`` of a wait is the next one, ``back`` the one before it; ``link`` is the next in its
family.
"""

from __future__ import annotations

from spaseq._jit import part
from spaseq.matching.filters import batch
from spaseq.matching.filters._kernel_values import WOKEN, Ints
from spaseq.matching.nfa.compiled._kernel_judge import belongs
from spaseq.matching.nfa.compiled._kernel_layout import rows_of
from spaseq.matching.nfa.compiled._kernel_memory import find_bucket, forget
from spaseq.matching.nfa.compiled._kernel_places import bucket_of, bucket_of_row
from spaseq.matching.nfa.records import buckets, candidates, gates, header, waits
from spaseq.matching.nfa.skip.records import families, roster


@part
def enter(t: Ints, m: Ints, a: Ints, w: int) -> None:
    """Enter a family's run into the index."""
    bucket = bucket_of(t, m, w, families.partition(a, waits.partition(m, w)))
    first = buckets.head(m, bucket)
    waits.set_bucket(m, w, bucket)
    waits.set_back(m, w, 0)
    waits.set_child(m, w, first)
    if first != 0:
        waits.set_back(m, first, w)
    buckets.set_head(m, bucket, w)


@part
def end_run(m: Ints, w: int) -> None:
    """End a run that was removed from its family's list."""
    bucket = waits.bucket(m, w)
    if bucket != 0:
        back, child = waits.back(m, w), waits.child(m, w)
        if child != 0:
            waits.set_back(m, child, back)
        if back != 0:
            waits.set_child(m, back, child)
        else:
            buckets.set_head(m, bucket, child)
        waits.set_bucket(m, w, 0)
    forget(m, w)


@part
def _call(m: Ints, a: Ints, bucket: int) -> None:
    """Add the families of a bucket's runs to the chain ``roster.called``, each once per event."""
    if bucket == 0 or buckets.seen(m, bucket) == header.serial(m):
        return
    buckets.set_seen(m, bucket, header.serial(m))
    w = buckets.head(m, bucket)
    while w != 0:
        family = waits.partition(m, w)
        if families.called(a, family) != header.serial(m):
            families.set_called(a, family, header.serial(m))
            families.set_after(a, family, roster.called(a))
            roster.set_called(a, family)
        w = waits.child(m, w)


@part
def _call_at(t: Ints, m: Ints, a: Ints, b: Ints, e: int, key: int, p: int, gate: int) -> None:
    """Add the families of the runs before a gate that may take an event to the chain ``roster.called``."""
    if gates.keys_end(t, gate) == gates.keys(t, gate):
        _call(m, a, find_bucket(m, gate, p, 0, 0, 0, 0, False))
        return
    for c in range(gates.candidates(t, gate), gates.candidates_end(t, gate), candidates.SIZE):
        g, at = candidates.gpm(t, c), candidates.keys(t, c)
        first, last = rows_of(b, g, e)
        for r in range(first, last):
            if not belongs(t, m, b, g, r, key):
                continue
            _call(m, a, bucket_of_row(t, m, b, gate, p, r, at))
    if header.is_loose(m) != 0:
        _call(m, a, find_bucket(m, gate, p, -1, -1, -1, -1, False))


@part
def call(t: Ints, m: Ints, a: Ints, b: Ints, e: int, key: int, p: int) -> None:
    """Chain the families of a partition that an event may concern, from ``roster.called`` on."""
    roster.set_called(a, 0)
    for share in range(batch.shares(b, e), batch.shares(b, e + 1), batch.SHARE):
        g = batch.gpm(b, share)
        for i in range(t[t[WOKEN] + 2 * g], t[t[WOKEN] + 2 * g + 1]):
            _call_at(t, m, a, b, e, key, p, t[i])

"""Write found runs that consist only of their events as columns of matches, in the order of delivery."""

from __future__ import annotations

from spaseq._jit import inlined, kernel, part
from spaseq.matching.filters._kernel_values import Ints, pointer
from spaseq.matching.nfa.compiled._kernel_memory import release
from spaseq.matching.nfa.records import findings, header, nodes, partitions


@kernel
def size_of_found(ints: Ints) -> int:
    """Return how many events the runs found have."""
    m: Ints = pointer(ints)
    size = 0
    for i in range(header.found_count(m)):
        size += nodes.depth(m, findings.node(m, header.found(m) + i * findings.SIZE))
    return int(size)


@kernel
def lay(ints: Ints, ranks: Ints, n_keys: int, size: int, laid: Ints, work: Ints) -> bool:
    """Write the runs found, and forget them.

    Runs that end with one event of one partition are neighbours, sorted by their events. Return False, and
    forget nothing, if two of them have the same events, or if an event was taken for several of its
    solutions.

    ``laid`` receives the partition key of each run, the offset of each run's events, and the end of the last
    run. Then follow the positions of all ``size`` events, their candidates, and their rows. ``ranks``: for
    each candidate, the rank of its GPM's name. ``work`` has room for an integer per event, three integers per
    run, and one more.
    """
    m, out, w, rank = pointer(ints), pointer(laid), pointer(work), pointer(ranks)
    count = header.found_count(m)
    offsets = count * n_keys
    positions = offsets + count + 1
    first = at = 0
    out[offsets] = 0
    while first < count:
        last = first + 1
        while last < count and _is_of_group(m, first, last):
            last += 1
        if last - first > 1 and not _sort(m, first, last - first, w, rank, len(ranks)):
            return False
        for i in range(first, last):
            found = _place(m, first + w[i - first] if last - first > 1 else i)
            for j in range(n_keys):
                out[i * n_keys + j] = partitions.key(m, findings.partition(m, found), j)
            node = findings.node(m, found)
            at += nodes.depth(m, node)
            to = positions + at
            while node != 0:
                to -= 1
                if nodes.row(m, node) < 0:
                    return False
                out[to], out[to + size] = nodes.position(m, node), nodes.way(m, node)
                out[to + 2 * size] = nodes.row(m, node)
                node = nodes.previous(m, node)
            out[offsets + i + 1] = at
        first = last
    for i in range(count):
        release(m, findings.node(m, _place(m, i)))
    header.set_found_count(m, 0)
    return True


@inlined
def _place(m: Ints, i: int) -> int:
    return int(header.found(m) + i * findings.SIZE)


@inlined
def _is_of_group(m: Ints, i: int, j: int) -> bool:
    """Return whether two of the runs found end with one event of one partition."""
    one, other = _place(m, i), _place(m, j)
    return bool(
        findings.event(m, one) == findings.event(m, other)
        and findings.partition(m, one) == findings.partition(m, other)
    )


@part
def _sort(m: Ints, first: int, count: int, w: Ints, rank: Ints, ranks: int) -> bool:
    """Write the order of consecutive runs, counted from the first, from ``w`` on.

    Return False if two of them have the same events.
    """
    # Behind the order: room for a second order, where the path of each run begins, and the paths as
    # comparable numbers.
    other, begins, at = count, 2 * count, 3 * count + 1
    for i in range(count):
        w[i], w[begins + i] = i, at
        node = findings.node(m, _place(m, first + i))
        end = at + nodes.depth(m, node)
        j = end
        while node != 0:
            value = nodes.position(m, node) * ranks + rank[nodes.way(m, node)]
            node = nodes.previous(m, node)
            j -= 1
            to = j
            while to + 1 < end and w[to + 1] < value:
                w[to] = w[to + 1]
                to += 1
            w[to] = value
        at = end
    w[begins + count] = at
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle, right = min(left + width, count), min(left + 2 * width, count)
            i, j = left, middle
            for to in range(left, right):
                if j >= right or (i < middle and _compare(w, begins, w[i], w[j]) <= 0):
                    w[other + to] = w[i]
                    i += 1
                else:
                    w[other + to] = w[j]
                    j += 1
        for to in range(count):
            w[to] = w[other + to]
        width *= 2
    repeated = 0
    for i in range(1, count):
        repeated += _compare(w, begins, w[i - 1], w[i]) == 0
    return repeated == 0


@inlined
def _compare(w: Ints, begins: int, one: int, other: int) -> int:
    """Return below 0 if one run comes before the other, 0 if they have the same events, above 0 otherwise."""
    i, last_i = w[begins + one], w[begins + one + 1]
    j, last_j = w[begins + other], w[begins + other + 1]
    while i < last_i and j < last_j:
        if w[i] != w[j]:
            return -1 if w[i] < w[j] else 1
        i += 1
        j += 1
    return int((last_i - i) - (last_j - j))

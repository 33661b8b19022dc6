"""What is to be expected of partial matches in the rest of their windows, from the last gate to the first.

What comes in are *rates*, of how often in an event a partial match of each class becomes matches and takes
each *step*, to each class behind it: to those that are listed, and once for all others (``_kernel_shrunk``).
Steps are told by a table.
"""

from __future__ import annotations

from math import exp, expm1
from typing import Final

from spaseq._fields import reads_row
from spaseq._jit import kernel, part
from spaseq.matching.conditions._kernel_values import Floats, Ints, pointer
from spaseq.matching.shedding.compiled._kernel_known import AGES

# Columns of a step: its gate, and that one's first class; of the place that it comes from, how many codes and
# depths there are; how many codes there are of the one that it leads to; where its rates stand, its first
# code's row, the targets that are listed, and how many of each depth are; and of the list of gates, by their
# first classes, where those of the place that it leads to stand.
S_GATE: Final = 0
S_BASE: Final = 1
S_CODES: Final = 2
S_DEPTHS: Final = 3
S_TARGETS: Final = 4
S_RATES: Final = 5
S_ROWS: Final = 6
S_LISTED: Final = 7
S_SEEN: Final = 8
S_BEHIND: Final = 9
S_BEHIND_END: Final = 10
S_SIZE: Final = 11
gate, base, codes = reads_row(S_GATE, S_SIZE), reads_row(S_BASE, S_SIZE), reads_row(S_CODES, S_SIZE)
depths, targets = reads_row(S_DEPTHS, S_SIZE), reads_row(S_TARGETS, S_SIZE)
rates_at, rows = reads_row(S_RATES, S_SIZE), reads_row(S_ROWS, S_SIZE)
listed, seen_at = reads_row(S_LISTED, S_SIZE), reads_row(S_SEEN, S_SIZE)
behind, behind_end = reads_row(S_BEHIND, S_SIZE), reads_row(S_BEHIND_END, S_SIZE)

#: What is expected: matches, and units of work.
WHATS: Final = 2
#: What brings a little less than the price is kept in part, from 1 less this to 1 more.
MARGIN: Final = 0.1
#: What changes less than this is what it was.
_SAME: Final = 0.01
_NOTHING: Final = 1e-8


@part
def _add(
    t: Ints, s: int, rates: Floats, others: Floats, columns: Ints, seen: Ints, brings: Floats, width: int,
    rest: Floats, to: Floats,
) -> None:  # fmt: skip
    """Adds to each class that takes a step what the ones behind it bring, so many numbers each (``width``).

    ``rest`` has room for as many.
    """
    many, own, size = targets(t, s), codes(t, s) // depths(t, s), codes(t, s)
    for depth in range(size // own):
        column = listed(t, s) + depth * many
        count = seen[seen_at(t, s) + depth]
        for c in range(width):
            rest[c] = 0.0
        k = 0
        for j in range(many):
            if k < count and columns[column + k] == j:
                k += 1
                continue
            for c in range(width):
                rest[c] += brings[j * width + c]
        for i in range(depth * own, (depth + 1) * own):
            row = rates_at(t, s) + i * many
            other = others[rows(t, s) + i]
            at = (base(t, s) + i) * width
            for c in range(width):
                to[at + c] += other * rest[c]
            k = 0
            # Four at a time, so that the sums are not read and written for each.
            while k + 4 <= count:
                r0, r1, r2, r3 = rates[row + k], rates[row + k + 1], rates[row + k + 2], rates[row + k + 3]
                b0, b1 = columns[column + k] * width, columns[column + k + 1] * width
                b2, b3 = columns[column + k + 2] * width, columns[column + k + 3] * width
                for c in range(width):
                    to[at + c] += (
                        r0 * brings[b0 + c] + r1 * brings[b1 + c] + r2 * brings[b2 + c] + r3 * brings[b3 + c]
                    )
                k += 4
            while k < count:
                r0, b0 = rates[row + k], columns[column + k] * width
                for c in range(width):
                    to[at + c] += r0 * brings[b0 + c]
                k += 1


@part
def worth(value: float, cost: float, price: float) -> float:
    """Which share of those is kept that bring so much for so much work."""
    if price <= 0:
        return 1.0
    return min(max((value / max(price * cost, 1e-12) - 1) / (2 * MARGIN) + 0.5, 0.0), 1.0)


@part
def _brought(
    t: Ints, s: int, gates: Ints, ahead: Floats, stands: Floats, price: float, brings: Floats
) -> None:
    """What a step brings, of each class that it leads to: what follows, and a unit of work to make it."""
    width, half = WHATS * AGES, AGES
    for j in range(targets(t, s)):
        for c in range(half):
            brings[j * width + c] = 0.0
            brings[j * width + half + c] = 1.0
        for g in range(behind(t, s), behind_end(t, s)):
            of = gates[g] + j
            for age in range(AGES):
                kept = stands[of] * worth(ahead[of * width + age], ahead[of * width + half + age], price)
                for c in range(age, width, AGES):
                    brings[j * width + c] += kept * ahead[of * width + c]


@part
def _lasts(dying: float, events: float) -> float:
    """How many of so many events one lives through of which so many die in an event."""
    return -expm1(-dying * events) / dying if dying > 1e-9 else events


@part
def _rest(rate: Floats, at: int, dying: float, events: float, to: Floats) -> None:
    """What comes in the rest of the window, at so much an event by age, of one that may die before.

    ``rate`` and what comes ``to`` there are on average over an age, which has so many ``events``; ``dying``:
    so many die in each.
    """
    whole, half = _lasts(dying, events), _lasts(dying, events / 2)
    stays, stays_half = exp(-dying * events), exp(-dying * events / 2)
    later = 0.0
    for age in range(AGES - 1, -1, -1):
        # Of those of an age, half of it is over.
        to[at + age] = rate[at + age] * half + stays_half * later
        later = rate[at + age] * whole + stays * later


@kernel
def follow(
    table: Ints, gates_: Ints, count: int, matched_: Floats, rates_: Floats, others_: Floats, columns_: Ints,
    seen_: Ints, load_: Floats, dying_: Floats, stands_: Floats, events: float, price: float, rounds: int,
    brings_: Floats, rate_: Floats, ahead_: Floats,
) -> None:  # fmt: skip
    """What is to be expected of a partial match of each class: matches, and units of work.

    ``ahead`` has numbers by class, what and age, and ``rate`` what comes in one event (see ``_rest``);
    of ``count`` gates, the last comes first. What is not worth the ``price`` is shed as soon as it is made;
    ``stands``: the share of those of a class that are made at all. Where what follows of a class is of its
    own, it takes several rounds.
    """
    t, gates, matched, rates = pointer(table), pointer(gates_), pointer(matched_), pointer(rates_)
    others, columns, seen = pointer(others_), pointer(columns_), pointer(seen_)
    load, dying, stands, brings = pointer(load_), pointer(dying_), pointer(stands_), pointer(brings_)
    rate, ahead = pointer(rate_), pointer(ahead_)
    classes, steps = len(matched_), len(table) // S_SIZE
    width, half = WHATS * AGES, AGES
    # Behind what all targets bring there is room for what some of them do.
    some = pointer(brings_[len(brings_) - width :])
    for i in range(classes * width):
        ahead[i] = 0.0
    value = cost = 0.0
    for _ in range(rounds):
        last_value, last_cost = value, cost
        for g in range(count - 1, -1, -1):
            first = size = -1
            for s in range(steps):
                if gate(t, s) != g:
                    continue
                if first < 0:
                    first, size = base(t, s), codes(t, s)
                    for i in range(first, first + size):
                        for c in range(half):
                            rate[i * width + c] = matched[i]
                            rate[i * width + half + c] = matched[i] + load[i]
                if behind(t, s) == behind_end(t, s):
                    continue  # a match, which is counted
                _brought(t, s, gates, ahead, stands, price, brings)
                _add(t, s, rates, others, columns, seen, brings, width, some, rate)
            for i in range(first, first + size):
                at = i * width
                _rest(rate, at, dying[i], events, ahead)
                _rest(rate, at + half, dying[i], events, ahead)
        value = cost = 0.0
        for i in range(classes):
            for age in range(AGES):
                value += ahead[i * width + age]
                cost += ahead[i * width + half + age]
        off = abs(value - last_value) - _SAME * value
        if max(off, abs(cost - last_cost) - _SAME * cost) <= _NOTHING:
            break


@kernel
def at_once(
    table: Ints, gates_: Ints, matched_: Floats, rates_: Floats, others_: Floats, columns_: Ints, seen_: Ints,
    load_: Floats, value_: Floats, brings_: Floats, found_: Floats,
) -> None:  # fmt: skip
    """In an event, of one partial match of each class: by age the matches to be expected of what becomes
    of it there, and then the units of work that this is at once. ``value``: those to be expected of one.
    """
    t, gates, value = pointer(table), pointer(gates_), pointer(value_)
    brings, found = pointer(brings_), pointer(found_)
    rates, others = pointer(rates_), pointer(others_)
    columns, seen = pointer(columns_), pointer(seen_)
    width = AGES + 1
    some = pointer(brings_[len(brings_) - width :])
    for i in range(len(matched_)):
        for age in range(AGES):
            found[i * width + age] = matched_[i]
        found[i * width + AGES] = load_[i] + matched_[i]
    for s in range(len(table) // S_SIZE):
        if behind(t, s) == behind_end(t, s):
            continue
        for j in range(targets(t, s)):
            for age in range(AGES):
                brings[j * width + age] = 0.0
                for g in range(behind(t, s), behind_end(t, s)):
                    brings[j * width + age] += value[(gates[g] + j) * AGES + age]
            brings[j * width + AGES] = behind_end(t, s) - behind(t, s)
        _add(t, s, rates, others, columns, seen, brings, width, some, found)

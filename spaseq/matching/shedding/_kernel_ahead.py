"""Expected matches and work of partial matches in the rest of their windows, from the last gate to the first.

The input is *rates*: how often per event a partial match of each class becomes a match, and how often it
takes each *step* to each following class. A table describes the steps.
"""

from __future__ import annotations

from math import exp, expm1
from typing import Final, NamedTuple

from spaseq._fields import reads_row
from spaseq._jit import kernel, part
from spaseq.matching.filters._kernel_values import Floats, Ints, pointer
from spaseq.matching.shedding._kernel_known import AGES

# Columns of a step: its gate, and the gate's first class; the number of codes of its source place and of its
# target place; where its rates are, by code and target; and the range of the target place's gates in the list
# of gates, which has their first classes.
S_GATE: Final = 0
S_BASE: Final = 1
S_CODES: Final = 2
S_TARGETS: Final = 3
S_RATES: Final = 4
S_BEHIND: Final = 5
S_BEHIND_END: Final = 6
S_SIZE: Final = 7
gate, base, codes = reads_row(S_GATE, S_SIZE), reads_row(S_BASE, S_SIZE), reads_row(S_CODES, S_SIZE)
targets, rates_at = reads_row(S_TARGETS, S_SIZE), reads_row(S_RATES, S_SIZE)
behind, behind_end = reads_row(S_BEHIND, S_SIZE), reads_row(S_BEHIND_END, S_SIZE)

#: The expected quantities: matches, and units of work.
WHATS: Final = 2
#: Partial matches with a utility within this share of the price are kept in part.
MARGIN: Final = 0.1
#: The iteration stops when values change by less than this share.
_SAME: Final = 0.01
_NOTHING: Final = 1e-8


class StepRates(NamedTuple):
    """The rates of a query's steps, and scratch space: arrays, or in compiled code their addresses.

    ``table``: the steps; ``gates``: the first classes of gates. ``matched``: by class, how often a partial
    match becomes a match; ``rates``: how often it takes a step, by step, code and target. ``brings``: room
    for what a step brings. ``rate`` and ``ahead``: by class, quantity and age, the quantities in one event,
    and in the rest of the window.
    """

    table: Ints
    gates: Ints
    matched: Floats
    rates: Floats
    brings: Floats
    rate: Floats
    ahead: Floats


@part
def _add(t: Ints, s: int, rates: Floats, brings: Floats, width: int, to: Floats) -> None:
    """Add to each class that takes a step what the next classes bring, ``width`` numbers each."""
    many = targets(t, s)
    for i in range(codes(t, s)):
        at, row = (base(t, s) + i) * width, rates_at(t, s) + i * many
        for j in range(many):
            for c in range(width):
                to[at + c] += rates[row + j] * brings[j * width + c]


@part
def worth(value: float, cost: float, price: float) -> float:
    """Return the share to keep of partial matches with this value and cost, at a price."""
    if price <= 0:
        return 1.0
    return min(max((value / max(price * cost, 1e-12) - 1) / (2 * MARGIN) + 0.5, 0.0), 1.0)


@part
def _brought(t: Ints, s: int, gates: Ints, ahead: Floats, price: float, brings: Floats) -> None:
    """Write what a step brings for each target class: what follows, and a unit of work to make it."""
    width = WHATS * AGES
    for j in range(targets(t, s)):
        for c in range(AGES):
            brings[j * width + c] = 0.0
            brings[j * width + AGES + c] = 1.0
        for g in range(behind(t, s), behind_end(t, s)):
            at = (gates[g] + j) * width
            for age in range(AGES):
                kept = worth(ahead[at + age], ahead[at + AGES + age], price)
                for c in range(age, width, AGES):
                    brings[j * width + c] += kept * ahead[at + c]


@part
def _lasts(dying: float, events: float) -> float:
    """Return how many of ``events`` a partial match lives through that dies at the rate ``dying``
    per event.
    """
    return -expm1(-dying * events) / dying if dying > 1e-9 else events


@part
def _rest(rate: Floats, at: int, dying: float, events: float, to: Floats) -> None:
    """Add up the expected quantities in the rest of the window, for a partial match that may die before.

    ``rate`` is per event, by age; ``to`` gets the sum from the middle of an age on. An age has ``events``
    events; ``dying`` is the rate of dying per event.
    """
    whole, half = _lasts(dying, events), _lasts(dying, events / 2)
    stays, stays_half = exp(-dying * events), exp(-dying * events / 2)
    later = 0.0
    for age in range(AGES - 1, -1, -1):
        # On average half of an age is over.
        to[at + age] = rate[at + age] * half + stays_half * later
        later = rate[at + age] * whole + stays * later


@part
def _rate(steps: StepRates, count: int, g: int, load: Floats, price: float) -> tuple[int, int]:
    """Compute the quantities in one event for the classes of a gate; return the range of these classes.

    ``count``: the number of steps.
    """
    t, matched, rate = steps.table, steps.matched, steps.rate
    width = WHATS * AGES
    first = size = -1
    for s in range(count):
        if gate(t, s) != g:
            continue
        if first < 0:
            first, size = base(t, s), codes(t, s)
            for i in range(first, first + size):
                for c in range(AGES):
                    rate[i * width + c] = matched[i]
                    rate[i * width + AGES + c] = matched[i] + load[i]
        if behind(t, s) == behind_end(t, s):
            continue  # a step that only completes a match: ``matched`` counts it
        _brought(t, s, steps.gates, steps.ahead, price, steps.brings)
        _add(t, s, steps.rates, steps.brings, width, rate)
    return first, first + size


@kernel
def follow(
    steps_: StepRates, count: int, load_: Floats, dying_: Floats, events: float, price: float, rounds: int
) -> None:
    """Compute the expected matches and units of work of a partial match of each class (see ``_rest``).

    The last of ``count`` gates comes first. Partial matches not worth the ``price`` are shed as soon as they
    are made. Steps that lead back need several rounds.
    """
    steps: StepRates = pointer(steps_)
    load, dying, ahead = pointer(load_), pointer(dying_), steps.ahead
    classes, many = len(steps_.matched), len(steps_.table) // S_SIZE
    width = WHATS * AGES
    for i in range(classes * width):
        ahead[i] = 0.0
    value = cost = 0.0
    for _ in range(rounds):
        last_value, last_cost = value, cost
        for g in range(count - 1, -1, -1):
            first, last = _rate(steps, many, g, load, price)
            for i in range(first, last):
                _rest(steps.rate, i * width, dying[i], events, ahead)
                _rest(steps.rate, i * width + AGES, dying[i], events, ahead)
        value = cost = 0.0
        for i in range(classes):
            for age in range(AGES):
                value += ahead[i * width + age]
                cost += ahead[i * width + AGES + age]
        off = abs(value - last_value) - _SAME * value
        if max(off, abs(cost - last_cost) - _SAME * cost) <= _NOTHING:
            break


@kernel
def at_once(steps_: StepRates, load_: Floats, value_: Floats, found_: Floats) -> None:
    """Compute, for one event and a partial match of each class, the expected matches of what becomes of it.

    ``found`` gets for each class the expected matches by age, then the immediate units of work. ``value``:
    the expected matches of a partial match.
    """
    steps: StepRates = pointer(steps_)
    t, brings, matched = steps.table, steps.brings, steps.matched
    load, value, found = pointer(load_), pointer(value_), pointer(found_)
    width = AGES + 1
    for i in range(len(steps_.matched)):
        for age in range(AGES):
            found[i * width + age] = matched[i]
        found[i * width + AGES] = load[i] + matched[i]
    for s in range(len(steps_.table) // S_SIZE):
        if behind(t, s) == behind_end(t, s):
            continue
        for j in range(targets(t, s)):
            for age in range(AGES):
                brings[j * width + age] = 0.0
                for g in range(behind(t, s), behind_end(t, s)):
                    brings[j * width + age] += value[(steps.gates[g] + j) * AGES + age]
            brings[j * width + AGES] = behind_end(t, s) - behind(t, s)
        _add(t, s, steps.rates, brings, width, found)

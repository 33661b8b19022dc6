"""The bounds of the values that an item's rows may have, and the columns of doubles held against them.

A row whose value has no plain place in the order of numbers is within all bounds: its double is NaN. Bounds
are as exact as doubles are, and a little wider; what lies within them is tested as all rows are.
"""

from __future__ import annotations

from typing import Final

from spaseq._jit import inlined, part
from spaseq.matching.conditions._kernel_values import DOUBLE, SHORT, Codes, Floats, Ints
from spaseq.matching.lazy.compiled._kernel_layout import NOTHING, T_BUFFERS, T_ORDERED
from spaseq.matching.lazy.records import ring, stored
from spaseq.matching.lazy.records.query import interval, kept, summand

_FAR: Final = float("inf")
_NO_NUMBER: Final = float("nan")
#: What arithmetic of doubles may round of a sum, as a part of its terms; and the least room there is.
_ROUNDED: Final = 1e-12
_LEAST: Final = 1e-290
#: Up to here, nothing is infinite.
_LARGEST: Final = 1e300


@inlined
def column_of(t: Ints, r: Ints, g: int, column: int) -> int:
    """Where a column of a buffer's doubles begins; a row stands in it as in its ring."""
    return int(ring.base(r, g) * t[T_ORDERED] + column * (ring.mask(r, g) + 1))


@inlined
def beyond(value: float, low: float, high: float) -> bool:
    """Whether a row's double is beyond bounds; NaN is not.

    One comparison, since which of the two bounds a value is beyond is by chance, and a processor that has to
    guess it takes five times as long. What it does not see (a product that is too small) is tested as it were
    within.
    """
    return (value - low) * (high - value) < 0.0


@inlined
def is_number(identifier: int, codes: Codes) -> bool:
    """Whether a term has a plain place in the order of numbers."""
    return identifier > 0 and SHORT <= codes[identifier] <= DOUBLE


@part
def enter_doubles(
    t: Ints, r: Ints, rows: Ints, ordered: Floats, g: int, number: int, at: int, numbers: Floats, codes: Codes
) -> None:
    """Enters a row, which stands at ``at``, in the columns of doubles."""
    buffer = t[T_BUFFERS] + g * kept.SIZE
    to = column_of(t, r, g, 0) + (number & ring.mask(r, g))
    for i in range(kept.ordered(t, buffer), kept.ordered_end(t, buffer)):
        identifier = stored.value(rows, at, t[i])
        plain = is_number(identifier, codes) and not stored.is_one_of_several(rows, at)
        ordered[to] = numbers[identifier] if plain else _NO_NUMBER
        to += ring.mask(r, g) + 1


@part
def bounded_column(t: Ints, begin: int, end: int, bound: int) -> int:
    """The column to whose doubles ranges give bounds, when some items are there; NOTHING if to none."""
    for q in range(begin, end, interval.SIZE):
        if not interval.needs(t, q) & ~bound:
            return int(interval.column(t, q))
    return NOTHING


@part
def set_bounds(
    t: Ints, m: Ints, f: Floats, begin: int, end: int, bound: int, column: int, record: int, to: int,
    numbers: Floats, codes: Codes,
) -> None:  # fmt: skip
    """Writes the bounds of a column of doubles at ``f[to]``. ``record``: what is known of what is there."""
    low, high = -_FAR, _FAR
    for q in range(begin, end, interval.SIZE):
        if interval.column(t, q) != column or interval.needs(t, q) & ~bound:
            continue
        value = scale = 0.0
        for term in range(interval.terms(t, q), interval.terms_end(t, q), summand.SIZE):
            one = numbers[summand.factor(t, term)]
            if summand.slot(t, term) >= 0:
                identifier = m[record + summand.slot(t, term)]
                one = one * numbers[identifier] if is_number(identifier, codes) else _NO_NUMBER
            value += one
            scale += abs(one)
        if not scale < _LARGEST:
            continue  # infinite, or no number: the condition itself decides
        room = scale * _ROUNDED + _LEAST
        if interval.sides(t, q) & interval.LEAST:
            low = max(low, value - room)
        if interval.sides(t, q) & interval.MOST:
            high = min(high, value + room)
    if low > high:
        low = high = _FAR  # which all numbers are beyond
    f[to], f[to + 1] = low, high

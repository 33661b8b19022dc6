"""Which of an event's solutions are of one partition: found by bisection, for they are in order of keys."""

from __future__ import annotations

from typing import Any

from spaseq._jit import kernel
from spaseq.matching.enumeration.compiled._kernel_layout import Ints


@kernel
def narrow(column: Ints, wanted: Any, begins: Ints, ends: Ints) -> None:
    """Leaves of some ranges of rows, from ``begins`` to ``ends``, those that have a value in a column.

    Range i is in the order of the column, and ``wanted[i]`` is its value.
    """
    for i in range(len(begins)):
        value = wanted[i]
        low, high = begins[i], ends[i]
        while low < high:
            middle = (low + high) >> 1
            if column[middle] < value:
                low = middle + 1
            else:
                high = middle
        begin = low
        high = ends[i]
        while low < high:
            middle = (low + high) >> 1
            if column[middle] <= value:
                low = middle + 1
            else:
                high = middle
        begins[i], ends[i] = begin, low

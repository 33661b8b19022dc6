"""Columns of ids of terms → in which rows a comparison of their numbers holds."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel
from spaseq.events import Ids
from spaseq.terms.values import EXACT_ORDER, IS_DOUBLE

#: The operators, by number.
SYMBOLS: Final = ("=", "!=", "<", ">", "<=", ">=")


@kernel
def compare(
    symbol: int, left: Ids, right: Ids, numbers: npt.NDArray[np.float64], ranks: npt.NDArray[np.int8],
    keep: npt.NDArray[np.bool_],
) -> bool:  # fmt: skip
    """Writes of each row whether the comparison holds; whether doubles decide all of them.

    ``numbers`` and ``ranks`` are by id, as ``Dictionary.by_id`` has them. A side of one value is compared
    with each of the other's. Doubles compare as XPath compares them with anything. Integers and decimals keep
    their order when rounded to doubles, so different doubles decide; equal ones do not, unless they are of
    one term.
    """
    rows = len(keep)
    a, b = int(len(left) == rows), int(len(right) == rows)
    for i in range(rows):
        one, other = left[a * i], right[b * i]
        x, y, x_rank, y_rank = numbers[one], numbers[other], ranks[one], ranks[other]
        if x_rank == IS_DOUBLE or y_rank == IS_DOUBLE:
            if (x_rank != IS_DOUBLE and x_rank != EXACT_ORDER) or (
                y_rank != IS_DOUBLE and y_rank != EXACT_ORDER
            ):
                return False
        elif x_rank != EXACT_ORDER or y_rank != EXACT_ORDER or (x == y and one != other):
            return False
        if symbol == 0:
            keep[i] = x == y
        elif symbol == 1:
            keep[i] = x != y
        elif symbol == 2:
            keep[i] = x < y
        elif symbol == 3:
            keep[i] = x > y
        elif symbol == 4:
            keep[i] = x <= y
        else:
            keep[i] = x >= y
    return True

"""Compiled functions on doubles (libm's, the distance on WGS84), and comparisons of whole columns of ids."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq._jit import kernel, part
from spaseq.events import Ids
from spaseq.terms.values import EXACT_ORDER, IS_DOUBLE

# Functions on doubles: libm's, and the distance on WGS84.
#
# Filters and the kernels that match call the same machine code, so that results are the same, bit for bit.

SIN: Final = 0
COS: Final = 1
TAN: Final = 2
ASIN: Final = 3
ACOS: Final = 4
ATAN: Final = 5
SQRT: Final = 6
EXP: Final = 7
LOG: Final = 8
LOG10: Final = 9
ATAN2: Final = 10
POW: Final = 11

# The ellipsoid of WGS84: half of the longer axis in metres, and the flattening.
_A: Final = 6378137.0
_F: Final = 1.0 / 298.257223563
_B: Final = _A * (1.0 - _F)
#: Points at least this far apart (radians) are nearly antipodal: Vincenty's iteration may not converge.
_FAR: Final = math.radians(178.0)
_TURN: Final = 2.0 * math.pi
_DIRECTIONS: Final = 64
_GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0


@part
def function(op: int, x: float, y: float) -> float:
    """Return the value of a function of libm. ``y`` is used by ``ATAN2`` and ``POW`` only."""
    if op == SIN:
        return math.sin(x)
    if op == COS:
        return math.cos(x)
    if op == TAN:
        return math.tan(x)
    if op == ASIN:
        return math.asin(x)
    if op == ACOS:
        return math.acos(x)
    if op == ATAN:
        return math.atan(x)
    if op == SQRT:
        return math.sqrt(x)
    if op == EXP:
        return math.exp(x)
    if op == LOG:
        return math.log(x)
    if op == LOG10:
        return math.log10(x)
    if op == ATAN2:
        return math.atan2(x, y)
    return math.pow(x, y)


@part
def _vincenty(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """Return metres between points that are not nearly antipodal, in radians (Vincenty's inverse formula,
    1975).
    """
    u1, u2 = math.atan((1.0 - _F) * math.tan(lat1)), math.atan((1.0 - _F) * math.tan(lat2))
    sin_u1, cos_u1, sin_u2, cos_u2 = math.sin(u1), math.cos(u1), math.sin(u2), math.cos(u2)
    length = lon2 - lon1
    x = length
    sin_s, cos_s, s, cos2_a, cos_2m = 0.0, 1.0, 0.0, 1.0, 0.0
    for _ in range(100):
        sin_x, cos_x = math.sin(x), math.cos(x)
        across = cos_u2 * sin_x
        along = cos_u1 * sin_u2 - sin_u1 * cos_u2 * cos_x
        sin_s = math.sqrt(across * across + along * along)
        if sin_s == 0.0:
            return 0.0
        cos_s = sin_u1 * sin_u2 + cos_u1 * cos_u2 * cos_x
        s = math.atan2(sin_s, cos_s)
        sin_a = cos_u1 * cos_u2 * sin_x / sin_s
        cos2_a = 1.0 - sin_a * sin_a
        cos_2m = cos_s - 2.0 * sin_u1 * sin_u2 / cos2_a if cos2_a > 1e-15 else 0.0
        c = _F / 16.0 * cos2_a * (4.0 + _F * (4.0 - 3.0 * cos2_a))
        before = x
        x = length + (1.0 - c) * _F * sin_a * (
            s + c * sin_s * (cos_2m + c * cos_s * (2.0 * cos_2m * cos_2m - 1.0))
        )
        if abs(x - before) < 1e-12:
            break
    u = cos2_a * (_A * _A - _B * _B) / (_B * _B)
    a = 1.0 + u / 16384.0 * (4096.0 + u * (u * (320.0 - 175.0 * u) - 768.0))
    b = u / 1024.0 * (256.0 + u * (u * (74.0 - 47.0 * u) - 128.0))
    m = cos_2m * cos_2m
    less = b * sin_s * (
        cos_2m
        + b / 4.0 * (
            cos_s * (2.0 * m - 1.0) - b / 6.0 * cos_2m * (4.0 * sin_s * sin_s - 3.0) * (4.0 * m - 3.0)
        )
    )  # fmt: skip
    return _B * a * (s - less)


@part
def _by_way_of(lon1: float, lat1: float, lon2: float, lat2: float, direction: float) -> float:
    """Return metres from a point to another via the point a quarter of the globe away in a direction."""
    lat = math.asin(math.cos(lat1) * math.cos(direction))
    lon = lon1 + math.atan2(math.sin(direction) * math.cos(lat1), -math.sin(lat1) * math.sin(lat))
    return _vincenty(lon1, lat1, lon, lat) + _vincenty(lon, lat, lon2, lat2)


@part
def geodesic(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """Return metres between two points on the ellipsoid of WGS84, each longitude and latitude in degrees."""
    lon1, lat1, lon2, lat2 = math.radians(lon1), math.radians(lat1), math.radians(lon2), math.radians(lat2)
    north, east = math.sin((lat2 - lat1) / 2.0), math.sin((lon2 - lon1) / 2.0)
    haversine = north * north + math.cos(lat1) * math.cos(lat2) * east * east
    if 2.0 * math.asin(math.sqrt(min(1.0, haversine))) < _FAR:
        return _vincenty(lon1, lat1, lon2, lat2)
    # Each path crosses the circle a quarter of the globe from the first point. The shortest path crosses it
    # where the sum of both parts is least.
    best, least = 0.0, math.inf
    step = _TURN / _DIRECTIONS
    for i in range(_DIRECTIONS):
        metres = _by_way_of(lon1, lat1, lon2, lat2, i * step)
        if metres < least:
            best, least = i * step, metres
    low, high = best - step, best + step
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _by_way_of(lon1, lat1, lon2, lat2, left) < _by_way_of(lon1, lat1, lon2, lat2, right):
            high = right
        else:
            low = left
    return min(least, _by_way_of(lon1, lat1, lon2, lat2, (low + high) / 2.0))


@kernel
def evaluate(op: int, x: float, y: float) -> float:
    """See ``function``."""
    return function(op, x, y)


@kernel
def metres_between(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """See ``geodesic``."""
    return geodesic(lon1, lat1, lon2, lat2)


# Columns of ids of terms → the rows in which a comparison of their numbers holds.

#: The operators, by number.
SYMBOLS: Final = ("=", "!=", "<", ">", "<=", ">=")


@kernel
def compare(
    symbol: int, left: Ids, right: Ids, numbers: npt.NDArray[np.float64], ranks: npt.NDArray[np.int8],
    keep: npt.NDArray[np.bool_],
) -> bool:  # fmt: skip
    """Write for each row whether the comparison holds; return whether doubles decide all rows.

    ``numbers`` and ``ranks`` are by id, as ``Dictionary.by_id`` has them. A side of one value is compared
    with each value of the other side. A double is compared with any number as doubles, as in XPath. Integers
    and decimals keep their order when rounded to doubles. So different doubles decide, but equal doubles do
    not, unless both are of one term.
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

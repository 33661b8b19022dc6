"""Functions that SPARQL itself lacks: XPath's ``math:`` and GeoSPARQL's ``geof:distance``.

They compute what the kernels compute, by the same code (``_kernel_math``).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal

from spaseq.gpm.expressions import _kernel_math as km
from spaseq.gpm.expressions.comparison import double
from spaseq.gpm.expressions.functions import Function
from spaseq.gpm.general.delegated import ExpressionError
from spaseq.language.functions import GEOF, MATH
from spaseq.terms.values import DOUBLE, IRI, UNKNOWN, XSD, Value

#: XPath's functions of one number and of two, as ``_kernel_math`` numbers them.
UNARY: Final = {
    MATH + "sin": km.SIN,
    MATH + "cos": km.COS,
    MATH + "tan": km.TAN,
    MATH + "asin": km.ASIN,
    MATH + "acos": km.ACOS,
    MATH + "atan": km.ATAN,
    MATH + "sqrt": km.SQRT,
    MATH + "exp": km.EXP,
    MATH + "log": km.LOG,
    MATH + "log10": km.LOG10,
}
BINARY: Final = {MATH + "atan2": km.ATAN2, MATH + "pow": km.POW}
PI: Final = MATH + "pi"
DISTANCE: Final = GEOF + "distance"

_UOM: Final = "http://www.opengis.net/def/uom/OGC/1.0/"
_QUDT: Final = "http://qudt.org/vocab/unit/"
_MEAN_RADIUS: Final = 6_371_008.7714
_DEGREE: Final = _MEAN_RADIUS * math.pi / 180

#: Metres in a unit of length. An angle is that of the distance on the Earth's mean radius.
UNITS: Final[dict[str, float]] = {
    _UOM + "metre": 1.0,
    _UOM + "kilometre": 1000.0,
    _UOM + "foot": 0.3048,
    _UOM + "yard": 0.9144,
    _UOM + "statuteMile": 1609.344,
    _UOM + "nauticalMile": 1852.0,
    _UOM + "degree": _DEGREE,
    _UOM + "radian": _MEAN_RADIUS,
    _QUDT + "M": 1.0,
    _QUDT + "KiloM": 1000.0,
    _QUDT + "DEG": _DEGREE,
    _QUDT + "RAD": _MEAN_RADIUS,
}

#: Up to so many characters a geometry that is read is kept.
_SHORT: Final = 128

_WKT: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
_CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_COORDINATE: Final = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_POINT: Final = re.compile(
    rf"\s*(?:<([^<>\s]*)>)?\s*POINT\s*\(\s*{_COORDINATE}\s+{_COORDINATE}\s*\)\s*", re.IGNORECASE | re.ASCII
)


def number(value: Value) -> float:
    """A number as the double nearest to it."""
    if value.kind > DOUBLE:
        raise ExpressionError(f"{value} is not a number")
    return double(value.data)


def _unary(op: int) -> Function:
    return lambda x: Value(DOUBLE, km.evaluate(op, number(x), 0.0))


def _binary(op: int) -> Function:
    return lambda x, y: Value(DOUBLE, km.evaluate(op, number(x), number(y)))


def point(value: Value) -> tuple[float, float]:
    """Longitude and latitude of a point, in degrees: a wktLiteral in CRS84.

    Raises ``ExpressionError`` for other geometries and reference systems.

    >>> from pyoxigraph import NamedNode
    >>> from spaseq.terms.values import decode
    >>> point(decode(Literal("POINT(4.9 52.37)", datatype=NamedNode(_WKT))))
    (4.9, 52.37)
    """
    if value.kind != UNKNOWN or _datatype(value) != _WKT:
        raise ExpressionError(f"{value} is not a geometry in well-known text")
    text = value.text
    found = _read(text) if len(text) <= _SHORT else _read.__wrapped__(text)
    if found is None:
        raise ExpressionError(f"{value} is not a point on the globe in CRS84")
    return found


@lru_cache(maxsize=1 << 14)
def _read(text: str) -> tuple[float, float] | None:
    match = _POINT.fullmatch(text)
    if match is None or match[1] not in (None, _CRS84):
        return None
    longitude, latitude = float(match[2]), float(match[3])
    return (longitude, latitude) if abs(longitude) <= 180 and abs(latitude) <= 90 else None


def metres(unit: Value) -> float:
    """How many metres a unit has, named by an IRI or an ``xsd:anyURI``."""
    is_name = unit.kind == IRI or (unit.kind == UNKNOWN and _datatype(unit) == XSD + "anyURI")
    found = UNITS.get(unit.text) if is_name else None
    if found is None:
        raise ExpressionError(f"{unit} is not a unit of length")
    return found


def _datatype(value: Value) -> str:
    return value.term.datatype.value if isinstance(value.term, Literal) else ""


def _distance(a: Value, b: Value, unit: Value) -> Value:
    return Value(DOUBLE, km.metres_between(*point(a), *point(b)) / metres(unit))


#: The functions, by their IRIs.
EXTENSIONS: Final[dict[str, Function]] = {
    **{name: _unary(op) for name, op in UNARY.items()},
    **{name: _binary(op) for name, op in BINARY.items()},
    PI: lambda: Value(DOUBLE, math.pi),
    DISTANCE: _distance,
}

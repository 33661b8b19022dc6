"""Functions that SPARQL itself lacks: XPath's ``math:``, ``geof:distance``, and what the user registered."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox
import rdflib
from pyoxigraph import Literal
from rdflib.term import Node

from spaseq.events import Ids
from spaseq.language.functions import GEOF, MATH
from spaseq.language.syntax import OwnFunction
from spaseq.patterns.expressions import _kernel_math as km
from spaseq.patterns.expressions.comparison import ExpressionError, double
from spaseq.patterns.expressions.functions import Function
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.interop import from_rdflib, to_rdflib
from spaseq.terms.values import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    INTEGER,
    IRI,
    NO_NUMBER,
    STRING,
    UNKNOWN,
    XSD,
    Value,
    boolean,
    decode,
)

# Functions that SPARQL itself lacks: XPath's ``math:`` and GeoSPARQL's ``geof:distance``.
#
# They compute what the kernels compute, by the same code (``_kernel_math``).

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

#: Metres per unit of length. An angle stands for the distance on a sphere of the Earth's mean radius.
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

#: Parsed geometries of up to this many characters are cached.
_SHORT: Final = 128

_WKT: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
_CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_COORDINATE: Final = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)"
_POINT: Final = re.compile(
    rf"\s*(?:<([^<>\s]*)>)?\s*POINT\s*\(\s*{_COORDINATE}\s+{_COORDINATE}\s*\)\s*", re.IGNORECASE | re.ASCII
)


def number(value: Value) -> float:
    """Return a number as the double nearest to it."""
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
    """Return the metres of a unit, which is named by an IRI or an ``xsd:anyURI``."""
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

# Functions that the user registered with spaseq or with rdflib, called on typed values and on columns of ids.

#: Kinds of values that are passed as Python values: int, Decimal, float, bool, str.
_PLAIN: Final = frozenset({INTEGER, DECIMAL, DOUBLE, BOOLEAN, STRING})

#: The array types of an argument of a vectorized function, by kind.
_TYPES: Final = (np.float64, np.bool_, np.object_)
_NUMBER, _BOOLEAN, _OBJECT = range(len(_TYPES))

Array = npt.NDArray[Any]


class _Column(NamedTuple):
    """An argument of many calls: the kind of each, and its value as a number or as an object."""

    kinds: npt.NDArray[np.int8]
    numbers: npt.NDArray[np.float64]
    objects: npt.NDArray[np.object_] | None

    def array(self, rows: Ids, kind: int) -> Array:
        """Return the argument's values in these rows, which are of one kind, as the function gets them."""
        if kind == _NUMBER or self.objects is None:
            return self.numbers[rows]
        return self.objects[rows].astype(_TYPES[kind])


class OwnCall:
    """A user's function, as expressions call it.

    An exception is an ``ExpressionError``. The dictionary counts failed calls by IRI, and warns of the first.
    """

    def __init__(self, iri: str, function: OwnFunction, dictionary: Dictionary) -> None:
        self._iri, self._function, self._dictionary = iri, function, dictionary

    def __call__(self, *values: Value) -> Value:
        function = self._function
        if function.vectorized:
            arguments = map(_argument, values)
            arrays = [np.array([element], dtype=_TYPES[kind]) for kind, element in arguments]
            answers = [answer for _, array in self._called(arrays, 1) for answer in array.tolist()]
        else:
            given = map(_plain, values) if function.plain else (to_rdflib(value.term) for value in values)
            try:
                answers = [function.call(*given)]
            except Exception as error:
                self._failed(error)
                answers = []
        if not answers:
            raise ExpressionError(f"<{self._iri}> failed")
        return self._value(answers[0])

    def ids(self, columns: Sequence[Ids]) -> Ids:
        """Return the ids of a vectorized function's results for columns of bound arguments.

        ``UNBOUND`` where the function fails.
        """
        size = len(columns[0])
        arguments = [self._column(ids) for ids in columns]
        kinds = np.array([argument.kinds for argument in arguments])
        found = np.full(size, UNBOUND, dtype=np.int64)
        # Rows of equal kinds are called together, so that a solution's arguments do not depend on its batch.
        for together in np.unique(kinds, axis=1).T:
            rows = np.flatnonzero((kinds == together[:, None]).all(axis=0))
            arrays = [
                argument.array(rows, kind)
                for argument, kind in zip(arguments, together.tolist(), strict=True)
            ]
            for begin, answers in self._called(arrays, len(rows)):
                found[rows[begin : begin + len(answers)]] = self._interned(answers)
        return found

    def _called(self, arrays: Sequence[Array], size: int, begin: int = 0) -> Iterator[tuple[int, Array]]:
        """Yield what the function returns, each with its first row. If a call fails, each half of its rows is
        tried.
        """
        try:
            answers = _answers(self._function.call(*arrays), size)
        except Exception as error:
            if size == 1:
                self._failed(error)
                return
            half = size // 2
            yield from self._called([array[:half] for array in arrays], half, begin)
            yield from self._called([array[half:] for array in arrays], size - half, begin + half)
        else:
            yield begin, answers

    def _column(self, ids: Ids) -> _Column:
        numbers, ranks = self._dictionary.numbers(ids)
        kinds = np.full(len(ids), _NUMBER, dtype=np.int8)
        rest = np.flatnonzero(ranks == NO_NUMBER)
        if not len(rest):
            return _Column(kinds, numbers, None)
        distinct, inverse = np.unique(ids[rest], return_inverse=True)
        objects = np.empty(len(ids), dtype=np.object_)
        known = [_argument(self._dictionary.value(identifier)) for identifier in distinct.tolist()]
        for row, place in zip(rest.tolist(), inverse.tolist(), strict=True):
            kinds[row], objects[row] = known[place]
            if kinds[row] == _NUMBER:  # an xsd:float
                numbers[row] = objects[row]
        return _Column(kinds, numbers, objects)

    def _interned(self, answers: Array) -> Ids:
        """Return the ids of the function's results."""
        match answers.dtype.kind:
            case "f":
                return self._dictionary.intern_doubles(answers.astype(np.float64))
            case "b":
                no, yes = (self._dictionary.intern(boolean(truth).term) for truth in (False, True))
                return np.where(answers, yes, no)
            case _:
                return np.array([self._identifier(answer) for answer in answers.tolist()], dtype=np.int64)

    def _identifier(self, answer: Any) -> int:
        try:
            return self._dictionary.intern(self._value(answer).term)
        except ExpressionError:
            return UNBOUND

    def _value(self, answer: Any) -> Value:
        """Return the typed value of the function's result; None has no value."""
        if answer is None:
            raise ExpressionError(f"<{self._iri}> returned None")
        try:
            return _typed(answer)
        except ExpressionError:
            raise
        except Exception as error:
            self._failed(error)
            raise ExpressionError(f"<{self._iri}> returned a value that is not an RDF term") from error

    def _failed(self, error: Exception) -> None:
        failed = self._dictionary.failed_calls
        failed[self._iri] += 1
        if failed[self._iri] == 1:
            self._dictionary.warn(
                f"<{self._iri}> failed: an error of its expression; further failures are only counted\n"
                + "".join(traceback.format_exception(error))
            )


def _answers(answers: Any, size: int) -> Array:
    """Return what a vectorized function returned, as an array. Raises ValueError for one of
    another length.
    """
    array = answers if isinstance(answers, np.ndarray) else np.asarray(answers, dtype=_type_of(answers))
    if array.shape != (size,):
        raise ValueError(
            f"it returned an array of shape {array.shape}: return one as long as the arguments, ({size},)"
        )
    return array.astype("datetime64[us]") if array.dtype.kind == "M" else array


def _type_of(answers: Any) -> type[np.object_] | None:
    return None if hasattr(answers, "__array__") else np.object_


def _argument(value: Value) -> tuple[int, Any]:
    """Return a value as a vectorized function gets it, and its kind."""
    if value.kind <= DOUBLE:
        try:
            return _NUMBER, float(value.data)
        except OverflowError:  # an integer beyond the doubles
            return _OBJECT, value.data
    return (_BOOLEAN if value.kind == BOOLEAN else _OBJECT), _plain(value)


def _plain(value: Value) -> Any:
    if value.kind in _PLAIN:
        return value.data
    term = to_rdflib(value.term)
    return term.toPython() if isinstance(term, rdflib.Literal) else term


def _typed(answer: Any) -> Value:
    if hasattr(answer, "item") and not isinstance(answer, Node):  # NumPy's scalars
        answer = answer.item()
    if isinstance(answer, bool):
        return boolean(answer)
    if isinstance(answer, int | float):
        return Value(INTEGER if isinstance(answer, int) else DOUBLE, answer)
    term = from_rdflib(answer if isinstance(answer, Node) else rdflib.Literal(answer))
    if isinstance(term, ox.Triple):
        raise ExpressionError("a triple is not a value")
    return decode(term)

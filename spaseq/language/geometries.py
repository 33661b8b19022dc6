"""GeoSPARQL's relations of geometries in well-known text, by shapely, as user functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import shapely
from rdflib import Literal

from spaseq.terms.iris import WELL_KNOWN

_Objects = npt.NDArray[np.object_]
_Answers = npt.NDArray[np.bool_]

_WKT: Final = "http://www.opengis.net/ont/geosparql#wktLiteral"
_CRS: Final = "http://www.opengis.net/def/crs/"
_CRS84: Final = _CRS + "OGC/1.3/CRS84"

#: Like CRS84, but latitude first.
_EPSG_4326: Final = _CRS + "EPSG/0/4326"

#: How many parsed geometries are cached (LRU): a query's constants, and recent positions.
_KEPT: Final = 1 << 10


@lru_cache(_KEPT)
def _read(text: str) -> tuple[str, Any]:
    """Return the reference system of a geometry, and its prepared shape."""
    crs, text = _CRS84, text.strip()
    if text.startswith("<"):
        crs, _, text = text[1:].partition(">")
    shape = shapely.from_wkt(text)
    if crs == _EPSG_4326:
        crs, shape = _CRS84, shapely.transform(shape, lambda places: places[:, ::-1])
    shapely.prepare(shape)
    return crs, shape


def _shapes(first: _Objects, second: _Objects) -> tuple[_Objects, _Objects]:
    """Return the shapes of pairs of geometries. Raises ValueError if reference systems differ."""
    found = np.empty((2, len(first)), dtype=object)
    for row, pair in enumerate(zip(first, second, strict=True)):
        (crs, found[0, row]), (other, found[1, row]) = map(_geometry, pair)
        if crs != other:
            raise ValueError(f"geometries in <{crs}> and <{other}>: give both in the same reference system")
    return found[0], found[1]


def _geometry(term: object) -> tuple[str, Any]:
    if not isinstance(term, Literal) or str(term.datatype) != _WKT:
        raise ValueError(f"{term!r:.80} is not a geo:wktLiteral")
    return _read(str(term))


def _within(first: _Objects, second: _Objects) -> _Answers:
    inner, outer = _shapes(first, second)
    contained: _Answers = shapely.contains(outer, inner)  # shapely uses the preparation of the first argument
    return contained


def _intersects(first: _Objects, second: _Objects) -> _Answers:
    a, b = _shapes(first, second)
    crossing: _Answers = shapely.intersects(b, a)  # the second is usually a constant, and thus prepared
    return crossing


#: The functions by their IRIs.
CALLS: Final[dict[str, Callable[[_Objects, _Objects], _Answers]]] = {
    WELL_KNOWN["geof"] + "sfIntersects": _intersects,
    WELL_KNOWN["geof"] + "sfWithin": _within,
}

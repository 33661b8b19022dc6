"""Functions named by IRIs: casts, XPath's mathematics, GeoSPARQL's distance, and user functions."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

from spaseq.language.reading.hints import nearest
from spaseq.language.syntax import OwnFunction
from spaseq.terms.iris import WELL_KNOWN

XSD: Final = WELL_KNOWN["xsd"]
MATH: Final = WELL_KNOWN["math"]
GEOF: Final = WELL_KNOWN["geof"]

_CASTS: Final = (
    *("string", "boolean", "integer", "decimal", "float", "double"),
    *("dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration"),
)
_MATH: Final = ("sin", "cos", "tan", "asin", "acos", "atan", "sqrt", "exp", "log", "log10")

#: The number of arguments of each function.
ARITIES: Final[dict[str, int]] = {
    **{XSD + name: 1 for name in _CASTS},
    **{MATH + name: 1 for name in _MATH},
    MATH + "atan2": 2,
    MATH + "pow": 2,
    MATH + "pi": 0,
    GEOF + "distance": 3,
}


#: GeoSPARQL's relations of geometries. They are registered when a query first uses one: shapely loads slowly.
RELATIONS: Final = (GEOF + "sfIntersects", GEOF + "sfWithin")

_own: dict[str, OwnFunction] = {}
_beside: ContextVar[Mapping[str, OwnFunction]] = ContextVar("_beside", default={})  # noqa: B039  # never written


def function(
    iri: str, f: Callable[..., Any], *, deterministic: bool = True, vectorized: bool = False
) -> None:
    """Make a Python function usable in queries of this process, as ``<iri>(…)`` in FILTER, BIND and SELECT.

    ``f`` gets plain values (int, Decimal, float, bool, str, datetime; an IRI as ``rdflib.URIRef``). It
    returns a plain value or a term of rdflib. An exception, or None, is an error of the expression. Failed
    calls are counted (``Engine.failed_calls``), and the first one is also a ``SpaseqWarning`` with its
    traceback.

    ``vectorized``: ``f`` gets one NumPy array per argument, and returns an array of their length. Numbers are
    float64, booleans bool, everything else objects. A call has the distinct arguments of all solutions of a
    batch, including arguments that ``IF``, ``||`` or ``&&`` would skip. If it fails, its halves are called.
    The arrays have length one where solutions are evaluated one by one: events that are pushed alone, SELECT
    and its modifiers, subqueries with GROUP BY or LIMIT, property paths with ``*`` or ``+``, expressions with
    EXISTS, and the matchers ``interpreter`` and ``reference`` between GPMs.

    ``deterministic``: ``f`` returns the same for the same arguments, so that results may be cached. A query
    with a non-deterministic function shares nothing with other queries. In an engine with a state file, such
    a function cannot be used in a pattern or FILTER.

    Register ``f`` before the query is prepared. A later function of the same IRI applies to queries that are
    prepared later. Raises ``ValueError`` for a built-in function's IRI and for a relative IRI, ``TypeError``
    if ``f`` is not callable.

    >>> function("http://example.org/risk", lambda amount: amount > 1000)
    """
    if iri in ARITIES:
        raise ValueError(f"{_short(iri)} is a built-in function: give yours another IRI")
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*", iri) is None:
        raise ValueError(f"{iri!r} is not an absolute IRI, such as http://example.org/risk")
    if not callable(f):
        raise TypeError(f"a function is expected, not {type(f).__name__}")
    _own[iri] = OwnFunction(f, id(f), deterministic=deterministic, vectorized=vectorized)


def own_function(iri: str) -> OwnFunction | None:
    """Return the function registered with this IRI by ``function``, or, if there is none, with rdflib.

    rdflib's ``raw`` functions are left out: they take rdflib's own expressions. GeoSPARQL's relations are
    left out if shapely is not installed.
    """
    found = _beside.get().get(iri) or _own.get(iri)
    if found is not None or iri in ARITIES:
        return found
    operators = sys.modules.get("rdflib.plugins.sparql.operators")
    named = {str(name): pair for name, pair in getattr(operators, "_CUSTOM_FUNCTIONS", {}).items()}
    call, is_raw = named.get(iri, (None, True))
    if not is_raw:
        return OwnFunction(call, id(call), plain=False)
    if iri in RELATIONS:
        with suppress(ImportError):
            from spaseq.language.geometries import CALLS

            function(iri, CALLS[iri], vectorized=True)
    return _own.get(iri)


@contextmanager
def registered(functions: Mapping[str, OwnFunction]) -> Iterator[None]:
    """Give these functions precedence over those of the process, for queries parsed inside the block."""
    token = _beside.set(functions)
    try:
        yield
    finally:
        _beside.reset(token)


def wrong_call(function: str, arguments: int) -> tuple[str, str | None] | None:
    """Return what is wrong with a call and how to fix it; None if nothing is wrong.

    >>> wrong_call("http://www.w3.org/2005/xpath-functions/math#squrt", 1)
    ('no function is called math:squrt', 'did you mean math:sqrt?')
    >>> wrong_call("http://www.w3.org/2005/xpath-functions/math#pow", 1)
    ('math:pow takes 2 arguments, not 1', None)
    """
    wanted = ARITIES.get(function)
    name = _short(function)
    if (found := own_function(function)) is not None:
        return None if _takes(found, arguments) else (f"{name} does not take {arguments} arguments", None)
    if function in RELATIONS:
        return f"{name} needs shapely, which is not installed", "pip install 'spaseq[geo]'"
    if wanted is None:
        alike = nearest(name, map(_short, [*ARITIES, *RELATIONS, *_own]))
        hint = "spaseq.function(iri, f) makes a Python function known"
        return f"no function is called {name}", f"did you mean {alike}?" if alike else hint
    if wanted != arguments:
        return f"{name} takes {wanted} argument{'' if wanted == 1 else 's'}, not {arguments}", None
    return None


def _takes(own: OwnFunction, arguments: int) -> bool:
    """Return whether a function can be called with this number of arguments; True if its signature is
    unknown.
    """
    try:
        signature = inspect.signature(own.call)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True


def _short(iri: str) -> str:
    for prefix in ("xsd", "math", "geof"):
        if iri.startswith(WELL_KNOWN[prefix]):
            return f"{prefix}:{iri.removeprefix(WELL_KNOWN[prefix])}"
    return f"<{iri}>"

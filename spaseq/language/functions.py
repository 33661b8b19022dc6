"""The functions that are named by IRIs: XSD's casts, XPath's mathematics, GeoSPARQL's distance."""

from __future__ import annotations

from typing import Final

from spaseq.language.reading.hints import nearest
from spaseq.terms.prefixes import WELL_KNOWN

XSD: Final = WELL_KNOWN["xsd"]
MATH: Final = WELL_KNOWN["math"]
GEOF: Final = WELL_KNOWN["geof"]

_CASTS: Final = (
    *("string", "boolean", "integer", "decimal", "float", "double"),
    *("dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration"),
)
_MATH: Final = ("sin", "cos", "tan", "asin", "acos", "atan", "sqrt", "exp", "log", "log10")

#: How many arguments each takes.
ARITIES: Final[dict[str, int]] = {
    **{XSD + name: 1 for name in _CASTS},
    **{MATH + name: 1 for name in _MATH},
    MATH + "atan2": 2,
    MATH + "pow": 2,
    MATH + "pi": 0,
    GEOF + "distance": 3,
}


def wrong_call(function: str, arguments: int) -> tuple[str, str | None] | None:
    """What is wrong with a call, and what to do about it; None if nothing is.

    >>> wrong_call("http://www.w3.org/2005/xpath-functions/math#squrt", 1)
    ('no function is called math:squrt', 'did you mean math:sqrt?')
    >>> wrong_call("http://www.w3.org/2005/xpath-functions/math#pow", 1)
    ('math:pow takes 2 arguments, not 1', None)
    """
    wanted = ARITIES.get(function)
    name = _short(function)
    if wanted is None:
        alike = nearest(name, map(_short, ARITIES))
        return f"no function is called {name}", f"did you mean {alike}?" if alike else None
    if wanted != arguments:
        return f"{name} takes {wanted} argument{'' if wanted == 1 else 's'}, not {arguments}", None
    return None


def _short(iri: str) -> str:
    for prefix in ("xsd", "math", "geof"):
        if iri.startswith(WELL_KNOWN[prefix]):
            return f"{prefix}:{iri.removeprefix(WELL_KNOWN[prefix])}"
    return f"<{iri}>"

"""``math:`` and ``geof:distance``: XPath's results, geodesics, errors, and every route alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode

import spaseq
from spaseq.errors import QueryMeaningError
from spaseq.language.functions import ARITIES
from spaseq.language.reading.parser import parse_group
from spaseq.language.syntax import Bind
from spaseq.patterns.expressions import _kernel_math as km
from spaseq.patterns.expressions.compiled import NAMED, ExpressionError, compile_value
from spaseq.terms.dictionary import Dictionary

PREFIXES = """
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    PREFIX math: <http://www.w3.org/2005/xpath-functions/math#>
    PREFIX geo: <http://www.opengis.net/ont/geosparql#>
    PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
    PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/>
"""


def value(text: str) -> float | None:
    """The double that an expression is; None for an error."""
    bind = parse_group(f"{PREFIXES} {{ BIND({text} AS ?result) }}").elements[0]
    assert isinstance(bind, Bind)
    dictionary = Dictionary()
    try:
        term = dictionary.term(compile_value(bind.expression, dictionary)({}))
    except ExpressionError:
        return None
    assert isinstance(term, Literal)
    assert term.datatype == NamedNode("http://www.w3.org/2001/XMLSchema#double")
    return float(term.value)


def test_every_function_is_known_to_the_language() -> None:
    assert set(ARITIES) == set(NAMED)


# Those of XPath and XQuery Functions and Operators 3.1, section 4.8.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("math:pi()", math.pi),
        ("math:exp(0)", 1.0),
        ("math:exp(1)", math.e),
        ("math:exp(-1e0/0)", 0.0),
        ("math:log(0)", -math.inf),
        ("math:log(math:exp(1))", 1.0),
        ("math:log(-1)", math.nan),
        ("math:log10(1.0e3)", 3.0),
        ("math:log10(1.0e-3)", -3.0),
        ("math:log10(-1)", math.nan),
        ("math:pow(2, 3)", 8.0),
        ("math:pow(-2, 3)", -8.0),
        ("math:pow(2, -3)", 0.125),
        ("math:pow(0, -3)", math.inf),
        ("math:pow(-0e0, -3)", -math.inf),
        ("math:pow(-2.5, 0)", 1.0),
        ("math:pow(-2.5, 2.00000001e0)", math.nan),
        ("math:pow(1, 0e0/0)", 1.0),
        ("math:pow(-1, 1e0/0)", 1.0),
        ("math:sqrt(0.0)", 0.0),
        ("math:sqrt(1.0e6)", 1.0e3),
        ("math:sqrt(-2)", math.nan),
        ("math:sqrt(1e0/0)", math.inf),
        ("math:sin(-0e0)", -0.0),
        ("math:sin(math:pi() / 2)", 1.0),
        ("math:sin(1e0/0)", math.nan),
        ("math:cos(0)", 1.0),
        ("math:tan(0)", 0.0),
        ("math:asin(2)", math.nan),
        ("math:asin(1)", math.pi / 2),
        ("math:acos(1)", 0.0),
        ("math:acos(-1)", math.pi),
        ("math:atan(1e0/0)", math.pi / 2),
        ("math:atan2(0, -1)", math.pi),
        ("math:atan2(-0e0, -1)", -math.pi),
        ("math:atan2(1, 0)", math.pi / 2),
        ('math:sqrt("16"^^xsd:float)', 4.0),
        ('math:sqrt("16"^^xsd:byte)', 4.0),
        ('math:sqrt("16")', None),
        ("math:sqrt(true)", None),
        ("math:sqrt(<urn:x>)", None),
        ("math:sqrt(?unbound)", None),
        ("math:pow(2, ?unbound)", None),
    ],
)
def test_mathematics(text: str, expected: float | None) -> None:
    found = value(text)
    if expected is None or found is None:
        assert found is expected
    else:
        assert found == pytest.approx(expected, rel=1e-15, nan_ok=True)
        assert math.copysign(1, found) == math.copysign(1, expected) or math.isnan(expected)


def wkt(text: str) -> str:
    return f'"{text}"^^geo:wktLiteral'


# Geodesics by GeographicLib.
@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        ("POINT(4.895 52.370)", "POINT(2.352 48.857)", 429_994.0),
        ("POINT(-73.80 40.60)", "POINT(2.55 49.01667)", 5_853_226.3),
        ("POINT(0 0)", "POINT(1 0)", 111_319.49),
        ("POINT(0 0)", "POINT(0 1)", 110_574.39),
        ("POINT(179.5 10)", "POINT(-179.5 10)", 109_639.3),
        ("POINT(0 90)", "POINT(77 -90)", 20_003_931.46),
        ("POINT(0 0)", "POINT(179.5 0.5)", 19_936_288.58),
        ("POINT(0 30)", "POINT(180 -30)", 20_003_931.46),
        ("POINT(5 5)", "POINT(5 5)", 0.0),
    ],
)
def test_distance(a: str, b: str, metres: float) -> None:
    for first, second in ((a, b), (b, a)):
        found = value(f"geof:distance({wkt(first)}, {wkt(second)}, uom:metre)")
        assert found == pytest.approx(metres, rel=1e-3, abs=1e-9)


def test_units() -> None:
    def found(unit: str) -> float | None:
        return value(f"geof:distance({wkt('POINT(0 0)')}, {wkt('POINT(90 0)')}, {unit})")

    metres = found("uom:metre")
    assert metres is not None
    assert found("uom:kilometre") == metres / 1000
    assert found("<http://qudt.org/vocab/unit/KiloM>") == metres / 1000
    assert found('"http://www.opengis.net/def/uom/OGC/1.0/metre"^^xsd:anyURI') == metres
    assert found("uom:degree") == pytest.approx(90, rel=2e-3)
    assert found("uom:radian") == pytest.approx(math.pi / 2, rel=2e-3)
    assert found("uom:parsec") is None
    assert found('"metre"') is None


@pytest.mark.parametrize(
    ("geometry", "known"),
    [
        ("point ( 1.5e0   -2. )", True),
        ("<http://www.opengis.net/def/crs/OGC/1.3/CRS84> POINT(1 2)", True),
        ("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 2)", False),
        ("POINT(1 91)", False),
        ("POINT(181 0)", False),
        ("POINT EMPTY", False),
        ("POINT Z(1 2 3)", False),
        ("POINT(1)", False),
        ("LINESTRING(0 0, 1 1)", False),
        ("", False),
    ],
)
def test_geometries(geometry: str, known: bool) -> None:
    assert (value(f"geof:distance({wkt(geometry)}, {wkt('POINT(0 0)')}, uom:metre)") is not None) is known


def test_a_plain_string_is_no_geometry() -> None:
    assert value(f'geof:distance("POINT(0 0)", {wkt("POINT(0 0)")}, uom:metre)') is None


# --- static errors ----------------------------------------------------------------------------

QUERY = (
    PREFIXES
    + """
    PREFIX : <http://e.org/>
    SELECT * WITHIN 10 SECONDS FROM STREAM S <http://e.org/s>
    WHERE {{ SEQ(A ; B)
      DEFINE GPM A ON S {{ ?x :at ?p }}
      DEFINE GPM B ON S {{ ?y :to ?q FILTER({}) }} }}
"""
)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("math:squrt(?q) > 1", "no function is called math:squrt", "did you mean math:sqrt?"),
        ("geof:distanse(?p, ?q) > 1", "no function is called geof:distanse", "did you mean geof:distance?"),
        ("math:pow(?q) > 1", "math:pow takes 2 arguments, not 1", None),
        ("math:pi(?q) > 1", "math:pi takes 0 arguments, not 1", None),
        ("geof:distance(?p, ?q) > 1", "geof:distance takes 3 arguments, not 2", None),
        ("xsd:integr(?q) > 1", "no function is called xsd:integr", "did you mean xsd:integer?"),
        ("xsd:integer(?q, 2) > 1", "xsd:integer takes 1 argument, not 2", None),
        (
            "?q > 1 || <urn:f>(?p)",
            "no function is called <urn:f>",
            "spaseq.function(iri, f) makes a Python function known",
        ),
    ],
)
def test_wrong_calls(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(QueryMeaningError) as caught:
        spaseq.prepare(QUERY.format(text))
    error = caught.value
    assert (error.msg, error.hint) == (message, hint)
    assert error.text is not None
    assert error.offset is not None
    start = text.index("<") if "<urn" in text else text.index(text.split("(")[0])
    assert error.text[error.offset - 1 :].startswith(text[start:])


# --- every route alike ------------------------------------------------------------------------

#: SPECTRA's route, and the general one, which a path makes it.
ROUTES = (":p ?v", ":p+ ?v")


@pytest.mark.parametrize("pattern", ROUTES)
def test_routes(pattern: str) -> None:
    query = spaseq.prepare(
        PREFIXES
        + f"""
        PREFIX : <http://e.org/>
        SELECT ?r WITHIN 10 SECONDS FROM STREAM S <http://e.org/s>
        WHERE {{ SEQ(A)
          DEFINE GPM A ON S {{ ?x {pattern} BIND(math:sin(?v) AS ?r) FILTER(math:sqrt(?v) > 1) }} }}
        """
    )
    engine = spaseq.Engine()
    handle = engine.register(query)
    numbers = np.random.default_rng(3).uniform(-5, 50, 40).tolist()
    for tick, v in enumerate(numbers):
        engine.push("http://e.org/s", f"<urn:a> <http://e.org/p> {v!r}e0 .", tick)
    found = [float(str(match.bindings[0]["r"].value)) for match in handle.matches()]
    # Bit for bit what the kernels compute.
    assert found == [km.evaluate(km.SIN, v, 0.0) for v in numbers if v > 1]

"""Exact zeros have no sign: what matchers compute with doubles, and exactly, says the same."""

from __future__ import annotations

import pytest

import spaseq

STREAM = "http://example.org/s"
TO_PI = "<http://www.w3.org/2005/xpath-functions/math#atan2>({}, -1) > 0"


def found(condition: str, value: str, matcher: str) -> int:
    """How many matches there are of an event of a value ``?v`` and a later one of which a condition holds."""
    engine = spaseq.Engine(matcher=matcher)
    handle = engine.register(
        f"""PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        SELECT * WITHIN 9 SECONDS SLIDING FROM STREAM S <{STREAM}>
        WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ ?a :v ?v }}
                            DEFINE GPM B ON S {{ ?b :w ?w . FILTER({condition}) }} }}"""
    )
    engine.push(STREAM, f"@prefix : <http://example.org/> . :a :v {value} .", 1)
    engine.push(STREAM, "@prefix : <http://example.org/> . :b :w 1 .", 2)
    engine.close()
    return len(list(handle.matches()))


@pytest.mark.parametrize("matcher", ["reference", "interpreter", "nfa"])
@pytest.mark.parametrize(
    "value", ["-0.0", "-0", '"-0.00"^^<http://www.w3.org/2001/XMLSchema#decimal>', "0.0"]
)
@pytest.mark.parametrize(
    "operand", ["?v", "-?v", "?v * -1", "?v / -7", "?w * 0 * -1", "(?w - 1) * -2.5", "+?v", "ABS(?v)"]
)
def test_exact_zeros(operand: str, value: str, matcher: str) -> None:
    assert found(TO_PI.format(operand), value, matcher) == 1


@pytest.mark.parametrize("matcher", ["reference", "interpreter"])
@pytest.mark.parametrize(
    "operand", ["CEIL(-0.5)", "ROUND(-0.2)", "xsd:decimal(-0e0)", "xsd:double(xsd:decimal('-0.0'))"]
)
def test_exact_zeros_of_functions(operand: str, matcher: str) -> None:
    assert found(f"?w = 1 && {TO_PI.format(operand)}", "0", matcher) == 1


@pytest.mark.parametrize("matcher", ["reference", "interpreter", "nfa"])
def test_doubles_have_two_zeros(matcher: str) -> None:
    assert found(TO_PI.format("?v"), "-0e0", matcher) == 0
    assert found(TO_PI.format("-?v"), "-0e0", matcher) == 1
    assert found(TO_PI.format("?v * -1"), "0e0", matcher) == 0

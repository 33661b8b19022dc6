"""Functions of the user's own, and those registered with rdflib: values, errors, determinism."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import rdflib
from rdflib.plugins.sparql import operators

import spaseq
from spaseq.errors import EngineError, QueryMeaningError
from spaseq.gpm.expressions.walk import own_functions
from spaseq.language import functions

EX = "http://example.org/"
F = EX + "f"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_own", {})


def select(what: str, pattern: str = "", sequence: str = "A", more: str = "") -> str:
    return (
        f"PREFIX : <{EX}> SELECT {what} WITHIN 10 SECONDS SLIDING FROM STREAM S <{EX}s> "
        f"WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?x :v ?v . {pattern} }} {more} }}"
    )


def found(query: str, *values: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of a query over events ``?x :v VALUE``, as Python values."""
    engine = spaseq.Engine(**options)
    handle = engine.register(query)
    for tick, value in enumerate(values):
        engine.push(EX + "s", f"@prefix : <{EX}> . :x :v {value} .", tick)
    engine.finish()
    return [
        {name: term.toPython() if isinstance(term, rdflib.Literal) else term for name, term in row.items()}
        for match in handle.matches()
        for row in match.bindings
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7),
        ("1.5", Decimal("1.5")),
        ("2.0e0", 2.0),
        ("true", True),
        ("'text'", "text"),
        ("'texte'@fr", "texte"),
        (":iri", rdflib.URIRef(EX + "iri")),
        (
            "'2026-06-04T08:00:00Z'^^<http://www.w3.org/2001/XMLSchema#dateTime>",
            datetime(2026, 6, 4, 8, tzinfo=UTC),
        ),
    ],
)
def test_what_a_function_gets_and_what_becomes_of_what_it_returns(value: str, expected: object) -> None:
    seen: list[object] = []

    def same(argument: object) -> object:
        seen.append(argument)
        return argument

    spaseq.function(F, same)
    assert found(select("?r", "BIND(:f(?v) AS ?r)"), value) == [{"r": expected}]
    assert seen[0] == expected
    assert type(seen[0]) is type(expected)


@pytest.mark.parametrize("result", [np.float64(1.5), np.int64(3), np.bool_(True), rdflib.Literal(4)])
def test_numpys_scalars_and_rdflibs_terms(result: Any) -> None:
    spaseq.function(F, lambda _: result)
    expected = result.toPython() if isinstance(result, rdflib.Literal) else result.item()
    assert found(select("?r", "BIND(:f(?v) AS ?r)"), "1") == [{"r": expected}]


@pytest.mark.parametrize("evaluator", [None, "reference", "kernel", "runs"])
def test_in_filters_of_one_gpm_and_between_gpms_and_in_select(evaluator: str | None) -> None:
    spaseq.function(F, lambda low, high: high > 2 * low)
    spaseq.function(EX + "root", math.sqrt)
    later = "DEFINE GPM B ON S { ?x :v ?w . FILTER(:f(?v, ?w)) }"
    text = select("?v (:root(?w) AS ?r)", "FILTER(:root(?v) < 3)", "A ; B", later)
    rows = found(text, "4", "9", "16", "1", evaluator=evaluator)
    assert sorted(rows, key=str) == [{"v": 4, "r": 3.0}]


@pytest.mark.parametrize("sequence", ["A{2,}", "A+[,]"])
def test_in_a_loop(sequence: str) -> None:
    spaseq.function(F, lambda value, before: value > before)
    values = ("1", "3", "2", "5", "6")
    own = select("(COUNT(?v) AS ?n)", "FILTER(:f(?v, PREV(?v)))", sequence)
    assert found(own, *values) == found(own.replace(":f(?v, PREV(?v))", "?v > PREV(?v)"), *values)
    assert len(found(own, *values)) > 5


def test_an_exception_is_an_error_of_the_expression_and_told_once() -> None:
    spaseq.function(F, lambda value: 1 / value)
    failed = "(?s)<http://example.org/f> failed.*ZeroDivisionError"
    with pytest.warns(spaseq.SpaseqWarning, match=failed) as told:
        rows = found(select("?v", "FILTER(:f(?v) < 1)"), "2", "0", "0.0", "4")
    assert (rows, len(told)) == ([{"v": 2}, {"v": 4}], 1)


def test_none_is_an_error_of_the_expression() -> None:
    spaseq.function(F, lambda _: None)
    assert found(select("?v ?r", "BIND(:f(?v) AS ?r)"), "2") == [{"v": 2}]


def test_rdflibs_registered_functions() -> None:
    def twice(term: Any) -> Any:
        assert isinstance(term, rdflib.Literal)
        return rdflib.Literal(2 * term.toPython())

    operators.register_custom_function(rdflib.URIRef(F), cast(Any, twice))
    try:
        assert found(select("?r", "BIND(:f(?v) AS ?r)"), "4") == [{"r": 8}]
    finally:
        operators.unregister_custom_function(rdflib.URIRef(F))


def test_what_is_not_known_or_called_wrongly_is_an_error_of_the_query() -> None:
    with pytest.raises(QueryMeaningError, match=r"no function is called <http://example\.org/f>"):
        spaseq.prepare(select("?v", "FILTER(:f(?v))"))
    spaseq.function(F, lambda a, b=1: a + b)
    spaseq.prepare(select("?v", "FILTER(:f(?v) > :f(?v, 2))"))
    with pytest.raises(QueryMeaningError, match="does not take 3 arguments"):
        spaseq.prepare(select("?v", "FILTER(:f(?v, 1, 2))"))


@pytest.mark.parametrize(
    ("iri", "f", "error"),
    [
        ("risk", abs, ValueError),
        ("http://www.w3.org/2001/XMLSchema#integer", int, ValueError),
        (F, 7, TypeError),
    ],
)
def test_what_cannot_be_registered(iri: str, f: Callable[..., Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        spaseq.function(iri, f)


@pytest.fixture
def _counting() -> None:
    numbers = count()
    spaseq.function(F, lambda _: next(numbers), deterministic=False)


@pytest.mark.usefixtures("_counting")
def test_what_is_not_deterministic_is_called_each_time() -> None:
    assert found(select("?r", "BIND(:f(?v) AS ?r)"), "1", "1", "1") == [{"r": 0}, {"r": 1}, {"r": 2}]
    later = "DEFINE GPM B ON S { ?x :v ?w . FILTER(:f(?v + ?w) >= 0) }"
    assert len(found(select("?v", "", "A ; B", later), "1", "1", "1")) == 2


@pytest.mark.usefixtures("_counting")
def test_what_is_not_deterministic_goes_with_no_state(tmp_path: Path) -> None:
    engine = spaseq.Engine(state=tmp_path / "state")
    with pytest.raises(EngineError, match=r"<http://example\.org/f>\(\) gives something else each time"):
        engine.register(select("?v", "FILTER(:f(?v) > 1)"), name="q")
    spaseq.function(F, lambda value: value)
    with warnings.catch_warnings():
        engine.register(select("?v", "FILTER(:f(?v) > 1)"), name="q")
    engine.close()


def test_sparks_workers_do_not_know_them() -> None:
    jobs = pytest.importorskip("spaseq.spark._jobs")
    spaseq.function(F, abs)
    query = spaseq.prepare(select("?v", "FILTER(:f(?v) > 1)"))
    with pytest.raises(EngineError, match=r"<http://example\.org/f> is a function of this process"):
        jobs.job_of(None, query, None, None, None, None, None, is_stream=False, kb_changed="error")


def test_the_functions_of_a_query() -> None:
    spaseq.function(F, abs)
    assert own_functions(spaseq.prepare(select("(:f(?v) AS ?r)"))) == [F]
    assert own_functions(spaseq.prepare(select("?v", "FILTER(:f(?v) > 1)"))) == [F]
    assert own_functions(spaseq.prepare(select("?v"))) == []

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
from spaseq.language import functions
from spaseq.patterns.expressions.walk import own_calls

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


@pytest.mark.parametrize("matcher", [None, "reference", "nfa", "interpreter"])
def test_in_filters_of_one_gpm_and_between_gpms_and_in_select(matcher: str | None) -> None:
    spaseq.function(F, lambda low, high: high > 2 * low)
    spaseq.function(EX + "root", math.sqrt)
    later = "DEFINE GPM B ON S { ?x :v ?w . FILTER(:f(?v, ?w)) }"
    text = select("?v (:root(?w) AS ?r)", "FILTER(:root(?v) < 3)", "A ; B", later)
    rows = found(text, "4", "9", "16", "1", matcher=matcher)
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


def read(query: str, folder: Path, *values: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of a query over the same events, read from a file: all but the last as one batch."""
    lines = []
    for tick, value in enumerate(values):
        time = f'"{tick}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"<urn:g{tick}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .")
        lines.append(f"<{EX}x> <{EX}v> {value} <urn:g{tick}> .")
    (path := folder / "s.nq").write_text("\n".join(lines) + "\n")
    found = spaseq.run(query, {"S": path}, **options)
    return [
        {name: term.toPython() if isinstance(term, rdflib.Literal) else term for name, term in row.items()}
        for match in found
        for row in match.bindings
    ]


def typed(value: object, datatype: str = "integer") -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#{datatype}>'


#: More events than are taken one by one.
INTEGERS = 3 * tuple(map(typed, (1, 9, 4, 16, 9)))


def test_a_vectorized_function_gets_the_distinct_arguments_of_a_batch(tmp_path: Path) -> None:
    seen: list[Any] = []

    def root(values: Any) -> Any:
        seen.append(values)
        return np.sqrt(values)

    spaseq.function(F, root, vectorized=True)
    rows = read(select("?v", "FILTER(:f(?v) > 2)"), tmp_path, *INTEGERS)
    assert [row["v"] for row in rows] == 3 * [9, 16, 9]
    values, _ = seen
    assert (values.dtype, sorted(values.tolist())) == (np.float64, [1.0, 4.0, 9.0, 16.0])


def one_by_one(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays: np.array([f(*row) for row in zip(*arrays, strict=True)])


@pytest.mark.parametrize(
    ("sequence", "pattern", "more"),
    [
        ("A", "FILTER(:f(?v, 2) > 10 || ?v = 1)", ""),
        ("A", "BIND(:f(?v + 1, :f(?v, 1)) AS ?r) FILTER(?r < 200)", ""),
        ("A", "BIND(IF(?v > 4, :f(?v, ?v), 0) AS ?r)", ""),
        ("A", "OPTIONAL { ?x :none ?none } BIND(:f(?v, ?none) AS ?r)", ""),
        ("A", "OPTIONAL { ?x :v ?w . FILTER(:f(?w, 1) > ?v + 8) }", ""),
        ("A", "FILTER(EXISTS { ?x :v ?w . FILTER(:f(?w, ?v) > 50) })", ""),
        ("A ; B", "", "DEFINE GPM B ON S { ?x :v ?w . FILTER(:f(?v, ?w) > 30) }"),
        ("A ; B", "", "DEFINE GPM B ON S { ?x :v ?w . FILTER(?v + :f(?w, ?w) > 30) }"),
    ],
)
def test_a_vectorized_function_gives_what_a_plain_one_does(
    sequence: str, pattern: str, more: str, tmp_path: Path
) -> None:
    text = select("*", pattern, sequence, more)

    def f(a: float, b: float) -> float:
        return float(a) * float(b) + 0.1

    spaseq.function(F, f)
    expected = sorted(read(text, tmp_path, *INTEGERS), key=str)
    assert expected
    spaseq.function(F, one_by_one(f), vectorized=True)
    assert sorted(read(text, tmp_path, *INTEGERS), key=str) == expected
    assert sorted(found(text, *INTEGERS), key=str) == expected


def test_arguments_of_different_kinds_come_apart(tmp_path: Path) -> None:
    seen: list[tuple[str, list[object]]] = []

    def same(values: Any) -> Any:
        seen.append((values.dtype.name, sorted(values.tolist())))
        return values

    spaseq.function(F, same, vectorized=True)
    values = (
        typed(7),
        typed("1.5", "decimal"),
        typed("0.5", "float"),
        typed("true", "boolean"),
        '"a"',
        '"b"',
    )
    text = select("?r", "BIND(:f(?v) AS ?r)")
    rows = read(text, tmp_path, *values, *values, typed(7))
    assert [row["r"] for row in rows] == [*2 * [7.0, 1.5, 0.5, True, "a", "b"], 7.0]
    assert sorted(seen[:3]) == [("bool", [True]), ("float64", [0.5, 1.5, 7.0]), ("object", ["a", "b"])]
    assert found(text, *values) == rows[:6]


def test_what_a_vectorized_function_returns(tmp_path: Path) -> None:
    several: tuple[tuple[Callable[[Any], Any], list[Any]], ...] = (
        (lambda values: values.astype(np.int32), 3 * [1, 9, 4, 16, 9]),
        (lambda values: -values * 0, [-0.0] * 15),
        (lambda values: [str(value) for value in values], 3 * ["1.0", "9.0", "4.0", "16.0", "9.0"]),
        (
            lambda values: np.array(
                [None if v == 9 else rdflib.URIRef("urn:u") for v in values], dtype=object
            ),
            ["urn:u"] * 9,
        ),
        (lambda values: np.full(len(values), np.datetime64("2026-01-01", "ns")), [datetime(2026, 1, 1)] * 15),
    )
    for f, expected in several:
        spaseq.function(F, f, vectorized=True)
        rows = read(select("?r", "BIND(:f(?v) AS ?r)"), tmp_path, *INTEGERS)
        given = [row["r"] for row in rows if "r" in row]
        assert str(given) == str([rdflib.URIRef(e) if e == "urn:u" else e for e in expected])


def test_a_vectorized_function_that_fails_for_some(tmp_path: Path) -> None:
    def check(values: Any) -> Any:
        if (values == 4).any():
            raise ValueError("four")
        return values

    spaseq.function(F, check, vectorized=True)
    said: list[spaseq.Progress] = []
    with pytest.warns(
        spaseq.SpaseqWarning, match=r"(?s)<http://example.org/f> failed.*ValueError: four"
    ) as told:
        rows = read(select("?v", "FILTER(:f(?v) > 0)"), tmp_path, *INTEGERS, progress=said.append)
    assert [row["v"] for row in rows] == 3 * [1, 9, 16, 9]
    assert len(told) == 1
    assert said[-1].more == ("1 call of <http://example.org/f> failed",)


def test_a_vectorized_function_that_returns_too_little(tmp_path: Path) -> None:
    spaseq.function(F, lambda values: values.sum(), vectorized=True)
    with pytest.warns(spaseq.SpaseqWarning, match=r"shape \(\): return one as long as the arguments"):
        assert read(select("?v", "FILTER(:f(?v) > 0)"), tmp_path, *INTEGERS) == []


@pytest.mark.parametrize("queries", [1, 2])
def test_failed_calls_are_counted(queries: int) -> None:
    spaseq.function(F, lambda value: 1 / value)
    engine = spaseq.Engine()
    handles = [engine.register(select("?v", "FILTER(:f(?v) < 1)")) for _ in range(queries)]
    events = [(f"<{EX}x> <{EX}v> {value} .", tick) for tick, value in enumerate(("0", "2", "0.0"))]
    with pytest.warns(spaseq.SpaseqWarning, match="ZeroDivisionError"):
        engine.push_many(EX + "s", events)
    engine.finish()
    assert engine.failed_calls == {F: 2}
    assert all("2 calls of <http://example.org/f> failed" in str(handle.why()) for handle in handles)


def test_a_later_function_is_for_later_queries() -> None:
    text = select("?v", "FILTER(:f(?v))")
    engine = spaseq.Engine()
    handles = []
    for wanted in (1, 2):
        spaseq.function(F, lambda value, wanted=wanted: value == wanted)
        handles.append(engine.register(text))
    for tick, value in enumerate((1, 2)):
        engine.push(EX + "s", f"<{EX}x> <{EX}v> {value} .", tick)
    engine.finish()
    rows = [[row["v"].toPython() for m in handle.matches() for row in m.bindings] for handle in handles]
    assert rows == [[1], [2]]


def test_explain_names_them() -> None:
    spaseq.function(F, abs)
    spaseq.function(EX + "g", np.abs, vectorized=True)
    spaseq.function(EX + "h", lambda: 4, deterministic=False)
    plan = spaseq.explain(select("(:h() AS ?h)", "FILTER(:f(?v) > :g(?v))"))
    assert dict(plan.functions) == {
        F: "interpreted, once for distinct arguments",
        EX + "g": "interpreted, on arrays of distinct arguments",
        EX + "h": "interpreted, each time, since it is not deterministic",
    }
    assert f"function   <{F}>: interpreted, once for distinct arguments" in str(plan)
    assert plan.as_json()["functions"] == dict(plan.functions)


@pytest.fixture
def _counting() -> None:
    numbers = count()
    spaseq.function(F, lambda _: next(numbers), deterministic=False)


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_is_not_deterministic_is_not_shared(deterministic: bool) -> None:
    calls: list[int] = []
    spaseq.function(F, lambda value: calls.append(value) or value, deterministic=deterministic)
    engine = spaseq.Engine()
    text = select("?v", "FILTER(:f(?v) > 1)", "A ; B", "DEFINE GPM B ON S { ?x :v ?w }")
    handles = [engine.register(text) for _ in range(2)]
    for tick in range(20):
        engine.push(EX + "s", f"<{EX}x> <{EX}v> {tick} .", tick)
    engine.finish()
    assert [handle.stats.shared_with for handle in handles] == ([1, 1] if deterministic else [0, 0])
    assert (len(calls) == 20) is deterministic


@pytest.mark.usefixtures("_counting")
def test_what_is_not_deterministic_is_called_each_time() -> None:
    assert found(select("?r", "BIND(:f(?v) AS ?r)"), "1", "1", "1") == [{"r": 0}, {"r": 1}, {"r": 2}]
    later = "DEFINE GPM B ON S { ?x :v ?w . FILTER(:f(?v + ?w) >= 0) }"
    assert len(found(select("?v", "", "A ; B", later), "1", "1", "1")) == 2


@pytest.mark.usefixtures("_counting")
def test_what_is_not_deterministic_is_called_for_every_row_of_a_batch(tmp_path: Path) -> None:
    numbers = count()
    spaseq.function(F, one_by_one(lambda _: next(numbers)), deterministic=False, vectorized=True)
    rows = read(select("?r", "BIND(:f(?v) AS ?r)"), tmp_path, *[typed(1)] * 12)
    assert rows == [{"r": number} for number in range(12)]


@pytest.mark.parametrize("pattern", ["FILTER(:f(?v) > 1)", "{ SELECT ?x (:f(1) AS ?r) { ?x :v ?v } }"])
@pytest.mark.usefixtures("_counting")
def test_what_is_not_deterministic_goes_with_no_state(pattern: str, tmp_path: Path) -> None:
    engine = spaseq.Engine(state=tmp_path / "state")
    with pytest.raises(EngineError, match=r"<http://example\.org/f>\(\) gives something else each time"):
        engine.register(select("?v", pattern), name="q")
    spaseq.function(F, lambda value: value)
    with warnings.catch_warnings():
        engine.register(select("?v", pattern), name="q")
    engine.close()


def test_the_functions_of_a_query() -> None:
    spaseq.function(F, abs)
    for text in (select("(:f(?v) AS ?r)"), select("?v", "FILTER(:f(?v) > 1)")):
        assert [call.function.value for call in own_calls(spaseq.prepare(text))] == [F]
    assert not list(own_calls(spaseq.prepare(select("?v"))))

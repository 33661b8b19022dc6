"""A literal outside its datatype's lexical space: filters that read it are errors, and a warning says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import spaseq
from spaseq.errors import SpaseqWarning

S = "http://example.org/s"
GPMS = {
    "own filter": ("?x :v ?a . FILTER(?a > 1)", "?y :v ?b . FILTER(?b > 1)"),
    "between patterns": ("?x :v ?a", "?y :v ?b . FILTER(?b > ?a)"),
    "in Oxigraph": ("?x :v ?a . FILTER(?a > 1) MINUS { ?x :w ?z }", "?y :v ?b . FILTER(?b > 1)"),
}
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
DECIMAL = "<http://www.w3.org/2001/XMLSchema#decimal>"


def query(kind: str) -> str:
    first, second = GPMS[kind]
    return f"""
        PREFIX : <http://example.org/>
        SELECT ?a ?b WITHIN 1 HOURS SLIDING FROM STREAM S <{S}>
        WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ {first} }} DEFINE GPM B ON S {{ {second} }} }}"""


def event(value: str) -> str:
    return f'<urn:x> <http://example.org/v> "{value}"^^{DECIMAL} ; <http://example.org/u> "{value}" .'


def said(run: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if issubclass(w.category, SpaseqWarning)]


@pytest.mark.parametrize("kind", GPMS)
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("asked", [False, True])
def test_pushed(kind: str, many: bool, asked: bool) -> None:
    events = [(event(value), n) for n, value in enumerate(["2.5", "14,0", "15,0", "16.5"])]

    def run() -> None:
        engine = spaseq.Engine()
        found = engine.register(spaseq.prepare(query(kind)), (lambda _: None) if asked else None)
        if many:
            engine.push_many(S, events)
        else:
            for graph, time in events:
                engine.push(S, graph, time)
        if not asked:
            assert len(list(found.matches())) == 1

    (message,) = said(run)
    assert f"<{S}>, event 2: <http://example.org/v>" in message
    assert '"14,0"^^' in message


def test_many_queries() -> None:
    """Templates, and queries of equal beginnings, read it together."""

    def run() -> None:
        engine = spaseq.Engine()
        for n in range(40):
            engine.register(
                spaseq.prepare(query("own filter").replace("?a > 1", f"?a > {n}")), on_match=lambda _: None
            )
        for n, value in enumerate(["100.5", "14,0"]):
            engine.push(S, event(value), n)

    assert len(said(run)) == 1


def test_each_predicate_and_stream_once(tmp_path: Path) -> None:
    text = f"""
        PREFIX : <http://example.org/>
        SELECT ?a WITHIN 1 HOURS FROM STREAM S <{S}> FROM STREAM T <{S}2>
        WHERE {{ SEQ(A) DEFINE GPM A ON S, T {{ ?x :v ?a ; :w ?b . FILTER(?a > 1 || ?b > 1) }} }}"""
    lines = "".join(
        f'<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "{n}"^^{INTEGER} .\n'
        f'<urn:x> <http://example.org/v> "{n},5"^^{DECIMAL} <urn:g{n}> .\n'
        f'<urn:x> <http://example.org/w> "{n},7"^^{DECIMAL} <urn:g{n}> .\n'
        for n in range(1000)
    )
    (path := tmp_path / "s.nq").write_text(lines)
    messages = said(lambda: list(spaseq.run(text, {S: str(path), S + "2": str(path)})))
    assert len(messages) == 4
    assert len({message.partition(" is ")[0] for message in messages}) == 4


def test_rows(tmp_path: Path) -> None:
    (context := tmp_path / "c.jsonld").write_text(
        '{"@context": {"v": {"@id": "http://example.org/v", '
        '"@type": "http://www.w3.org/2001/XMLSchema#decimal"}}}'
    )
    (path := tmp_path / "s.csv").write_text("v\n2.5\n" + '"14,0"\n' * 3)
    source = f"{path}?context={context}&time=arrival"
    (message,) = said(lambda: list(spaseq.run(query("between patterns"), {S: source})))
    assert "event 2" in message


def test_what_no_filter_reads_is_not_reported() -> None:
    def run() -> None:
        engine = spaseq.Engine()
        engine.register(
            f"PREFIX : <http://example.org/> SELECT ?a WITHIN 1 HOURS FROM STREAM S <{S}> "
            "WHERE { SEQ(A) DEFINE GPM A ON S { ?x :v ?a } }",
            lambda _: None,
        )
        engine.push(S, event("14,0"), 1)

    assert not said(run)

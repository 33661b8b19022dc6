"""Terms as users give them, and what is said of texts that are none."""

from __future__ import annotations

import numpy as np
import pytest
import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode
from rdflib import URIRef

from spaseq.errors import QueryError, QueryMeaningError
from spaseq.paths import load
from spaseq.paths.graph.numbering import read_term

PREFIXES = {"": "http://example.org/", "schema": "http://schema.org/"}


@pytest.mark.parametrize(
    ("given", "term"),
    [
        (":a", NamedNode("http://example.org/a")),
        ("schema:name", NamedNode("http://schema.org/name")),
        ("<urn:x>", NamedNode("urn:x")),
        ("urn:x", NamedNode("urn:x")),
        ("x-mine://host/a", NamedNode("x-mine://host/a")),
        ("<ex:kismet>", NamedNode("ex:kismet")),
        (URIRef("urn:x"), NamedNode("urn:x")),
        ('"a"@en', Literal("a", language="en")),
        ("_:b", BlankNode("b")),
    ],
)
def test_terms(given: object, term: object) -> None:
    assert read_term(given, PREFIXES) == term


@pytest.mark.parametrize(
    ("text", "prefixes", "message", "hint"),
    [
        (":a", {"s": "urn:s:", "t": "urn:t:"}, "prefix ':' is not declared", "the graph declares s:, t:"),
        (":a", {}, "prefix ':' is not declared", "the graph declares no prefixes"),
        (
            "ex:kismet",
            {"s": "urn:s:"},
            "prefix 'ex:' is not declared",
            "the graph declares s:; an IRI is written <ex:kismet>",
        ),
        ("scema:a b", PREFIXES, "prefix 'scema:' is not declared", "did you mean 'schema:'?"),
        ("scema:a", PREFIXES, "prefix 'scema:' is not declared", "did you mean 'schema:'?"),
        ("http://a b", PREFIXES, "this is not an IRI", None),
        ("1 a:b", PREFIXES, "this is not an IRI", None),
    ],
)
def test_texts_that_are_none(text: str, prefixes: dict[str, str], message: str, hint: str | None) -> None:
    with pytest.raises(QueryMeaningError, match=message) as caught:
        read_term(text, prefixes)
    assert caught.value.hint == hint
    assert (caught.value.lineno, caught.value.offset) == (1, 1)


def test_a_name_without_a_prefix() -> None:
    with pytest.raises(QueryError, match="found 'alice'"):
        read_term("alice", PREFIXES)


def test_numbers_are_those_of_nodes() -> None:
    graph = load([("urn:a", "urn:year", Literal("1944"))])
    assert [len(graph.pairs("<urn:year>", targets=given)) for given in ([1], '"1944"', "1944")] == [1, 1, 0]
    with pytest.raises(KeyError) as raised:
        graph.pairs("<urn:year>", targets=[1944])
    assert "numbers are those of nodes, here all below 2" in raised.value.args[0]
    assert """written as text, '1944' for the integer, '"1944"' for the string""" in raised.value.args[0]


def test_a_text_with_a_prefix_that_nobody_declared_may_be_an_iri_of_the_graph() -> None:
    graph = load([("x:a", "x:p", "x:b")])
    assert (graph.node("x:a"), graph.predicate_number("x:p"), graph.node("<x:c>")) == (0, 0, None)
    assert len(graph.pairs("<x:p>*", "x:b")) == 1
    with pytest.raises(QueryMeaningError, match="the prefix 'x:' is not declared"):
        graph.pairs("<x:p>*", "x:c")


def test_prefixes_of_a_graph_do_not_change() -> None:
    """What was asked is kept by its text."""
    prefixes = {"x": "urn:one:"}
    graph = load([("urn:one:a", "urn:one:p", "urn:two:a")], prefixes)
    prefixes["x"] = "urn:two:"
    assert [graph.node("x:a"), len(graph.pairs("x:p", "x:a"))] == [0, 1]
    with pytest.raises(TypeError, match="does not support item assignment"):
        graph.prefixes["x"] = "urn:two:"  # type: ignore[index]  # what is tested


def test_terms_are_known_when_they_are_given_again() -> None:
    """Whatever they are, in whatever company; texts mean what prefixes say."""
    terms = [URIRef("urn:a"), NamedNode("urn:b"), rdflib.Literal("a", lang="en"), rdflib.BNode("b")]
    graph = load([("urn:a", "urn:p", "urn:b"), (BlankNode("b"), "urn:p", Literal("a", language="en"))])
    stranger = rdflib.Literal("a")
    for _ in range(3):
        for given in (terms, [*terms, stranger], ["urn:a", *terms[::-1]], [*terms, *terms], [1, *terms]):
            wanted = {graph.node(term) if not isinstance(term, int) else term for term in given}
            numbers, strange = graph.snapshot.numbers(iter(given))
            assert set(numbers.tolist()) == wanted - {None}
            assert len(numbers) == len(wanted - {None})
            assert list(strange) == [Literal("a")] * (stranger in given)
    assert graph.snapshot.numbers([])[0].tolist() == []
    assert graph.snapshot.numbers({})[0].dtype == np.int64


def test_literals_that_are_asked_for_again() -> None:
    """They are kept by text, datatype and language: equal texts are not equal literals."""
    written = rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False)
    literals = [
        rdflib.Literal("1"), rdflib.Literal(1), written, rdflib.Literal("1", lang="en"),
        rdflib.Literal("1", lang="EN-gb"), rdflib.Literal(1.0), rdflib.Literal(""),
    ]  # fmt: skip
    nodes = [rdflib.URIRef("1"), rdflib.URIRef("urn:1"), rdflib.BNode("1")]
    graph = load([(rdflib.URIRef("urn:s"), rdflib.URIRef("urn:p"), o) for o in (*literals[:-1], *nodes[1:])])
    for _ in range(2):
        for asked in (literals, [*reversed(literals), *nodes[1:]], nodes[1:]):
            numbers, strange = graph.snapshot.numbers(asked)
            known = [term for term in asked if term != literals[-1]]
            assert [graph.term(number) for number in numbers.tolist()] == known
            assert len(strange) == (literals[-1] in asked)
    with pytest.raises((TypeError, QueryError, KeyError)):
        graph.snapshot.numbers([("1", None, None)])

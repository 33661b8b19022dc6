"""Terms as users give them, and what is said of texts that are none."""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode
from rdflib import URIRef

from spaseq.errors import QueryError, QueryMeaningError
from spaseq.paths.given import read_term

PREFIXES = {"": "http://example.org/", "schema": "http://schema.org/"}


@pytest.mark.parametrize(
    ("given", "term"),
    [
        (":a", NamedNode("http://example.org/a")),
        ("schema:name", NamedNode("http://schema.org/name")),
        ("<urn:x>", NamedNode("urn:x")),
        ("urn:x", NamedNode("urn:x")),
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
        (":a", {}, "prefix ':' is not declared", "the graph declares no prefixes: write the whole IRI"),
        ("scema:a b", PREFIXES, "prefix 'scema:' is not declared", "did you mean 'schema:'?"),
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

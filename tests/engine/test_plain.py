"""Texts that are read without a parser have the triples that a parser finds in them."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.engine.pushing import Plain
from spaseq.terms.dictionary import Dictionary
from spaseq.terms.identified import identified_one
from spaseq.terms.values import XSD
from tests.conftest import examples

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_IRIS = [
    "<urn:a>",
    "<urn:b>",
    "<http://x.org/%7e/../é>",
    "<a:>",
    "<no>",
    "<>",
    "<urn:%zz>",
    "<urn:\\u0041>",
    "<http://[x]>",
    "<_:b>",
    '<"x">',
]
_OBJECTS = [
    *_IRIS,
    '""', '"x"', '"a.b <urn:c> ."', '"é"', '"\\n"', '"\x7f"', "'x'", '"""x"""', '"x"@en',
    "_:b", "x:y", "true",
    "1", "-1", "+007", "1.5", "-.5", "1.", "1.5.", "1e3", "[]", "( 1 )",
    f'"5"^^<{XSD}integer>', f'"x"^^<{XSD}string>', f'"x"^^<{_RDF}langString>', '"x"^^<no>', '"1"^^x:y',
]  # fmt: skip
_SPACES = ["", " ", "\n", "\t", "  ", "\f", " # x\n", ",", ";"]
_TEXTS = st.lists(
    st.tuples(
        *(
            st.sampled_from(some)
            for some in (_IRIS, _SPACES, _IRIS, _SPACES, _OBJECTS, [" ", *_SPACES], [".", ".", ""], _SPACES)
        )
    ).map("".join),
    max_size=4,
).map("".join)


@settings(max_examples=examples(1_000))
@given(_TEXTS)
def test_as_a_parser_says(text: str) -> None:
    dictionary = Dictionary()
    plain = Plain(dictionary)
    with dictionary.lock:
        found = plain.read(text, dictionary.enter)
        again = plain.read(text, dictionary.enter)
        assert found == again
        if found is not None:
            quads = list(ox.parse(text.encode(), format=ox.RdfFormat.TURTLE))
            assert identified_one(dictionary, quads, None, dictionary.enter) == (0, found)


@pytest.mark.parametrize("term", ["<urn:o>", "7", "-2.50", '"x"', f'"2024-01-01"^^<{XSD}date>'])
def test_what_most_give_needs_no_parser(term: str) -> None:
    dictionary = Dictionary()
    text = f"<urn:s> <urn:p> {term} .\n<urn:s> <urn:q> {term} ."
    with dictionary.lock:
        found = Plain(dictionary).read(text, dictionary.enter)
    assert found is not None
    assert len(found) == 6


def test_what_is_forgotten_is_read_anew() -> None:
    dictionary = Dictionary()
    plain, text = Plain(dictionary), "<urn:s> <urn:p> <urn:o> ."
    with dictionary.lock:
        plain.read(text, dictionary.enter)
        dictionary.sweep()
        dictionary.intern(ox.NamedNode("urn:other"))
        found = plain.read(text, dictionary.enter)
    assert found is not None
    assert [dictionary.term(identifier).value for identifier in found] == ["urn:s", "urn:p", "urn:o"]


def test_a_term_beyond_the_limits_is_malformed() -> None:
    engine = spaseq.Engine(limits=spaseq.Limits(term_bytes=20))
    engine.register(
        "SELECT * WITHIN 9 SECONDS FROM STREAM S <urn:s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x ?p ?y } }",
        lambda _: None,
    )
    with pytest.warns(spaseq.SpaseqWarning, match="term_bytes"):
        engine.push("urn:s", f'<urn:x> <urn:p> "{"x" * 21}" .', 1)
    engine.push("urn:s", '<urn:x> <urn:p> "x" .', 1)
    assert (engine.bad, engine.arrived) == (1, {"urn:s": 2})

"""The index of GPMs leaves none out that has a solution, and knows constants wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Triple

from spaseq.gpm.discrimination import Discrimination, needs
from spaseq.gpm.general.oxigraph import General
from spaseq.language import prepare
from spaseq.language.syntax import Group
from spaseq.terms.dictionary import Dictionary
from tests.gpm.strategies import SPECTRA, E, batch, graphs, groups

_KINDS = (*SPECTRA, "computing", "paths")


@given(st.lists(groups(kinds=_KINDS), min_size=1, max_size=4), st.lists(graphs, min_size=1, max_size=4))
def test_who_has_a_solution_is_found(patterns: list[Group], events: list[list[Triple]]) -> None:
    dictionary = Dictionary()
    index: Discrimination[int] = Discrimination()
    for number, pattern in enumerate(patterns):
        index.add(number, needs(pattern, dictionary))
    data = batch(events, dictionary)
    of_batch = set(index.of_batch(data))
    by_item = index.by_item(data)
    assert of_batch == set(by_item)
    for number, pattern in enumerate(patterns):
        found = General(pattern, dictionary, None).evaluate(data).everywhere(np.arange(len(data)))
        assert found.event is not None
        for event in set(found.event.tolist()):
            assert number in index.of_event(data.triples(event))
    for number, concerned in by_item.items():
        each = [event for event in range(len(data)) if number in index.of_event(data.triples(event))]
        assert concerned.tolist() == each
        assert number in of_batch or not len(found)


@pytest.mark.parametrize(
    ("pattern", "concerned"),
    [
        ("?s :p ?o", [0, 1, 2]),
        ("?s ?p ?o", [0, 1, 2, 3]),
        ("<urn:a> :p ?o", [0, 2]),
        ("?s :p ?o . FILTER(?s = <urn:a> && ?o > 1)", [0, 2]),
        ("?s :p 1", [0]),
        ("?s ?p 1 ; :q ?o", [0]),
        ("?s ?p <urn:b>", [3]),
        ("?s a <urn:b>", [3]),
        ("{ ?s :p 2 } UNION { ?s a <urn:b> }", [2, 3]),
        ("<urn:a> :r?/:p ?o", [0, 1, 2]),
        ("?o ^:p <urn:a>", [0, 2]),
        ("?s :p+ 2", [0, 1, 2]),
        ("OPTIONAL { ?s :r 1 } BIND(1 AS ?x)", [0, 1, 2, 3]),
        ("?s :p ?o OPTIONAL { ?s :r 1 }", [0, 1, 2]),
        ("?s :r ?o", []),
    ],
)
def test_what_is_needed(pattern: str, concerned: list[int]) -> None:
    """Events of other constants are passed over."""
    dictionary = Dictionary()
    a, b, p, q = NamedNode("urn:a"), NamedNode("urn:b"), NamedNode(E + "p"), NamedNode(E + "q")
    kind = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    events = [
        [Triple(a, p, Literal(1)), Triple(a, q, Literal(3))],
        [Triple(b, p, Literal(3))],
        [Triple(b, q, Literal(5)), Triple(a, p, Literal(2))],
        [Triple(a, kind, b)],
    ]
    query = prepare(
        f"PREFIX : <{E}> SELECT * WITHIN 1 SECONDS FROM STREAM S <{E}s> "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
    )
    index: Discrimination[str] = Discrimination()
    index.add("A", needs(query.gpms[0].pattern, dictionary))
    data = batch(events, dictionary)
    assert [event for event in range(4) if index.of_event(data.triples(event))] == concerned
    assert bool(index.of_batch(data)) == bool(concerned)
    assert index.by_item(data).get("A", np.zeros(0)).tolist() == concerned

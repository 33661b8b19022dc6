"""The index of GPMs leaves none out that has a solution, and knows constants wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Triple

from spaseq.events import concatenate
from spaseq.language import prepare
from spaseq.language.syntax import Group
from spaseq.patterns.discrimination import Discrimination, needs
from spaseq.patterns.oxigraph import General
from spaseq.terms.dictionary import Dictionary
from tests.patterns.strategies import SPECTRA, E, batch, graphs, groups

_KINDS = (*SPECTRA, "computing", "paths")


@given(st.lists(groups(kinds=_KINDS), min_size=1, max_size=4), st.lists(graphs, min_size=1, max_size=4))
def test_who_has_a_solution_is_found(patterns: list[Group], events: list[list[Triple]]) -> None:
    dictionary = Dictionary()
    index: Discrimination[int] = Discrimination()
    for number, pattern in enumerate(patterns):
        index.add(number, needs(pattern, dictionary))
    data = batch(events, dictionary)
    of_batch = set(index.of_batch(data))
    by_item = index.by_item(data, lambda number: number != 3)
    assert of_batch == set(by_item)
    for number, pattern in enumerate(patterns):
        found = General(pattern, dictionary, None).evaluate(data).everywhere(np.arange(len(data)))
        assert found.event is not None
        for event in set(found.event.tolist()):
            assert number in index.of_event(data.triples(event))
    for number, concerned in by_item.items():
        each = [event for event in range(len(data)) if number in index.of_event(data.triples(event))]
        assert (concerned is None) is (number == 3)
        assert concerned is None or concerned.tolist() == each
        assert number in of_batch or not len(found)


@pytest.mark.parametrize("others", [0, 100])
def test_an_event_is_given_once_among_few_and_among_many(others: int) -> None:
    """Twice in one event, and by two graph patterns of a query."""
    dictionary = Dictionary()
    index: Discrimination[int] = Discrimination()
    p, q, r = (E + name for name in "pqr")
    for needed in (p, q):
        index.add(0, (((0, dictionary.pin(NamedNode(needed)), 0),),))
    s = NamedNode(E + "s")
    made = {name: [Triple(s, NamedNode(name), Literal(i)) for i in (1, 2)] for name in (p, q, r)}
    events = [made[r]] * others + [made[q], made[p] + made[q], made[r], made[p]] + [made[r]] * others
    found = index.by_item(batch(events, dictionary), lambda _: True)[0]
    assert found is not None
    assert found.tolist() == [others, others + 1, others + 3]


@given(st.lists(graphs, min_size=1, max_size=9), st.integers(1, 600), st.data())
@pytest.mark.slow
def test_parts_of_a_batch_are_as_if_taken_one_by_one(
    events: list[list[Triple]], times: int, data: st.DataObject
) -> None:
    """Of few events, and of more than are looked at together."""
    whole = batch(events, Dictionary())
    whole = concatenate([whole] * times)
    numbers = st.lists(st.integers(0, len(whole) - 1), max_size=4).map(sorted)
    every = st.integers(1, 5).map(lambda step: [*range(0, len(whole), step)])
    of = [
        np.array(part, dtype=np.int64)
        for part in data.draw(st.lists(st.one_of(numbers, every), min_size=1, max_size=6))
    ]
    found = whole.parts(of)
    assert len(found) == len(of)
    for part, taken in zip(found, map(whole.take, of), strict=True):
        for name in ("stream", "graph", "time", "n", "offset", "s", "p", "o"):
            assert getattr(part, name).tolist() == getattr(taken, name).tolist()
            kept = getattr(part, name).base
            assert kept is None or len(kept) == 5 * len(part) + 1 + 3 * len(part.s)  # it keeps no other part


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
    found = index.by_item(data, lambda _: True).get("A", np.zeros(0, dtype=np.int64))
    assert found is not None
    assert found.tolist() == concerned

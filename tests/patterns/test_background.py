"""Joins of an event that came alone with background graphs are those of dicts, and in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Triple

from spaseq.alone import Single
from spaseq.events import Clock, Stamp
from spaseq.language.scope import variables
from spaseq.language.syntax import Graph, Group, Optional, TriplePattern, Triples, Var
from spaseq.matching.columns.alone.singles import ROWS, Singles
from spaseq.matching.columns.alone.taking import Joins
from spaseq.matching.columns.matcher import PushedPattern
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.spectra.rowwise import Facts, NotByRows, Rowwise
from spaseq.patterns.spectra.single import joined
from spaseq.terms.dictionary import Dictionary, Term
from tests.conftest import examples

_KB = NamedNode("urn:kb")
_NODES = [NamedNode(f"urn:{name}") for name in "abc"]
_PREDICATES = [NamedNode(f"urn:p{i}") for i in range(2)]


def _triples(places: list[Term | Var], most: int) -> st.SearchStrategy[Triples]:
    place = st.sampled_from(places)
    one = st.builds(TriplePattern, place, st.sampled_from(_PREDICATES), place)
    return st.lists(one, min_size=1, max_size=most).map(lambda triples: Triples(tuple(triples)))


_EVENT = _triples([Var("x"), Var("y")], 2)
_KNOWN = st.lists(_triples([Var("x"), Var("y"), Var("k"), Var("l")], 2), min_size=1, max_size=2)
_TRIPLE = st.builds(Triple, *map(st.sampled_from, (_NODES, _PREDICATES, _NODES)))
_TRIPLES = st.lists(_TRIPLE, min_size=4, max_size=9, unique=True)


@settings(max_examples=examples(400))
@given(_EVENT, _KNOWN, st.lists(_TRIPLES, min_size=2, max_size=2), _TRIPLES)
def test_as_by_dicts(
    event: Triples, known: list[Triples], versions: list[list[Triple]], graph: list[Triple]
) -> None:
    """Also when the background graph changes."""
    dictionary = Dictionary()
    group = Group((event, *(Graph(_KB, Group((triples,))) for triples in known)))
    names = sorted(variables(group), reverse=True)
    kb = KnowledgeBase({_KB: "\n"})
    join = joined(group, names, dictionary, kb)
    try:
        rowwise = Rowwise(group, dictionary, kb)
    except NotByRows:
        assert join is None
        return
    assert join is not None
    asked = PushedPattern(names, 0, lambda _: None, join, None, True)
    compiled = Joins([asked], [1], [0], [], dictionary, ROWS, 1 << 8)
    singles = Singles(dictionary, Clock.TICKS, {}, [names], [0], [True])
    triples = [tuple(map(dictionary.intern, (t.subject, t.predicate, t.object))) for t in graph]  # type: ignore[arg-type]
    terms = [term for triple in triples for term in triple]
    one = Single(dictionary, Clock.TICKS, Stamp(0, 1, 0), 0, terms)
    for version in versions:
        kb.change(_KB, version)
        rows = rowwise.rows(Facts(triples), {})  # type: ignore[arg-type]
        assert singles.write(one, 0, 0)
        assert compiled.take(singles, one) > 0 or len(rows) > compiled.rows
        if len(rows) <= compiled.rows:
            assert list(singles.given()[0]) == [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize(
    "inner",
    [
        Group((Triples((TriplePattern(Var("k"), _PREDICATES[0], Var("l")),)),)),  # nothing in common
        Group(  # ?k need not be bound
            (
                Triples((TriplePattern(Var("x"), _PREDICATES[0], Var("l")),)),
                Optional(Group((Triples((TriplePattern(Var("x"), _PREDICATES[1], Var("k")),)),))),
            )
        ),
    ],
)
def test_more_than_a_join_is_not_its(inner: Group) -> None:
    event = Triples((TriplePattern(Var("x"), _PREDICATES[0], Var("y")),))
    group = Group((event, Graph(_KB, inner)))
    names, kb = sorted(variables(group)), KnowledgeBase({_KB: "\n"})
    assert joined(group, names, Dictionary(), kb) is None
    assert joined(group, names, Dictionary(), None) is None

"""Joins in an event that came alone are those of dicts, and in the same order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode

from spaseq.language.syntax import Group, TriplePattern, Triples, Var
from spaseq.patterns.spectra.rowwise import Facts, Rowwise
from spaseq.patterns.spectra.single import joined
from spaseq.terms.dictionary import Dictionary, Term

_NODES = [NamedNode(f"urn:{name}") for name in "abc"]
_PREDICATES = [NamedNode(f"urn:p{i}") for i in range(2)]
_PLACES: list[Term | Var] = [Var("x"), Var("y"), Var("z"), BlankNode("b"), *_NODES[:2]]

_TRIPLES = st.lists(
    st.builds(
        TriplePattern, st.sampled_from(_PLACES), st.sampled_from(_PREDICATES), st.sampled_from(_PLACES)
    ),
    min_size=1,
    max_size=3,
)
_GRAPHS = st.lists(
    st.tuples(st.sampled_from(_NODES), st.sampled_from(_PREDICATES), st.sampled_from(_NODES)),
    max_size=8,
    unique=True,
)


@given(_TRIPLES, _GRAPHS, st.randoms(use_true_random=False))
def test_as_by_dicts(patterns, graph, random) -> None:  # type: ignore[no-untyped-def]
    dictionary = Dictionary()
    group = Group((Triples(tuple(patterns)),))
    names = sorted({t.name for p in patterns for t in (p.subject, p.object) if isinstance(t, Var)})
    random.shuffle(names)
    solve = joined(group, names, dictionary, None)
    assert solve is not None
    triples = [tuple(map(dictionary.intern, triple)) for triple in graph]
    rows = Rowwise(group, dictionary, None).rows(Facts(triples), {})
    expected = [tuple(row[name] for name in names) for row in rows]
    assert list(solve([term for triple in triples for term in triple])) == expected


def test_more_than_a_join_is_not_its() -> None:
    x = Var("x")
    anything = Group((Triples((TriplePattern(x, Var("p"), x),)),))
    assert joined(anything, ["p", "x"], Dictionary(), None) is None
    assert joined(Group(()), [], Dictionary(), None) is None
    one = Group((Triples((TriplePattern(x, _PREDICATES[0], x),)),))
    assert joined(one, ["x", "time"], Dictionary(), None) is None

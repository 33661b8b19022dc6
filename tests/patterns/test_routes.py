"""Both routes agree with each other, with Oxigraph on the plain graph, and with rdflib."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from unittest import mock

import numpy as np
import rdflib
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store, Triple

from spaseq.language import scope
from spaseq.language.syntax import (
    Binary,
    Bind,
    Constant,
    Exists,
    Filter,
    Graph,
    Group,
    PathNegated,
    TriplePattern,
    Triples,
    Var,
)
from spaseq.language.syntax.printing import print_group
from spaseq.patterns.expressions.walk import exists_in, expressions, patterns
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.oxigraph import General
from spaseq.patterns.spectra.joins import Spectra, covers
from spaseq.patterns.spectra.rowwise import Facts, NotByRows, Rowwise
from spaseq.terms.dictionary import Dictionary, Term
from spaseq.terms.values import STRING_TYPE
from tests.patterns.strategies import (
    GRAPHS,
    NODES,
    PREDICATES,
    SPECTRA,
    E,
    batch,
    graphs,
    groups,
    plain_groups,
)

Rows = list[tuple[tuple[str, str], ...]]


def _rows(route: Spectra | General, events: list[list[Triple]], dictionary: Dictionary) -> list[Rows]:
    """Per event, the sorted solutions."""
    data = batch(events, dictionary)
    found = route.evaluate(data).everywhere(np.arange(len(data)))
    return [_shown(found.rows(i), dictionary) for i in range(len(data))]


def _shown(rows: Iterable[Mapping[str, int]], dictionary: Dictionary) -> Rows:
    return sorted(tuple(sorted((name, _text(dictionary.term(i))) for name, i in row.items())) for row in rows)


def _by_rows(
    group: Group, events: list[list[Triple]], dictionary: Dictionary, kb: KnowledgeBase | None
) -> list[Rows] | None:
    """The same, event by event; None where that is refused."""
    data = batch(events, dictionary)
    try:
        rowwise = Rowwise(group, dictionary, kb)
    except NotByRows:
        return None
    found = []
    for i in range(len(data)):
        facts = Facts(data.triples(i))
        found.append(_shown(rowwise.rows(facts, {}), dictionary))
        with mock.patch("spaseq.patterns.algebra.MANY", 0):  # by indexes, as in large events
            assert found[-1] == _shown(rowwise.rows(facts, {}), dictionary)
    return found


def _text(term: Term) -> str:
    return "_:" if isinstance(term, BlankNode) else str(term)


# Oxigraph walks p|p once instead of twice: with paths, its solutions count as a set.
def _oxigraph(group: Group, event: list[Triple], kb: dict[str, list[Triple]]) -> Rows:
    store = Store()
    store.extend(Quad(*triple, DefaultGraph()) for triple in event)
    for name, triples in kb.items():
        store.add_graph(NamedNode(name))
        store.extend(Quad(*_apart(triple), NamedNode(name)) for triple in triples)
    names = sorted(scope.variables(group))
    shown = " ".join(f"?{name}" for name in names) or "(0 AS ?nothing)"
    answers = store.query(f"SELECT {shown} WHERE {print_group(group)}")
    return sorted(
        tuple((name, _text(row[name])) for name in names if row[name] is not None) for row in answers
    )


def _apart(triple: Triple) -> Triple:
    """A triple of the knowledge base: its blank nodes are not the event's."""
    s, p, o = triple
    return Triple(*(BlankNode("kb" + t.value) if isinstance(t, BlankNode) else t for t in (s, p, o)))


def _rdflib(group: Group, event: list[Triple]) -> Rows:
    graph = rdflib.Graph()
    for triple in event:
        graph.add(tuple(_to_rdflib(term) for term in triple))
    found = graph.query(f"SELECT * WHERE {print_group(group)}")
    return sorted(
        tuple(sorted((str(name), _from_rdflib(term)) for name, term in row.asdict().items())) for row in found
    )


def _to_rdflib(term: Term) -> rdflib.term.Node:
    if isinstance(term, Literal):
        plain = term.language or term.datatype == STRING_TYPE
        datatype = None if plain else rdflib.URIRef(term.datatype.value)
        return rdflib.Literal(term.value, lang=term.language, datatype=datatype)
    return rdflib.BNode(term.value) if isinstance(term, BlankNode) else rdflib.URIRef(term.value)


def _from_rdflib(term: rdflib.term.Node) -> str:
    if isinstance(term, rdflib.BNode):
        return "_:"
    if isinstance(term, rdflib.Literal):
        datatype = None if term.language or term.datatype is None else NamedNode(term.datatype)
        return str(Literal(str(term), language=term.language, datatype=datatype))
    return str(NamedNode(str(term)))


@given(groups(), st.lists(graphs, min_size=1, max_size=3))
def test_routes_agree(group: Group, events: list[list[Triple]]) -> None:
    dictionary = Dictionary()
    assert covers(group) is None
    found = _rows(Spectra(group, dictionary, None), events, dictionary)
    assert found == _by_rows(group, events, dictionary, None)
    assert found == _rows(General(group, dictionary, None), events, dictionary)
    assert list(map(set, found)) == [set(_oxigraph(group, event, {})) for event in events]


@given(groups(kinds=(*SPECTRA, "paths")), st.lists(graphs, min_size=1, max_size=3))
def test_paths(group: Group, events: list[list[Triple]]) -> None:
    dictionary = Dictionary()
    found = _rows(General(group, dictionary, None), events, dictionary)
    assert list(map(set, found)) == [set(_oxigraph(group, event, {})) for event in events]
    if not any(map(exists_in, expressions(group))):
        assert covers(group, is_few=True) is None
        assert found == _by_rows(group, events, dictionary, None)


def test_a_negated_set_of_both_directions_is_a_union() -> None:
    """SPARQL 1.1, 18.2.2.4; Oxigraph walks it once."""
    x, (p, q) = Var("x"), PREDICATES[:2]
    group = Group((Triples((TriplePattern(x, PathNegated((p,), (q,)), x),)),))
    node, dictionary = NODES[0], Dictionary()
    events = [[Triple(node, p, node), Triple(node, q, node)]]
    assert [len(rows) for rows in _rows(General(group, dictionary, None), events, dictionary)] == [2]


@given(groups(kinds=(*SPECTRA, "computing", "predicates")), st.lists(graphs, min_size=1, max_size=3))
def test_subqueries(group: Group, events: list[list[Triple]]) -> None:
    dictionary = Dictionary()
    found = _rows(General(group, dictionary, None), events, dictionary)
    assert found == [_oxigraph(group, event, {}) for event in events]


@given(groups(kinds=(*SPECTRA, "graph")), st.lists(graphs, min_size=1, max_size=2), graphs, graphs)
def test_graph_patterns(
    group: Group, events: list[list[Triple]], first: list[Triple], second: list[Triple]
) -> None:
    known = {name.value: triples for name, triples in zip(GRAPHS, (first, second), strict=True)}
    texts = {name: "\n" + "".join(f"{t} .\n" for t in triples) for name, triples in known.items()}
    dictionary, kb = Dictionary(), KnowledgeBase(texts)
    found = _rows(Spectra(group, dictionary, kb), events, dictionary)
    assert found == _rows(General(group, dictionary, kb), events, dictionary)
    by_rows = _by_rows(group, events, dictionary, kb)
    event("by rows too" if by_rows is not None else "not by rows")
    assert by_rows in (None, found)
    if not any(isinstance(p, Graph) and isinstance(p.name, Var) for p in patterns(group)):
        # Oxigraph gives GRAPH ?g no range where the pattern has no triples.
        assert list(map(set, found)) == [set(_oxigraph(group, event, known)) for event in events]


@given(plain_groups(), graphs)
def test_rdflib_agrees(group: Group, event: list[Triple]) -> None:
    dictionary = Dictionary()
    (found,) = _rows(Spectra(group, dictionary, None), [event], dictionary)
    assert [row for row in found if row] == _rdflib(group, event)  # rdflib drops rows that bind nothing


def test_what_exists_replaces() -> None:
    """A variable from outside that EXISTS has in BIND, or in a filter where a join would not bring it."""
    known = {GRAPHS[0].value: f"<{E}a> <{E}p> 1 ."}
    events = [[Triple(NODES[0], PREDICATES[0], Literal(n))] for n in (1, 2)]
    p, x, v = PREDICATES[0], Var("x"), Var("v")
    triples = Triples((TriplePattern(x, p, v),))
    one = Constant(Literal(1))
    bound = Exists(Group((Bind(one, v),)), negated=False)
    on_kb = Group((Triples((TriplePattern(x, p, Var("w")),)), Filter(Binary("<", v, Constant(Literal(2))))))
    filtered = Exists(Group((triples, Graph(GRAPHS[0], on_kb))), negated=False)
    for exists, by_rows in ((bound, True), (filtered, False)):
        group = Group((triples, Filter(exists)))
        dictionary, kb = Dictionary(), KnowledgeBase(known)
        found = _rows(Spectra(group, dictionary, kb), events, dictionary)
        assert [len(rows) for rows in found] == [1, 0]
        if exists is filtered:  # what BIND does to a variable that is replaced, SPARQL 1.1 leaves open
            assert found == _rows(General(group, dictionary, kb), events, dictionary)
        assert _by_rows(group, events, dictionary, kb) == (found if by_rows else None)


def test_a_triple_pattern_with_one_variable_twice() -> None:
    """Only triples whose subject is their object are solutions, though the pattern is a single triple."""
    x, predicate = Var("x"), NamedNode(E + "p")
    group = Group((Triples((TriplePattern(x, predicate, x),)),))
    loop = Triple(NamedNode(E + "a"), predicate, NamedNode(E + "a"))
    other = Triple(NamedNode(E + "b"), predicate, NamedNode(E + "c"))
    dictionary = Dictionary()
    for route in (Spectra(group, dictionary, None), General(group, dictionary, None)):
        assert _rows(route, [[loop, other], [other]], dictionary) == [[(("x", f"<{E}a>"),)], []]

"""The index of names: every name in order, as looking at each node has it; the same after changes."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

import spaseq.paths
from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.graph.linking.candidates import Linker, linker_of
from spaseq.paths.graph.linking.index import Index, key
from spaseq.paths.graph.names import LABELS, local_name

_RDFS = "http://www.w3.org/2000/01/rdf-schema#label"
_NODES = [
    NamedNode(iri)
    for iri in ("urn:a_B", "http://e.org/x/Ab%20c/", "urn:", "http://e.org/é/ßé", "http://e.org#", "urn:x:ab")
]
_TEXTS = ("Ab", "ab", 'a "b"', "a\\b\n", "Straße", "été", "x" * 70, "y" * 300, "", "-", "1999")
_literals = st.sampled_from([*map(Literal, _TEXTS), Literal("Ab", language="en"), *map(Literal, (7, 1.5))])
_named = st.sampled_from(_NODES)
_predicates = st.sampled_from(
    [NamedNode(iri) for iri in (_RDFS, "http://xmlns.com/foaf/0.1/name", "urn:p", "urn:title")]
)
_triples = st.lists(st.tuples(_named, _predicates, _named | _literals), min_size=1, max_size=8)


def names_of(graph: KnowledgeGraph, labels: tuple[str, ...] = ()) -> set[tuple[bytes, int, int]]:
    """Every name with its sort and its node, by looking at each edge and each node."""
    of = {
        LABELS[0]: 0,
        NamedNode("http://xmlns.com/foaf/0.1/name"): 1,
        **{NamedNode(iri): 0 for iri in labels},
    }
    found, used = set[tuple[bytes, int, int]](), set[int]()
    for s, p, o in zip(*(column.tolist() for column in graph.edges()), strict=True):
        term = graph.ox_term(o)
        if (kind := of.get(graph.ox_predicate(p))) is not None and isinstance(term, Literal):
            found.add((key(term.value).encode(), kind, s))
            used.add(o)
    for node in range(graph.nodes):
        term = graph.ox_term(node)
        if isinstance(term, NamedNode):
            found.add((key(local_name(term)).encode(), 2, node))
        elif isinstance(term, Literal) and len(term.value) <= 64 and node not in used:
            found.add((key(term.value).encode(), 3, node))
    return {entry for entry in found if entry[0]}


def entries_of(index: Index) -> list[tuple[bytes, int, int]]:
    numbers = zip(index.kinds.tolist(), index.numbers.tolist(), strict=True)
    return [(index.name(place), kind, number) for place, (kind, number) in enumerate(numbers)]


@given(_triples, st.sampled_from([(), ("urn:title",)]))
def test_the_index_has_every_name_in_order(rows: list[Any], labels: tuple[str, ...]) -> None:
    graph = load(rows)
    labels = tuple(iri for iri in labels if graph.predicate_number(iri) is not None)
    numbers = tuple(n for iri in labels if (n := graph.predicate_number(iri)) is not None)
    assert entries_of(linker_of(graph.snapshot, numbers).index) == sorted(names_of(graph, labels))


@given(_triples, st.lists(st.tuples(st.booleans(), _triples), max_size=4))
def test_names_after_changes_are_those_of_a_graph_made_anew(
    rows: list[Any], changes: list[tuple[bool, list[Any]]]
) -> None:
    graph = load(rows)
    for added, some in changes:
        assert graph.linker is not None
        (graph.add if added else graph.remove)(some)
        fresh = Linker.of(graph.snapshot)
        assert [*map(graph.linker.degree, range(graph.nodes))] == fresh.degrees.tolist()
        for name in [*_TEXTS, "ab", "a_B", "Abc", "x:ab", "strase"]:
            found, wanted = graph.link(name), fresh.link(graph.snapshot, name, 10)
            assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    with TemporaryDirectory() as folder:
        graph.save(f"{folder}/g.spaseq")
        assert entries_of(spaseq.paths.open(f"{folder}/g.spaseq").linker.index) == sorted(names_of(graph))


def test_a_change_reads_only_the_names_that_it_touches() -> None:
    graph = load((f"urn:n{i}", _RDFS, f"name {i}") for i in range(100))
    index = graph.linker.index
    graph.add([("urn:n5", _RDFS, "another name"), ("urn:new", "urn:p", "urn:n6")])
    assert graph.linker.index is index
    assert len(graph.linker.changed) == 4
    assert [c.label for c in graph.link("another name")] == ["another name"]
    assert [c.by for c in graph.link("new")] == ["last segment"]
    graph.remove([("urn:n5", _RDFS, "name 5")])  # a literal without edges: nodes get other numbers
    assert [c.label for c in graph.link("name 5")] != ["name 5"]
    graph.add((f"urn:m{i}", _RDFS, f"more {i}") for i in range(1_001))
    assert not graph.linker.changed

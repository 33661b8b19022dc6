"""Graphs that change are the graphs that are loaded with what they have then."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode
from pyoxigraph import Triple as Nested

import spaseq.paths
from spaseq.errors import KnowledgeError
from spaseq.paths import KnowledgeGraph, load
from spaseq.paths.graph.opening import check_file
from spaseq.paths.graph.updates import merging
from spaseq.paths.language.expression import Path
from tests.paths.naive import Triple, nodes_of, relation
from tests.paths.strategies import graphs, paths
from tests.paths.test_pairs import answers

Triples = frozenset[Triple]

#: Triples come or go; whether the graph is then asked, or only with the next ones.
steps = st.lists(st.tuples(st.booleans(), graphs(4), st.booleans()), max_size=6)


def contents(graph: KnowledgeGraph) -> set[Any]:
    s, p, o = graph.edges()
    return {
        (graph.ox_term(a), graph.ox_predicate(b), graph.ox_term(c))
        for a, b, c in zip(s.tolist(), p.tolist(), o.tolist(), strict=True)
    }


def change(graph: KnowledgeGraph, expected: Triples, some: Triples, is_added: bool) -> Triples:
    (graph.add if is_added else graph.remove)(sorted(some, key=str))
    return expected | some if is_added else expected - some


@pytest.mark.parametrize("many", [0, 2_000])
@given(start=graphs(), steps=steps, path=paths)
def test_as_loaded_anew(
    many: int, start: Triples, steps: list[tuple[bool, Triples, bool]], path: Path
) -> None:
    """However many changes there are: more than ``many`` are sorted anew."""
    before, merging._MANY = merging._MANY, many  # type: ignore[misc]
    try:
        graph, expected = load(start), start
        for is_added, some, is_asked in [*steps, (True, frozenset(), True)]:
            expected = change(graph, expected, some, is_added)
            if is_asked:
                assert contents(graph) == expected
                assert graph.nodes == len(nodes_of(expected))
                assert graph.predicates == len({p for _, p, _ in expected})
                assert answers(graph, path) == relation(path, expected, frozenset(nodes_of(expected)))
                s, p, o = graph.edges()
                rows = list(zip(p.tolist(), s.tolist(), o.tolist(), strict=True))
                assert rows == sorted(set(rows))
    finally:
        merging._MANY = before  # type: ignore[misc]


@given(start=graphs(), some=graphs(), gone=graphs())
def test_saved_and_pickled(
    start: Triples, some: Triples, gone: Triples, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("graphs") / "g.spaseq"
    load(start).save(file)
    graph = spaseq.paths.open(file)
    expected = change(graph, change(graph, start, some, True), gone, False)
    assert contents(graph) == expected
    assert contents(spaseq.paths.open(file)) == start  # the file stays as it is
    graph.save(file.with_name("h.spaseq"))
    check_file(file.with_name("h.spaseq"))
    for again in (spaseq.paths.open(file.with_name("h.spaseq")), pickle.loads(pickle.dumps(graph))):
        assert contents(again) == expected
        assert contents(graph) == expected
        change(again, expected, start, True)
        assert contents(again) == expected | start


def test_what_was_asked_before_sees_what_was_there_then() -> None:
    graph = load([("urn:a", "urn:p", "urn:b"), ("urn:b", "urn:p", "urn:c")])
    then, paths = graph.now, iter(graph.paths("<urn:p>+", sources=["urn:a"], mode="TRAIL"))
    first = next(paths)
    graph.add([("urn:c", "urn:p", "urn:d")])
    graph.remove([("urn:a", "urn:p", "urn:b")])
    assert [str(path.terms[-1]) for path in [first, *paths]] == ["urn:b", "urn:c"]
    assert len(then) == 2
    assert len(then.pairs("<urn:p>+")) == 3
    assert [f"{a} {b}" for a, b in graph.pairs("<urn:p>+")] == ["urn:b urn:c", "urn:b urn:d", "urn:c urn:d"]


def test_a_wrong_triple_changes_nothing() -> None:
    graph = load([("urn:a", "urn:p", "urn:b")])
    with pytest.raises(KnowledgeError, match=r"triple 2: 'nothing' is not an IRI"):
        graph.add([("urn:b", "urn:p", "urn:c"), ("nothing", "urn:p", "urn:c")])
    assert len(graph) == 1
    with pytest.raises(KnowledgeError, match=r'triple 1: "p" is no predicate'):
        graph.add([("urn:b", '"p"', "urn:c")])
    nested = Nested(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    with pytest.raises(KnowledgeError, match="triple 1: not an RDF term"):
        graph.add([("urn:b", "urn:p", nested)])
    with pytest.raises(KnowledgeError, match=r"spaseq\.paths\.load reads files"):
        graph.add("more.ttl")
    graph.remove([("urn:never", "urn:heard", "urn:of")])
    assert len(graph) == 1


def test_names_are_those_of_now() -> None:
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    graph = load([("urn:a", label, "Ada"), ("urn:a", "urn:knows", "urn:b")])
    assert [c.label for c in graph.link("Ada")] == ["Ada"]
    graph.add([("urn:b", label, "Bob"), ("urn:b", "urn:likes", "urn:a")])
    assert [c.label for c in graph.link("Bob")] == ["Bob"]
    assert len(spaseq.paths.retrieve(graph, [["likes"]], "Bob")) == 1
    graph.remove([("urn:b", label, "Bob")])
    assert "Bob" not in [c.label for c in graph.link("Bob")]


def test_threads_change_and_ask() -> None:
    graph, problems = load([("urn:n0", "urn:p", "urn:n1")]), list[BaseException]()

    def grow(part: int) -> None:
        for i in range(50):
            graph.add([(f"urn:{part}.{i}", "urn:p", "urn:n1")])

    def ask() -> None:
        try:
            seen = 0
            while seen < 101:
                found = len(graph.pairs("<urn:p>"))
                assert found >= seen
                seen = found
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=grow, args=(n,)) for n in range(2)]
    threads += [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not problems
    assert len(graph) == 101

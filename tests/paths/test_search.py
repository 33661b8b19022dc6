"""Paths in every mode: as trying all of them has it, as networkx has it, and many of them at once."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice, pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import QueryMeaningError
from spaseq.paths import KnowledgeGraph, load
from spaseq.paths import Path as FoundPath
from spaseq.paths.language.expression import Expression, Path, endless
from spaseq.paths.language.parser import parse
from spaseq.terms.dictionary import Term
from tests.paths.naive import Triple, Walk, matching, nodes_of, walks
from tests.paths.strategies import graphs, paths

#: No longer walk is compared; there may be more.
LONGEST = 5

#: A graph with more walks than that takes the naive search too long.
MOST = 1_500

Ends = tuple[Term, Term]


def as_walk(path: FoundPath) -> Walk:
    graph = path.graph
    triples = ((graph.ox_term(s), graph.ox_predicate(p), graph.ox_term(o)) for s, p, o in path.edges)
    return Walk(tuple(map(graph.ox_term, path.nodes)), tuple(triples))


def by_ends(found: Iterable[Walk]) -> dict[Ends, list[Walk]]:
    """The walks between each pair of ends, in the order in which they are given."""
    groups: dict[Ends, list[Walk]] = defaultdict(list)
    for walk in found:
        groups[walk.nodes[0], walk.nodes[-1]].append(walk)
    return groups


def short(found: Iterable[FoundPath]) -> list[Walk]:
    """The first paths, without those too long to be compared; none of them twice."""
    taken = [as_walk(path) for path in islice(found, 20 * MOST)]
    assert len(set(taken)) == len(taken) < 20 * MOST
    return [walk for walk in taken if len(walk.triples) <= LONGEST]


modes = st.sampled_from(["WALK", "TRAIL", "SIMPLE", "ACYCLIC"])


def expected(triples: frozenset[Triple], path: Path, mode: str) -> dict[Ends, set[Walk]] | None:
    """All paths that are not too long; None if trying them takes too long."""
    nodes = nodes_of(triples)
    if sum(1 for node in nodes for _ in islice(walks(node, triples, LONGEST, mode), MOST)) >= MOST:
        return None
    found = [walk for node in nodes for walk in matching(path, triples, node, LONGEST, mode)]
    return {ends: set(some) for ends, some in by_ends(found).items()}


@given(graphs(edges=5, nodes=4), paths, modes)
def test_all_paths(triples: frozenset[Triple], path: Path, mode: str) -> None:
    if (mode == "WALK" and endless(path)) or (wanted := expected(triples, path, mode)) is None:
        return
    expression = Expression(path, {}, parse("<urn:x>").source)
    found = short(load(triples).paths(expression, mode=mode))
    assert {ends: set(some) for ends, some in by_ends(found).items()} == wanted


@given(graphs(edges=5, nodes=4), paths, modes, st.integers(1, 3))
def test_the_shortest(triples: frozenset[Triple], path: Path, mode: str, count: int) -> None:
    if (wanted := expected(triples, path, mode)) is None:
        return
    graph = load(triples)
    expression = Expression(path, {}, parse("<urn:x>").source)
    for selector in (f"SHORTEST {count}", "ALL SHORTEST"):
        # With targets alone, the search goes the other way.
        for side in ("sources", "targets"):
            found = by_ends(short(
                path for node in range(graph.nodes)
                for path in graph.paths(expression, **{side: node}, mode=f"{selector} {mode}")
            ))  # fmt: skip
            assert found.keys() == wanted.keys()
            for ends, walks_ in found.items():
                lengths = sorted(len(walk.triples) for walk in wanted[ends])
                if selector == "ALL SHORTEST":
                    lengths = [length for length in lengths if length == lengths[0]]
                elif len(walks_) < count:
                    assert len(walks_) == len(lengths)  # longer ones are left out on both sides
                assert [len(walk.triples) for walk in walks_] == lengths[: len(walks_)]
                assert set(walks_) <= wanted[ends]
                assert selector != "ALL SHORTEST" or len(walks_) == len(lengths)


# --- networkx


@given(graphs(edges=12, nodes=6))
def test_as_networkx(triples: frozenset[Triple]) -> None:
    graph = load(triples)
    multi: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    multi.add_nodes_from(range(graph.nodes))
    for s, p, o in zip(*(column.tolist() for column in graph.edges()), strict=True):
        multi.add_edge(s, o, p)
    plain = nx.DiGraph(multi)
    for source in range(graph.nodes):
        for target in range(graph.nodes):
            if source == target:
                continue
            acyclic = nx.all_simple_edge_paths(multi, source, target)
            wanted = {tuple((a, p, b) for a, b, p in path) for path in acyclic}
            for mode in ("ACYCLIC", "SIMPLE"):
                assert edges_of(graph, mode, source, target) == wanted
            if wanted:
                shortest = {tuple(pairwise(nodes)) for nodes in nx.all_shortest_paths(plain, source, target)}
                found = edges_of(graph, "ALL SHORTEST", source, target)
                assert {tuple((a, b) for a, _, b in path) for path in found} == shortest
                lengths = [len(path) for path in graph.paths(".+", source, target, "SHORTEST 4 ACYCLIC")]
                assert lengths == sorted(map(len, wanted))[:4]
    cycles = {frozenset(pairwise([*nodes, nodes[0]])) for nodes in nx.simple_cycles(plain)}
    simple = (path for node in range(graph.nodes) for path in graph.paths(".+", node, node, "SIMPLE"))
    assert {frozenset(pairwise(path.nodes)) for path in simple} == cycles


def edges_of(
    graph: KnowledgeGraph, mode: str, source: int, target: int
) -> set[tuple[tuple[int, int, int], ...]]:
    found = [path.edges for path in graph.paths(".+", source, target, mode)]
    assert len(found) == len(set(found))
    return set(found)


@given(graphs(edges=7, nodes=4))
def test_trails_are_simple_paths_of_the_line_graph(triples: frozenset[Triple]) -> None:
    graph = load(triples)
    columns = [column.tolist() for column in graph.edges()]
    edges = list(zip(*columns, strict=True))
    line: nx.DiGraph[int] = nx.DiGraph()
    line.add_nodes_from(range(len(edges)))
    line.add_edges_from(
        (i, j) for i, (_, _, end) in enumerate(edges) for j, (start, _, _) in enumerate(edges) if end == start
    )
    wanted = {(edge,) for edge in edges}
    for first in line:
        for path in nx.all_simple_paths(line, first, [last for last in line if last != first]):
            wanted.add(tuple(edges[i] for i in path))
    found = [path.edges for path in graph.paths(".+", mode="TRAIL")]
    assert len(found) == len(set(found))
    assert set(found) == wanted


# --- many paths


def complete(size: int) -> KnowledgeGraph:
    return load([(f"urn:{i}", "urn:p", f"urn:{j}") for i in range(size) for j in range(size)], {"": "urn:"})


@pytest.mark.parametrize(
    ("expression", "mode"),
    [
        (":p{25}", "ALL WALK"),
        ("(:p|.|^:p/:p){25}", "ALL WALK"),
        (":p{25}", "ALL SHORTEST"),
        (":p{25}", "SHORTEST 1000000"),
        (":p{25,}/:p*", "SHORTEST 1000000000"),
    ],
)
def test_the_first_of_ten_to_the_fifteen(expression: str, mode: str) -> None:
    graph = complete(4)
    found = graph.paths(expression, sources=":0", targets=None, mode=mode)
    first = list(islice(found, 1_000))
    assert len(set(first)) == 1_000


@pytest.mark.parametrize("mode", ["ALL WALK", "ALL SHORTEST"])
def test_memory_is_flat_however_many_there_are(mode: str) -> None:
    found = complete(4).paths(":p{25}", sources=":0", mode=mode)
    held = []
    tracemalloc.start()
    try:
        for _ in range(3):
            for _ in islice(found, 1_000):
                pass
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[-1] - held[0] < 50_000


@pytest.mark.parametrize("mode", ["ALL TRAIL", "SHORTEST 3"])
def test_searches_may_be_interleaved_and_left(mode: str) -> None:
    graph = complete(3)
    queries = ((":p/:p+", ":0", ":1"), (":p*", None, ":2"), ("^:p/:p?", ":1", None))
    wanted = [[str(path) for path in graph.paths(*query, mode=mode)] for query in queries]
    for _ in range(2):
        searches = [graph.paths(*query, mode=mode) for query in queries]
        found: list[list[str]] = [[] for _ in queries]
        for _ in range(3):
            for search, some in zip(searches, found, strict=True):
                some += [str(path) for path in islice(search, 2)]
        assert found == [some[:6] for some in wanted]
        del searches, search
        assert [[str(path) for path in graph.paths(*query, mode=mode)] for query in queries] == wanted


def test_max_paths() -> None:
    graph = complete(3)
    for most, count, truncated in ((0, 0, True), (5, 5, True), (9, 9, False), (10, 9, False)):
        found = graph.paths(":p/:p", sources=":0", max_paths=most)
        assert not found.truncated
        assert len(list(found)) == count
        assert found.truncated is truncated
        assert list(found) == []


def test_a_path_counts_once_however_it_is_matched() -> None:
    graph = load([("urn:a", "urn:p", "urn:a"), ("urn:a", "urn:p", "urn:b")], {"": "urn:"})
    assert [str(path) for path in graph.paths("(:p|:p|^:p|.){2}", targets=":b")] == [
        ":a -:p-> :a -:p-> :b",
        ":b <-:p- :a -:p-> :b",
    ]
    assert len(list(graph.paths(":p|^:p", sources=":a", targets=":a"))) == 1


def test_paths_say_what_they_are() -> None:
    graph = load(
        [("urn:a", "urn:p", "urn:b"), ("urn:c", "urn:q", "urn:b"), ("urn:c", "urn:r", "x")], {"": "urn:"}
    )
    (path,) = graph.paths(":p/^:q/:r", sources=":a")
    assert str(path) == ':a -:p-> :b <-:q- :c -:r-> "x"'
    assert (len(path), str(path.start), str(path.end)) == (3, "urn:a", "x")
    assert [tuple(map(str, triple)) for triple in path.triples] == [
        ("urn:a", "urn:p", "urn:b"),
        ("urn:c", "urn:q", "urn:b"),
        ("urn:c", "urn:r", "x"),
    ]
    (stranger,) = graph.paths(":p*", sources="urn:nobody", mode="TRAIL")
    assert (str(stranger), str(stranger.start), len(stranger), stranger.triples) == (
        ":nobody",
        "urn:nobody",
        0,
        (),
    )
    assert stranger


def test_walks_without_a_bound_are_refused() -> None:
    graph = complete(2)
    with pytest.raises(QueryMeaningError, match="infinitely many walks") as caught:
        graph.paths(":p/(:p{2})+")
    assert (caught.value.offset, "TRAIL" in str(caught.value.hint)) == (4, True)
    for mode in (
        "ANY",
        "ANY SHORTEST WALK",
        "all shortest",
        "SHORTEST 2 WALK PATHS",
        "TRAIL",
        "ALL ACYCLIC PATH",
    ):
        assert list(graph.paths(":p/(:p{2})+", mode=mode)) is not None
    assert len(list(graph.paths(":p+", sources=":0", targets=":1", shortest=3))) == 3


@pytest.mark.parametrize(
    ("mode", "shortest", "message", "hint"),
    [
        ("TRIAL", None, "no path mode", "TRAIL"),
        ("SHORTEST", None, "no path mode", "ANY SHORTEST"),
        ("TRAIL ANY", None, "no path mode", "ANY SHORTEST"),
        ("ANY TRAIL", 2, "contradict", "one of them"),
        ("TRAIL", 0, "shortest 0", "at least 1"),
    ],
)
def test_wrong_modes(mode: str, shortest: int | None, message: str, hint: str) -> None:
    with pytest.raises(QueryMeaningError, match=message) as caught:
        complete(1).paths(":p", mode=mode, shortest=shortest)
    assert hint in str(caught.value.hint)

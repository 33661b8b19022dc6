"""Weighted shortest paths, against all paths of random graphs and against networkx."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import LimitError
from spaseq.language.reading.source import QueryText
from spaseq.limits import Limits
from spaseq.paths import KnowledgeGraph, Path, load
from spaseq.paths.language.expression import Expression, endless
from tests.paths.naive import Triple
from tests.paths.strategies import ends, graphs, paths

ROADS = [("a", "road", "b"), ("b", "road", "c"), ("a", "rail", "c"), ("c", "ferry", "d"), ("a", "ferry", "d")]


def _cost(graph: KnowledgeGraph, path: Path, weights: np.ndarray) -> float:
    edges = [*zip(*(column.tolist() for column in graph.edges()), strict=True)]
    return sum(weights[edges.index(edge)] for edge in path.edges)


def _by_ends(found: Any) -> dict[tuple[Any, Any], list[Path]]:
    grouped = defaultdict(list)
    for path in found:
        grouped[path.start, path.end].append(path)
    return grouped


@given(
    graphs(),
    paths,
    ends,
    ends,
    st.sampled_from(["WALK", "TRAIL", "SIMPLE", "ACYCLIC"]),
    st.integers(1, 3),
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.5]), min_size=9, max_size=9),
)
def test_the_cheapest_of_all_paths(
    triples: frozenset[Triple], root: Any, sources: Any, targets: Any, mode: str, k: int, costs: list[float]
) -> None:
    expression = Expression(root, {}, QueryText("", "<test>"))
    if mode == "WALK" and endless(root):
        return
    graph = load(triples)
    weights = np.array(costs[: len(graph)])
    every = _by_ends(graph.paths(expression, sources, targets, mode, max_paths=3_000))
    if sum(map(len, every.values())) == 3_000:
        return
    found = _by_ends(graph.paths(expression, sources, targets, mode, shortest=k, weights=weights))
    assert found.keys() == every.keys()
    for pair, some in found.items():
        assert len({(path.nodes, path.edges) for path in some}) == len(some) == min(k, len(every[pair]))
        cheapest = sorted(_cost(graph, path, weights) for path in every[pair])
        assert [path.cost for path in some] == pytest.approx(cheapest[:k])
        assert [_cost(graph, path, weights) for path in some] == pytest.approx(cheapest[:k])
    tied = _by_ends(graph.paths(expression, sources, targets, f"ALL SHORTEST {mode}", weights=weights))
    for pair, some in tied.items():
        least = min(_cost(graph, path, weights) for path in every[pair])
        wanted = [path for path in every[pair] if _cost(graph, path, weights) < least + 1e-9]
        assert {(path.nodes, path.edges) for path in some} == {(path.nodes, path.edges) for path in wanted}
    assert tied.keys() == every.keys()


@given(graphs(), st.lists(st.integers(1, 5), min_size=9, max_size=9))
def test_walks_of_any_length_are_those_of_networkx(triples: frozenset[Triple], costs: list[int]) -> None:
    graph = load(triples)
    network = nx.DiGraph()
    for s, _, o, cost in zip(*graph.edges(), costs, strict=False):
        known = network.get_edge_data(s, o, {"weight": cost})["weight"]
        network.add_edge(s, o, weight=min(cost, known))
    found = graph.paths(".*", mode="ANY SHORTEST", weights=np.array(costs[: len(graph)]))
    lengths = dict(nx.all_pairs_dijkstra_path_length(network))
    assert {(p.nodes[0], p.nodes[-1], p.cost) for p in found} == {
        (s, o, cost) for s, some in lengths.items() for o, cost in some.items()
    }


def test_predicates_have_weights() -> None:
    graph, anything = load(ROADS, base="urn:"), "(:road|:rail|:ferry)+"
    (path,) = graph.paths(anything, ":a", ":d", "ANY SHORTEST", weights={":ferry": 5, ":rail": 3})
    assert (str(path), path.cost) == (":a -:ferry-> :d", 5)
    (path,) = graph.paths(anything, ":a", ":d", "ANY SHORTEST", weights={":ferry": 0.5, ":rail": 3})
    assert path.cost == 0.5
    (path,) = graph.paths("^:ferry/(^:road|^:rail)+", ":d", ":a", "ANY SHORTEST", weights={":rail": 3})
    assert (str(path), path.cost) == (":d <-:ferry- :c <-:road- :b <-:road- :a", 3)
    (path,) = graph.paths(".*", ":a", ":a", "ANY SHORTEST", weights={})
    assert (len(path), path.cost) == (0, 0)
    (path,) = graph.paths(":road", ":a", mode="ANY SHORTEST")
    assert path.cost is None


def test_weights_that_cannot_be_used() -> None:
    graph = load(ROADS, base="urn:")
    for weights in ({":road": 0}, {":road": float("inf")}, {":road": -1}, np.full(5, np.nan)):
        with pytest.raises(ValueError, match="positive numbers"):
            graph.paths(":road", mode="ANY SHORTEST", weights=weights)
    with pytest.raises(ValueError, match=r"weights of shape \(4,\): the graph has 5 edges"):
        graph.paths(":road", mode="ANY SHORTEST", weights=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="weights are for the shortest paths"):
        graph.paths(":road", mode="TRAIL", weights={})
    with pytest.warns(match="no edge has the predicate :rod"):
        graph.paths(":road", mode="ANY SHORTEST", weights={":rod": 2})


def test_weighted_searches_keep_to_their_memory() -> None:
    graph = load(
        [(f"n{i}", "next", f"n{i + 1}") for i in range(3_000)],
        base="urn:",
        limits=Limits(query_bytes=100_000),
    )
    with pytest.raises(LimitError, match="weights"):
        list(graph.paths(":next+", ":n0", mode="ANY SHORTEST", weights={}))

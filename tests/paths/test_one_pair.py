"""One pair of nodes, searched from both ends: as the algebra and trying all paths have it, and for less."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.bounds import WorkClock
from spaseq.paths import Budget, KnowledgeGraph, load
from spaseq.paths.language.expression import Expression, Path
from spaseq.paths.language.parser import parse
from tests.paths.naive import Triple, nodes_of, relation
from tests.paths.strategies import graphs, paths
from tests.paths.test_search import LONGEST, as_walk, expected, modes


def written(path: Path) -> Expression:
    return Expression(path, {}, parse("<urn:x>").source)


@given(graphs(), paths)
def test_pairs_as_the_algebra(triples: frozenset[Triple], path: Path) -> None:
    graph, nodes = load(triples), nodes_of(triples)
    wanted = relation(path, triples, frozenset(nodes))
    for source in nodes:
        for target in nodes:
            found = graph.pairs(written(path), source, target)
            assert len(found) == ((source, target) in wanted)
            assert sum(map(len, graph.batches(written(path), source, target))) == len(found)
            assert graph.pairs(written(path), source, target, 0).truncated == bool(len(found))


@given(graphs(edges=5, nodes=4), paths, modes, st.sampled_from(["ANY", "ALL SHORTEST", "SHORTEST 2"]))
def test_the_shortest_of_one_pair(triples: frozenset[Triple], path: Path, mode: str, selector: str) -> None:
    if (wanted := expected(triples, path, mode)) is None:
        return
    graph = load(triples)
    for source in nodes_of(triples):
        for target in nodes_of(triples):
            found = [as_walk(p) for p in graph.paths(written(path), source, target, f"{selector} {mode}")]
            found = [walk for walk in found if len(walk.triples) <= LONGEST]
            all_ = wanted.get((source, target), set())
            lengths = sorted(len(walk.triples) for walk in all_)
            most = {"ANY": 1, "SHORTEST 2": 2, "ALL SHORTEST": lengths.count(lengths[0]) if lengths else 0}
            assert len(set(found)) == len(found)
            assert set(found) <= all_
            assert [len(walk.triples) for walk in found] == lengths[: most[selector]]


@pytest.mark.parametrize("seed", range(4))
def test_as_from_one_end_in_larger_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (f"urn:{s}", f"urn:p{p}", f"urn:{o}") for s, p, o in rng.integers(0, (40, 3, 40), (80, 3)).tolist()
    ]
    graph = load(rows)
    pairs = rng.integers(0, graph.nodes, (8, 2)).tolist()
    for text in (".+", "(<urn:p0>/^<urn:p1>)+", "<urn:p0>*/<urn:p1>/(<urn:p0>|<urn:p2>)*", "<urn:p0>{2,5}"):
        joined = {tuple(pair) for pair in zip(*(c.tolist() for c in graph.pairs(text).arrays), strict=True)}
        for source, target in pairs:
            assert len(graph.pairs(text, source, target)) == ((source, target) in joined)
            # With one end alone, all that it leads to is measured.
            alone = [
                path for path in graph.paths(text, source, None, "ALL SHORTEST") if path.nodes[-1] == target
            ]
            found = [*graph.paths(text, source, target, "ALL SHORTEST")]
            assert sorted(map(repr, found)) == sorted(map(repr, alone))
            assert [*map(repr, graph.paths(text, source, target, "ANY"))] == [*map(repr, alone[:1])] or alone[
                1:
            ]


def random_graph(nodes: int, edges: int) -> KnowledgeGraph:
    rng = np.random.default_rng(1)
    return load((f"urn:{s}", "urn:p", f"urn:{o}") for s, o in rng.integers(0, nodes, (edges, 2)).tolist())


@pytest.mark.parametrize("mode", ["ANY SHORTEST", "ALL SHORTEST", "ANY SHORTEST TRAIL"])
@pytest.mark.few(1)
def test_neighbours_do_not_cost_what_the_graph_does(mode: str) -> None:
    graph = random_graph(2_000, 10_000)
    source, _, target = (int(column[0]) for column in graph.edges())
    clock = WorkClock(1e-6)
    budget = Budget(latency=timedelta(seconds=60), clock=clock)
    found = graph.paths("<urn:p>+", source, target, mode, budget=budget)
    assert [len(path) for path in found][:1] == [1]
    assert found.shed is not None
    assert found.shed.latency is not None
    assert found.shed.latency < 50 * clock.unit


def test_a_limit_ends_a_search_before_it_has_found_all() -> None:
    graph = random_graph(2_000, 10_000)
    found = graph.pairs("<urn:p>+", 0, limit=1)
    assert (len(found), found.truncated) == (1, True)
    workspace = graph.snapshot.workspaces.take(graph.snapshot.memory("a test"))
    assert 0 < np.count_nonzero(workspace.seen) < 50
    assert len(graph.pairs("<urn:p>+", 0)) > 1_000

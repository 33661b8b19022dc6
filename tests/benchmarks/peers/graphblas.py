"""``graphblas``: path queries on spaseq and on SuiteSparse:GraphBLAS, on one graph of 1 M edges.

Needs ``pip install python-graphblas`` beside spaseq. Times are CPU seconds of one warm query, its answers as
numbers; GraphBLAS gets one thread. The numbers of pairs must agree.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from spaseq.paths import KnowledgeGraph, load
from tests.benchmarks.measure import Measurement, check, cpu_seconds

_Count = Callable[[], int]

_RUNS: Final = 9
_PREDICATES: Final = ("knows", "likes", *(f"p{i}" for i in range(10)))
#: The share of each predicate's edges.
_SHARES: Final = (0.3, 0.3, *[0.04] * 10)


class _Matrices:
    """The graph as boolean matrices, one of each predicate."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        import graphblas as gb

        gb.init("suitesparse", blocking=True)
        gb.ss.config["nthreads"] = 1
        self.gb, self.nodes = gb, graph.nodes
        s, p, o = graph.edges()
        self.of = {name: self._matrix(s[p == n], o[p == n]) for name in _PREDICATES
                   if (n := graph.predicate_number(f":{name}")) is not None}  # fmt: skip
        knows, likes = (graph.predicate_number(f":{name}") for name in ("knows", "likes"))
        others = (p != knows) & (p != likes)
        self.others = self._matrix(s[others], o[others])
        both = [(s[p == knows], o[p == knows]), (o[p == likes], s[p == likes])]
        self.two_ways = self._matrix(*map(np.concatenate, zip(*both, strict=True)))

    def _matrix(self, rows: Any, columns: Any) -> Any:
        gb = self.gb
        return gb.Matrix.from_coo(rows, columns, True, nrows=self.nodes, ncols=self.nodes, dtype=bool)

    def closure(self, matrix: Any, source: int) -> int:
        """Return how many nodes a path of one edge or more leads to, by breadth-first search."""
        gb = self.gb
        front = gb.Vector.from_coo([source], True, size=self.nodes, dtype=bool)
        seen = gb.Vector(bool, self.nodes)
        while front.nvals:
            front(~seen.S, replace=True) << gb.semiring.any_pair(front @ matrix)
            seen(front.S) << True
        return int(seen.nvals)

    def product(self, first: Any, second: Any | None = None, sources: Any = None) -> int:
        """Return how many pairs one step or two join, from some sources or from all nodes."""
        gb = self.gb
        found = first
        if sources is not None:
            rows = np.arange(len(sources))
            chosen = gb.Matrix.from_coo(rows, sources, True, nrows=len(rows), ncols=self.nodes, dtype=bool)
            found = gb.semiring.any_pair(chosen @ first).new()
        if second is not None:
            found = gb.semiring.any_pair(found @ second).new()
        return int(found.nvals)


def _graph(edges: int) -> KnowledgeGraph:
    rng, nodes = np.random.default_rng(1), edges // 10
    s, o = rng.integers(0, nodes, (2, edges)).tolist()
    p = rng.choice(len(_PREDICATES), edges, p=_SHARES).tolist()
    base = "http://example.org/"
    names = [f"{base}{name}" for name in _PREDICATES]
    rows = ((f"{base}n{a}", names[b], f"{base}n{c}") for a, b, c in zip(s, p, o, strict=True))
    return load(rows, {"": base})


def _queries(
    graph: KnowledgeGraph, their: _Matrices
) -> dict[str, tuple[Callable[[], int], Callable[[], int]]]:
    one = [int(graph.edges()[0][0])]  # which has an edge of the first predicate
    many = np.sort(np.random.default_rng(2).choice(graph.nodes, min(1_000, graph.nodes // 2), replace=False))
    of, both = their.of, their.two_ways
    asked: dict[str, tuple[tuple[str, Any], _Count]] = {
        "knows+, 1 source": ((":knows+", one), lambda: their.closure(of["knows"], one[0])),
        "(knows|^likes)+, 1 source": (("(:knows|^:likes)+", one), lambda: their.closure(both, one[0])),
        "knows/likes, 1,000 sources": (
            (":knows/:likes", many), lambda: their.product(of["knows"], of["likes"], many),
        ),
        "!(knows|likes), 1,000 sources": (
            ("!(:knows|:likes)", many), lambda: their.product(their.others, sources=many),
        ),
        "p0/p1, all pairs": ((":p0/:p1", None), lambda: their.product(of["p0"], of["p1"])),
    }  # fmt: skip
    return {
        name: (lambda query=query: len(graph.pairs(*query)), theirs)  # type: ignore[misc]
        for name, (query, theirs) in asked.items()
    }


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Five queries beside GraphBLAS, and the answers of the last one as terms."""
    if importlib.util.find_spec("graphblas") is None:
        yield Measurement("graphblas", "absent: pip install python-graphblas", None, "absent")
        return
    graph = _graph(20_000 if quick else 1_000_000)
    for name, (ours, theirs) in _queries(graph, _Matrices(graph)).items():
        check(name, ours(), theirs())
        times = np.array([[cpu_seconds(ours), cpu_seconds(theirs)] for _ in range(_RUNS)]).min(axis=0)
        facts = {"ms": 1_000 * times[0], "theirs": 1_000 * times[1], "pairs": float(ours())}
        yield Measurement("graphblas", name, times[1] / times[0], "GraphBLAS", facts=facts)
    terms = cpu_seconds(lambda: sum(1 for _ in graph.pairs(":p0/:p1")))
    again = min(cpu_seconds(lambda: sum(1 for _ in graph.pairs(":p0/:p1"))) for _ in range(_RUNS))
    facts = {"ms, first": 1_000 * terms, "ms, again": 1_000 * again}
    yield Measurement("graphblas", "p0/p1, all pairs as terms", None, "alone", facts=facts)

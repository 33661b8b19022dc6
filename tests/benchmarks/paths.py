"""Path queries: pairs beside Oxigraph's property paths and a bare loop over CSR arrays; gMark's queries.

Where Oxigraph would take hours from all the sources, it gets a few of them, spread evenly, and is taken to
need as long for each of the others. Times are those of the processor, so that what else the machine does
counts less.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode, Quad, QuerySolutions, Store

from spaseq._jit import kernel
from spaseq.paths import KnowledgeGraph, load
from tests.benchmarks.measure import Measurement, check
from tests.conftest import SHARED
from tests.paths import gmark

Nodes = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]

PREDICATES = "abcdefghij"


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, how many sources or targets are given (0: none), and how many of them Oxigraph gets."""

    text: str
    sources: int = 0
    targets: int = 0
    share: int = 0


QUERIES = (
    Query(":a/:b/:c"),
    Query(":a/^:b"),
    Query("(:a|:b)/(:c|:d)"),
    Query(":a/:b/:c", sources=1_000),
    Query(":a{1,3}", sources=1_000),
    Query("!(:a|:b)/:c", sources=1_000),
    Query(":a/:b/:c", targets=1_000),
    Query(":a/:b*/:c", targets=1_000),
    Query(":a+", sources=1_000),
    Query(":a/(:b|:c)*/:d", sources=1_000, share=8),
    Query("(:a|:b)+", sources=1_000, share=2),
    Query("(:a|:b)+", targets=1_000, share=2),
)


def triples(nodes: int, edges: int) -> list[tuple[NamedNode, NamedNode, NamedNode]]:
    """A random graph: every predicate leads to ``edges / nodes / 10`` nodes from each on average."""
    rng = np.random.default_rng(1)
    terms = [NamedNode(f"urn:{i}") for i in range(nodes)]
    labels = [NamedNode(f"urn:{letter}") for letter in PREDICATES]
    columns = (rng.integers(0, size, edges).tolist() for size in (nodes, len(labels), nodes))
    return [(terms[s], labels[p], terms[o]) for s, p, o in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class _Both:
    """One graph in both systems."""

    graph: KnowledgeGraph
    store: Store

    def ours(self, query: Query, ends: npt.NDArray[np.int64] | None) -> int:
        """How many pairs we find; their arrays are there then, grouped by the end where the search began."""
        return len(self.graph.pairs(query.text, *((ends, None) if query.sources else (None, ends))))

    def theirs(self, query: Query, ends: npt.NDArray[np.int64] | None) -> int:
        """How many pairs Oxigraph finds, from or to some nodes."""
        path = gmark.as_sparql(self.graph.compile(query.text).expression.root)
        values = ""
        if ends is not None:
            given = " ".join(str(self.graph.ox_term(node)) for node in ends.tolist())
            values = f"VALUES {'?s' if query.sources else '?t'} {{ {given} }}"
        found = self.store.query(f"SELECT DISTINCT ?s ?t {{ {values} ?s {path} ?t }}")
        assert isinstance(found, QuerySolutions)
        return sum(1 for _ in found)

    def ends(self, query: Query) -> npt.NDArray[np.int64] | None:
        """The sources or targets, spread evenly over those where something begins; None: all."""
        if not (count := query.sources or query.targets):
            return None
        nodes = self.graph.product(query.text, backwards=bool(query.targets)).candidates()
        return nodes[:: max(1, len(nodes) // count)][:count]

    def timed(self, query: Query, runs: int) -> tuple[float, float, int]:
        """Our seconds, Oxigraph's for the same, and how many pairs there are."""
        ends = self.ends(query)
        asked, scale = ends, 1.0
        if query.share and ends is not None:
            asked = ends[:: max(1, len(ends) // query.share)][: query.share]
            scale = len(ends) / len(asked)
        pairs = self.ours(query, ends)  # once, to compile what is to be compiled
        begin = time.process_time()
        theirs = self.theirs(query, asked)
        taken = time.process_time() - begin
        check(query.text, theirs, self.ours(query, asked))
        return _seconds(runs, lambda: self.ours(query, ends)), taken * scale, pairs


def _seconds(runs: int, work: Callable[[], object]) -> float:
    """The median seconds of a processor that a call takes: all that is compared here uses one."""
    taken = []
    for _ in range(runs):
        gc.collect()
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return statistics.median(taken)


def _both(rows: list[tuple[NamedNode, NamedNode, NamedNode]]) -> _Both:
    store = Store()
    store.bulk_extend(Quad(*row) for row in rows)
    return _Both(load(rows, gmark.PREFIXES), store)


def _compared(both: _Both, query: Query, runs: int) -> Measurement:
    ours, theirs, pairs = both.timed(query, runs)
    count, what = (query.sources, "sources") if query.sources else (query.targets, "targets")
    case = f"{query.text}, {f'{count:,} {what}' if count else 'all'}"
    facts = {"ms": 1_000 * ours, "pairs": float(pairs)}
    return Measurement("paths", case, theirs / ours, "Oxigraph", {"pairs": pairs / ours}, facts)


# --- a bare loop


@kernel
def _bare(
    first: Pointers, second: Pointers, targets: Nodes, sources: Nodes, seen: Nodes, queue: Nodes, out: Nodes
) -> int:
    """``(first|second)+`` from each source, with nothing but the arrays: the nodes reached, in a row."""
    count = 0
    for i in range(len(sources)):
        queue[0] = sources[i]
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for e in range(first[node], first[node + 1]):
                target = targets[e]
                if seen[target] != i + 1:
                    seen[target] = i + 1
                    out[count] = target
                    count += 1
                    queue[tail] = target
                    tail += 1
            for e in range(second[node], second[node + 1]):
                target = targets[e]
                if seen[target] != i + 1:
                    seen[target] = i + 1
                    out[count] = target
                    count += 1
                    queue[tail] = target
                    tail += 1
    return count


def _against_bare(both: _Both, runs: int) -> Measurement:
    query = Query("(:a|:b)+", sources=200)
    graph, relations = both.graph, both.graph.relations
    first, second = (relations.single(NamedNode(f"urn:{letter}"), inverse=False) for letter in "ab")
    ends = both.ends(query)
    assert ends is not None
    sources = ends.astype(np.int32)

    def bare() -> int:
        seen, queue = np.zeros(graph.nodes, dtype=np.int32), np.empty(graph.nodes + 1, dtype=np.int32)
        out = np.empty(len(sources) * graph.nodes, dtype=np.int32)
        pointers = relations.pointers
        return _bare(pointers[first], pointers[second], relations.targets, sources, seen, queue, out)

    check("bare", bare(), both.ours(query, ends))
    ours, loop = _seconds(runs, lambda: both.ours(query, ends)), _seconds(runs, bare)
    return Measurement("paths", f"{query.text}, 200 sources", loop / ours, "a bare CSR loop")


# --- gMark


def _gmark(scenario: str, runs: int, every: int) -> Iterator[Measurement]:
    folder = SHARED / "gmark"
    if not folder.exists():
        return
    both = _both(gmark.triples(folder, scenario)[::every])
    texts = gmark.expressions(folder, scenario)[:: 1 if every == 1 else 10]
    times = [both.timed(Query(text, sources=100), runs) for text in texts]
    ratios = sorted(theirs / ours for ours, theirs, _ in times)
    ours, theirs, pairs = map(sum, zip(*times, strict=True))
    facts = {"least": ratios[0], "median": ratios[len(ratios) // 2], "most": ratios[-1]}
    case = f"gMark {scenario}, {len(texts)} queries, 100 sources each"
    yield Measurement("paths", case, theirs / ours, "Oxigraph", {"pairs": pairs / ours}, facts)


# --- paths


def _first_paths(count: int) -> Measurement:
    """How long the first paths of 10**15 take."""
    rows = [(f"urn:{i}", "urn:p", f"urn:{j}") for i in range(4) for j in range(4)]
    graph = load(rows, gmark.PREFIXES)

    def first() -> int:
        return sum(1 for _ in islice(graph.paths(":p{25}", sources=":0"), count))

    check("paths", first(), count)
    took = _seconds(3, first)
    return Measurement(
        "paths", "the first of 10^15 paths", None, "", {"paths": count / took}, {"ms": 1_000 * took}
    )


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Fixed lengths, closures, bounds; either end given, or none; gMark; enumeration."""
    nodes, edges, runs = (2_000, 20_000, 1) if quick else (100_000, 1_000_000, 3)
    both = _both(triples(nodes, edges))
    for query in QUERIES:
        yield _compared(both, query, runs)
    yield _against_bare(both, runs)
    for scenario in ("test",) if quick else ("test", "social"):
        yield from _gmark(scenario, runs, 20 if quick else 1)
    yield _first_paths(1_000)

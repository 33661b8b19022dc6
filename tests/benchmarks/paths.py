"""Path queries beside Oxigraph's property paths and a bare loop over CSR arrays; some of gMark's queries.

How the two are compared is said in ``oxigraph``, what gMark's queries are in ``gmark_paths``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from spaseq._jit import kernel
from spaseq.paths import load
from tests.benchmarks.gmark_paths import some
from tests.benchmarks.measure import Measurement, check
from tests.benchmarks.oxigraph import Both, Query, both, seconds
from tests.paths import gmark
from tests.paths.naive import Triple

Nodes = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]

PREDICATES = "abcdefghij"

#: Beside them there is ``z``, one edge for so many nodes.
RARE = 500

CLOSURE = "(:a|:b)+"

QUERIES = (
    Query(":a/:b/:c"),
    Query(":a/^:b"),
    Query("(:a|:b)/(:c|:d)"),
    Query(":a/:z/:b"),
    Query(":a{1,3}/:z/:b{1,3}"),
    Query(":a/:b/:c", sources=1_000),
    Query(":a{1,3}", sources=1_000),
    Query("!(:a|:b)/:c", sources=1_000),
    Query(":a/:b/:c", targets=1_000),
    Query(":a/:b*/:c", targets=1_000),
    Query(":a+", sources=1_000),
    Query(":a/(:b|:c)*/:d", sources=500, share=4),
    Query(CLOSURE, sources=500, share=2),
    Query(CLOSURE, targets=500, share=2),
)


def triples(nodes: int, edges: int) -> list[Triple]:
    """A random graph: every predicate but ``z`` leads to ``edges / nodes / 10`` nodes from each."""
    rng = np.random.default_rng(1)
    terms = [NamedNode(f"urn:{i}") for i in range(nodes)]
    labels = [NamedNode(f"urn:{letter}") for letter in PREDICATES]
    columns = (rng.integers(0, size, edges).tolist() for size in (nodes, len(labels), nodes))
    rows = [(terms[s], labels[p], terms[o]) for s, p, o in zip(*columns, strict=True)]
    rare = rng.integers(0, nodes, (nodes // RARE, 2)).tolist()
    return rows + [(terms[s], NamedNode("urn:z"), terms[o]) for s, o in rare]


def _compared(graphs: Both, query: Query) -> Measurement:
    times = graphs.timed(query)
    number, what = (query.sources, "sources") if query.sources else (query.targets, "targets")
    case = f"{query.text}, {f'{number:,} {what}' if number else 'all'} of {graphs.graph.nodes:,} nodes"
    facts = {"as arrays": times.theirs / times.arrays, "ms": 1_000 * times.ours, "pairs": float(times.pairs)}
    return Measurement("paths", case, times.ratio, "Oxigraph", {"pairs": times.pairs / times.ours}, facts)


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


def _against_bare(graphs: Both) -> Measurement:
    query = Query(CLOSURE, sources=200)
    graph, relations = graphs.graph, graphs.graph.snapshot.relations
    first, second = (relations.single(NamedNode(f"urn:{letter}"), inverse=False) for letter in "ab")
    ends = graphs.ends(query)
    sources = graph.snapshot.numbers(ends)[0].astype(np.int32)

    def bare() -> int:
        seen, queue = np.zeros(graph.nodes, dtype=np.int32), np.empty(graph.nodes + 1, dtype=np.int32)
        out = np.empty(len(sources) * graph.nodes, dtype=np.int32)
        pointers = relations.pointers
        return _bare(pointers[first], pointers[second], relations.targets, sources, seen, queue, out)

    bare()  # once, to compile it
    ours, found = seconds(lambda: graphs.found(query, ends))
    loop, answers = seconds(bare)
    check("bare", answers, len(found))
    return Measurement("paths", f"{query.text}, 200 sources, as arrays", loop / ours, "a bare CSR loop")


# --- paths


def _first_paths(number: int) -> Measurement:
    """How long the first paths of 10**15 take."""
    rows = [(f"urn:{i}", "urn:p", f"urn:{j}") for i in range(4) for j in range(4)]
    graph = load(rows, gmark.PREFIXES)

    def first() -> int:
        return sum(1 for _ in islice(graph.paths(":p{25}", sources=":0"), number))

    took, answers = seconds(first)
    check("paths", answers, number)
    return Measurement(
        "paths", "the first of 10^15 paths", None, "", {"paths": number / took}, {"ms": 1_000 * took}
    )


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Fixed lengths, closures, bounds; either end given, or none; gMark; enumeration."""
    sizes = (2_000,) if quick else (1_000, 10_000, 100_000)
    for nodes in sizes:
        graphs = both(triples(nodes, 10 * nodes))
        if nodes == sizes[-1]:
            for query in QUERIES:
                yield _compared(graphs, query)
            yield _against_bare(graphs)
        else:
            yield _compared(graphs, Query(CLOSURE, sources=500, share=4))
    yield from some(quick)
    yield _first_paths(1_000)

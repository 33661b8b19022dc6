"""Path queries beside Oxigraph's property paths and a bare loop over CSR arrays; gMark's queries.

What is timed, on either side: from a text and ends given as terms to two terms, Python objects, of every
pair, by a loop over all the answers. Oxigraph reads its query each time: it keeps none. We keep the automaton
of a text that was seen before. So where answers are few, "answering alone" leaves reading out: from
Oxigraph's time it takes what the same query costs on an empty store; and "a text never seen before" has us
read, compile and bind it each time. "As arrays" is our side without terms: numbers of nodes, as one goes on
with in NumPy.

Where Oxigraph would take hours from all the sources, it gets a few of them, spread evenly, and is taken to
need as long for each of the others. gMark's queries are asked for all their pairs, as published; those that
repeat (``{,3}``), some of which Oxigraph does not finish, from 100 nodes that an edge they can begin with
leaves. Times are those of the processor, so that what else the machine does counts less; the median of some
runs, short calls in a row. No garbage is collected meanwhile.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode, QuerySolutions, Store

from spaseq._jit import kernel
from spaseq.paths import KnowledgeGraph, Pairs, load
from spaseq.terms import Term
from tests.benchmarks.measure import Measurement, check
from tests.conftest import SHARED
from tests.paths import gmark
from tests.paths.naive import Triple

Nodes = npt.NDArray[np.int32]
Pointers = npt.NDArray[np.int64]

PREDICATES = "abcdefghij"

#: Beside them there is ``z``, one edge for so many nodes.
RARE = 500

CLOSURE = "(:a|:b)+"

#: Calls are made in a row until they have taken a fifth of so many seconds, five times; once if they take
#: fifty times as long.
LONG = 0.02

_Answer = TypeVar("_Answer")


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
    Query(":a/:z/:b"),
    Query(":a{1,3}/:z/:b{1,3}"),
    Query(":a/:b/:c", sources=1_000),
    Query(":a{1,3}", sources=1_000),
    Query("!(:a|:b)/:c", sources=1_000),
    Query(":a/:b/:c", targets=1_000),
    Query(":a/:b*/:c", targets=1_000),
    Query(":a+", sources=1_000),
    Query(":a/(:b|:c)*/:d", sources=1_000, share=8),
    Query(CLOSURE, sources=1_000, share=2),
    Query(CLOSURE, targets=1_000, share=2),
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


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds of a call: ours, and without terms; Oxigraph's, and on an empty store.

    And how many pairs it finds.
    """

    ours: float
    arrays: float
    theirs: float
    reading: float
    pairs: int

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def alone(self) -> float:
        return (self.theirs - self.reading) / self.ours


@dataclass(frozen=True, slots=True)
class _Both:
    """One graph in both systems."""

    graph: KnowledgeGraph
    store: Store
    empty: Store = field(default_factory=Store)

    def ours(self, query: Query, ends: list[Term] | None) -> int:
        """How many pairs we find, all of them looked at."""
        pairs = 0
        for _source, _target in self.found(query, ends):
            pairs += 1
        return pairs

    def found(self, query: Query, ends: list[Term] | None) -> Pairs:
        """What we find."""
        return self.graph.pairs(query.text, *((ends, None) if query.sources else (None, ends)))

    def theirs(self, sparql: str, store: Store) -> int:
        """How many pairs Oxigraph finds, all of them looked at."""
        found = store.query(sparql)
        assert isinstance(found, QuerySolutions)
        pairs = 0
        for row in found:
            _source, _target = row[0], row[1]
            pairs += 1
        return pairs

    def sparql(self, query: Query, ends: list[Term] | None) -> str:
        """The query that Oxigraph gets."""
        path = gmark.as_sparql(self.graph.compile(query.text).expression.root)
        values = ""
        if ends is not None:
            values = f"VALUES {'?s' if query.sources else '?t'} {{ {' '.join(map(str, ends))} }}"
        return f"SELECT DISTINCT ?s ?t {{ {values} ?s {path} ?t }}"

    def ends(self, query: Query) -> list[Term] | None:
        """The sources or targets, spread evenly over those with an edge a path begins with; None: all."""
        if not (number := query.sources or query.targets):
            return None
        product = self.graph.product(query.text, backwards=bool(query.targets))
        leaves = np.zeros(self.graph.nodes, dtype=np.bool_)
        for row in product.starting.tolist():
            leaves |= product.relations.sources(row)
        nodes = np.flatnonzero(leaves)
        return [self.graph.ox_term(node) for node in nodes[:: max(1, len(nodes) // number)][:number].tolist()]

    def timed(self, query: Query) -> _Times:
        """What a query takes; the answers are as many on both sides."""
        ends = self.ends(query)
        asked, scale = ends, 1.0
        if query.share and ends is not None:
            asked = ends[:: max(1, len(ends) // query.share)][: query.share]
            scale = len(ends) / len(asked)
        sparql = self.sparql(query, asked)
        expected = self.ours(query, asked)
        self.found(query, ends)  # once, to compile what is to be compiled
        theirs, answers = _seconds(lambda: self.theirs(sparql, self.store))
        check(query.text, answers, expected)
        ours, pairs = _seconds(lambda: self.ours(query, ends))
        arrays, _ = _seconds(lambda: self.found(query, ends))
        reading, _ = _seconds(lambda: self.theirs(sparql, self.empty))
        return _Times(ours, arrays, theirs * scale, reading * scale, pairs)


def _seconds(work: Callable[[], _Answer]) -> tuple[float, _Answer]:
    """The seconds of a processor that a call takes, since all that is compared here uses one; its answer."""
    gc.collect()
    gc.disable()
    try:
        once, answer = _row(work, 1)
        if once > 50 * LONG:
            return once, answer
        number = int(LONG / 5 / once) + 1
        return statistics.median(_row(work, number)[0] for _ in range(5)), answer
    finally:
        gc.enable()


def _row(work: Callable[[], _Answer], number: int) -> tuple[float, _Answer]:
    """The seconds of a call, of so many in a row; the answer."""
    begin = time.process_time()
    for _ in range(number):
        answer = work()
    return (time.process_time() - begin) / number, answer


def _both(rows: list[Triple]) -> _Both:
    return _Both(load(rows, gmark.PREFIXES), gmark.store(rows))


def _compared(both: _Both, query: Query) -> Measurement:
    times = both.timed(query)
    number, what = (query.sources, "sources") if query.sources else (query.targets, "targets")
    case = f"{query.text}, {f'{number:,} {what}' if number else 'all'} of {both.graph.nodes:,} nodes"
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


def _against_bare(both: _Both) -> Measurement:
    query = Query(CLOSURE, sources=200)
    graph, relations = both.graph, both.graph.relations
    first, second = (relations.single(NamedNode(f"urn:{letter}"), inverse=False) for letter in "ab")
    ends = both.ends(query)
    sources = graph.numbers(ends)[0].astype(np.int32)

    def bare() -> int:
        seen, queue = np.zeros(graph.nodes, dtype=np.int32), np.empty(graph.nodes + 1, dtype=np.int32)
        out = np.empty(len(sources) * graph.nodes, dtype=np.int32)
        pointers = relations.pointers
        return _bare(pointers[first], pointers[second], relations.targets, sources, seen, queue, out)

    bare()  # once, to compile it
    ours, found = _seconds(lambda: both.found(query, ends))
    loop, answers = _seconds(bare)
    check("bare", answers, len(found))
    return Measurement("paths", f"{query.text}, 200 sources, as arrays", loop / ours, "a bare CSR loop")


# --- gMark


def _gmark(scenario: str, quick: bool) -> Iterator[Measurement]:
    folder = SHARED / "gmark"
    if not folder.exists():
        return
    both = _both(gmark.triples(folder, scenario)[:: 20 if quick else 1])
    texts = gmark.expressions(folder, scenario)[:: 10 if quick else 1]
    repeating = [text for text in texts if "{" in text]
    for what, queries in (
        ("all pairs", [Query(text) for text in texts if text not in repeating]),
        ("repeating, 100 sources", [Query(text, sources=100) for text in repeating]),
        ("1 source", [Query(text, sources=1) for text in texts]),
    ):
        if queries:
            times = [both.timed(query) for query in queries]
            yield _summary(f"gMark {scenario}, {len(times)} queries, {what}", times)
    yield _never_seen(both, scenario, texts)


def _summary(case: str, times: list[_Times]) -> Measurement:
    ratios, alone = sorted(one.ratio for one in times), sorted(one.alone for one in times)
    facts = {
        "least": ratios[0],
        "median": statistics.median(ratios),
        "most": ratios[-1],
        "below 10": float(sum(ratio < 10 for ratio in ratios)),
        "answering alone: least": alone[0],
        "median of it": statistics.median(alone),
    }
    ours, theirs = sum(one.ours for one in times), sum(one.theirs for one in times)
    return Measurement(
        "paths", case, theirs / ours, "Oxigraph", {"pairs": sum(one.pairs for one in times) / ours}, facts
    )


def _never_seen(both: _Both, scenario: str, texts: list[str]) -> Measurement:
    """From texts that were never seen before, each from one source."""
    ours = theirs = 0.0
    number = count()
    for query in (Query(text, sources=1) for text in texts):
        ends = both.ends(query)
        sparql = both.sparql(query, ends)

        def anew(text: str = query.text, ends: list[Term] | None = ends) -> int:
            return both.ours(Query(f"{text} # {next(number)}", sources=1), ends)

        check(query.text, anew(), both.ours(query, ends))
        theirs += _seconds(partial(both.theirs, sparql, both.store))[0]
        ours += _seconds(anew)[0]
    case = f"gMark {scenario}, {len(texts)} texts never seen before, 1 source"
    return Measurement("paths", case, theirs / ours, "Oxigraph", {}, {"ms": 1_000 * ours / len(texts)})


# --- paths


def _first_paths(number: int) -> Measurement:
    """How long the first paths of 10**15 take."""
    rows = [(f"urn:{i}", "urn:p", f"urn:{j}") for i in range(4) for j in range(4)]
    graph = load(rows, gmark.PREFIXES)

    def first() -> int:
        return sum(1 for _ in islice(graph.paths(":p{25}", sources=":0"), number))

    took, answers = _seconds(first)
    check("paths", answers, number)
    return Measurement(
        "paths", "the first of 10^15 paths", None, "", {"paths": number / took}, {"ms": 1_000 * took}
    )


def benchmark(quick: bool) -> Iterator[Measurement]:
    """Fixed lengths, closures, bounds; either end given, or none; gMark; enumeration."""
    sizes = (2_000,) if quick else (1_000, 10_000, 100_000)
    for nodes in sizes:
        both = _both(triples(nodes, 10 * nodes))
        if nodes == sizes[-1]:
            for query in QUERIES:
                yield _compared(both, query)
            yield _against_bare(both)
        else:
            yield _compared(both, Query(CLOSURE, sources=1_000, share=8))
    for scenario in ("test",) if quick else ("test", "social"):
        yield from _gmark(scenario, quick)
    yield _first_paths(1_000)

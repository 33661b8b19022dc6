"""A graph in spaseq and in Oxigraph, and what a path query takes of either.

What is timed, on either side: from a text and ends given as terms to two terms, Python objects, of every
pair, by a loop over all the answers. Oxigraph reads its query each time: it keeps none. We keep the automaton
of a text that was seen before. So where answers are few, "answering alone" leaves reading out: from
Oxigraph's time it takes what the same query costs on an empty store. "As arrays" is our side without terms:
numbers of nodes, as one goes on with in NumPy.

Where Oxigraph would take hours from all the sources, it gets a few of them, spread evenly, and is taken to
need as long for each of the others. Times are those of the processor, so that what else the machine does
counts less; of short calls in a row the median of five rows. No garbage is collected meanwhile.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from pyoxigraph import QuerySolutions, Store

from spaseq.paths import KnowledgeGraph, Pairs, load
from spaseq.terms.dictionary import Term
from tests.benchmarks.measure import check
from tests.paths import gmark
from tests.paths.naive import Triple

#: A call that takes longer, in seconds, is made once.
_LONG: Final = 0.1

#: Shorter ones are made in a row until that many seconds have gone.
_ROW: Final = 0.004

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, how many sources or targets are given (0: none), and how many of them Oxigraph gets."""

    text: str
    sources: int = 0
    targets: int = 0
    share: int = 0


@dataclass(frozen=True, slots=True)
class Times:
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
class Both:
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
        path = gmark.as_sparql(self.graph.snapshot.compile(query.text).expression.root)
        values = ""
        if ends is not None:
            values = f"VALUES {'?s' if query.sources else '?t'} {{ {' '.join(map(str, ends))} }}"
        return f"SELECT DISTINCT ?s ?t {{ {values} ?s {path} ?t }}"

    def ends(self, query: Query) -> list[Term] | None:
        """The sources or targets, spread evenly over those with an edge a path begins with; None: all."""
        if not (number := query.sources or query.targets):
            return None
        product = self.graph.snapshot.product(query.text, backwards=bool(query.targets))
        leaves = np.zeros(self.graph.nodes, dtype=np.bool_)
        for row in product.starting.tolist():
            leaves |= product.relations.sources(row)
        nodes = np.flatnonzero(leaves)
        return [self.graph.ox_term(node) for node in nodes[:: max(1, len(nodes) // number)][:number].tolist()]

    def timed(self, query: Query) -> Times:
        """What a query takes; the answers are as many on both sides.

        We come first: the next to allocate much memory pays for what Oxigraph has freed in small pieces.
        """
        ends = self.ends(query)
        asked, scale = ends, 1.0
        if query.share and ends is not None:
            asked = ends[:: max(1, len(ends) // query.share)][: query.share]
            scale = len(ends) / len(asked)
        sparql = self.sparql(query, asked)
        expected = self.ours(query, asked)
        self.found(query, ends)  # once, to compile what is to be compiled
        ours, pairs = seconds(lambda: self.ours(query, ends))
        arrays, _ = seconds(lambda: self.found(query, ends))
        theirs, answers = seconds(lambda: self.theirs(sparql, self.store))
        check(query.text, answers, expected)
        reading, _ = seconds(lambda: self.theirs(sparql, self.empty))
        return Times(ours, arrays, theirs * scale, reading * scale, pairs)


def seconds(work: Callable[[], _Answer]) -> tuple[float, _Answer]:
    """The seconds of a processor that a call takes, since all that is compared here uses one; its answer."""
    gc.disable()
    try:
        once, answer = _row(work, 1)
        if once > _LONG:
            return once, answer
        number = int(_ROW / once) + 1
        return statistics.median(_row(work, number)[0] for _ in range(5)), answer
    finally:
        gc.enable()


def _row(work: Callable[[], _Answer], number: int) -> tuple[float, _Answer]:
    """The seconds of a call, of so many in a row; the answer."""
    begin = time.process_time()
    for _ in range(number):
        answer = work()
    return (time.process_time() - begin) / number, answer


def both(rows: list[Triple]) -> Both:
    """A graph in both systems, with gMark's prefixes."""
    gc.collect()
    return Both(load(rows, gmark.PREFIXES), gmark.store(rows))

"""Standing path queries, which ``KnowledgeGraph.watch`` returns."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any, Final

import numpy as np

from spaseq.errors import LimitError
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.graph.updates.merging import Edge
from spaseq.paths.graph.updates.reached import ALWAYS, NEVER, Pair, PairQuery, Reached
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.transitions import automaton_of
from spaseq.paths.search.running import Memory
from spaseq.terms.interop import RdflibTerm, to_rdflib

#: About how many bytes a place of a partial match takes with its pair, and an edge that it may take; counted
#: against ``limits.query_bytes``.
_PLACE: Final = 150
_EDGE: Final = 250

#: At most this many edges wait to be searched; more are searched before pairs are read.
_MOST_TOLD: Final = 1 << 16

#: Places outside the window are removed when twice this many are kept, and then each time they double.
_FEW: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Told:
    """Edges that were added (``present``) or removed, with their time."""

    edges: Sequence[Edge]
    present: bool
    time: float


class Watch:
    """A standing path query, made by ``KnowledgeGraph.watch``: the pairs that paths join as triples change.

    ``new`` returns the pairs newly joined since its last call; a pair is reported each time that it becomes
    joined. ``pairs`` returns all pairs joined now. Both first search the new edges, one by one; an edge costs
    the partial matches that it extends. After a removed triple, and after one that lets a node pass a test,
    all pairs are found again.

    Partial matches are kept by source, node and state: without ``sources``, at most the square of the number
    of nodes for each state. If they take more than ``limits.query_bytes``, or more than
    ``limits.pending_matches`` pairs wait to be read, the watch ends. Reading it then raises a LimitError; the
    graph is not affected.

    >>> import spaseq.paths
    >>> g = spaseq.paths.load([("urn:a", "urn:pays", "urn:b")])
    >>> watch = g.watch("<urn:pays>+", sources=["urn:a"], window=60)
    >>> g.add([("urn:b", "urn:pays", "urn:c")], time=0)
    >>> g.add([("urn:c", "urn:pays", "urn:a")], time=59)
    >>> [str(target) for _, target in watch.new()]
    ['urn:c', 'urn:a']
    >>> g.add([("urn:c", "urn:pays", "urn:d")], time=60)
    >>> watch.new(), [str(target) for _, target in watch.pairs()]
    ([], ['urn:b'])
    """

    def __init__(
        self,
        graph: Snapshot,
        expression: str | Expression,
        sources: Any,
        targets: Any,
        window: int | None,
        lock: threading.RLock,
    ) -> None:
        if window is not None and index(window) <= 0:
            raise ValueError(f"window={window}: it is a length of time, at least 1")
        self._lock = lock
        self._window = window
        self._dictionary = graph.contents.dictionary
        compiled = graph.compile(expression)
        found = automaton_of(compiled)
        intern = self._dictionary.intern
        terms = _terms_of(found)
        self._asked = PairQuery(
            found,
            {term: intern(term) for term in terms},
            self._dictionary.term,
            _ends(graph, sources),
            _ends(graph, targets),
        )
        self._limits, self._expression = graph.limits, compiled.expression
        self._times: dict[Edge, float] = {}
        self._told: deque[_Told] = deque()
        self._waiting = 0
        self._error: LimitError | None = None
        self._time: float = NEVER
        self._last: int | None = None
        self._new: list[Pair] = []
        self._known: dict[Pair, float] = {}
        self._is_whole = True
        self._memory = Memory(self._limits, self._expression)
        self._begun = False
        self._reached = self._nothing()
        for edge in _edges(graph):
            if self._reached.wants(edge):
                self._times[edge] = ALWAYS
        self._find_anew()
        self._begun = True

    # --- reading

    def new(self) -> list[tuple[RdflibTerm, RdflibTerm]]:
        """Return the pairs newly joined since the last call, in order, as rdflib terms."""
        with self._lock:
            self._catch_up()
            found, self._new = self._new, []
        return self._terms(found)

    def pairs(self) -> list[tuple[RdflibTerm, RdflibTerm]]:
        """Return all pairs that are joined now, in the order in which they were first joined."""
        with self._lock:
            self._catch_up()
            found = [pair for pair, time in self._reached.pairs.items() if self._counts(time)]
        return self._terms(found)

    def _terms(self, pairs: Iterable[Pair]) -> list[tuple[RdflibTerm, RdflibTerm]]:
        term = self._dictionary.term
        return [(to_rdflib(term(source)), to_rdflib(term(target))) for source, target in pairs]

    # --- changes of the graph

    def check(self, time: int | None) -> None:
        """Raise ValueError if ``time`` is before that of an earlier edge, and there is a window."""
        if self._window is not None and time is not None and self._last is not None and time < self._last:
            raise ValueError(f"time={time}: what is watched through a window is at {self._last} already")

    def tell(self, edges: Sequence[Edge], present: bool, time: int | None) -> None:
        """Note edges that were added or removed. They are searched when pairs are read."""
        if time is not None:
            self._last = time
        if self._error is not None:
            return
        self._told.append(_Told(edges, present, ALWAYS if time is None or self._window is None else time))
        self._waiting += len(edges)
        if self._waiting > _MOST_TOLD:
            with suppress(LimitError):  # raised when pairs are read
                self._catch_up()

    # --- keeping up

    def _counts(self, time: float) -> bool:
        """Return whether an edge or path is in the window now; a path's time is that of its oldest edge."""
        return time > (NEVER if self._window is None else self._time - self._window)

    def _catch_up(self) -> None:
        """Search the noted edges. If an exception interrupted this before, find all pairs again first."""
        if self._error is not None:
            raise self._error
        try:
            self._take_all()
        except LimitError as error:
            self._error = error
            self._told.clear()
            self._times.clear()
            self._reached = self._nothing()
            raise

    def _take_all(self) -> None:
        if not self._is_whole:
            self._find_anew()
        while self._told:
            self._is_whole = False
            self._take_in(self._told[0])
            self._told.popleft()
            self._is_whole = True
        self._waiting = 0

    def _take_in(self, told: _Told) -> None:
        if told.time != ALWAYS:
            self._time = max(self._time, told.time)
        anew = False
        for edge in filter(self._reached.wants, told.edges):
            if told.present:
                before = self._times.get(edge)
                if before is None:
                    self._memory.take(_EDGE, "the edges that are watched")
                time = self._times[edge] = max(told.time, NEVER if before is None else before)
                anew = anew or not self._reached.enter(edge, time)
            else:
                anew = self._times.pop(edge, None) is not None or anew
        if anew or (self._window is not None and self._memory.taken > self._most):
            self._find_anew()

    def _find_anew(self) -> None:
        """Find all pairs again from the edges in the window. Pairs that did not count before are new."""
        before = self._reached.pairs
        self._times = {edge: time for edge, time in self._times.items() if self._counts(time)}
        self._known |= {pair: time for pair, time in before.items() if self._counts(time)}
        self._reached = self._nothing()
        self._memory.take(_EDGE * len(self._times), "the edges that are watched")
        self._reached.enter_all(self._times.items())
        self._known = {}
        self._most = 2 * max(_FEW * _PLACE, self._memory.taken)
        self._is_whole = True

    def _nothing(self) -> Reached:
        self._most = 2 * _FEW * _PLACE
        self._memory = Memory(self._limits, self._expression)
        return Reached(self._asked, self._joined, self._taken)

    def _joined(self, pair: Pair, time: float, before: float) -> None:
        known = max(before, self._known.get(pair, NEVER))
        if self._begun and self._counts(time) and not self._counts(known):
            self._new.append(pair)
            most = self._limits.pending_matches
            if most is not None and len(self._new) > most:
                asked = f"{len(self._new):,} pairs that nobody asked for"
                raise self._limits.error("pending_matches", asked)

    def _taken(self, places: int) -> None:
        if places:
            self._memory.take(_PLACE * places, "the runs that are watched")


def _terms_of(found: Any) -> set[Any]:
    """Return the terms in the steps and tests of an automaton."""
    tests = {
        test
        for transition in found.transitions
        for test in transition.relation.before | transition.relation.after
    }
    conditions = [c for test in tests.union(*found.empty) for c in test.conditions]
    return {
        *(predicate for transition in found.transitions for predicate in transition.relation.step.predicates),
        *(c.predicate for c in conditions),
        *(c.value for c in conditions if c.value is not None),
    }


def _ends(graph: Snapshot, values: Any) -> frozenset[int] | None:
    """Return the ids of the given ends. Terms that are not nodes yet also get ids."""
    if values is None:
        return None
    nodes, strangers = graph.numbers(values)
    ids = graph.contents.node_ids[nodes].tolist()
    return frozenset([*ids, *map(graph.contents.dictionary.intern, strangers)])


def _edges(graph: Snapshot) -> Iterator[Edge]:
    contents, edges = graph.contents, graph.contents.edges
    columns = (contents.node_ids[edges.s], contents.predicate_ids[edges.p], contents.node_ids[edges.o])
    for rows in np.array_split(np.stack(columns, axis=1), max(1, len(edges) // 100_000)):
        yield from map(tuple, rows.tolist())

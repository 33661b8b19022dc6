"""The knowledge graph, the public class for path queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import index
from os import PathLike
from typing import Any, Final, cast
from weakref import WeakSet

import numpy as np
from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple, serialize

from spaseq.errors import warn
from spaseq.limits import Limits
from spaseq.paths.graph.doubts import doubts
from spaseq.paths.graph.linking.candidates import Candidate, Linker, label_predicates, linker_of, topics
from spaseq.paths.graph.linking.changes import carry_names
from spaseq.paths.graph.loading import triples_of
from spaseq.paths.graph.names import Names, names_of
from spaseq.paths.graph.saved.contents import Contents
from spaseq.paths.graph.saved.graph import save
from spaseq.paths.graph.snapshot import Snapshot, Terms
from spaseq.paths.graph.updates.merging import Edge
from spaseq.paths.graph.updates.watching import Watch
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.modes import read_mode
from spaseq.paths.retrieval.budget import Budget, budget_given
from spaseq.paths.retrieval.neighbourhood import Neighbourhood, neighbourhood
from spaseq.paths.retrieval.trie import RelationTrie
from spaseq.paths.search._kernel import Nodes
from spaseq.paths.search.enumeration.paths import Paths, find_paths
from spaseq.paths.search.pairs import Pairs, find_batches, find_pairs

#: At most this many changes wait to be merged.
_MOST_WAITING: Final = 1 << 20


class KnowledgeGraph(Terms):
    """An RDF graph for path queries; make one with ``spaseq.paths.load``.

    Its nodes are all subjects and objects, numbered from 0; its predicates have numbers of their own.
    Terms may be given as rdflib's or pyoxigraph's terms, text as in an expression (``":Alice"``,
    ``"<http://…>"``, ``'"a literal"@en'``, ``"1999"``), absolute IRIs, or numbers of nodes. Text may use
    ``prefixes``, which do not change.

    Triples can be added and removed; threads may query and change the graph at the same time. A query sees
    the graph as it is when the query begins. Nodes keep their numbers until a node loses its last triple;
    then all may get new ones. The terms of lost nodes stay in memory (some 150 bytes each).

    >>> import spaseq.paths
    >>> g = spaseq.paths.load([("urn:a", "urn:knows", "urn:b"), ("urn:b", "urn:knows", "urn:c")])
    >>> [str(target) for _, target in g.pairs("<urn:knows>+", sources=["urn:a"])]
    ['urn:b', 'urn:c']
    >>> g.add([("urn:c", "urn:knows", "urn:d")])
    >>> [str(target) for _, target in g.pairs("<urn:knows>+", sources=["urn:a"])]
    ['urn:b', 'urn:c', 'urn:d']
    """

    def __init__(self, graph: Snapshot) -> None:
        self._snapshot = graph
        self._lock = threading.RLock()
        self._waiting: dict[Edge, bool] = {}
        self._sources: dict[Edge, tuple[str, ...]] = {}  # of the waiting edges
        self._watches: WeakSet[Watch] = WeakSet()

    @property
    def snapshot(self) -> Snapshot:
        """Return the graph as it is now, in the form that searches read.

        Changes since the last query are merged here, in a pass over all edges. For more changes than 2,000
        and than a fiftieth of the edges, all edges are sorted again.
        """
        if self._waiting:
            with self._lock:
                if self._waiting:
                    before, changes = self._snapshot, self._waiting
                    after = before.changed(changes, self._sources)
                    carry_names(before, after, changes)
                    self._snapshot, self._waiting, self._sources = after, {}, {}
        return self._snapshot

    @property
    def now(self) -> KnowledgeGraph:
        """Return a separate graph, as this one is now, for several queries that must see the same triples."""
        return KnowledgeGraph(self.snapshot)

    # --- changes

    def add(
        self,
        triples: Iterable[tuple[Any, Any, Any]] | Any,
        time: int | None = None,
        *,
        source: str | Iterable[str] = (),
    ) -> None:
        """Add triples: an iterable of them, an rdflib graph, or a table of three columns, as for ``load``.

        If one triple is invalid, none is added. ``time`` is for ``watch`` with a window: times must not go
        back, and a triple without a time always counts. ``source`` names where the triples come from
        (``"doc7#p3"``, or several sources), for retrieved paths to cite; a triple also keeps the sources that
        it had. Adding costs a few µs per triple; the next query merges them.

        Raises KnowledgeError with the number of the invalid triple, ValueError for a time that goes back, and
        TypeError for a time that is not a whole number.
        """
        self._change(triples, True, time, (source,) if isinstance(source, str) else tuple(source))

    def remove(self, triples: Iterable[tuple[Any, Any, Any]] | Any) -> None:
        """Remove triples, given as to ``add``. Triples that the graph does not have are ignored."""
        self._change(triples, False, None)

    def _change(self, triples: Any, present: bool, time: int | None, source: tuple[str, ...] = ()) -> None:
        time = None if time is None else index(time)
        given = list(triples_of(triples))
        with self._lock:
            for watch in self._watches:
                watch.check(time)
            dictionary = self._snapshot.contents.dictionary
            number = dictionary.intern if present else dictionary.find
            found = [(number(s), number(p), number(o)) for s, p, o in given]
            edges: dict[Edge, bool] = dict.fromkeys(found, present)
            if not present and self._sources:
                self._sources = {edge: some for edge, some in self._sources.items() if edge not in edges}
            elif source:
                self._sources.update({edge: (*self._sources.get(edge, ()), *source) for edge in edges})
            try:
                self._waiting.update(edges)
            finally:  # watches see all changes of the graph
                for watch in self._watches:
                    watch.tell([*edges], present, time)
            if len(self._waiting) > _MOST_WAITING:
                _ = self.snapshot

    def watch(
        self,
        expression: str | Expression,
        sources: Any = None,
        targets: Any = None,
        window: int | None = None,
    ) -> Watch:
        """Return a standing path query, which reports the pairs that paths newly join as triples are added.

        With a ``window``, a triple that was added with a ``time`` counts until ``time + window``, exclusive,
        in the same units. Triples without a time, and the triples that the graph already has, always count.
        Without a window, pairs end only when triples are removed. See
        ``spaseq.paths.graph.updates.watching.Watch``.
        """
        with self._lock:
            found = Watch(self.snapshot, expression, sources, targets, window, self._lock)
            self._watches.add(found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return KnowledgeGraph, (self.snapshot,)

    @property
    def limits(self) -> Limits:
        """The limits of a query."""
        return self._snapshot.limits

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of expressions, and of terms given as text."""
        return self._snapshot.prefixes

    @property
    def contents(self) -> Contents:
        """The arrays of the graph as it is now."""
        return self.snapshot.contents

    @property
    def names(self) -> Names:
        """The labels of nodes and predicates, and the predicates by their names."""
        return names_of(self.snapshot)

    @property
    def linker(self) -> Linker:
        """The index of nodes by their names; made when first needed, and saved with the graph."""
        return linker_of(self.snapshot)

    def save(self, file: str | PathLike[str]) -> None:
        """Save to one file, which ``spaseq.paths.open`` maps; see ``spaseq.paths.graph.saved.graph.save``."""
        save(self.snapshot, file)

    def to_turtle(self) -> str:
        """Return all triples as Turtle, with the graph's prefixes."""
        graph = self.snapshot
        term, predicate, edges = graph.ox_term, graph.ox_predicate, zip(*graph.edges(), strict=True)
        subjects = cast("Callable[[int], NamedNode | BlankNode]", term)  # literals are objects only
        triples = (Triple(subjects(int(s)), predicate(int(p)), term(int(o))) for s, p, o in edges)
        written = serialize(triples, format=RdfFormat.TURTLE, prefixes=dict(graph.prefixes))
        return (written or b"").decode()

    def components(self) -> list[Nodes]:
        """Return the nodes of each connected component, directions ignored, as numbers; the largest first."""
        s, _, o = self.snapshot.edges()
        root = np.arange(self.nodes)
        while True:  # each node takes the smallest number around, then that number's own
            before = root.copy()
            np.minimum.at(root, s, root[o])
            np.minimum.at(root, o, root[s])
            root = root[root]
            if (root == before).all():
                break
        order = np.argsort(root, kind="stable").astype(np.int32)
        found = np.split(order, np.flatnonzero(np.diff(root[order])) + 1) if len(order) else []
        return sorted(found, key=lambda nodes: -len(nodes))

    # --- names

    def link(self, name: str, k: int = 10, labels: Any = ()) -> list[Candidate]:
        """Return the nodes that a name may mean, the best first, at most ``k``.

        A name is a label (``rdfs:label``, ``skos:prefLabel``, ``schema:name``, then ``skos:altLabel``,
        ``foaf:name``), the last segment of an IRI, or a short literal. Only letters and digits are compared.
        If no node has the name, the nodes with the most similar names are returned; ``Candidate.by`` says how
        they differ. Among equal scores, the node with more edges comes first. ``labels`` are more predicates
        (or one) with names as values; indexes of the latest few are kept. Raises QueryError for a label
        that no edge has.
        """
        _not_negative("k", k)
        graph = self.snapshot
        return linker_of(graph, label_predicates(graph, labels)).link(graph, name, k)

    def relations_of(
        self,
        topic: Any,
        hops: int = 2,
        k: int = 100,
        examples: int = 3,
        labels: Any = (),
        *,
        returning: bool = True,
    ) -> Neighbourhood:
        """Return the relations that leave a topic (a term, a name, or several), for a planner.

        Paths of one relation come first, then those of two, up to ``hops``. Of each length, the ``k`` paths
        that lead to the most nodes are kept, and only these are extended. Each path has the number of
        distinct nodes that it leads to, and ``examples`` of them, evenly spread. No path turns straight back
        along an edge. With ``returning=False``, no path comes back to the topic (as for ``retrieve``). The
        relations are names for ``retrieve``; each means a single predicate. Predicates of labels
        (``rdfs:label``, …) are left out. ``labels`` are as for ``link``.

        Raises QueryError for a name that no node has, ValueError for numbers out of range, LimitError for
        more memory than a query may take.
        """
        return neighbourhood(self.snapshot, topic, hops, k, examples, labels, returning=returning)

    # --- queries

    def relation_trie(
        self, topic: Any, hops: int = 2, labels: Any = (), *, returning: bool = True
    ) -> RelationTrie:
        """Return the relation paths that leave a topic as a trie, with grammars for constrained decoding.

        Arguments are those of ``relations_of``. The trie is expanded only as far as it is read. Raises
        QueryError for a name that no node has, ValueError for ``hops`` below 1.
        """
        if hops < 1:
            raise ValueError(f"hops={hops}: a number from 1 on is wanted")
        graph = self.snapshot
        return RelationTrie(graph, topics(graph, topic, labels)[0], hops, returning=returning)

    def pairs(
        self, expression: str | Expression, sources: Any = None, targets: Any = None, limit: int | None = None
    ) -> Pairs:
        """Return the distinct pairs of nodes that a path joins; see ``spaseq.paths.search.pairs.find_pairs``.

        Issues a SpaseqWarning for a predicate that no edge has and for an end that is not a node.
        """
        _not_negative("limit", limit)
        graph, sources, targets = self._checked(expression, sources, targets)
        return find_pairs(graph, expression, sources, targets, limit)

    def batches(
        self, expression: str | Expression, sources: Any = None, targets: Any = None
    ) -> Iterator[Pairs]:
        """Yield the pairs in batches as they are found; see ``spaseq.paths.search.pairs.find_batches``."""
        graph, sources, targets = self._checked(expression, sources, targets)
        return find_batches(graph, expression, sources, targets)

    def paths(
        self,
        expression: str | Expression,
        sources: Any = None,
        targets: Any = None,
        mode: str = "WALK",
        shortest: int | None = None,
        max_paths: int | None = None,
        budget: Budget | None = None,
        weights: Mapping[Any, float] | Any = None,
    ) -> Paths:
        """Return the paths; each is found when it is read. See ``find_paths``. Warns as ``pairs`` does.

        ``mode`` is as in GQL:
        ``[ALL | ANY | ANY SHORTEST | ALL SHORTEST | SHORTEST k] [WALK | TRAIL | SIMPLE | ACYCLIC]``.
        It applies to each pair of endpoints. ``shortest=k`` means SHORTEST k.

        With ``weights``, the shortest paths are the cheapest. ``weights`` is a mapping of predicates to
        positive numbers (others cost 1), or an array with the cost of each edge in the order of ``edges()``.
        The ``cost`` of a path is the sum.
        """
        _not_negative("max_paths", max_paths)
        budget_given(budget)
        graph, sources, targets = self._checked(expression, sources, targets)
        return find_paths(
            graph, expression, sources, targets, read_mode(mode, shortest), max_paths, budget, weights
        )

    def _checked(self, expression: str | Expression, sources: Any, targets: Any) -> tuple[Snapshot, Any, Any]:
        """Return the graph as it is now and the ends of a query; issue the warnings of ``doubts``."""
        graph = self.snapshot
        sources, targets = (list(ends) if isinstance(ends, Iterator) else ends for ends in (sources, targets))
        for doubt in doubts(graph, expression, sources, targets):
            warn(doubt)
        return graph, sources, targets

    def check(
        self, expression: str | Expression, sources: Any = None, targets: Any = None
    ) -> tuple[str, ...]:
        """Return the warnings about a query: predicates without edges, ends that are not nodes."""
        return doubts(self.snapshot, expression, sources, targets)


def _not_negative(name: str, number: int | None) -> None:
    if number is not None and number < 0:
        raise ValueError(f"{name}={number}: ask for at least 0, or None for all")

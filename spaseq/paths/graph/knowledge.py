"""The knowledge graph that path queries are asked of."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final
from weakref import WeakSet

from spaseq.limits import Limits
from spaseq.paths.graph.linking.candidates import Linker
from spaseq.paths.graph.loading import triples_of
from spaseq.paths.graph.names import Names
from spaseq.paths.graph.questions import Questions
from spaseq.paths.graph.saved.contents import Contents
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.graph.updates.merging import Edge
from spaseq.paths.graph.updates.watching import Watch
from spaseq.paths.language.expression import Expression

#: So many changes wait at most until they are merged.
_MOST_WAITING: Final = 1 << 20


class KnowledgeGraph(Questions):
    """An RDF graph for path queries; make one with ``spaseq.paths.load``.

    Its nodes are all subjects and objects, numbered from 0; its predicates have numbers of their own.
    Wherever terms are asked for, they are rdflib's or pyoxigraph's terms, text as in an expression
    (``":Alice"``, ``"<http://…>"``, ``'"a literal"@en'``, ``"1999"``), absolute IRIs, or numbers of nodes.
    ``prefixes`` are those of texts, and do not change.

    Triples are added and removed; threads may ask and change it at the same time. What is asked sees the
    graph as it is ``now``, from its beginning to its end, whatever comes meanwhile. Numbers of nodes hold as
    long as no node loses its last triple; the terms of those that did are still kept (some 150 bytes each).

    >>> import spaseq.paths
    >>> g = spaseq.paths.load([("urn:a", "urn:knows", "urn:b"), ("urn:b", "urn:knows", "urn:c")])
    >>> [str(target) for _, target in g.pairs("<urn:knows>+", sources=["urn:a"])]
    ['urn:b', 'urn:c']
    >>> g.add([("urn:c", "urn:knows", "urn:d")])
    >>> [str(target) for _, target in g.pairs("<urn:knows>+", sources=["urn:a"])]
    ['urn:b', 'urn:c', 'urn:d']
    """

    def __init__(self, graph: Snapshot) -> None:
        self._now = graph
        self._lock = threading.RLock()
        self._waiting: dict[Edge, bool] = {}
        self._watches: WeakSet[Watch] = WeakSet()

    @property
    def now(self) -> Snapshot:
        """The graph as it is now, for who asks several things that belong together: it does not change.

        What was added and removed since it was last asked is merged here: a pass over all edges, or for as
        many as a fiftieth of them, sorting them anew.
        """
        if self._waiting:
            with self._lock:
                if self._waiting:
                    self._now, self._waiting = self._now.changed(self._waiting), {}
        return self._now

    # --- changes

    def add(self, triples: Iterable[tuple[Any, Any, Any]] | Any, time: int | None = None) -> None:
        """Add triples: an iterable of them, an rdflib graph, or a table of three columns, as for ``load``.

        All or, when one is wrong, none. ``time`` is for those who ``watch`` through a window: without one, a
        triple counts always; times do not go back. Costs a few µs each; the next question merges them. Raises
        KnowledgeError with the number of the triple that cannot be one, ValueError for a time that goes back,
        and TypeError for one that is no whole number.
        """
        self._change(triples, True, time)

    def remove(self, triples: Iterable[tuple[Any, Any, Any]] | Any) -> None:
        """Remove triples, as ``add`` adds them; those that the graph does not have are no error."""
        self._change(triples, False, None)

    def _change(self, triples: Any, present: bool, time: int | None) -> None:
        time = None if time is None else index(time)
        given = list(triples_of(triples))
        with self._lock:
            for watch in self._watches:
                watch.check(time)
            dictionary = self._now.contents.dictionary
            number = dictionary.intern if present else dictionary.find
            found = [(number(s), number(p), number(o)) for s, p, o in given]
            edges: dict[Edge, bool] = dict.fromkeys(found, present)
            try:
                self._waiting.update(edges)
            finally:  # whoever watches is told what the graph was
                for watch in self._watches:
                    watch.tell([*edges], present, time)
            if len(self._waiting) > _MOST_WAITING:
                _ = self.now

    def watch(
        self,
        expression: str | Expression,
        sources: Any = None,
        targets: Any = None,
        window: int | None = None,
    ) -> Watch:
        """A path query that goes on: it tells the pairs that a path newly joins as triples are added.

        With a ``window``, a triple that came with a ``time`` counts for so long after it (until ``time +
        window``, exclusive, in the same units); those that the graph had before always. Else pairs end only
        when triples are removed. See ``spaseq.paths.graph.updates.watching.Watch``.
        """
        with self._lock:
            found = Watch(self.now, expression, sources, targets, window, self._lock)
            self._watches.add(found)
        return found

    # --- what it is

    def __reduce__(self) -> tuple[Any, ...]:
        return KnowledgeGraph, (self.now,)

    @property
    def limits(self) -> Limits:
        """What a query may take."""
        return self._now.limits

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Those of expressions, and of terms as text."""
        return self._now.prefixes

    @property
    def contents(self) -> Contents:
        """The arrays."""
        return self.now.contents

    @property
    def names(self) -> Names:
        """What terms are called, and predicates by their names."""
        return self.now.names

    @property
    def linker(self) -> Linker:
        """The nodes by their names; made when it is first needed, and saved with the graph."""
        return self.now.linker

"""A store of quads that only its owner changes; rdflib reads it as any store."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rdflib import store
from rdflib.graph import Graph
from rdflib.term import IdentifiedNode, Node, URIRef

from spaseq.errors import EngineError

Triple = tuple[Node, Node, Node]
Pattern = tuple[Node | None, Node | None, Node | None]
Quad = tuple[Triple, IdentifiedNode]


class QuadStore(store.Store):
    """Quads by the parts that contain them: a quad is there until all its parts are removed.

    rdflib's own store in memory keeps empty index entries forever; this one keeps nothing. Indices that an
    interrupt left half-done are rebuilt when the owner next calls ``put``, ``take`` or ``mend``.
    """

    context_aware = True
    graph_aware = True

    def __init__(self, configuration: str | None = None, identifier: Node | None = None) -> None:
        self._parts: dict[Hashable, Sequence[Quad]] = {}
        self._empty()
        self._whole = True
        self._prefixes: dict[str, URIRef] = {}
        super().__init__(configuration, identifier)  # type: ignore[arg-type]  # any node identifies a store

    # --- for the owner

    def put(self, part: Hashable, quads: Sequence[Quad]) -> None:
        """Add the quads of a part, if they are not there."""
        self.mend()
        if part not in self._parts:
            self._whole = False
            self._parts[part] = quads
            self._count(quads)
            self._whole = True

    def take(self, part: Hashable) -> None:
        """Remove the quads of a part, if they are there."""
        self.mend()
        if part in self._parts:
            self._whole = False
            self._discount(self._parts[part])
            del self._parts[part]
            self._whole = True

    def mend(self) -> None:
        """Rebuild the indices if an interrupt has left them half-done."""
        if not self._whole:
            self._empty()
            for quads in self._parts.values():
                self._count(quads)
            self._whole = True

    def _empty(self) -> None:
        # The number of parts that contain each triple of a graph.
        self._names: dict[Triple, dict[IdentifiedNode, int]] = {}
        self._graphs: dict[IdentifiedNode, dict[Triple, None]] = {}
        self._index: tuple[dict[Node, dict[Triple, None]], ...] = ({}, {}, {})

    def _count(self, quads: Iterable[Quad]) -> None:
        for triple, name in quads:
            names = self._names.setdefault(triple, {})
            if not names:
                for index, term in zip(self._index, triple, strict=True):
                    index.setdefault(term, {})[triple] = None
            names[name] = names.get(name, 0) + 1
            self._graphs.setdefault(name, {})[triple] = None

    def _discount(self, quads: Iterable[Quad]) -> None:
        for triple, name in quads:
            names = self._names[triple]
            names[name] -= 1
            if names[name]:
                continue
            del names[name]
            _discard(self._graphs, name, triple)
            if not names:
                del self._names[triple]
                for index, term in zip(self._index, triple, strict=True):
                    _discard(index, term, triple)

    # --- for rdflib

    def triples(
        self, triple_pattern: Pattern, context: Graph | None = None
    ) -> Iterator[tuple[Triple, Iterator[Graph]]]:
        """Yield the triples of a pattern, in one graph or in all, each with its graphs."""
        for triple in list(self._candidates(triple_pattern, context)):
            fits = all(p is None or p == t for p, t in zip(triple_pattern, triple, strict=True))
            names = self._names.get(triple, {})
            if fits and (context is None or context.identifier in names):
                yield triple, map(self._graph, list(names))

    def _candidates(self, pattern: Pattern, context: Graph | None) -> Iterable[Triple]:
        nothing: dict[Triple, None] = {}
        found: list[Mapping[Triple, object]] = [self._names]
        found += [i.get(t, nothing) for i, t in zip(self._index, pattern, strict=True) if t is not None]
        if context is not None:
            found.append(self._graphs.get(context.identifier, nothing))
        return min(found, key=len)

    def __len__(self, context: Graph | None = None) -> int:
        return len(self._names if context is None else self._graphs.get(context.identifier, ()))

    def contexts(self, triple: Pattern | None = None) -> Generator[Graph, None, None]:
        """Yield the graphs, or only the graphs of a triple."""
        names: Iterable[IdentifiedNode] = self._graphs
        if triple is not None and triple != (None, None, None):
            names = {name for found in self.triples(triple) for name in self._names[found[0]]}
        yield from map(self._graph, list(names))

    def _graph(self, name: IdentifiedNode) -> Graph:
        return Graph(store=self, identifier=name)

    def add(self, triple: Triple, context: Graph | None, quoted: bool = False) -> None:  # noqa: ARG002
        """Raise EngineError: only the owner writes."""
        raise self._read_only()

    def addN(self, quads: Iterable[Any]) -> None:  # noqa: N802, ARG002
        """Raise EngineError: only the owner writes."""
        raise self._read_only()

    def remove(self, triple: Pattern, context: Graph | None = None) -> None:  # noqa: ARG002
        """Raise EngineError: only the owner writes."""
        raise self._read_only()

    def remove_graph(self, graph: Graph) -> None:  # noqa: ARG002
        """Raise EngineError: only the owner writes."""
        raise self._read_only()

    def add_graph(self, graph: Graph) -> None:
        """Do nothing: ``Dataset.graph(name)`` calls it before a read."""

    def _read_only(self) -> EngineError:
        return EngineError("this store shows what the engine sees: push events to the engine instead")

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:
        """Bind a prefix to a namespace."""
        if override or prefix not in self._prefixes:
            self._prefixes[prefix] = namespace

    def namespace(self, prefix: str) -> URIRef | None:
        """Return the namespace of a prefix."""
        return self._prefixes.get(prefix)

    def prefix(self, namespace: URIRef) -> str | None:
        """Return the last prefix of a namespace."""
        return next((p for p, n in reversed(self._prefixes.items()) if n == namespace), None)

    def namespaces(self) -> Iterator[tuple[str, URIRef]]:
        """Yield all prefixes."""
        yield from list(self._prefixes.items())


def _discard(index: dict[Any, dict[Triple, None]], key: object, triple: Triple) -> None:
    del index[key][triple]
    if not index[key]:
        del index[key]

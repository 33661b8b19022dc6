"""The sources of triples, which are documents, passages or named graphs: read from files, and saved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from spaseq.errors import KnowledgeError
from spaseq.paths.graph.saved.check import block
from spaseq.paths.graph.saved.file import Array, KeptFile
from spaseq.terms.dictionary import UNBOUND, Dictionary
from spaseq.terms.values import RDF

#: An edge, as ids of the dictionary: subject, predicate, object.
Edge = tuple[int, int, int]

#: The sources of edges, as texts. An edge takes about 200 bytes.
Sources = Mapping[Edge, tuple[str, ...]]

#: ``load(sources=GRAPH)``: the sources of a triple are its named graphs.
GRAPH: Final = "graph"

_REIFIES: Final = NamedNode(f"{RDF}reifies")
#: Blocks of a saved graph: rows of (subject, predicate, object, number of a source); the sources as JSON.
_ROWS: Final = "sources.rows"
_TEXTS: Final = "sources.texts"


class Noted:
    """Collects the sources of triples from a file's quads: named graphs, or annotations with a predicate."""

    def __init__(self, by: str) -> None:
        """``by``: ``"graph"``, or the IRI of the predicate. Raises KnowledgeError for another text."""
        self._of: dict[Triple, dict[str, None]] = {}
        try:
            self._predicate = None if by == GRAPH else NamedNode(by)
        except ValueError:
            raise KnowledgeError(
                f"sources={by!r}: 'graph' is wanted, or the IRI of the predicate that annotates triples"
            ) from None

    def passed(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        """Yield the quads that are not annotations of sources; note the sources."""
        if self._predicate is None:
            for quad in quads:
                if isinstance(quad.graph_name, NamedNode):
                    self._of.setdefault(quad.triple, {})[quad.graph_name.value] = None
                yield quad
            return
        reified: dict[object, list[Triple]] = {}
        said: list[Quad] = []
        for quad in quads:
            if quad.predicate == _REIFIES and isinstance(quad.object, Triple):
                reified.setdefault(quad.subject, []).append(quad.object)
            elif quad.predicate == self._predicate:
                said.append(quad)
            else:
                yield quad
        for quad in said:
            if quad.subject not in reified:
                yield quad
            elif isinstance(quad.object, NamedNode | BlankNode | Literal):
                for triple in reified[quad.subject]:
                    self._of.setdefault(triple, {})[quad.object.value] = None

    def sources(self, dictionary: Dictionary) -> dict[Edge, tuple[str, ...]]:
        """Return the sources found, by the ids of edges."""
        found = dict[Edge, tuple[str, ...]]()
        for triple, sources in self._of.items():
            if not isinstance(triple.object, Triple) and not isinstance(triple.subject, Triple):
                s, p, o = map(dictionary.find, (triple.subject, triple.predicate, triple.object))
                if UNBOUND not in (s, p, o):
                    found[s, p, o] = tuple(sources)
        return found


def changed(sources: Sources, more: Sources, gone: Iterable[Edge]) -> Sources:
    """Return ``sources`` with ``more`` added, and without those of the edges ``gone``."""
    after = {edge: tuple(dict.fromkeys((*sources.get(edge, ()), *some))) for edge, some in more.items()}
    after = {**sources, **after}
    for edge in gone:
        after.pop(edge, None)
    return after


def arrays_of(sources: Sources) -> dict[str, Array]:
    """Return sources as blocks of a saved graph; no blocks without sources."""
    if not sources:
        return {}
    numbers: dict[str, int] = {}
    rows = [
        (*edge, numbers.setdefault(source, len(numbers))) for edge, some in sources.items() for source in some
    ]
    texts = np.frombuffer(json.dumps([*numbers]).encode(), dtype=np.uint8)
    return {_ROWS: np.array(rows, dtype=np.int64).reshape(-1, 4), _TEXTS: texts}


def sources_of_file(file: KeptFile | None) -> Sources:
    """Return the sources that a saved graph has."""
    if file is None or _ROWS not in file.names():
        return {}
    texts: list[str] = json.loads(block(file, _TEXTS).tobytes())
    found = dict[Edge, tuple[str, ...]]()
    for s, p, o, number in block(file, _ROWS).tolist():
        found[s, p, o] = (*found.get((s, p, o), ()), texts[number])
    return found

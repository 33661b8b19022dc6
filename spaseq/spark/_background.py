"""Background graphs on their way to the workers: as N-Quads, their blank nodes the same everywhere."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

import numpy as np
import zstandard
from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse, serialize

from spaseq.events import Clock, EventBatch
from spaseq.gpm.kb import KnowledgeBase, _Graphs
from spaseq.terms import Dictionary

_STREAM: Final = NamedNode("urn:spaseq:kb")


@dataclass(frozen=True, slots=True)
class Local:
    """Bytes that are here already: what a broadcast is within one process."""

    value: bytes


class _Labelled(_Graphs):
    """Graphs whose blank nodes keep their labels, so that every process means the same node by them."""

    def batch(self, dictionary: Dictionary) -> EventBatch:
        if self._batch is None or self._batch.dictionary is not dictionary:
            self._batch = self._interned(dictionary)
        return self._batch

    def _interned(self, dictionary: Dictionary) -> EventBatch:
        intern = dictionary.intern
        with dictionary.lock:
            # Each triple once in its graph.
            rows: dict[tuple[int, int, int, int], None] = {}
            offset = [0]
            for triples in self.triples.values():
                for s, p, o in triples:
                    # There are no triple terms: KnowledgeBase refuses them.
                    assert not isinstance(s, Triple)
                    assert not isinstance(o, Triple)
                    rows[intern(s), intern(p), intern(o), len(offset)] = None
                offset.append(len(rows))
            columns = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
            count = len(self.triples)
            return EventBatch(
                dictionary,
                Clock.TICKS,
                np.full(count, dictionary.pin(_STREAM), dtype=np.int64),
                np.array([intern(name) for name in self.triples], dtype=np.int64),
                np.zeros(count, dtype=np.int64),
                np.arange(count, dtype=np.int64),
                np.array(offset, dtype=np.int64),
                *(np.ascontiguousarray(columns[:, i]) for i in range(3)),
            )


def ship(kb: KnowledgeBase) -> bytes:
    """The graphs of a knowledge base as bytes."""
    quads = (
        Quad(triple.subject, triple.predicate, triple.object, name)
        for name, triples in kb._graphs.triples.items()
        for triple in triples
    )
    text = serialize(quads, format=RdfFormat.N_QUADS)
    assert text is not None  # it is None only when written to a file
    names = "".join(f"{name}\n" for name in kb._graphs.triples).encode()
    return zstandard.ZstdCompressor().compress(len(names).to_bytes(8, "little") + names + text)


def receive(data: bytes) -> KnowledgeBase:
    """The knowledge base of these bytes."""
    data = zstandard.ZstdDecompressor().decompress(data)
    size = int.from_bytes(data[:8], "little")
    names = [NamedNode(line[1:-1]) for line in data[8 : 8 + size].decode().splitlines()]
    triples: dict[NamedNode, list[Triple]] = {name: [] for name in names}
    for quad in parse(io.BytesIO(data[8 + size :]), format=RdfFormat.N_QUADS):
        assert isinstance(quad.graph_name, NamedNode)
        triples[quad.graph_name].append(quad.triple)
    kb = KnowledgeBase({})
    kb._graphs, kb._visible = _Labelled(triples), frozenset(names)
    return kb

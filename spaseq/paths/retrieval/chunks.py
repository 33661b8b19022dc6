"""Passages of text that are the sources of triples, and nodes found by the embeddings of their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from pyoxigraph import NamedNode

from spaseq.errors import RetrievalError
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.linking.candidates import Candidate
from spaseq.paths.retrieval.ranking import Embed, embedded

if TYPE_CHECKING:
    import pyarrow as pa

_Matrix = npt.NDArray[np.float32]

#: Texts are embedded this many at a time.
_AT_A_TIME: Final = 1_024
#: The highest score by embedding, so that nodes with the name looked for come first.
_MOST_SIMILAR: Final = 0.79


class ChunkStore:
    """Passages of text by id, in an Arrow table; triples name these ids as their sources.

    Columns: ``id``, ``text`` and, optionally, ``embedding``, a list of numbers.

    >>> store = ChunkStore.of({"doc7#p3": "Ada Lovelace was born in London."})
    >>> store(["doc7#p3", "doc9"])
    {'doc7#p3': 'Ada Lovelace was born in London.'}
    """

    def __init__(self, table: pa.Table) -> None:
        """Raise RetrievalError for a table without ids and texts."""
        missing = " and ".join(sorted({"id", "text"} - {*table.column_names}))
        if missing:
            raise RetrievalError(f"chunks have the columns id and text: {missing} is missing")
        self.table = table
        self._rows = {name: row for row, name in enumerate(table["id"].to_pylist())}

    @classmethod
    def of(cls, texts: Mapping[str, str], embed: Embed | None = None) -> ChunkStore:
        """Make a store of texts by their ids, with embeddings if ``embed`` is given."""
        pa = _arrow()
        columns: dict[str, Any] = {"id": pa.array(texts.keys(), pa.string())}
        columns["text"] = pa.array(texts.values(), pa.string())
        if embed is not None:
            columns["embedding"] = [*_vectors(embed, [*texts.values()])]
        return cls(pa.table(columns))

    @classmethod
    def open(cls, file: str | PathLike[str]) -> ChunkStore:
        """Map a file that ``save`` made, or another Arrow file with these columns."""
        pa = _arrow()
        return cls(pa.ipc.open_file(pa.memory_map(fspath(file))).read_all())

    def save(self, file: str | PathLike[str]) -> None:
        """Save to a file."""
        with _arrow().ipc.new_file(fspath(file), self.table.schema) as writer:
            writer.write_table(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __call__(self, sources: Iterable[str]) -> dict[str, str]:
        """Return the texts by these ids; ids that the store does not have are left out."""
        texts = self.table["text"]
        return {name: texts[self._rows[name]].as_py() for name in sources if name in self._rows}

    def similar(self, text: str, embed: Embed, k: int = 10) -> list[tuple[str, float]]:
        """Return the ids of the passages most similar to a text, with the cosine, best first.

        Raises RetrievalError for a store without embeddings.
        """
        if "embedding" not in self.table.column_names:
            raise RetrievalError("these chunks have no embeddings: make them by ChunkStore.of(texts, embed)")
        rows = np.array(self.table["embedding"].to_pylist(), dtype=np.float32)
        found = _best(rows, _vectors(embed, [text])[0], k)
        return [(self.table["id"][row].as_py(), score) for row, score in found]


class Entities:
    """Finds the IRIs of a graph, as it is now, by name and by the embeddings of their labels."""

    def __init__(self, graph: KnowledgeGraph, embed: Embed, labels: Any = ()) -> None:
        """Embed all labels, 1,024 at a time; ``labels`` are as for ``graph.link``."""
        self._graph, self._embed, self._labels = graph.now, embed, labels
        every = range(graph.nodes)
        self._nodes = [n for n, t in zip(every, graph.glance(np.arange(graph.nodes)), strict=True)
                       if isinstance(t, NamedNode)]  # fmt: skip
        names = self._graph.names
        self._vectors = _vectors(embed, [names.node(node) for node in self._nodes])

    def link(self, name: str, k: int = 10) -> list[Candidate]:
        """Return the nodes that a name may mean, at most ``k``: by name (``graph.link``) and by embedding.

        Nodes are sorted by score. For nodes with ``by="embedding"``, the score is the cosine, but at most
        0.79; so nodes that have the name come first.
        """
        found = {candidate.node: candidate for candidate in self._graph.link(name, k, self._labels)}
        graph = self._graph
        for row, score in _best(self._vectors, _vectors(self._embed, [name])[0], k):
            node = self._nodes[row]
            score = round(min(score, _MOST_SIMILAR), 4)
            if node not in found or found[node].score < score:
                found[node] = Candidate(
                    node, graph.term(node), graph.names.node(node), score, "embedding", name
                )
        return sorted(found.values(), key=lambda candidate: -candidate.score)[:k]


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise RetrievalError("chunks are kept in Arrow tables: pip install 'spaseq[arrow]'") from None
    return pyarrow


def _vectors(embed: Embed, texts: Sequence[str]) -> _Matrix:
    """Return the embeddings of texts, each of length 1."""
    parts = [
        embedded(embed, texts[low : low + _AT_A_TIME]).astype(np.float32)
        for low in range(0, len(texts), _AT_A_TIME)
    ]
    rows = np.concatenate(parts) if parts else np.zeros((0, 1), dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    normal: _Matrix = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return normal


def _best(rows: _Matrix, vector: _Matrix, k: int) -> list[tuple[int, float]]:
    """Return the ``k`` rows with the greatest products with ``vector``, and the products, best first."""
    scores = rows @ vector if len(rows) else np.zeros(0)
    order = np.argsort(-scores, kind="stable")[:k]
    return [(int(row), float(scores[row])) for row in order]

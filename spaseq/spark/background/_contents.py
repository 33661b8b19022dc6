"""A hash of the contents of background graphs: the same in every process, and in any order of triples.

Blank nodes have other labels in every process. They are hashed by their triples, as *colours* that are
refined as in Weisfeiler and Leman's test of isomorphism: each round hashes the colours of the terms around a
node into the node's colour. The rounds end when they distinguish no more nodes. Two cycles of three blank
nodes and one of six have the same hash, if the nodes have no other triples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.events import Ids
from spaseq.patterns.kb import KnowledgeBase
from spaseq.spark.background._triples import numbers
from spaseq.spark.background.frames import SparkKnowledge
from spaseq.spark.sessions import table_of
from spaseq.terms._table_kernel import FRESH, KIND, LABEL
from spaseq.terms.dictionary import Dictionary

Words = npt.NDArray[np.uint64]

#: The most rounds: blank nodes that differ only in triples further away count as alike.
_ROUNDS: Final = 8

_WORD: Final = 1 << 64
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)

#: The positions in a triple where a blank node may be.
_SUBJECT: Final = np.ones(1, dtype=np.uint64)
_OBJECT: Final = _SUBJECT + _SUBJECT


def contents(graphs: KnowledgeBase | SparkKnowledge) -> str:
    """Return a hash of background graphs, independent of the order of triples and of blank nodes' labels."""
    if isinstance(graphs, SparkKnowledge):
        return _of_frames(graphs.triples, graphs.terms)
    return _of_graphs(graphs) if graphs.names else ""


def _of_graphs(kb: KnowledgeBase) -> str:
    dictionary = Dictionary()
    batch = kb.batch(dictionary)
    g = np.repeat(batch.graph, np.diff(batch.offset))
    ids = np.unique(np.concatenate([g, batch.p, batch.s, batch.o]))
    kinds = dictionary.table().terms[ids, KIND]
    is_blank = (kinds == FRESH) | (kinds == LABEL)
    words = np.zeros(len(ids), dtype=np.int64)
    words[~is_blank] = numbers(dictionary, ids[~is_blank])
    g, p, s, o = (words[np.searchsorted(ids, column)] for column in (g, batch.p, batch.s, batch.o))
    nodes = ids[is_blank]
    places = _placed(nodes, batch.s), _placed(nodes, batch.o)
    colours = _colours((g, p, s, o), places, len(nodes))
    return f"{len(g)} {int(_hashes((g, p, s, o), places, colours).sum(dtype=np.uint64)):x}"


def _of_frames(triples: DataFrame, terms: DataFrame) -> str:
    blank = terms.where(F.col("term").startswith("_:")).select("id")
    nodes = np.sort(table_of(blank).column("id").to_numpy())
    colours = np.zeros(0, dtype=np.uint64)
    if len(nodes):
        parts = [triples.join(blank.withColumnRenamed("id", place), place, "left_semi") for place in "so"]
        around = table_of(parts[0].unionByName(parts[1]).distinct())
        g, p, s, o = (around.column(place).to_numpy() for place in "gpso")
        colours = _colours((g, p, s, o), (_placed(nodes, s), _placed(nodes, o)), len(nodes))
    found = (
        triples.select(*"gpso").mapInArrow(_summed(nodes, colours), "count bigint, total string").collect()
    )
    total = sum(int(row.total) for row in found) % _WORD
    return f"{sum(row['count'] for row in found)} {total:x}"


def _summed(nodes: Ids, colours: Words) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the number of triples, and the sum of their hashes."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            g, p, s, o = (column.to_numpy() for column in batch.columns)
            hashes = _hashes((g, p, s, o), (_placed(nodes, s), _placed(nodes, o)), colours)
            total = str(int(hashes.sum(dtype=np.uint64)))
            yield pa.RecordBatch.from_pydict({"size": pa.array([len(batch)]), "total": pa.array([total])})

    return stage


Triples = tuple[Ids, Ids, Ids, Ids]
Places = tuple[Ids, Ids]


def _placed(nodes: Ids, column: Ids) -> Ids:
    """Return the index of each term in the sorted blank nodes; -1 for another term."""
    if not len(nodes):
        return np.full(len(column), -1)
    found = np.minimum(np.searchsorted(nodes, column), len(nodes) - 1)
    return np.where(nodes[found] == column, found, -1)


def _colours(triples: Triples, places: Places, count: int) -> Words:
    """Return the colours of ``count`` blank nodes, computed from the triples around them."""
    colours = np.zeros(count, dtype=np.uint64)
    known = 1
    for _ in range(_ROUNDS if count else 0):
        heard = np.zeros(count, dtype=np.uint64)
        for word, place in zip((_SUBJECT, _OBJECT), places, strict=True):
            here = place >= 0
            np.add.at(heard, place[here], _hashes(triples, places, colours, word)[here])
        colours = _mixed(colours, heard)
        if known == (known := len(np.unique(colours))):
            break
    return colours


def _hashes(triples: Triples, places: Places, colours: Words, *first: Words) -> Words:
    """A hash of each triple, after some words; its blank nodes count by their colours."""
    g, p, s, o = (np.ascontiguousarray(column).view(np.uint64) for column in triples)
    if len(colours):
        s, o = (np.where(at >= 0, colours[at], column) for at, column in zip(places, (s, o), strict=True))
    return _mixed(*first, g, p, s, o)


def _mixed(*columns: Words) -> Words:
    """Return a hash of each row of words."""
    found = np.zeros(1, dtype=np.uint64)
    for column in columns:
        found = (found ^ column) * _FACTOR
        found = found ^ (found >> _SHIFT)
    return found

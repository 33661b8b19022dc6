"""A hash of what background graphs say: the same in every process, and in any order of their triples.

Blank nodes have other labels in every process. They count by what is said of them: by *colours*, which are
refined as those of Weisfeiler and Leman's test of isomorphism. Each round hashes into a node's colour those
of the terms around it. The rounds end when they tell no more nodes apart. Not told apart are two cycles of
three and one of six, if they are of blank nodes with nothing else said of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.events import Ids
from spaseq.gpm.kb import KnowledgeBase
from spaseq.spark.background._triples import numbers
from spaseq.spark.background.frames import SparkKnowledge
from spaseq.terms._table_kernel import FRESH, KIND, LABEL
from spaseq.terms.dictionary import Dictionary

Words = npt.NDArray[np.uint64]

#: Blank nodes that differ only by what is more triples away than this count as alike.
_ROUNDS: Final = 8

_WORD: Final = 1 << 64
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)

#: The places of a triple at which a blank node may stand.
_SUBJECT: Final = np.uint64(1)
_OBJECT: Final = np.uint64(2)


def contents(graphs: KnowledgeBase | SparkKnowledge) -> str:
    """Hash what background graphs say, in whatever order, and with whatever labels of blank nodes."""
    if isinstance(graphs, SparkKnowledge):
        return _of_frames(graphs.triples, graphs.terms)
    return _of_graphs(graphs) if graphs.names else ""


def _mixed(*columns: Words | np.uint64) -> Words:
    """A hash of each row of words."""
    found = np.zeros(1, dtype=np.uint64)
    for column in columns:
        found = (found ^ column) * _FACTOR
        found = found ^ (found >> _SHIFT)
    return found


# --- in this process ------------------------------------------------------------------------------


def _of_graphs(kb: KnowledgeBase) -> str:
    dictionary = Dictionary()
    batch = kb.batch(dictionary)
    g = np.repeat(batch.graph, np.diff(batch.offset))
    ids = np.unique(np.concatenate([g, batch.s, batch.p, batch.o]))
    kinds = dictionary.table().terms[ids, KIND]
    is_blank = (kinds == FRESH) | (kinds == LABEL)
    colours = np.zeros(len(ids), dtype=np.uint64)
    colours[~is_blank] = numbers(dictionary, ids[~is_blank]).view(np.uint64)
    places = [np.searchsorted(ids, column) for column in (g, batch.p, batch.s, batch.o)]
    known = 1
    for _ in range(_ROUNDS if is_blank.any() else 0):
        heard = np.zeros(len(ids), dtype=np.uint64)
        around = [colours[place] for place in places]
        np.add.at(heard, places[2], _mixed(_SUBJECT, *around))
        np.add.at(heard, places[3], _mixed(_OBJECT, *around))
        colours = np.where(is_blank, _mixed(colours, heard), colours)
        if known == (known := len(np.unique(colours[is_blank]))):
            break
    hashes = _mixed(*(colours[place] for place in places))
    return f"{len(g)} {int(hashes.sum(dtype=np.uint64)):x}" if len(g) else "0 0"


# --- as DataFrames --------------------------------------------------------------------------------


def _of_frames(triples: DataFrame, terms: DataFrame) -> str:
    is_blank = F.col("term").startswith("_:")
    blank = terms.where(is_blank).select("id")
    coloured = triples.select(*(F.col(place).alias(f"c{place}") for place in "gpso"))
    if not blank.isEmpty():
        colour = F.when(is_blank, F.lit(0)).otherwise(F.col("id"))
        colours = terms.select("id", is_blank.alias("blank"), colour.cast("bigint").alias("c")).cache()
        parts = [triples.join(blank.withColumnRenamed("id", p), p, "left_semi") for p in "so"]
        around = parts[0].unionByName(parts[1]).distinct().cache()
        known = 1
        for _ in range(_ROUNDS):
            colours = _refined(around, colours).localCheckpoint()
            if known == (known := colours.where("blank").select("c").distinct().count()):
                break
        around.unpersist()
        coloured = _coloured(triples, colours)
    said = coloured.select("cg", "cp", "cs", "co").mapInArrow(_hashing(), "h bigint")
    row = said.agg(F.count("h").alias("count"), _sum("h").alias("sum")).collect()[0]
    return f"{row['count']} {int(row['sum'] or 0) % _WORD:x}"


def _refined(around: DataFrame, colours: DataFrame) -> DataFrame:
    """The colours, those of blank nodes with what the triples around them say."""
    coloured = _coloured(around, colours)
    heard = [
        coloured.select("cg", "cp", "cs", "co", place).mapInArrow(_hashing(word), "h bigint, id bigint")
        for place, word in (("s", _SUBJECT), ("o", _OBJECT))
    ]
    sums = heard[0].unionAll(heard[1]).groupBy("id").agg(_sum("h").alias("sum"))
    near = colours.where("blank").join(sums, "id")
    mixed = near.mapInArrow(_recoloured, "id bigint, c bigint")
    rest = colours.join(mixed.select("id"), "id", "left_anti")
    return rest.unionAll(mixed.select("id", F.lit(True).alias("blank"), "c"))


def _hashing(*first: np.uint64) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The hash ``h`` of each row's four colours after these words; with its node, if any, as ``id``."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            words = [_words(column.to_numpy()) for column in batch.columns[:4]]
            found = {"h": pa.array(_mixed(*first, *words).view(np.int64))}
            if batch.num_columns > len(words):
                found["id"] = batch.column(len(words))
            yield pa.RecordBatch.from_pydict(found)

    return stage


def _recoloured(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        heard = np.array([int(total) % _WORD for total in batch.column("sum").to_pylist()], dtype=np.uint64)
        colours = _mixed(_words(batch.column("c").to_numpy()), heard)
        yield pa.RecordBatch.from_pydict({"id": batch.column("id"), "c": pa.array(colours.view(np.int64))})


def _words(column: Ids) -> Words:
    return np.ascontiguousarray(column, dtype=np.int64).view(np.uint64)


def _coloured(triples: DataFrame, colours: DataFrame) -> DataFrame:
    """The triples with the colours of their terms."""
    for place in "gpso":
        named = colours.select(F.col("id").alias(place), F.col("c").alias(f"c{place}"))
        triples = triples.join(named, place)
    return triples


def _sum(name: str) -> Column:
    """A sum of numbers of 64 bits that does not overflow."""
    return F.sum(F.col(name).cast("decimal(20,0)"))

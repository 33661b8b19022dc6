"""A hash of what background graphs say: the same in every process, and in any order of their triples.

Blank nodes have other labels in every process. They count by what is said of them: by *colours*, which are
refined as those of Weisfeiler and Leman's test of isomorphism. Each round hashes into a node's colour those
of the terms around it. The rounds end when they tell no more nodes apart. Not told apart are two cycles of
three and one of six, if they are of blank nodes with nothing else said of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from pyoxigraph import BlankNode, NamedNode, Triple
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.gpm.kb import KnowledgeBase

if TYPE_CHECKING:
    from spaseq.spark.background.frames import SparkKnowledge

#: Blank nodes that differ only by what is more triples away than this count as alike.
_ROUNDS: Final = 8

_WORD: Final = 1 << 64


def contents(graphs: KnowledgeBase | SparkKnowledge) -> str:
    """Hash what background graphs say, in whatever order, and with whatever labels of blank nodes."""
    if not isinstance(graphs, KnowledgeBase):
        return _of_frames(graphs.triples, graphs.terms)
    return _of_graphs(graphs) if graphs.names else ""


# --- in this process ------------------------------------------------------------------------------


def _of_graphs(kb: KnowledgeBase) -> str:
    triples = [(name, each) for name, of in kb.graphs.items() for each in dict.fromkeys(of)]
    around = [(name, t) for name, t in triples if BlankNode in (type(t.subject), type(t.object))]
    colours = {n: 0 for _, t in around for n in (t.subject, t.object) if isinstance(n, BlankNode)}
    known = 1
    for _ in range(_ROUNDS if colours else 0):
        heard = dict.fromkeys(colours, 0)
        for name, triple in around:
            for place, node in (("s", triple.subject), ("o", triple.object)):
                if isinstance(node, BlankNode):
                    heard[node] += _hash(place, *_words(name, triple, colours))
        colours = {node: _hash(str(colour), str(heard[node] % _WORD)) for node, colour in colours.items()}
        if known == (known := len(set(colours.values()))):
            break
    total = sum(_hash(*_words(name, triple, colours)) for name, triple in triples) % _WORD
    return f"{len(triples)} {total:x}"


def _words(name: NamedNode, triple: Triple, colours: dict[BlankNode, int]) -> Iterable[str]:
    for term in (name, triple.predicate, triple.subject, triple.object):
        yield f"_:{colours[term]}" if isinstance(term, BlankNode) else str(term)


def _hash(*words: str) -> int:
    return int.from_bytes(blake2b(" ".join(words).encode(), digest_size=8).digest(), "little")


# --- as DataFrames --------------------------------------------------------------------------------


def _of_frames(triples: DataFrame, terms: DataFrame) -> str:
    is_blank = F.col("term").startswith("_:")
    colour = F.when(is_blank, F.lit(0)).otherwise(F.xxhash64("term"))
    colours = terms.select("id", is_blank.alias("blank"), colour.cast("bigint").alias("c")).cache()
    blank = colours.where("blank").select("id")
    known = 1
    if not blank.isEmpty():
        parts = [triples.join(blank.withColumnRenamed("id", p), p, "left_semi") for p in "so"]
        around = parts[0].unionByName(parts[1]).distinct().cache()
        for _ in range(_ROUNDS):
            colours = _refined(around, colours).localCheckpoint()
            if known == (known := colours.where("blank").select("c").distinct().count()):
                break
        around.unpersist()
    said = _coloured(triples.distinct(), colours).select(F.xxhash64("cg", "cp", "cs", "co").alias("h"))
    row = said.agg(F.count("h").alias("count"), _sum("h").alias("sum")).collect()[0]
    return f"{row['count']} {int(row['sum'] or 0) % _WORD:x}"


def _refined(around: DataFrame, colours: DataFrame) -> DataFrame:
    """The colours, those of blank nodes with what the triples around them say."""
    coloured = _coloured(around, colours)
    heard = [
        coloured.select(F.col(place).alias("id"), F.xxhash64(F.lit(place), "cg", "cp", "cs", "co").alias("h"))
        for place in "so"
    ]
    sums = heard[0].unionAll(heard[1]).groupBy("id").agg(_sum("h").alias("sum"))
    mixed = F.when(F.col("blank"), F.xxhash64("c", "sum")).otherwise(F.col("c"))
    return colours.join(sums, "id", "left").select("id", "blank", mixed.alias("c"))


def _coloured(triples: DataFrame, colours: DataFrame) -> DataFrame:
    """The triples with the colours of their terms."""
    for place in "gpso":
        named = colours.select(F.col("id").alias(place), F.col("c").alias(f"c{place}"))
        triples = triples.join(named, place)
    return triples


def _sum(name: str) -> Column:
    """A sum of numbers of 64 bits that does not overflow."""
    return F.sum(F.col(name).cast("decimal(20,0)"))

"""Where the solutions of GRAPH patterns are kept: in every worker, or in a DataFrame where they are many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyoxigraph import NamedNode
from pyspark.sql import DataFrame, SparkSession

from spaseq.automaton.pattern import SequencePattern
from spaseq.errors import warn
from spaseq.language.syntax import Graph
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.spark.background._asking import ASKED
from spaseq.spark.background._background import asked_once, tables, whole
from spaseq.spark.background._joined import background_schema, keyed, names_of, on_found, texts, width
from spaseq.spark.background._lookups import lookups
from spaseq.spark.background.frames import SparkKnowledge
from spaseq.spark.sessions import frame_of
from spaseq.spark.stages._job import Job, Joined, bucket_numbers
from spaseq.spark.stages.arrow import BETWEEN
from spaseq.terms.dictionary import Dictionary

#: Without end, as a number of solutions.
_ALL: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Placed:
    """Background graphs of a query: ``shipped`` to every worker, and the rest as ``rows`` (``_joined``).

    ``text`` says of each GRAPH pattern which of the two it is, for Spark's plan.
    """

    shipped: bytes
    joined: Joined | None = None
    rows: DataFrame | None = None
    text: str = ""


def placed(
    spark: SparkSession,
    graphs: KnowledgeBase | SparkKnowledge,
    pattern: SequencePattern,
    partitions: int,
    limit: int,
) -> Placed:
    """Evaluates the GRAPH patterns of a query. Those with more than ``limit`` solutions become rows, if there
    is a key to find them by; a warning tells of others.
    """
    asked = asked_once(pattern)
    if asked is None:
        kb = graphs.local() if isinstance(graphs, SparkKnowledge) else graphs
        triples = sum(map(len, kb._graphs.triples.values()))
        _warn_beyond(limit, triples, "the background graphs are asked by EXISTS, or event by event")
        return Placed(whole(kb), text=f"{', '.join(graphs.names)}: {triples:,} triples in each worker")
    dictionary, with_key = Dictionary(), lookups(pattern)
    here: list[Solutions | None] = []
    texts_of: list[str] = []
    there: dict[int, DataFrame] = {}
    for number, graph in enumerate(asked):
        found = _found(graphs, pattern, graph, dictionary, limit if graph in with_key else _ALL)
        if isinstance(found, Solutions) and graph in with_key and len(found) > limit:
            found = frame_of(spark, texts(found, names_of(graph), dictionary))
        if isinstance(found, Solutions):
            reason = f"no variable of GRAPH {graph.name} is bound by every event that asks it"
            _warn_beyond(limit, len(found), reason)
            here.append(found)
            texts_of.append(f"GRAPH {graph.name}: {len(found):,} solutions in each worker")
        else:
            here.append(None)
            there[number] = found
            texts_of.append(f"GRAPH {graph.name}: over {limit:,} solutions, joined by key")
    shipped, text = tables(here, dictionary), "; ".join(texts_of)
    if not there:
        return Placed(shipped, text=text)
    joined = Joined(tuple(there), bucket_numbers(partitions))
    return Placed(shipped, joined, _rows(there, pattern, asked, partitions), text)


def _found(
    graphs: KnowledgeBase | SparkKnowledge,
    pattern: SequencePattern,
    graph: Graph,
    dictionary: Dictionary,
    limit: int,
) -> Solutions | DataFrame:
    """The solutions of a GRAPH pattern; as terms of a DataFrame if Spark evaluates it, and they are more."""
    if isinstance(graphs, KnowledgeBase):
        return graphs.restrict(pattern.query.knowledge).solutions(graph, dictionary)
    visible = {name.value for name in pattern.query.knowledge} or set(graphs.names)
    rows = graphs.solutions(graph, visible)
    if rows is None:
        kb = graphs.local().restrict(NamedNode(name) for name in visible)
        return kb.solutions(graph, dictionary)
    rows = rows.persist()
    found = graphs.collected(rows, dictionary) if rows.count() <= limit else None
    rows.unpersist()
    # Many are evaluated once more, rather than kept twice.
    return graphs.texts(rows) if found is None else found


def _warn_beyond(limit: int, size: int, reason: str) -> None:
    if size > limit:
        warn(f"{size:,} rows of background go to every worker, though only {limit:,} should: {reason}")


def _rows(
    found: Mapping[int, DataFrame], pattern: SequencePattern, asked: tuple[Graph, ...], partitions: int
) -> DataFrame:
    """The rows of the background, kept as the join in each micro-batch needs them: by key, and sorted."""
    columns = width(asked[number] for number in found)
    schema = background_schema(columns)
    parts = [
        rows.toDF(*(f"v{i}" for i in range(len(rows.columns)))).mapInArrow(
            keyed(pattern, number, columns), schema
        )
        for number, rows in found.items()
    ]
    by_key = reduce(DataFrame.unionAll, parts).repartition(partitions, "graph", "key")
    return by_key.sortWithinPartitions("graph", "key").persist()


def between(job: Job, asked: DataFrame, rows: DataFrame | None) -> DataFrame:
    """Return the rows of the stateless stage, from those of its first or only part.

    By a merge join: the rows of the background are neither sent nor sorted again, and need not fit anywhere.
    """
    if rows is None:
        return asked
    assert job.joined is not None
    found = asked.join(rows.hint("merge"), ["graph", "key"], "left")
    together = found.repartition(len(job.joined.slots), "slot")
    if not asked.isStreaming:  # a micro-batch cannot be sorted, and fits
        together = together.sortWithinPartitions("chunk")
    return together.mapInArrow(on_found(job, is_sorted=not asked.isStreaming), BETWEEN)


def stage_schema(job: Job) -> str:
    """The schema of what ``_stages.from_blocks`` and ``from_rows`` give."""
    return BETWEEN if job.joined is None else ASKED

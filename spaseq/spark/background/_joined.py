"""GRAPH patterns with too many solutions for every worker: joined as DataFrames, before the stateless stage.

A row of the background is a solution of a GRAPH pattern: the pattern's number, the hash of the solution's key
(``_asking``), and its terms in N-Triples, ordered by the names of their variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import NamedNode
from pyspark.sql import DataFrame, SparkSession

from spaseq.automaton.pattern import SequencePattern
from spaseq.chunks import hashed
from spaseq.errors import warn
from spaseq.language.scope import variables
from spaseq.language.syntax import Graph
from spaseq.patterns.kb import KnowledgeBase
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.spark._workers import freeze_worker
from spaseq.spark.background._asking import ASKED, NO_GRAPH, lookups
from spaseq.spark.background._background import asked_once, entered, tables, whole
from spaseq.spark.background.frames import SparkKnowledge
from spaseq.spark.sessions import frame_of
from spaseq.spark.source._told import Stage
from spaseq.spark.stages._job import Job, Joined, bucket_numbers
from spaseq.spark.stages._stateless import Stateless, stage_of
from spaseq.spark.stages.arrow import BETWEEN, Batches, all_ended, record, rows_of
from spaseq.terms.dictionary import UNBOUND, Dictionary


def names_of(graph: Graph) -> list[str]:
    """Return the variables of a GRAPH pattern in the order of their columns."""
    return sorted(variables(graph))


def column(place: int) -> str:
    """Return the column of a variable, from its position in ``names_of``."""
    return f"v{place}"


def width(graphs: Iterable[Graph]) -> int:
    """Return the number of such columns for these patterns."""
    return max(len(names_of(graph)) for graph in graphs)


def background_schema(columns: int) -> str:
    """Return the columns of the background's rows."""
    return ", ".join(["graph int", "key bigint", *(f"{column(i)} string" for i in range(columns))])


# --- rows of the background -------------------------------------------------------------------


def texts(found: Solutions, names: Iterable[str], dictionary: Dictionary) -> pa.Table:
    """Solutions as columns of terms in N-Triples, null where unbound."""
    columns = {}
    for place, name in enumerate(names):
        distinct, inverse = np.unique(found.column(name), return_inverse=True)
        terms = [None if i == UNBOUND else str(dictionary.term(i)) for i in distinct.tolist()]
        columns[column(place)] = pa.array(terms, pa.string()).take(pa.array(inverse))
    return pa.table(columns)


def keyed(pattern: SequencePattern, number: int, columns: int) -> Stage:
    """Add a GRAPH pattern's number, the hashes of keys, and empty columns to columns of terms."""
    graph = (asked_once(pattern) or ())[number]
    names = names_of(graph)
    places = [names.index(name) for name in lookups(pattern)[graph].key]

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            dictionary = Dictionary()
            dictionary.table()
            codes = hashed(dictionary, [entered(batch.column(column(i)), dictionary) for i in places])
            arrays = {column(i): batch.column(column(i)) for i in range(len(names))}
            arrays |= {column(i): pa.nulls(len(batch), pa.string()) for i in range(len(names), columns)}
            numbers = pa.array(np.full(len(batch), number, dtype=np.int32))
            yield pa.RecordBatch.from_pydict({"graph": numbers, "key": pa.array(codes), **arrays})

    return stage


# --- the stage --------------------------------------------------------------------------------


def on_found(job: Job, *, is_sorted: bool) -> Stage:
    """Return the stateless stage on rows of ``_asking.ASKED`` that were joined with the background's rows.

    All rows of a chunk must be there. ``is_sorted``: rows of a chunk are adjacent, so that no other chunk has
    to wait.
    """
    assert job.joined is not None
    pattern = job.pattern
    graphs = asked_once(pattern) or ()
    joined = {number: graphs[number] for number in job.joined.graphs}

    def stage(batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in _chunks(batches, is_sorted):
            yield from _passed(job, joined, rows)
        freeze_worker()

    return stage


def _chunks(batches: Batches, is_sorted: bool) -> Iterator[pa.Table]:
    """Yield the rows of each chunk."""
    waiting: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        chunk = batch.column("chunk").to_numpy()
        order = np.argsort(chunk, kind="stable")
        ordered = batch.take(pa.array(order))
        numbers, starts = np.unique(chunk[order], return_index=True)
        ends = np.append(starts[1:], len(batch))
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
            if is_sorted and number not in waiting:
                yield from map(pa.Table.from_batches, waiting.values())
                waiting.clear()
            waiting.setdefault(number, []).append(ordered.slice(start, end - start))
    yield from map(pa.Table.from_batches, waiting.values())


def _passed(job: Job, joined: Mapping[int, Graph], rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows that the stage makes of a chunk."""
    asks = pc.not_equal(rows.column("graph"), NO_GRAPH)
    heads = rows.filter(pc.invert(asks)).select(["at", "body", "letter", "over", "ends", "events"])
    # As integers: the end of a stream may lie beyond the last year of a datetime.
    times = heads.column("at").cast(pa.int64()).to_pylist()
    bodies = []
    told: list[tuple[object, ...]] = []
    for at, row in zip(times, heads.drop_columns("at").to_pylist(), strict=True):
        told.append((at, job.buckets[0], 0, None, row["letter"], row["over"], False, row["events"]))
        told += all_ended(job) if row["ends"] else []
        bodies += [row["body"]] if row["body"] is not None else []
    if told:
        yield record(told)
    for body in bodies:
        stage = stage_of(job, Stateless)
        found = _found(rows.filter(asks), joined, stage.dictionary)
        passed = stage.on_found(body, found)
        # The events were counted above.
        yield record([(*row[:-1], 0) for row in rows_of(job, passed)])


def _found(rows: pa.Table, joined: Mapping[int, Graph], dictionary: Dictionary) -> dict[Graph, Solutions]:
    """Return the solutions of GRAPH patterns that were found for a chunk."""
    found = {}
    for number, graph in joined.items():
        names = names_of(graph)
        own = rows.filter(pc.equal(rows.column("graph"), number))
        # A key without solutions has no terms; every solution has at least those of its key.
        terms = [own.column(column(i)) for i in range(len(names))]
        own = own.filter(_any_of(terms))
        ids = {name: entered(own.column(column(i)), dictionary) for i, name in enumerate(names)}
        found[graph] = Solutions(own.num_rows, None, ids)
    return found


def _any_of(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return which rows have a value in any column."""
    masks = [pc.is_valid(values) for values in columns]
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return found


# --- where the solutions of GRAPH patterns are kept ----------------------------------------------

#: No limit, as a number of solutions.
_ALL: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Placed:
    """A query's background graphs: ``shipped`` to every worker, and the rest as ``rows``.

    ``text`` says for each GRAPH pattern which of the two it is, for Spark's plan.
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
    """Evaluate the GRAPH patterns of a query.

    Patterns with more than ``limit`` solutions become rows if they have a key. For others a warning is given.
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
        found = _solutions(graphs, pattern, graph, dictionary, limit if graph in with_key else _ALL)
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


def _solutions(
    graphs: KnowledgeBase | SparkKnowledge,
    pattern: SequencePattern,
    graph: Graph,
    dictionary: Dictionary,
    limit: int,
) -> Solutions | DataFrame:
    """Return the solutions of a GRAPH pattern; as terms of a DataFrame if Spark evaluates it, and they are
    more.
    """
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
    # A large result is evaluated once more, rather than kept twice.
    return graphs.texts(rows) if found is None else found


def _warn_beyond(limit: int, size: int, reason: str) -> None:
    if size > limit:
        warn(f"{size:,} rows of background go to every worker, though only {limit:,} should: {reason}")


def _rows(
    found: Mapping[int, DataFrame], pattern: SequencePattern, asked: tuple[Graph, ...], partitions: int
) -> DataFrame:
    """Return the background's rows, cached as the join in each micro-batch needs them: by key, and sorted."""
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
    """Return the rows of the stateless stage, from those of its first part, or of its only part.

    The join is a merge join: the background's rows are neither sent nor sorted again, and need not fit into
    memory.
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
    """Return the schema of the stages that ``from_blocks`` and ``from_rows`` return."""
    return BETWEEN if job.joined is None else ASKED

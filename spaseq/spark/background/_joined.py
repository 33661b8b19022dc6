"""The stateless stage on events and what they asked for, and the rows in which background graphs are joined.

A row of the background is a solution of a GRAPH pattern: the pattern's number, the hash of the solution's key
(``_lookups``), and its terms in N-Triples, in the order of their variables' names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.automaton.pattern import SequencePattern
from spaseq.chunks import hashed
from spaseq.language.scope import variables
from spaseq.language.syntax import Graph
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.spark._workers import freeze_worker
from spaseq.spark.background._asking import NO_GRAPH
from spaseq.spark.background._background import asked_once, entered
from spaseq.spark.background._lookups import lookups
from spaseq.spark.source._told import Stage
from spaseq.spark.stages._job import Job
from spaseq.spark.stages._stateless import Stateless, stage_of
from spaseq.spark.stages.arrow import Batches, all_ended, record, rows_of
from spaseq.terms.dictionary import UNBOUND, Dictionary


def names_of(graph: Graph) -> list[str]:
    """The variables of a GRAPH pattern in the order of their columns."""
    return sorted(variables(graph))


def column(place: int) -> str:
    """The column of a variable by its place in ``names_of``."""
    return f"v{place}"


def width(graphs: Iterable[Graph]) -> int:
    """How many such columns there are for these patterns."""
    return max(len(names_of(graph)) for graph in graphs)


def background_schema(columns: int) -> str:
    """The columns of the background's rows."""
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
    """Adds the number of a GRAPH pattern, and the hashes of keys, to columns of terms; and empty columns."""
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
    """The stateless stage on rows of ``_asking.ASKED`` to which the background's were joined.

    All rows of a chunk must be there; ``is_sorted``: they stand together, so that no other has to wait.
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
    """The rows of each chunk."""
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
    """What comes of a chunk."""
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
    """The solutions of GRAPH patterns that were found for a chunk."""
    found = {}
    for number, graph in joined.items():
        names = names_of(graph)
        own = rows.filter(pc.equal(rows.column("graph"), number))
        # A key for which nothing was found has no terms; every solution has those of its key.
        terms = [own.column(column(i)) for i in range(len(names))]
        own = own.filter(_any_of(terms))
        ids = {name: entered(own.column(column(i)), dictionary) for i, name in enumerate(names)}
        found[graph] = Solutions(own.num_rows, None, ids)
    return found


def _any_of(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Which rows have a value somewhere."""
    masks = [pc.is_valid(values) for values in columns]
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return found

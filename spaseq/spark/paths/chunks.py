"""Path queries on Spark: over a graph that fits one executor, or over a table of edges that does not."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from spaseq.limits import Limits
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.language.expression import Expression
from spaseq.paths.search._kernel import Flags, Machine
from spaseq.paths.search.pairs import plan_pairs
from spaseq.paths.search.reach import Search
from spaseq.paths.search.running import Memory
from spaseq.paths.search.workspace import Workspace
from spaseq.spark.paths.frontier import PAIRS
from spaseq.spark.sessions import require_classic

_ARROW: Final = pa.schema([("source", pa.string()), ("target", pa.string())])

#: At least this many nodes are searched from in one task: a mask has a bit for each.
_LEAST: Final = 64

#: The most answers in one batch of rows.
_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class _Shipped:
    """A query as sent to executors: its product, which pairs are wanted, the nodes' terms, its text and
    limits.
    """

    arrays: Machine
    wanted: Flags
    backwards: bool
    terms: pa.Array
    text: str
    limits: Limits


def path_pairs(
    spark: SparkSession,
    graph: KnowledgeGraph,
    expression: str | Expression,
    sources: Any = None,
    targets: Any = None,
) -> DataFrame:
    """Return the pairs of ``graph.pairs(expression, sources, targets)``, searched for in chunks of sources.

    Columns: ``source`` and ``target``, terms as N-Triples. The graph's arrays are sent to every executor
    once. For a graph that does not fit there, see ``path_pairs_of_edges``.
    """
    require_classic(spark)
    plan = plan_pairs(graph.snapshot, expression, sources, targets)
    terms = pa.array([str(graph.ox_term(node)) for node in range(graph.nodes)], pa.string())
    arrays = plan.product.alone()
    shipped = _Shipped(arrays, plan.wanted, plan.backwards, terms, str(expression), graph.limits)
    held = spark.sparkContext.broadcast(pickle.dumps(shipped))
    tasks = 4 * spark.sparkContext.defaultParallelism
    size = max(_LEAST, -(-len(plan.begins) // tasks))
    chunks = [plan.begins[i : i + size].astype(np.int32).tobytes() for i in range(0, len(plan.begins), size)]
    rows = spark.createDataFrame([(chunk,) for chunk in chunks], "nodes binary")
    found = rows.repartition(max(1, len(chunks))).mapInArrow(_search(held), PAIRS)
    alone = [(str(term), str(term)) for term in plan.strangers]
    return found.union(spark.createDataFrame(alone, PAIRS)) if alone else found


def _search(held: Broadcast[bytes]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        query: _Shipped = pickle.loads(held.value)
        workspace = Workspace(len(query.terms), Memory(query.limits, query.text))
        for batch in batches:
            for chunk in batch.column("nodes").to_pylist():
                yield from _pairs(query, workspace, np.frombuffer(chunk, dtype=np.int32))

    return search


def _pairs(query: _Shipped, workspace: Workspace, begins: Any) -> Iterator[pa.RecordBatch]:
    for found in Search(query.arrays, workspace, begins, query.wanted).parts():
        ones, others = np.repeat(found.begins, np.diff(found.offsets)), found.found
        for i in range(0, len(others), _ROWS):
            columns = [query.terms.take(pa.array(part[i : i + _ROWS])) for part in (ones, others)]
            if query.backwards:
                columns.reverse()
            yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)

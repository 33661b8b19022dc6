"""Topics and questions as rows → relation paths and retrieved paths as rows: ``relations_of``, ``retrieve``.

Workers run the embedded functions. Each worker gets a ``KnowledgeGraph`` whole. From a table of edges, or a
GraphFrame, a worker gets the part around one topic: the edges that the automaton of the relation paths
(``spaseq.paths.retrieval.prefixes``) reads from that topic. Joins find this part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from spaseq.errors import EngineError, QueryError, SpaseqError
from spaseq.limits import Limits
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.names import LABELS
from spaseq.paths.graph.numbering import read_term
from spaseq.paths.graph.opening import load
from spaseq.paths.graph.saved.graph import as_bytes, of_bytes
from spaseq.paths.graph.snapshot import Snapshot
from spaseq.paths.language.expression import Expression
from spaseq.paths.retrieval.budget import Budget
from spaseq.paths.retrieval.prefixes import Prefixes
from spaseq.paths.retrieval.ranking import Embed
from spaseq.paths.retrieval.retrieve import mode_given
from spaseq.paths.retrieval.retrieve import retrieve as retrieve_here
from spaseq.paths.retrieval.wanted import Weighted, read_expressions
from spaseq.spark.sessions import require_classic

#: Terms as N-Triples: subject, predicate, object.
_Triple: TypeAlias = "tuple[str, str, str]"

#: A row's graph and topic.
_Opened: TypeAlias = Callable[[Mapping[str, Any]], tuple[KnowledgeGraph, Any]]

#: A row's graph, topic and other columns → the new columns, a dictionary for each new row.
_Answer: TypeAlias = Callable[[KnowledgeGraph, Any, Mapping[str, Any]], list[dict[str, Any]]]

#: The number of rows that are answered before their answers are passed on.
_ROWS: Final = 64

#: Columns of an edge as read: its first node, the predicate, whether it is read backwards, the other node.
_EDGE: Final = ("node", "p", "inverse", "other")

_ID: Final = "spaseq_id"
_PART: Final = "spaseq_part"

_TEXT: Final = StringType()
_TRIPLE: Final = StructType([StructField(name, _TEXT) for name in ("subject", "predicate", "object")])

#: The columns that ``relations_of`` and ``retrieve`` add.
_RELATIONS: Final = (
    StructType()
    .add("relations", ArrayType(_TEXT))
    .add("count", LongType())
    .add("examples", ArrayType(_TEXT))
    .add("problem", _TEXT)
)
_PATHS: Final = (
    StructType()
    .add("rank", IntegerType())
    .add("score", DoubleType())
    .add("text", _TEXT)
    .add("answer", _TEXT)
    .add("triples", ArrayType(_TRIPLE))
    .add("problem", _TEXT)
)

_LABELS: Final = [str(label) for label in LABELS]
_ANY_RELATION: Final = f"!({'|'.join([*_LABELS, *(f'^{label}' for label in _LABELS)])})"


def relations_of(
    graph: KnowledgeGraph | DataFrame | Any,
    topics: DataFrame,
    hops: int = 2,
    k: int = 100,
    examples: int = 3,
    *,
    returning: bool = True,
    prefixes: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the relation paths that leave each topic, like ``KnowledgeGraph.relations_of``, as rows.

    ``graph`` is a KnowledgeGraph, a GraphFrame made by ``graphframe``, or a DataFrame of edges: subjects,
    predicates and objects as N-Triples. ``topics`` has a column ``topic``: terms as text, with the graph's
    prefixes or ``prefixes``; with a KnowledgeGraph also names. All columns of ``topics`` stay.

    New columns: ``relations``, ``count``, ``examples`` (terms as N-Triples). An unusable topic has a row with
    the reason in the column ``problem``. Among equal counts, the order of loading decides which relation
    paths are among the ``k``. Raises the errors of the embedded function for invalid numbers, and EngineError
    for a missing column.
    """
    load([]).relations_of([], hops, k, examples)  # wrong numbers are errors here, not in a worker

    def answer(graph: KnowledgeGraph, topic: Any, _: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = graph.relations_of(topic, hops, k, examples, returning=returning)
        rows = [
            {
                "relations": list(path.relations),
                "count": path.count,
                "examples": [str(graph.ox_term(node)) for node in path.examples],
            }
            for path in found
        ]
        return [*_unknown(found.unknown), *rows]

    plan = [f"{_ANY_RELATION}{{1,{hops}}}"]
    return _answered(graph, topics, ["topic"], plan, answer, _RELATIONS, prefixes)


def retrieve(
    graph: KnowledgeGraph | DataFrame | Any,
    questions: DataFrame,
    relations: Iterable[Weighted] | str | Expression | None = None,
    k: int = 10,
    embed: Embed | None = None,
    budget: Budget | None = None,
    *,
    mode: str | None = None,
    returning: bool = True,
    prefixes: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the best paths for each question, like ``spaseq.paths.retrieve``, as rows.

    ``graph`` and the column ``topic`` are as for ``relations_of``. The parameter ``relations`` gives the
    relation paths of all questions, the column ``relations`` those of each row: lists of relation names, or a
    path expression. The column ``question``, if there is one, ranks the paths. All columns of ``questions``
    stay.

    New columns: ``rank``, from 1, ``score``, ``text``, ``answer`` (the last node), ``triples``; terms as
    N-Triples. A rejected relation path, and an unusable topic, have a row with the reason in the column
    ``problem``. ``embed`` and ``budget`` are pickled. Raises the errors of the embedded function for ``k``,
    ``mode`` and ``budget``, and EngineError for a missing column.
    """
    plan = relations if relations is None or isinstance(relations, str | Expression) else list(relations)
    retrieve_here(load([]), (), [], k, embed, budget, mode=mode)  # as in ``relations_of``
    asked = "question" in questions.columns

    def answer(graph: KnowledgeGraph, topic: Any, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = retrieve_here(
            graph,
            (row["relations"] or ()) if plan is None else plan,
            topic,
            k,
            embed,
            budget,
            question=row["question"] if asked else None,
            mode=mode,
            returning=returning,
        )
        rows = [
            {
                "rank": rank,
                "score": ranked.score,
                "text": ranked.text,
                "answer": str(graph.ox_term(ranked.path.nodes[-1])),
                "triples": [
                    (str(graph.ox_term(s)), str(graph.ox_predicate(p)), str(graph.ox_term(o)))
                    for s, p, o in ranked.path.edges
                ],
            }
            for rank, ranked in enumerate(found, 1)
        ]
        rejected = [{"problem": f"{one.expression}: {one.reason}"} for one in found.rejected]
        return [*_unknown(found.unknown), *rejected, *rows]

    read = ["topic", *(["relations"] if plan is None else []), *(["question"] if asked else [])]
    return _answered(graph, questions, read, plan, answer, _PATHS, prefixes, mode)


def _unknown(terms: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"problem": f"{term.n3()} is not a node of the graph"} for term in terms]


def _answered(
    graph: KnowledgeGraph | DataFrame | Any,
    rows: DataFrame,
    read: Sequence[str],
    plan: Any,
    answer: _Answer,
    added: StructType,
    prefixes: Mapping[str, str] | None,
    mode: str | None = None,
) -> DataFrame:
    """Return the rows with new columns ``added``, which ``answer`` computes from the columns ``read``."""
    _require(rows, read)
    if isinstance(graph, KnowledgeGraph):
        return _mapped(rows, rows.columns, read, _whole(rows, graph), answer, added)
    both, known = _both_ways(_edges(graph)).cache(), dict(prefixes or {})
    vocabulary = _vocabulary(both)
    numbered = rows.withColumn(_ID, F.monotonically_increasing_id()).localCheckpoint()
    parts = _parts(both, numbered, load(vocabulary, known).snapshot, plan, mode)
    both.unpersist()
    asked = numbered.join(parts, [_ID], "left")
    return _mapped(asked, rows.columns, [*read, _PART], _part(vocabulary, known), answer, added)


def _require(rows: DataFrame, read: Sequence[str]) -> None:
    """Raise EngineError unless topics or questions are rows with these columns."""
    if not isinstance(rows, DataFrame):
        raise EngineError(f"topics and questions are a DataFrame with a column topic, not {_kind(rows)}")
    require_classic(rows)
    for name in read:
        if name not in rows.columns:
            instead = ": give them, or relations=" if name == "relations" else ""
            raise EngineError(f"the rows have no column {name}{instead}; columns: {', '.join(rows.columns)}")
    if rows.schema["topic"].dataType != _TEXT:
        found = rows.schema["topic"].dataType.simpleString()
        raise EngineError(f"the column topic has texts, names or terms, not {found}")


def _edges(graph: Any) -> DataFrame:
    """Return the edges of a DataFrame or GraphFrame as ``s``, ``p``, ``o``; rows with a null are no edges."""
    edges = graph.edges.select("src", "relationship", "dst") if hasattr(graph, "edges") else graph
    if not isinstance(edges, DataFrame):
        raise EngineError(
            f"graph= is a KnowledgeGraph, edges as a DataFrame, or a GraphFrame, not {_kind(graph)}"
        )
    if len(edges.columns) != len("spo"):
        raise EngineError(
            f"edges have three columns: subjects, predicates, objects; not {', '.join(edges.columns)}"
        )
    return edges.toDF(*"spo").na.drop()


def _kind(value: object) -> str:
    return type(value).__name__


def _mapped(
    rows: DataFrame,
    kept: Sequence[str],
    read: Sequence[str],
    opened: _Opened,
    answer: _Answer,
    added: StructType,
) -> DataFrame:
    types = [to_arrow_type(field.dataType) for field in added]

    def answers(row: Mapping[str, Any]) -> list[dict[str, Any]]:
        if row["topic"] is None:
            return [{"problem": "there is no topic"}]
        try:
            return answer(*opened(row), row)
        except SpaseqError as error:
            return [{"problem": str(error)}]

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for begin in range(0, batch.num_rows, _ROWS):
                part = batch.slice(begin, _ROWS)
                found = [
                    (place, one)
                    for place, row in enumerate(part.select([*read]).to_pylist())
                    for one in answers(row)
                ]
                places = pa.array([place for place, _ in found], pa.int32())
                columns = [column.take(places) for column in part.select([*kept]).columns]
                for name, kind in zip(added.names, types, strict=True):
                    columns.append(pa.array([one.get(name) for _, one in found], kind))
                yield pa.RecordBatch.from_arrays(columns, names=[*kept, *added.names])

    return rows.mapInArrow(work, StructType([*rows.select(*kept).schema.fields, *added.fields]))


# --- the whole graph in each worker

#: The graph that this process answers from, by the key of its broadcast.
_kept_graph: dict[str, KnowledgeGraph] = {}


def _whole(rows: DataFrame, graph: KnowledgeGraph) -> _Opened:
    held = rows.sparkSession.sparkContext.broadcast(as_bytes(graph.snapshot))
    key, limits = uuid4().hex, graph.limits

    return lambda row: (_graph(key, held, limits), row["topic"])


def _graph(key: str, held: Broadcast[bytes], limits: Limits) -> KnowledgeGraph:
    # Not in the lambda: that is pickled with a dictionary of its own for each task.
    if key not in _kept_graph:
        _kept_graph.clear()
        _kept_graph[key] = KnowledgeGraph(of_bytes(held.value, limits))
    return _kept_graph[key]


# --- of edges, the part around a topic


def _part(vocabulary: list[_Triple], prefixes: Mapping[str, str]) -> _Opened:
    def opened(row: Mapping[str, Any]) -> tuple[KnowledgeGraph, Any]:
        topic = read_term(row["topic"], prefixes)  # a name would be looked for in the part only
        triples = [(t["s"], t["p"], t["o"]) for t in row[_PART] or ()]
        return load([*vocabulary, *triples], prefixes), topic

    return opened


def _both_ways(edges: DataFrame) -> DataFrame:
    """Return the edges as read from either node; the edges of a node are in one partition (``_EDGE``)."""
    ahead = edges.select(
        F.col("s").alias("node"), "p", F.lit(False).alias("inverse"), F.col("o").alias("other")
    )
    back = edges.select(
        F.col("o").alias("node"), "p", F.lit(True).alias("inverse"), F.col("s").alias("other")
    )
    partitions = int(edges.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return ahead.union(back).repartition(partitions, "node")


def _vocabulary(both: DataFrame) -> list[_Triple]:
    """Return an edge of each predicate, and the labels of predicates: names of relations depend on both."""
    edges = both.where("not inverse").select(F.col("node").alias("s"), "p", F.col("other").alias("o"))
    some = edges.groupBy("p").agg(F.first(F.struct("s", "o")).alias("edge")).select("edge.s", "p", "edge.o")
    predicates = some.select(F.col("p").alias("s"))
    labels = edges.where(F.col("p").isin(_LABELS)).join(predicates, ["s"], "left_semi").select("s", "p", "o")
    return [(row.s, row.p, row.o) for row in some.union(labels).collect()]


def _parts(
    both: DataFrame, questions: DataFrame, vocabulary: Snapshot, plan: Any, mode: str | None
) -> DataFrame:
    """Return for each question (``_ID``) the edges that its automaton, names and tests read."""
    spark = both.sparkSession
    begins, moves, beside = _automata(questions, vocabulary, plan, mode)
    reads = {(state, p, inverse) for state, p, inverse, _ in moves}
    reads |= {(state, *read) for move in moves for state in (move[0], move[3]) for read in beside}
    arcs = F.broadcast(spark.createDataFrame(moves, "state int, p string, inverse boolean, next int"))
    prefixes = dict(vocabulary.prefixes)
    node = F.udf(lambda text: _term(text, prefixes), "string")
    place, edge = [_ID, "node", "state"], ["node", "p", "inverse"]
    frontier = begins.select(_ID, node("topic").alias("node"), "state").where("node is not null")
    frontier = visited = starts = frontier.localCheckpoint()
    while not frontier.join(arcs, ["state"], "left_semi").isEmpty():
        ahead = frontier.join(arcs, ["state"]).join(both, edge)
        ahead = ahead.select(_ID, F.col("other").alias("node"), F.col("next").alias("state")).distinct()
        frontier = ahead.join(visited, place, "left_anti").localCheckpoint()
        visited = visited.union(frontier)
    wanted = F.broadcast(spark.createDataFrame(sorted(reads), "state int, p string, inverse boolean"))
    found = visited.join(wanted, ["state"]).join(both, edge).select(_ID, *_EDGE)
    # One edge of the topic, so that a topic with no relation of the plan is still a node.
    one = starts.join(both, ["node"]).groupBy(_ID).agg(F.first(F.struct(*_EDGE)).alias("edge"))
    s, o = F.when(F.col("inverse"), F.col("other")), F.when(F.col("inverse"), F.col("node"))
    s, o = s.otherwise(F.col("node")).alias("s"), o.otherwise(F.col("other")).alias("o")
    triples = found.union(one.select(_ID, "edge.*")).select(_ID, F.struct(s, "p", o).alias("triple"))
    return triples.groupBy(_ID).agg(F.collect_set("triple").alias(_PART)).localCheckpoint()


def _automata(
    questions: DataFrame, vocabulary: Snapshot, plan: Any, mode: str | None
) -> tuple[DataFrame, list[tuple[int, str, bool, int]], set[tuple[str, bool]]]:
    """Return the questions with their first ``state``, the transitions, and other predicates to read.

    A transition: state, predicate, whether the edge is read backwards, next state. The other predicates are
    those of labels and of node tests, each with whether its edges are read backwards.
    """
    each = plan is None
    plans = [row.relations for row in questions.select("relations").distinct().collect()] if each else [plan]
    moves, beside = list[tuple[int, str, bool, int]](), {(label, False) for label in _LABELS}
    first, size = list[int](), 0
    for relations in plans:
        first.append(size)
        usable, _, _ = read_expressions(vocabulary, relations or (), mode_given(mode))
        automaton = Prefixes(vocabulary, [used.expression for used in usable], pruned=False)
        state = 0
        while state < len(automaton):  # which grows
            for step, target in automaton.leaving(state):
                predicate = str(vocabulary.ox_predicate(step.predicate))
                moves.append((size + state, predicate, step.inverse, size + target))
                conditions = [c for test in (*step.before, *step.after) for c in test.conditions]
                beside |= {(str(c.predicate), c.inverse) for c in conditions}
            state += 1
        size += len(automaton)
    if not each:
        return questions.withColumn("state", F.lit(0)), moves, beside
    kind = StructType([questions.schema["relations"]]).add("state", IntegerType())
    rows = questions.sparkSession.createDataFrame([*zip(plans, first, strict=True)], kind)
    same = questions["relations"].eqNullSafe(rows["relations"])
    return questions.join(F.broadcast(rows), same).drop(rows["relations"]), moves, beside


def _term(text: str | None, prefixes: Mapping[str, str]) -> str | None:
    """Return a topic as N-Triples; None for a text that is not a term, which the answer then reports."""
    try:
        return None if text is None else str(read_term(text, prefixes))
    except QueryError:
        return None

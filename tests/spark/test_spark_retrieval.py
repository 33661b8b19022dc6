"""``relations_of`` and ``retrieve`` on Spark answer as in this process: on a graph, a GraphFrame, a table."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed (the extra spark brings it)")

from pyspark.sql import DataFrame, SparkSession  # after the skip

import spaseq.paths
from spaseq.errors import EngineError, QueryMeaningError, RetrievalError
from spaseq.paths import KnowledgeGraph, Question
from spaseq.spark import relations_of, retrieve
from tests.spark.path_graphs import PREFIXES
from tests.spark.path_graphs import graph as path_graph

pytestmark = [
    # PySpark's sockets to its JVM and workers are closed when they are collected.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
#: Two nodes have one label; two predicates have one name, ``b``; a predicate has a label.
NAMED = [
    ("urn:1", LABEL, "Ada"),
    ("urn:2", LABEL, "Ada"),
    ("urn:a", LABEL, "knows"),
    ("urn:3", "urn:other/b", "urn:1"),
]
#: A search by joins takes a while, whatever the graph.
SEEDS = [4, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 1, 2, 3, 5, 6))]
TOPICS = [":1", "<urn:3>", ":stranger", "Ada", None]
LISTS = [
    [["a"], ["^b", "a"]],
    [["knows", "knows", "knows"], ["none"]],
    [["^knows", "c", "^b"], ["c"]],
]
EXPRESSIONS = [":a+/:b?", "[:c]/(:a|^:b)*/[:a <urn:1>]/:c", "!(:a|^:b)/.", "[^:b <urn:4>]/^:a"]


def triples(seed: int) -> list[tuple[str, str, str]]:
    """The edges of a small random graph."""
    return [(s[1:-1], p[1:-1], o[1:-1]) for s, p, o in path_graph(seed)[1]]


def every_way(spark: SparkSession, g: KnowledgeGraph) -> list[Any]:
    """The graph whole, as edges, and as a GraphFrame: what is used of one are its edges."""
    s, p, o = g.snapshot.edges()
    rows = [
        (str(g.ox_term(a)), str(g.ox_predicate(b)), str(g.ox_term(c)))
        for a, b, c in zip(s, p, o, strict=True)
    ]
    edges = spark.createDataFrame(rows, "src string, relationship string, dst string")
    return [g, edges, SimpleNamespace(edges=edges.select("dst", "relationship", "src"))]


def told(rows: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of the rows that have no problem, sorted."""
    return sorted(
        tuple(str(row[column]) for column in columns) for row in rows.collect() if row.problem is None
    )


def relations_here(g: KnowledgeGraph, topics: list[str | None], **more: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (topic, str([*path.relations]), str(path.count))
        for topic in topics
        for path in g.relations_of(topic, **more)
    )


def paths_here(g: KnowledgeGraph, asked: list[tuple[int, Question]], **more: Any) -> list[tuple[Any, ...]]:
    found = []
    for number, question in asked:
        (retrieval,) = spaseq.paths.retrieve_many(g, [question], **more)
        found += [
            (str(number), str(rank), str(one.score), one.text, str(g.ox_term(one.path.nodes[-1])))
            for rank, one in enumerate(retrieval, 1)
        ]
    return sorted(found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", [None, "ACYCLIC"])
def test_the_answers_are_those_found_here(spark: SparkSession, seed: int, mode: str | None) -> None:
    """Every topic with every plan: lists of names are walked without a mode, expressions are trails."""
    g = spaseq.paths.load([*triples(seed), *NAMED], PREFIXES)
    returning, plans = bool(seed % 2), EXPRESSIONS if mode else LISTS
    kind = "string" if mode else "array<array<string>>"
    rows = [(i, topic, plan) for i, (topic, plan) in enumerate(product(TOPICS[:3], plans))]
    questions = spark.createDataFrame(rows, f"number int, topic string, relations {kind}")
    more: dict[str, Any] = {"k": 1_000, "mode": mode, "returning": returning}
    wanted = paths_here(g, [(i, Question(plan, topic)) for i, topic, plan in rows], **more)
    assert wanted
    for graph in every_way(spark, g)[:2]:
        found = retrieve(graph, questions, prefixes=PREFIXES, **more)
        assert told(found, "number", "rank", "score", "text", "answer") == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relations_are_those_found_here(spark: SparkSession, seed: int) -> None:
    g = spaseq.paths.load([*triples(seed), *NAMED], PREFIXES)
    topics = spark.createDataFrame([(topic,) for topic in TOPICS[:3]], "topic string")
    more: dict[str, Any] = {"hops": 1 + (seed + 2) % 3, "k": 1_000, "returning": bool(seed % 2)}
    wanted = relations_here(g, TOPICS[:3], **more)
    assert wanted
    for graph in every_way(spark, g)[:2]:
        found = relations_of(graph, topics, prefixes=PREFIXES, **more)
        assert told(found, "topic", "relations", "count") == wanted


def test_wrong_arguments_are_errors_at_once(spark: SparkSession) -> None:
    g = spaseq.paths.load(NAMED, PREFIXES)
    topics = spark.createDataFrame([(":1",)], "topic string")
    with pytest.raises(QueryMeaningError):
        retrieve(g, topics, [["a"]], mode="NONE")
    with pytest.raises(RetrievalError):
        retrieve(g, topics, [["a"]], k=-1)
    with pytest.raises(ValueError, match="hops=0"):
        relations_of(g, topics, hops=0)
    with pytest.raises(EngineError, match="no column relations: give them, or relations="):
        retrieve(g, topics)
    with pytest.raises(EngineError, match="no column topic"):
        relations_of(g, topics.withColumnRenamed("topic", "name"))
    with pytest.raises(EngineError, match="a DataFrame with a column topic, not list"):
        relations_of(g, [":1"])  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="names or terms, not int"):
        relations_of(g, spark.createDataFrame([(1,)], "topic int"))
    with pytest.raises(EngineError, match="or a GraphFrame, not str"):
        relations_of("kb.ttl", topics)
    with pytest.raises(EngineError, match="three columns: subjects, predicates, objects; not topic"):
        relations_of(topics, topics)


def test_edges_with_nulls_and_questions_without_a_plan(spark: SparkSession) -> None:
    """Neither may change what another row says."""
    edges = spark.createDataFrame(
        [("<urn:1>", "<urn:a>", "<urn:2>"), ("<urn:2>", "<urn:a>", "<urn:3>"), (None, "<urn:a>", "<urn:1>")],
        "s string, p string, o string",
    )
    rows = [("<urn:1>", [["a"]]), ("<urn:2>", None), ("<urn:3>", None), ("<urn:4>", None)]
    questions = spark.createDataFrame(rows, "topic string, relations array<array<string>>")
    found = retrieve(edges, questions).collect()
    assert [(row.topic, row.answer) for row in found if row.problem is None] == [("<urn:1>", "<urn:2>")]
    assert [row.topic for row in found if row.problem is not None] == ["<urn:4>"]


def test_a_plan_for_each_question(spark: SparkSession) -> None:
    """With problems said by row, and the columns of the questions kept."""
    g = spaseq.paths.load([*NAMED, ("urn:1", "urn:a", "urn:2"), ("urn:2", "urn:a", "urn:3")], PREFIXES)
    plans = [[["a"]], [["knows", "knows"], ["none"]], None, [["a"]], [["b"]]]
    rows = [(i, topic, plan, "who is it") for i, (topic, plan) in enumerate(zip(TOPICS, plans, strict=True))]
    schema = "number int, topic string, relations array<array<string>>, question string"
    questions = spark.createDataFrame(rows, schema)
    for graph in every_way(spark, g):
        named = graph is g
        asked = [
            (i, Question(plan or (), topic, question))
            for i, topic, plan, question in rows
            if topic is not None and (named or topic != "Ada")
        ]
        found = retrieve(graph, questions, prefixes=PREFIXES)
        assert found.columns[:4] == questions.columns
        assert told(found, "number", "rank", "score", "text", "answer") == paths_here(g, asked)
        first = next(row for row in found.collect() if row.number == 0)
        assert [tuple(triple) for triple in first.triples] == [("<urn:1>", "<urn:a>", "<urn:2>")]
        problems = {(row.number, row.problem) for row in found.collect() if row.problem is not None}
        assert any(
            number == 1 and "no predicate of the graph is called none" in why for number, why in problems
        )
        assert (2, "<urn:stranger> is not a node of the graph") in problems
        assert (4, "there is no topic") in problems
        assert {number for number, _ in problems} == ({1, 2, 4} if named else {1, 2, 3, 4})

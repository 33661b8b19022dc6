"""Path queries over a table of edges that no single machine holds: breadth-first search by joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.paths.compile import compile_path
from spaseq.paths.expression import Condition, Expression, Step
from spaseq.paths.loading import term
from spaseq.paths.moves import Moves, Relation, Tests, moves
from spaseq.paths.parser import parse
from spaseq.spark.paths import PAIRS

#: What a run has reached: from where, where it is, and in which state.
_PLACE: Final = ["source", "node", "state"]


def path_pairs_of_edges(
    edges: DataFrame,
    expression: str | Expression,
    sources: Iterable[Any] | None = None,
    targets: Iterable[Any] | None = None,
    *,
    prefixes: Mapping[str, str] | None = None,
) -> DataFrame:
    """The pairs that a path joins, as ``KnowledgeGraph.pairs`` gives them, over edges in a DataFrame.

    ``edges``: subjects, predicates and objects as N-Triples, in this order. Every step of the search joins
    the places that are new with the edges, and leaves out (anti-join) the places that are known; it ends
    when none is new. Columns: ``source`` and ``target``, terms as N-Triples.
    """
    if isinstance(expression, str):
        expression = parse(expression, dict(prefixes or {}))
    plain = edges.toDF("s", "p", "o").distinct().cache()
    found = moves(compile_path(expression))
    backwards = sources is None and targets is not None
    begins, ends = (_texts(targets), _texts(sources)) if backwards else (_texts(sources), _texts(targets))
    pairs = _reached(plain, found.reversed() if backwards else found, begins)
    pairs = pairs.union(_empty(plain, found, begins)).distinct()
    if ends is not None:
        pairs = pairs.where(F.col("target").isin(ends))
    return (
        pairs.select(F.col("target").alias("source"), F.col("source").alias("target")) if backwards else pairs
    )


def _reached(edges: DataFrame, automaton: Moves, begins: list[str] | None) -> DataFrame:
    """What paths with an edge lead to."""
    spark = edges.sparkSession
    if not automaton.moves:
        return spark.createDataFrame([], PAIRS)
    rows = [
        _relation(edges, move.relation).select(
            "a", "b", F.lit(move.source).alias("from"), F.lit(move.target).alias("to")
        )
        for move in automaton.moves
    ]
    steps = reduce(DataFrame.union, rows).cache()
    initial = list(automaton.initial)
    if begins is None:
        first = steps.where(F.col("from").isin(initial)).select("a").distinct()
    else:
        first = spark.createDataFrame([(node,) for node in begins], "a string")
    states = spark.createDataFrame([(state,) for state in initial], "state int")
    frontier = first.crossJoin(states).select(F.col("a").alias("source"), F.col("a").alias("node"), "state")
    visited = spark.createDataFrame([], "source string, node string, state int")
    while True:
        there = frontier.join(steps, (F.col("node") == F.col("a")) & (F.col("state") == F.col("from")))
        place = there.select("source", F.col("b").alias("node"), F.col("to").alias("state")).distinct()
        frontier = place.join(visited, _PLACE, "left_anti").localCheckpoint()
        if frontier.isEmpty():
            break
        visited = visited.union(frontier).localCheckpoint()
    ended = visited.where(F.col("state").isin(list(automaton.accepting)))
    return ended.select("source", F.col("node").alias("target")).distinct()


def _empty(edges: DataFrame, automaton: Moves, begins: list[str] | None) -> DataFrame:
    """What paths without an edge join: nodes with themselves."""
    spark = edges.sparkSession
    none = spark.createDataFrame([], "node string")
    found = reduce(DataFrame.union, [_passing(edges, tests) for tests in automaton.empty], none)
    if begins is not None:
        found = found.where(F.col("node").isin(begins))
        if frozenset() in automaton.empty:
            # Also terms that are no nodes of the graph (SPARQL 1.1, section 9.3).
            found = found.union(spark.createDataFrame([(node,) for node in begins], "node string"))
    return found.select(F.col("node").alias("source"), F.col("node").alias("target"))


def _relation(edges: DataFrame, relation: Relation) -> DataFrame:
    """The edges of a relation, from ``a`` to ``b``."""
    found = _step(edges, relation.step)
    for tests, column in ((relation.before, "a"), (relation.after, "b")):
        if tests:
            passing = _passing(edges, tests).withColumnRenamed("node", column)
            found = found.join(passing, [column], "left_semi")
    return found.select("a", "b").distinct()


def _step(edges: DataFrame, step: Step) -> DataFrame:
    named = F.col("p").isin([str(predicate) for predicate in step.predicates])
    taken = edges.where(~named if step.negated else named)
    begin, end = ("o", "s") if step.inverse else ("s", "o")
    return taken.select(F.col(begin).alias("a"), F.col(end).alias("b"))


def _passing(edges: DataFrame, tests: Tests) -> DataFrame:
    """The nodes that pass all the tests."""
    found = edges.select(F.col("s").alias("node")).union(edges.select(F.col("o").alias("node"))).distinct()
    for test in tests:
        for condition in test.conditions:
            found = found.join(_fulfilling(edges, condition), ["node"], "left_semi")
    return found


def _fulfilling(edges: DataFrame, condition: Condition) -> DataFrame:
    found = _step(edges, Step((condition.predicate,), inverse=condition.inverse))
    if condition.value is not None:
        found = found.where(F.col("b") == str(condition.value))
    return found.select(F.col("a").alias("node"))


def _texts(values: Iterable[Any] | None) -> list[str] | None:
    """Terms as N-Triples, each once."""
    return None if values is None else list(dict.fromkeys(str(term(value)) for value in values))

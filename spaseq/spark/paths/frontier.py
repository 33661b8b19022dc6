"""Path queries over a table of edges that no single machine holds: breadth-first search by joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.paths.language.compile import compile_path
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.parser import parse
from spaseq.paths.language.transitions import Automaton, automaton_of
from spaseq.spark.paths._edges import PAIRS, directed, steps, texts, without_edges

#: What a run has reached: from where, where it is, and in which state.
_PLACE: Final = ["source", "node", "state"]


def path_pairs_of_edges(
    edges: DataFrame,
    expression: str | Expression,
    sources: Any = None,
    targets: Any = None,
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
    nodes = plain.select(F.col("s").alias("node")).union(plain.select(F.col("o").alias("node"))).distinct()
    found = automaton_of(compile_path(expression))
    backwards = sources is None and targets is not None
    given = [texts(side, prefixes or {}) for side in (sources, targets)]
    begins, ends = reversed(given) if backwards else given
    reached = _reached(plain, nodes, found.reversed() if backwards else found, begins)
    pairs = reached.union(without_edges(plain, nodes, found, begins)).distinct()
    return directed(pairs, ends, backwards=backwards)


def _reached(edges: DataFrame, nodes: DataFrame, automaton: Automaton, begins: list[str] | None) -> DataFrame:
    """What paths with an edge lead to."""
    spark = edges.sparkSession
    if not automaton.transitions:
        return spark.createDataFrame([], PAIRS)
    ways = steps(edges, nodes, automaton).cache()
    initial = list(automaton.initial)
    if begins is None:
        first = ways.where(F.col("state").isin(initial)).select("src").distinct()
    else:
        first = spark.createDataFrame([(node,) for node in begins], "src string")
    states = spark.createDataFrame([(state,) for state in initial], "state int")
    frontier = first.crossJoin(states).select(
        F.col("src").alias("source"), F.col("src").alias("node"), "state"
    )
    visited = spark.createDataFrame([], "source string, node string, state int")
    while True:
        there = frontier.withColumnRenamed("node", "src").join(ways, ["src", "state"])
        place = there.select("source", F.col("dst").alias("node"), F.col("next").alias("state")).distinct()
        frontier = place.join(visited, _PLACE, "left_anti").localCheckpoint()
        if frontier.isEmpty():
            break
        visited = visited.union(frontier).localCheckpoint()
    ways.unpersist()
    ended = visited.where(F.col("state").isin(list(automaton.accepting)))
    return ended.select("source", F.col("node").alias("target")).distinct()

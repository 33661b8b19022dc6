"""Path queries over a table of edges that no single machine holds: breadth-first search by joins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.paths.graph.numbering import read_term
from spaseq.paths.language.compile import compile_path
from spaseq.paths.language.expression import Condition, Expression, Step
from spaseq.paths.language.parser import parse
from spaseq.paths.language.transitions import Automaton, Relation, Tests, automaton_of

#: Pairs that a path joins, terms as N-Triples.
PAIRS: Final = "source string, target string"


def steps(edges: DataFrame, nodes: DataFrame, automaton: Automaton) -> DataFrame:
    """Return the edges that each transition of the automaton accepts: distinct (``src``, ``dst``, ``state``,
    ``next``), of which the last two are the transition's source and target.

    ``nodes`` has the one column ``node``.
    """
    none = edges.sparkSession.createDataFrame([], "src string, dst string, state int, next int")
    rows = [
        _relation(edges, nodes, transition.relation).select(
            F.col("a").alias("src"),
            F.col("b").alias("dst"),
            F.lit(transition.source).alias("state"),
            F.lit(transition.target).alias("next"),
        )
        for transition in automaton.transitions
    ]
    return reduce(DataFrame.union, rows).distinct() if rows else none


def without_edges(
    edges: DataFrame, nodes: DataFrame, automaton: Automaton, begins: list[str] | None
) -> DataFrame:
    """Return the pairs of paths without an edge: nodes with themselves."""
    spark = edges.sparkSession
    none = spark.createDataFrame([], "node string")
    found = reduce(DataFrame.union, [_passing(edges, nodes, tests) for tests in automaton.empty], none)
    if begins is not None:
        found = found.where(F.col("node").isin(begins))
        if frozenset() in automaton.empty:
            # Also terms that are not nodes of the graph (SPARQL 1.1, section 9.3).
            found = found.union(spark.createDataFrame([(node,) for node in begins], "node string"))
    return found.select(F.col("node").alias("source"), F.col("node").alias("target"))


def directed(pairs: DataFrame, ends: list[str] | None, *, backwards: bool) -> DataFrame:
    """Return a search's pairs with a target among ``ends``, as ``source`` and ``target`` of the paths."""
    if ends is not None:
        pairs = pairs.where(F.col("target").isin(ends))
    if backwards:
        pairs = pairs.select(F.col("target").alias("source"), F.col("source").alias("target"))
    return pairs


def texts(values: Any, prefixes: Mapping[str, str]) -> list[str] | None:
    """Return terms, one or several, as distinct N-Triples; None for all."""
    if values is None:
        return None
    several = isinstance(values, Iterable) and not isinstance(values, str | NamedNode | BlankNode | Literal)
    given = values if several else [values]
    return list(dict.fromkeys(str(read_term(value, prefixes)) for value in given))


def _relation(edges: DataFrame, nodes: DataFrame, relation: Relation) -> DataFrame:
    """Return the edges of a relation, from ``a`` to ``b``."""
    found = _step(edges, relation.step)
    for tests, column in ((relation.before, "a"), (relation.after, "b")):
        if tests:
            passing = _passing(edges, nodes, tests).withColumnRenamed("node", column)
            found = found.join(passing, [column], "left_semi")
    return found.select("a", "b")


def _step(edges: DataFrame, step: Step) -> DataFrame:
    named = F.col("p").isin([str(predicate) for predicate in step.predicates])
    taken = edges.where(~named if step.negated else named)
    begin, end = ("o", "s") if step.inverse else ("s", "o")
    return taken.select(F.col(begin).alias("a"), F.col(end).alias("b"))


def _passing(edges: DataFrame, nodes: DataFrame, tests: Tests) -> DataFrame:
    """Return the nodes that pass all the tests."""
    found = nodes
    for test in tests:
        for condition in test.conditions:
            found = found.join(_fulfilling(edges, condition), ["node"], "left_semi")
    return found


def _fulfilling(edges: DataFrame, condition: Condition) -> DataFrame:
    found = _step(edges, Step((condition.predicate,), inverse=condition.inverse))
    if condition.operator:
        admits = F.udf(lambda text: condition.admits(read_term(text, {})), "boolean")
        found = found.where(admits("b"))
    elif condition.value is not None:
        found = found.where(F.col("b") == str(condition.value))
    return found.select(F.col("a").alias("node"))


#: Columns of a search: its first node, the node reached, and the state there.
_PLACE: Final = ["source", "node", "state"]


def path_pairs_of_edges(
    edges: DataFrame,
    expression: str | Expression,
    sources: Any = None,
    targets: Any = None,
    *,
    prefixes: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the pairs that a path joins, like ``KnowledgeGraph.pairs``, over edges in a DataFrame.

    ``edges``: subjects, predicates and objects as N-Triples, in this order. Each step of the search joins the
    newly reached places with the edges, and removes known places by an anti-join. The search ends when no
    place is new. Columns of the result: ``source`` and ``target``, terms as N-Triples.
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
    """Return the places that paths with at least one edge reach."""
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

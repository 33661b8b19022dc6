"""Path queries over GraphFrames: by Pregel, or short ones by motifs.

A *step graph* is made from the GraphFrame: each of its edges makes a transition of the automaton. An edge has
the states from which and to which it leads, and points in the direction of the search. So the search is the
same for every query:

- *Pregel*, for 512 sources at a time, with a bit for each: a vertex has one mask per state of the automaton,
  of as many words of 64 bits as the sources need. The vertex sends new bits along the edges of their state;
  the edge's ``next`` is their new state. Messages that meet are combined by OR. The search ends when no bit
  is new.
- *Motifs*, if no path has more than three edges: chains of edges in which each edge starts in the state that
  the edge before has reached, for all sources at once.

Step graphs are of the class of the given GraphFrame.

Not yet run with the JVM package as published, which was out of reach: the tests use a stand-in made of joins,
and GraphFrames itself where its jars are available. Pregel searches with masks of one word were run by hand
with GraphFrames' own Pregel, compiled from its source; wider masks, and motifs, with the stand-in only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from types import ModuleType
from typing import Any, Final, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.errors import EngineError
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.language.compile import compile_path
from spaseq.paths.language.expression import Expression
from spaseq.paths.language.parser import parse
from spaseq.paths.language.transitions import Automaton, automaton_of
from spaseq.spark.paths.frontier import PAIRS, directed, steps, texts, without_edges

#: graphframes.GraphFrame; the package has no usable types.
GraphFrame: TypeAlias = Any

#: What GraphFrames needs in the JVM, for the Spark that this stands on: its module, and that with GraphX.
MODULES: Final = ("io.graphframes:graphframes-spark4_2.13", "io.graphframes:graphframes-graphx-spark4_2.13")

#: Words with one bit each, as Spark's signed integers.
_BITS: Final = (*(1 << i for i in range(63)), -(1 << 63))

#: The most words of a mask: one Pregel run serves as many sources as a mask has bits.
_WORDS: Final = 8

#: The most edges of paths that motifs search for: the number of walks grows with every edge, that of places
#: does not.
SHORT: Final = 3

#: The JVM's errors for classes compiled against other versions of libraries.
_LINKAGE: Final = re.compile(
    r"java\.lang\.(?:NoClassDefFoundError|NoSuchMethodError|NoSuchFieldError|AbstractMethodError"
    r"|IncompatibleClassChangeError|UnsupportedClassVersionError)[^\n]*"
)

#: Py4J's words for a call of something that does not exist.
_NO_METHOD: Final = re.compile(r"Py4JException: Method (\w+)\(.*\) does not exist")

#: More steps than any search takes: Pregel stops by itself.
_ENDLESS: Final = 2**31 - 1


def graphframe(spark: SparkSession, graph: KnowledgeGraph) -> GraphFrame:
    """Return a KnowledgeGraph as a ``graphframes.GraphFrame``, for path queries and its own algorithms.

    Columns: ``id`` of ``vertices``; ``src``, ``dst``, ``relationship`` of ``edges``; terms as N-Triples.
    Raises EngineError if the session has no GraphFrames.
    """
    graph = graph.now
    nodes = pa.array([str(graph.ox_term(node)) for node in range(graph.nodes)], pa.string())
    names = pa.array([str(graph.ox_predicate(p)) for p in range(graph.predicates)], pa.string())
    s, p, o = graph.edges()
    columns = {
        "src": nodes.take(pa.array(s)),
        "dst": nodes.take(pa.array(o)),
        "relationship": names.take(pa.array(p)),
    }
    vertices = spark.createDataFrame(pa.table({"id": nodes}))
    return _made(vertices, spark.createDataFrame(pa.table(columns)))


def _made(vertices: DataFrame, edges: DataFrame) -> GraphFrame:
    try:
        import graphframes
    except ImportError:
        raise EngineError(
            "GraphFrames' Python package is missing: pip install 'spaseq[graphframes]'"
        ) from None
    _require_new(graphframes)
    try:
        return graphframes.GraphFrame(vertices, edges)
    except Py4JError as error:
        raise _lacking(vertices.sparkSession, error) or error from None


def _require_new(package: ModuleType) -> None:
    """Raise EngineError for a Python package older than the functions that searches call."""
    try:
        # Submodules are attributes of a package only after their import.
        from graphframes.lib import Pregel

        is_new = hasattr(Pregel, "required_edge_columns")
    except ImportError:
        is_new = False
    if not is_new:
        version = getattr(package, "__version__", "of a version that it does not tell")
        raise EngineError(
            f"GraphFrames' Python package, {version}, is older than 0.12: "
            "pip install --upgrade 'spaseq[graphframes]' (the package graphframes is another, older one)"
        )


def _lacking(spark: SparkSession, error: Py4JError) -> EngineError | None:
    """Return an error that names what GraphFrames lacks in the JVM; None if ``error`` is about something
    else.
    """
    import graphframes

    ours: str = graphframes.__version__
    needed = ",".join(f"{module}:{ours}" for module in MODULES)
    hint = f"spark.jars.packages={needed}, or spark.jars=FILES where Spark cannot reach Maven Central"
    said = str(error)
    if "ClassNotFoundException: org.graphframes." in said:
        return EngineError(
            f"this Spark session has no GraphFrames: start it with {hint}\n"
            f"hint: for programs that start Spark themselves, PYSPARK_SUBMIT_ARGS='--packages {needed} "
            "pyspark-shell' in the environment does it, or '--jars FILES pyspark-shell'"
        )
    if missing := _LINKAGE.search(said):
        return EngineError(
            f"this Spark session's GraphFrames does not go with what else is there ({missing[0]}): "
            f"start it with both modules, of one version and for Spark {spark.version}: {hint}"
        )
    if lacks := _NO_METHOD.search(said):
        return EngineError(
            f"GraphFrames' JVM package, {_version(spark)}, is older than its Python package, {ours}, "
            f"and has no {lacks[1]}: start the session with {hint}"
        )
    return None


def _version(spark: SparkSession) -> str:
    """Return the version of GraphFrames in the JVM, as far as the name of its jar shows it."""
    jvm: Any = spark._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    try:
        found = loader.loadClass("org.graphframes.GraphFrame")
        place = found.getProtectionDomain().getCodeSource().getLocation().getPath()
        said: str = found.getPackage().getImplementationVersion() or place.rpartition("/")[2]
    except Py4JError:
        return "of a version that it does not tell"
    return said


def path_pairs_of_graphframe(
    frame: GraphFrame,
    expression: str | Expression,
    sources: Any = None,
    targets: Any = None,
    *,
    prefixes: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the pairs that a path joins, like ``KnowledgeGraph.pairs``, over a GraphFrame.

    ``frame`` is the result of ``graphframe``, or has the same columns. Columns of the result: ``source`` and
    ``target``, terms as N-Triples. If sources and targets are given, the search begins at the fewer of them;
    if neither is, at all nodes. Every 512 starts are one run of Pregel.
    """
    if isinstance(expression, str):
        expression = parse(expression, dict(prefixes or {}))
    found = automaton_of(compile_path(expression))
    begins, ends = (texts(side, prefixes or {}) for side in (sources, targets))
    backwards = ends is not None and (begins is None or len(ends) < len(begins))
    if backwards:
        begins, ends = ends, begins
    edges = frame.edges.select(
        F.col("src").alias("s"), F.col("relationship").alias("p"), F.col("dst").alias("o")
    )
    nodes = frame.vertices.select(F.col("id").alias("node"))
    automaton = found.reversed() if backwards else found
    step_graph = _StepGraph(type(frame), automaton, steps(edges, nodes, automaton))
    try:
        length = _longest(automaton)
        if length is None or length > SHORT:
            reached = step_graph.by_pregel(begins)
        else:
            reached = step_graph.by_motifs(begins, length)
        pairs = reached.union(without_edges(edges, nodes, found, begins)).distinct().localCheckpoint()
    except Py4JError as error:
        raise _lacking(edges.sparkSession, error) or error from None
    finally:
        step_graph.close()
    return directed(pairs, ends, backwards=backwards)


class _StepGraph:
    """The automaton's transitions in the data, as a graph: edges have a ``state`` and a ``next`` state."""

    def __init__(self, frame: type[GraphFrame], automaton: Automaton, ways: DataFrame) -> None:
        self._frame = frame
        self._automaton = automaton
        self._spark = ways.sparkSession
        self._edges = ways.cache()
        places = ways.select(F.col("src").alias("id")).union(ways.select(F.col("dst").alias("id")))
        self._vertices = places.distinct().cache()

    def close(self) -> None:
        """Free the cached DataFrames."""
        self._edges.unpersist()
        self._vertices.unpersist()

    def by_motifs(self, begins: list[str] | None, length: int) -> DataFrame:
        """Return the pairs that paths of 1 … ``length`` edges join."""
        graph = self._frame(self._vertices, self._edges)
        return reduce(
            DataFrame.union,
            [self._chains(graph, begins, edges) for edges in range(1, length + 1)],
            self._spark.createDataFrame([], PAIRS),
        )

    def _chains(self, graph: GraphFrame, begins: list[str] | None, length: int) -> DataFrame:
        # Vertices stay unnamed in the motif, so that none is joined: edges name their own ends.
        names = ["", *(f"v{i}" for i in range(1, length)), ""]
        found: DataFrame = graph.find(
            "; ".join(f"({names[i]})-[e{i}]->({names[i + 1]})" for i in range(length))
        )
        last = length - 1
        found = found.where(F.col("e0.state").isin(list(self._automaton.initial)))
        found = found.where(F.col(f"e{last}.next").isin(list(self._automaton.accepting)))
        for i in range(last):
            found = found.where(F.col(f"e{i}.next") == F.col(f"e{i + 1}.state"))
        if begins is not None:
            found = found.where(F.col("e0.src").isin(begins))
        return found.select(F.col("e0.src").alias("source"), F.col(f"e{last}.dst").alias("target"))

    def by_pregel(self, begins: list[str] | None) -> DataFrame:
        """Return the pairs that paths with at least one edge join."""
        first = self._edges.where(F.col("state").isin(list(self._automaton.initial))).select("src").distinct()
        if begins is not None:
            first = first.where(F.col("src").isin(begins))
        starts = [row.src for row in first.collect()]
        size = len(_BITS) * _WORDS
        batches = (starts[i : i + size] for i in range(0, len(starts), size))
        return reduce(DataFrame.union, map(self._run, batches), self._spark.createDataFrame([], PAIRS))

    def _run(self, starts: Sequence[str]) -> DataFrame:
        """Return what these nodes reach: at most as many nodes as a mask has bits."""
        many = len(_BITS)
        words = -(-len(starts) // many)
        rows = [(start, i // many, _BITS[i % many]) for i, start in enumerate(starts)]
        bits = F.broadcast(self._spark.createDataFrame(rows, "source string, word int, bit long"))
        start = [F.when(F.col("word") == word, F.col("bit")).otherwise(_no_bits()) for word in range(words)]
        begin = bits.select(F.col("source").alias("id"), F.array(*start).alias("start"))
        frame = self._frame(self._vertices.join(begin, ["id"], "left"), self._edges)
        reached = self._search(frame, words)
        mask = reduce(_joined, [_of_state(F.col("reached"), q, words) for q in self._automaton.accepting])
        ended = reached.select("id", mask.alias("mask")).where(F.exists("mask", _any_bit))
        pairs = ended.join(bits, F.get("mask", "word").bitwiseAND(F.col("bit")) != 0)
        pairs = pairs.select("source", F.col("id").alias("target")).localCheckpoint()
        reached.unpersist()
        return pairs

    def _search(self, graph: GraphFrame, words: int) -> DataFrame:
        """Return the vertices with ``reached``: per state, the starts of paths that end here in this state.

        The empty path does not count: at its start, a bit is ``new`` in the initial states, but not
        ``reached``.
        """
        states = range(self._automaton.size)
        none = F.array(*[_no_bits()] * words)
        nothing = F.array(*[_no_bits()] * (words * len(states)))
        start = F.coalesce("start", none)
        seed = F.concat(*[start if q in self._automaton.initial else none for q in states])
        pregel = graph.pregel
        bits = _of_state(pregel.src("new"), pregel.edge("state"), words)
        sent = F.when(
            F.exists(bits, _any_bit), F.struct(pregel.edge("next").alias("state"), bits.alias("bits"))
        )
        came, of = pregel.msg()["bits"], pregel.msg()["state"]
        joined = F.array(
            *[
                F.coalesce(F.bit_or(F.when(of == q, F.get(came, F.lit(word)))), _no_bits())
                for q in states
                for word in range(words)
            ]
        )
        new = F.zip_with(pregel.msg(), "reached", lambda came, known: came.bitwiseAND(F.bitwise_not(known)))
        new = F.coalesce(new, nothing)
        both = F.coalesce(_joined(pregel.msg(), F.col("reached")), F.col("reached"))
        # According to its documentation it sees vertices after a step; in GraphFrames 0.12 it sees them
        # before.
        active = F.exists(new, _any_bit) | F.exists("new", _any_bit)
        found: DataFrame = (
            pregel.withVertexColumn("new", seed, new)
            .withVertexColumn("reached", nothing, both)
            .required_src_columns("new")
            .required_edge_columns("state", "next")
            .sendMsgToDst(sent)
            .aggMsgs(joined)
            .setInitialActiveVertexExpression(F.exists(start, _any_bit))
            .setUpdateActiveVertexExpression(active)
            .setSkipMessagesFromNonActiveVertices(True)
            .setEarlyStopping(True)
            .setMaxIter(_ENDLESS)
            .setUseLocalCheckpoints(True)
            .setCheckpointInterval(1)
            .run()
        )
        return found


def _of_state(masks: Column, state: Column | int, words: int) -> Column:
    """Return the words of one state's mask, out of the words of all states."""
    first = (F.lit(state) if isinstance(state, int) else state) * words + 1
    return F.slice(masks, first.cast("int"), words)


def _joined(mask: Column, other: Column) -> Column:
    """Return the bits that are set in either mask."""
    return F.zip_with(mask, other, Column.bitwiseOR)


def _no_bits() -> Column:
    return F.lit(0).cast("long")


def _any_bit(mask: Column) -> Column:
    return mask != 0


def _longest(automaton: Automaton) -> int | None:
    """Return the number of edges of the longest path; None if lengths have no bound."""
    here, length = set(automaton.initial), 0
    while here := {transition.target for transition in automaton.transitions if transition.source in here}:
        length += 1
        if length > automaton.size:
            return None
    return length

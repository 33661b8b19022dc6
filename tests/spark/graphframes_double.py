"""A stand-in for GraphFrames: what ``spaseq.spark.paths.graphframes`` uses of it, by plain joins.

Names, arguments and what columns mean are those of graphframes-py 0.12 (``test_spark_graphframes`` compares
the signatures), and it is as strict where that could matter: edges have only the columns asked for, messages
that are null are not sent, a vertex that is not active sends nothing.
"""

from __future__ import annotations

import re
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

_EDGE = re.compile(r"\((\w*)\)-\[(\w+)\]->\((\w*)\)")


class GraphFrame:
    """A graph as two DataFrames: vertices (``id``), and edges (``src``, ``dst``)."""

    def __init__(self, v: DataFrame, e: DataFrame) -> None:
        if "id" not in v.columns or not {"src", "dst"} <= set(e.columns):
            raise ValueError(f"columns are missing: {v.columns}, {e.columns}")
        self.vertices = v
        self.edges = e

    @property
    def pregel(self) -> Pregel:
        """A new computation."""
        return Pregel(self)

    def find(self, pattern: str) -> DataFrame:
        """Chains of named edges: a struct for each of them, and for vertices that have a name."""
        found: DataFrame | None = None
        for part in pattern.split(";"):
            match = _EDGE.fullmatch(part.strip())
            assert match is not None, part
            here, edge, there = match.groups()
            step = self.edges.select(
                F.struct("*").alias(edge), F.col("src").alias("s"), F.col("dst").alias("d")
            )
            if found is not None:
                step = found.join(step, F.col(f"{here}.id") == F.col("s"))
            elif here:
                step = step.join(self._named(here), F.col("s") == F.col(f"{here}.id"))
            if there:
                step = step.join(self._named(there), F.col("d") == F.col(f"{there}.id"))
            found = step.drop("s", "d")
        assert found is not None
        return found

    def _named(self, name: str) -> DataFrame:
        return self.vertices.select(F.struct("*").alias(name))


class Pregel:
    """Supersteps: messages along edges, joined where they meet, and vertices that take them."""

    #: Whether the expression for activity sees vertices as they are after a step, as graphframes-py says, or
    #: as they were before, as GraphFrames 0.12 does it.
    sees_what_is_new = False

    def __init__(self, graph: GraphFrame) -> None:
        self.graph = graph
        self.supersteps = 0
        self._columns: list[tuple[str, Column, Column]] = []
        self._messages: list[tuple[str, Column]] = []
        self._joined: Column | None = None
        self._most = 10
        self._stops_early = False
        self._skips = False
        self._active = (F.lit(True), F.lit(True))
        self._interval = 2
        self._locally = False
        self._of_sources: tuple[str, ...] = ()
        self._of_edges: tuple[str, ...] = ()

    def setMaxIter(self, value: int) -> Pregel:  # noqa: N802  # GraphFrames' names, here and below
        self._most = value
        return self

    def setCheckpointInterval(self, value: int) -> Pregel:  # noqa: N802
        self._interval = value
        return self

    def setUseLocalCheckpoints(self, value: bool) -> Pregel:  # noqa: N802
        self._locally = value
        return self

    def setEarlyStopping(self, value: bool) -> Pregel:  # noqa: N802
        self._stops_early = value
        return self

    def setSkipMessagesFromNonActiveVertices(self, value: bool) -> Pregel:  # noqa: N802
        self._skips = value
        return self

    def setInitialActiveVertexExpression(self, value: Column) -> Pregel:  # noqa: N802
        self._active = (value, self._active[1])
        return self

    def setUpdateActiveVertexExpression(self, value: Column) -> Pregel:  # noqa: N802
        self._active = (self._active[0], value)
        return self

    def withVertexColumn(  # noqa: N802
        self,
        colName: str,  # noqa: N803
        initialExpr: Column,  # noqa: N803
        updateAfterAggMsgsExpr: Column,  # noqa: N803
    ) -> Pregel:
        self._columns.append((colName, initialExpr, updateAfterAggMsgsExpr))
        return self

    def required_src_columns(self, col_name: str, *col_names: str) -> Pregel:
        self._of_sources = (col_name, *col_names)
        return self

    def required_edge_columns(self, col_name: str, *col_names: str) -> Pregel:
        self._of_edges = (col_name, *col_names)
        return self

    def sendMsgToDst(self, msgExpr: Column) -> Pregel:  # noqa: N802, N803
        self._messages.append(("dst.id", msgExpr))
        return self

    def aggMsgs(self, aggExpr: Column) -> Pregel:  # noqa: N802, N803
        self._joined = aggExpr
        return self

    def run(self) -> DataFrame:
        """The vertices in the end."""
        assert self._joined is not None
        assert self._locally, "a folder for checkpoints is not set"
        own = self.graph.vertices.columns
        vertices = self.graph.vertices.select(
            *own,
            self._active[0].alias("_pregel_is_active"),
            *[first.alias(n) for n, first, _ in self._columns],
        )
        edges = self.graph.edges.select(
            F.col("src").alias("edge_src"),
            F.col("dst").alias("edge_dst"),
            F.struct(*self._of_edges).alias("edge"),
        )
        while self.supersteps < self._most:
            sending = vertices.where("_pregel_is_active") if self._skips else vertices
            source = F.struct("id", "_pregel_is_active", *self._of_sources).alias("src")
            triplets = sending.select(source).join(edges, F.col("src.id") == F.col("edge_src"))
            triplets = triplets.withColumn("dst", F.struct(F.col("edge_dst").alias("id")))
            sent = [
                triplets.select(F.col(to).alias("id"), message.alias("_pregel_msg_"))
                for to, message in self._messages
            ]
            messages = reduce(DataFrame.union, sent).where("_pregel_msg_ is not null")
            if self._stops_early and messages.isEmpty():
                break
            self.supersteps += 1
            came = messages.groupBy("id").agg(self._joined.alias("_pregel_msg_"))
            vertices = self._updated(vertices.join(came, ["id"], "left_outer"), own)
            if self._interval and self.supersteps % self._interval == 0:
                vertices = vertices.localCheckpoint(eager=False)
        return vertices.persist()

    def _updated(self, vertices: DataFrame, own: list[str]) -> DataFrame:
        active = self._active[1].alias("_pregel_is_active")
        after = [update.alias(name) for name, _, update in self._columns]
        if not self.sees_what_is_new:
            return vertices.select(*own, active, *after)
        return vertices.select(*own, "_pregel_msg_", *after).select(
            *own, active, *[n for n, _, _ in self._columns]
        )

    @staticmethod
    def msg() -> Column:
        """What came, in expressions for vertices."""
        return F.col("_pregel_msg_")

    @staticmethod
    def src(colName: str) -> Column:  # noqa: N803
        """A column of the source, in messages."""
        return F.col(f"src.{colName}")

    @staticmethod
    def edge(colName: str) -> Column:  # noqa: N803
        """A column of the edge, in messages."""
        return F.col(f"edge.{colName}")

"""Background graphs as DataFrames: terms as numbers, and a table of two columns for each predicate.

A query's GRAPH patterns are evaluated here as joins of these tables, once, when the query starts. Their
solutions are then sent to the workers (``_background``): a join inside a streaming plan is planned, and reads
its table, in every micro-batch. Only solutions that are too many stay here and are joined (``_joined``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyoxigraph import BlankNode, Literal, NamedNode
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.errors import KnowledgeError
from spaseq.language.scope import variables
from spaseq.language.syntax import Graph, Query, TriplePattern, Triples, Var
from spaseq.patterns.expressions.walk import only_joins, patterns
from spaseq.patterns.kb import KnowledgeBase, _Graphs
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.spark.background._background import entered, labelled
from spaseq.spark.background._triples import Source, numbered
from spaseq.spark.sessions import frame_of, require_classic, table_of
from spaseq.terms.dictionary import Dictionary, Term

#: Tables of up to this many rows are sent to every worker to be joined there.
_BROADCAST: Final = 1_000_000

#: Up to this many solutions of a GRAPH pattern are sent to every worker: a million take some 150 MB per
#: process.
BROADCAST_LIMIT: Final = 2_000_000


def knowledge(
    spark: SparkSession,
    graphs: Mapping[str, Source] | None = None,
    *,
    parquet: str | Path | None = None,
    broadcast_limit: int = BROADCAST_LIMIT,
) -> SparkKnowledge:
    """Return background graphs as DataFrames; ``graphs``: by IRI; for the ``kb`` of ``run`` and ``matches``.

    A graph is a background graph of ``spaseq.run``; or a DataFrame; the name of a table; a folder, a pattern
    or a URL of any file system that Spark reads; or a list of these. A DataFrame has the columns ``s``,
    ``p``, ``o``, or ``subject``, ``predicate``, ``object``. They contain terms in N-Triples, plain IRIs, or
    values with the columns ``datatype`` or ``lang``; a column of numbers needs neither. Workers parse
    N-Triples and N-Quads by lines (also ``.txt``, as Spark writes them, and ``.gz``), and other formats by
    files.

    ``parquet``: a folder. The graphs are written there, or read from there if no graphs are given. Raises
    KnowledgeError for graphs that cannot be read.

    A GRAPH pattern with more than ``broadcast_limit`` solutions is not sent to the workers. Its solutions
    stay in a DataFrame, cached until the session ends or ``spark.catalog.clearCache()``, and are joined with
    each batch of events. The join's key is the variables that events bind for certain: by the triples beside
    GRAPH in the GPM, or before the OPTIONAL or MINUS around it. Without such variables, and if EXISTS reads a
    background graph, the solutions are sent nevertheless, with a warning. The join reads the whole DataFrame
    in every micro-batch: some 2.5 s of processor time per million solutions.
    """
    require_classic(spark)
    if graphs is None and parquet is None:
        raise KnowledgeError("neither graphs nor a folder of them were given")
    if graphs is not None:
        triples, terms = numbered(spark, graphs)
        if parquet is not None:
            triples.write.mode("overwrite").partitionBy("g", "p").parquet(f"{parquet}/triples")
            terms.write.mode("overwrite").parquet(f"{parquet}/terms")
    if parquet is not None:
        triples, terms = _read(spark, f"{parquet}")
    names = None if graphs is None else tuple(sorted(graphs))
    return SparkKnowledge(spark, triples.cache(), terms.cache(), broadcast_limit, names)


def _read(spark: SparkSession, folder: str) -> tuple[DataFrame, DataFrame]:
    """Return the triples and terms stored in a folder of any file system that Spark reads."""
    columns = [F.col(name).cast("bigint").alias(name) for name in "gpso"]
    try:
        triples = spark.read.parquet(f"{folder}/triples").select(*columns)
        return triples, spark.read.parquet(f"{folder}/terms")
    except AnalysisException as error:
        if "[PATH_NOT_FOUND]" not in str(error):
            raise
        raise KnowledgeError(f"{folder}: no background graphs were written there") from None


class SparkKnowledge:
    """Background graphs as DataFrames: ``triples`` (g, p, s, o) and ``terms`` (id, term)."""

    def __init__(
        self,
        spark: SparkSession,
        triples: DataFrame,
        terms: DataFrame,
        broadcast_limit: int,
        names: tuple[str, ...] | None = None,
    ) -> None:
        """``names``: the IRIs of the graphs; by default, of the graphs with triples."""
        self._names = names
        self.broadcast_limit = broadcast_limit
        self.triples = triples
        self.terms = terms
        self._spark = spark
        self._views: dict[tuple[int, int], tuple[DataFrame, int]] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The IRIs of the graphs."""
        if self._names is not None:
            return self._names
        graphs = self.triples.select("g").distinct().withColumnRenamed("g", "id")
        return tuple(sorted(row.term[1:-1] for row in self.terms.join(graphs, "id").collect()))

    def require(self, query: Query) -> None:
        """Raise ``KnowledgeError`` if the query names a graph that is not here."""
        here = KnowledgeBase({})
        here._graphs = _Graphs({NamedNode(name): [] for name in self.names})
        here.require(query)

    def view(self, graph: int, predicate: int) -> tuple[DataFrame, int]:
        """Return a predicate's table (s, o) in a graph, and its number of rows; both are kept after the first
        call.
        """
        found = self._views.get((graph, predicate))
        if found is None:
            rows = (
                self.triples.where((F.col("g") == graph) & (F.col("p") == predicate)).select("s", "o").cache()
            )
            found = self._views[graph, predicate] = rows, rows.count()
        return found

    def solutions(self, graph: Graph, visible: Iterable[str]) -> DataFrame | None:
        """Return a GRAPH pattern's solutions, terms as numbers, if it is triples with plain predicates."""
        parts = [p for inner in patterns(graph.pattern) if isinstance(inner, Triples) for p in inner.patterns]
        plain = all(isinstance(part.predicate, NamedNode) for part in parts)
        if not parts or not plain or not only_joins(graph.pattern):
            return None
        constants = {term for part in parts for term in _constants(part)}
        wanted = (
            [graph.name] if isinstance(graph.name, NamedNode) else [NamedNode(n) for n in sorted(visible)]
        )
        ids = self._ids([*constants, *wanted])
        names = sorted(
            variables(graph.pattern) | ({graph.name.name} if isinstance(graph.name, Var) else set())
        )
        tables = []
        if all(str(constant) in ids for constant in constants):
            for name in wanted:
                if str(name) in ids:
                    joined = self._joined(parts, ids[str(name)], ids)
                    if isinstance(graph.name, Var):
                        column = F.lit(ids[str(name)])
                        own = graph.name.name
                        joined = (
                            joined.where(F.col(own) == column)
                            if own in joined.columns
                            else (joined.withColumn(own, column))
                        )
                    tables.append(joined.select(*names))
        if not tables:
            return self.terms.where(F.lit(False)).select(*(F.col("id").alias(name) for name in names))
        return reduce(DataFrame.unionAll, tables)

    def texts(self, rows: DataFrame) -> DataFrame:
        """Return the same with terms in N-Triples."""
        for name in rows.columns:
            named = self.terms.select(F.col("id").alias(name), F.col("term").alias(f"{name} term"))
            rows = rows.join(named, name).drop(name).withColumnRenamed(f"{name} term", name)
        return rows

    def local(self) -> KnowledgeBase:
        """Return the same graphs in this process."""
        rows = self.triples
        for column in "gpso":
            named = self.terms.select(F.col("id").alias(column), F.col("term").alias(f"{column}_term"))
            rows = rows.join(named, column)
        text = "".join(
            f"{row.s_term} {row.p_term} {row.o_term} {row.g_term} .\n" for row in rows.toLocalIterator()
        )
        return labelled(text.encode(), self.names)

    def _ids(self, terms: Iterable[Term]) -> dict[str, int]:
        texts = sorted({str(term) for term in terms})
        return {row.term: row.id for row in self.terms.where(F.col("term").isin(texts)).collect()}

    def _joined(self, parts: Iterable[TriplePattern], graph: int, ids: Mapping[str, int]) -> DataFrame:
        """Return the join of triple patterns: the smallest table first, then always one that shares a
        variable.
        """
        tables = []
        for part in parts:
            rows, size = self.view(graph, ids[str(part.predicate)])
            tables.append((size, _bound(rows, part, ids)))
        tables.sort(key=lambda table: table[0])
        _, joined = tables.pop(0)
        while tables:
            near = next((t for t in tables if set(t[1].columns) & set(joined.columns)), tables[0])
            tables.remove(near)
            size, rows = near
            shared = sorted(set(rows.columns) & set(joined.columns))
            right = F.broadcast(rows) if size <= _BROADCAST else rows
            joined = joined.join(right, shared) if shared else joined.crossJoin(right)
        return joined

    def collected(self, rows: DataFrame, dictionary: Dictionary) -> Solutions:
        """Return solutions as a table in this process, with their terms entered into a dictionary."""
        found = table_of(rows)
        columns = {name: found.column(name).to_numpy() for name in rows.columns}
        used = np.unique(np.concatenate([*columns.values(), np.zeros(0, dtype=np.int64)])).astype(np.int64)
        keys = frame_of(self._spark, pa.table({"id": used}))
        terms = table_of(self.terms.join(F.broadcast(keys), "id")).sort_by("id")
        with dictionary.lock:
            ids = entered(terms.column("term"), dictionary)
            tables = {name: ids[np.searchsorted(used, column)] for name, column in columns.items()}
            return Solutions(found.num_rows, None, tables)


def _constants(part: TriplePattern) -> list[Term]:
    """Return the terms of a triple pattern that are not variables."""
    terms = (part.subject, part.predicate, part.object)
    return [term for term in terms if isinstance(term, NamedNode | Literal)]


def _bound(rows: DataFrame, part: TriplePattern, ids: Mapping[str, int]) -> DataFrame:
    """Return a view with a triple pattern's variables as columns; blank nodes count as variables."""
    columns: dict[str, str] = {}
    for place, term in (("s", part.subject), ("o", part.object)):
        if not isinstance(term, Var | BlankNode):
            rows = rows.where(F.col(place) == ids[str(term)])
            continue
        name = term.name if isinstance(term, Var) else f" {term.value}"
        if name in columns:
            rows = rows.where(F.col("s") == F.col("o"))
        columns[name] = place
    return rows.select(*(F.col(place).alias(name) for name, place in columns.items()))

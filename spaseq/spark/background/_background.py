"""Background graphs on their way to the workers.

The driver evaluates a GRAPH pattern once, and only its solutions are sent. If a pattern may have other
solutions in each event (EXISTS, the general route), the graphs themselves are sent as N-Quads. Their blank
nodes keep their labels, so that every process means the same node by a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse, serialize

from spaseq.automaton.pattern import SequencePattern
from spaseq.chunks import Array, chosen, numbered, pack, require, terms_in, terms_out, unpack, unpacking
from spaseq.events import Clock, EventBatch, Ids, batch_of
from spaseq.language.scope import occurring
from spaseq.language.syntax import Graph
from spaseq.limits import Limits
from spaseq.patterns.expressions.walk import exists_in, expressions, patterns
from spaseq.patterns.kb import KnowledgeBase, _Graphs
from spaseq.patterns.spectra.joins import covers
from spaseq.patterns.spectra.solutions import Solutions
from spaseq.sources.scan.fast import Quads
from spaseq.terms.dictionary import UNBOUND, Dictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAM: Final = NamedNode("urn:spaseq:kb")


@dataclass(frozen=True, slots=True)
class Local:
    """Bytes in this process: the substitute for a broadcast."""

    value: bytes


class _Labelled(_Graphs):
    """Graphs that keep the labels of blank nodes, so that a label is the same node in every process."""

    def batch(self, dictionary: Dictionary) -> EventBatch:
        if self._batch is None or self._batch.dictionary is not dictionary:
            self._batch = self._interned(dictionary)
        return self._batch

    def _interned(self, dictionary: Dictionary) -> EventBatch:
        intern = dictionary.intern
        with dictionary.lock:
            # Each triple once in its graph.
            rows: dict[tuple[int, int, int, int], None] = {}
            offset = [0]
            for triples in self.triples.values():
                for s, p, o in triples:
                    # There are no triple terms: KnowledgeBase leaves them out.
                    assert not isinstance(s, Triple)
                    assert not isinstance(o, Triple)
                    rows[intern(s), intern(p), intern(o), len(offset)] = None
                offset.append(len(rows))
            s, p, o, _ = np.array(list(rows), dtype=np.int64).reshape(-1, 4).T.copy()
            zeros = np.zeros(len(self.triples), dtype=np.int64)
            names = np.array([intern(name) for name in self.triples], dtype=np.int64)
            stream, n = zeros + dictionary.pin(_STREAM), np.arange(len(zeros))
            of_events = stream, names, zeros, n, np.array(offset, dtype=np.int64)
            return batch_of(dictionary, Clock.TICKS, of_events, (s, p, o))


def asked_once(pattern: SequencePattern) -> tuple[Graph, ...] | None:
    """Return a query's GRAPH patterns if each is the same in every event; None if one may not be."""
    parts = list(pattern.gpms.values())
    filters = [f.condition for f in (*pattern.where, *(f for part in parts for f in part.correlated))]
    asked = [e for part in parts for e in expressions(part.stateless)] + filters
    if any(exists_in(expression) for expression in asked):
        return None
    found: dict[Graph, None] = {}
    for part in parts:
        graphs = [inner for inner in patterns(part.stateless) if isinstance(inner, Graph)]
        ambient = {variable.name for variable in (part.gpm.time, part.gpm.graph) if variable is not None}
        if graphs and (covers(part.stateless) or any(ambient & occurring(graph) for graph in graphs)):
            return None
        found |= dict.fromkeys(graphs)
    return tuple(found)


def receive(data: bytes, pattern: SequencePattern, dictionary: Dictionary) -> KnowledgeBase:
    """Return the knowledge base in these bytes, for this query and dictionary."""
    header, arrays = unpack(data)
    with unpacking():
        if header["tables"] is None:
            return labelled(arrays["quads"].tobytes(), header["names"]).restrict(pattern.query.knowledge)
        ids = terms_in(dictionary, arrays)
        found = {
            graph: _table(ids, arrays, *table)
            for graph, table in zip(asked_once(pattern) or (), header["tables"], strict=True)
            if table is not None
        }
    return besides(KnowledgeBase({}), found, dictionary)


def _table(ids: Ids, arrays: Mapping[str, Array], size: int, names: Mapping[str, str]) -> Solutions:
    """Return the solutions of a GRAPH pattern. Raises ValueError for a number that stands for no term."""
    columns = {name: chosen(ids, arrays[column]) for name, column in names.items()}
    require(size >= 0 and all(len(column) == size for column in columns.values()), "a column of solutions")
    return Solutions(size, None, columns)


def besides(kb: KnowledgeBase, found: Mapping[Graph, Solutions], dictionary: Dictionary) -> KnowledgeBase:
    """Return a received knowledge base with the solutions of further GRAPH patterns."""
    other = KnowledgeBase({})
    other._cache = {**kb._cache, **found}
    other._cached_for = dictionary
    dictionary.hold(other)
    return other


def tables(found: Sequence[Solutions | None], dictionary: Dictionary) -> bytes:
    """Return each GRAPH pattern's solutions, in the order of ``asked_once``; None if Spark joins them."""
    columns = [column for table in found if table is not None for column in table.columns.values()]
    used, local = numbered(dictionary, columns)
    arrays: dict[str, Any] = {}
    header: list[tuple[int, dict[str, str]] | None] = []
    for table in found:
        if table is None:
            header.append(None)
            continue
        names = {}
        for name, column in table.columns.items():
            names[name] = f"c{len(arrays)}"
            arrays[names[name]] = local[column]
        header.append((len(table), names))
    return pack({"tables": header}, arrays | terms_out(dictionary, used))


def whole(kb: KnowledgeBase) -> bytes:
    """Return the graphs themselves as bytes."""
    quads = (
        Quad(triple.subject, triple.predicate, triple.object, name)
        for name, triples in kb._graphs.triples.items()
        for triple in triples
    )
    text = serialize(quads, format=RdfFormat.N_QUADS)
    assert text is not None  # it is None only when written to a file
    names = [name.value for name in kb._graphs.triples]
    return pack({"tables": None, "names": names}, {"quads": np.frombuffer(text, dtype=np.uint8)})


def labelled(text: bytes, names: Sequence[str]) -> KnowledgeBase:
    """Return graphs of N-Quads that keep the labels of blank nodes."""
    triples: dict[NamedNode, list[Triple]] = {NamedNode(name): [] for name in names}
    for quad in parse(text, format=RdfFormat.N_QUADS):
        assert isinstance(quad.graph_name, NamedNode)
        triples[quad.graph_name].append(quad.triple)
    kb = KnowledgeBase({})
    kb._graphs, kb._visible = _Labelled(triples), frozenset(triples)
    return kb


def entered(terms: pa.Array | pa.ChunkedArray, dictionary: Dictionary) -> Ids:
    """Return the ids of terms in N-Triples, with 0 for null. Blank nodes keep their labels."""
    if isinstance(terms, pa.ChunkedArray):
        terms = terms.combine_chunks()
    coded = terms.dictionary_encode()
    lines = "".join(f"<x:x> <x:x> {text} .\n" for text in coded.dictionary.to_pylist()).encode()
    with dictionary.lock:
        quads = Quads("nt", dictionary, Limits(term_bytes=None))
        if quads.read(lines) and quads.count == len(coded.dictionary):
            ids = quads.rows[2, : quads.count]
        else:
            objects = (quad.object for quad in parse(lines, format=RdfFormat.N_TRIPLES))
            # There are no triple terms: KnowledgeBase leaves them out.
            known = [dictionary.intern(term) for term in objects if not isinstance(term, Triple)]
            ids = np.array(known, dtype=np.int64)
    places = coded.indices.fill_null(len(ids)).to_numpy(zero_copy_only=False)
    found: Ids = np.append(ids, UNBOUND)[places]
    return found


# --- files that Spark brings to every machine ---------------------------------------------------
#
# The stateful stage of a stream gets background graphs so: the process that Spark starts to ask a processor
# for its states reads no broadcast, and PySpark makes one of every function that takes more than 1 MB.


@dataclass(frozen=True, slots=True)
class Filed:
    """The bytes of a file that Spark has copied to every machine, for a task to read."""

    name: str

    @property
    def value(self) -> bytes:
        """The bytes."""
        from pyspark import SparkFiles

        return Path(SparkFiles.get(self.name)).read_bytes()


def filed(spark: SparkSession, data: bytes) -> Filed:
    """These bytes, for all tasks to come. The file is named by a hash of them, and there once."""
    name = f"spaseq-{blake2b(data, digest_size=16).hexdigest()}.kb"
    path = Path(_folder().name) / name
    if not path.exists():
        path.write_bytes(data)
    spark.sparkContext.addFile(str(path))
    return Filed(name)


@lru_cache(maxsize=1)
def _folder() -> TemporaryDirectory[str]:
    """Return a folder from which machines fetch files as long as this process lives."""
    return TemporaryDirectory(prefix="spaseq-")

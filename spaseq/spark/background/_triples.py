"""Background graphs → triples of numbers, and the terms of these numbers. Spark's workers parse the files.

A term's number is a hash of its N-Triples text, so that all workers give it the same number. Triples and
terms are sent in blocks: a row for each would cost Spark more than all the rest. A hash decides which task
gets them, and that task keeps each once. If two terms have the same number, this task notices, and all terms
are numbered again from another seed.
"""

from __future__ import annotations

import gzip
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import groupby, islice
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard
from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple
from pyspark import StorageLevel
from pyspark.accumulators import Accumulator
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own name for it

from spaseq.chunks import labelled, pack, terms_out, unpack
from spaseq.errors import KnowledgeError, warn
from spaseq.events import Ids
from spaseq.excerpts import bounded
from spaseq.limits import Limits
from spaseq.patterns.kb import _FORMATS, _named, _read, _triples
from spaseq.patterns.kb import Source as Knowledge
from spaseq.sources._bytes import MARK
from spaseq.sources.scan.fast import Quads
from spaseq.spark.sessions import frame_of
from spaseq.spark.source._blocks import arrow_schema
from spaseq.spark.source._rows import binaries, without_repeated
from spaseq.spark.stages._job import bucket_numbers
from spaseq.terms import _table_kernel as kernels
from spaseq.terms._table_kernel import KIND, LABEL
from spaseq.terms.dictionary import UNBOUND, Dictionary

#: A background graph: a source of ``spaseq.run``, a DataFrame, the name of a table, or several of these.
One: TypeAlias = "Knowledge | DataFrame"
Source: TypeAlias = "One | list[One] | tuple[One, ...]"

#: Local files of at most this many bytes are parsed by the driver: a task of Spark's costs more.
_SMALL: Final = 1 << 20

#: How many triples of a file that is not read by lines are numbered at once.
_AT_ONCE: Final = 1 << 16

#: The most terms that a worker remembers: beyond that, it forgets them and sends them again.
_TERMS: Final = 1 << 20

_LINES: Final = ("nt", "ntriples", "nq", "nquads", "txt")
_PACKED: Final = ("gz", "zst")
_NAME: Final = re.compile(r"[\w.`]+")

#: About how many triples a task passes on at once.
_BLOCK: Final = 1 << 18

#: Parts for each of Spark's partitions. Only one at a time is in the memory of a task.
_PARTS: Final = 8

#: A row is a block of ``triples`` (p, s, o) or ``terms`` (id, ends, text) for a ``part``, or reports errors
#: and omissions.
_CODED: Final = "part int, triples binary, terms binary, problem string, note string"
_ARROW: Final = arrow_schema(_CODED)

_TRIPLES: Final = "g bigint, p bigint, s bigint, o bigint"
_TERMS_ONCE: Final = "id bigint, term string"

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"


class Numbered(NamedTuple):
    """Graphs as DataFrames: ``triples`` (g, p, s, o), ``terms`` (id, term in N-Triples); both are cached."""

    triples: DataFrame
    terms: DataFrame


def numbers(dictionary: Dictionary, ids: Ids, seed: int = 0) -> Ids:
    """Return the numbers of some terms, each id once: the same in every process."""
    table = labelled(dictionary, ids)
    found = np.full(len(ids), seed, dtype=np.int64)
    kernels.hash_terms(table.terms, table.arena, ids, found)
    return found


def numbered(spark: SparkSession, graphs: Mapping[str, Source], seed: int = 0) -> Numbered:
    """Return the triples and terms of background graphs, by IRI.

    Raises KnowledgeError for a source that cannot be read.
    """
    local: list[pa.Table] = []
    parts: list[DataFrame] = []
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    for iri, source in graphs.items():
        coder = Coder(_named(iri), seed, bucket_numbers(partitions * _PARTS))
        begun = pa.Table.from_batches([coder.block()])
        local.append(begun.append_column("g", pa.array(np.full(len(begun), coder.graph))))
        for place, one in enumerate(source if isinstance(source, list | tuple) else [source]):
            coded = _coded(spark, iri, one, coder, f"{place}")
            if isinstance(coded, DataFrame):
                parts.append(coded.withColumn("g", F.lit(coder.graph)))
            else:
                graph = pa.array(np.full(len(coded), coder.graph))
                local.append(coded.append_column("g", graph))
    whole = frame_of(spark, pa.concat_tables(local))
    for part in parts:
        whole = whole.unionAll(part)
    whole = whole.persist(StorageLevel.MEMORY_AND_DISK)
    said = whole.where("problem IS NOT NULL OR note IS NOT NULL").select("problem", "note").collect()
    for row in said:
        if row.problem is not None:
            whole.unpersist()
            raise KnowledgeError(row.problem)
    for note in dict.fromkeys(row.note for row in said):
        warn(note)
    clashes: Accumulator[int] = spark.sparkContext.accumulator(0)
    triples, terms = (
        whole.where(f"{what} IS NOT NULL").repartition(partitions, "part").sortWithinPartitions("part")
        .mapInArrow(stage, schema).cache()
        for what, stage, schema in (
            ("triples", _triples_once, _TRIPLES), ("terms", _terms_once(clashes), _TERMS_ONCE)
        )
    )  # fmt: skip
    triples.count()
    terms.count()
    whole.unpersist()
    if not clashes.value:
        return Numbered(triples, terms)
    triples.unpersist()
    terms.unpersist()
    return numbered(spark, graphs, seed + 1)


def _coded(spark: SparkSession, iri: str, source: One, coder: Coder, place: str) -> DataFrame | pa.Table:
    """Return one source as rows of ``_CODED``; the driver makes those of a small source."""
    if isinstance(source, DataFrame):
        return _of_lines(_lines_of(source, iri, f"<{iri}>, DataFrame {place}"), coder)
    is_text = isinstance(source, str) and ("<" in source or "\n" in source or not source.strip())
    if isinstance(source, str | PathLike) and not is_text:
        path = Path(fspath(source))
        here = path.resolve() if path.exists() else None
        if here is None or here.is_dir() or here.stat().st_size > _SMALL:
            return _of_files(spark, iri, fspath(source), here, coder)
    triples = _read(NamedNode(iri), source)
    return pa.Table.from_batches([*coder.of_triples(triples, place), coder.block()], schema=_ARROW)


def _of_files(spark: SparkSession, iri: str, location: str, here: Path | None, coder: Coder) -> DataFrame:
    """Do the same for a file, folder or pattern of any file system that Spark reads, or for a table."""
    is_name = here is None and _format(_form(location)[0]) is None and _NAME.fullmatch(location)
    if is_name and spark.catalog.tableExists(location):
        return _of_lines(_lines_of(spark.table(location), iri, f"table {location}"), coder)
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        # Names as URIs, of empty files as well, of which a query would make no row.
        paths = [unquote(uri) for uri in listed.load(f"file:{here}" if here else location).inputFiles()]
    except AnalysisException as error:
        if "[PATH_NOT_FOUND]" not in str(error):
            raise
        raise KnowledgeError(f"{location}: no such file, folder, pattern or table") from None
    by_lines: list[str] = []
    others: list[str] = []
    for path in paths:
        form, packing = _form(path)
        if form in _LINES and packing != "zst":
            by_lines.append(path)
        elif _format(form) is None:
            raise KnowledgeError(f"{path}: no RDF format has the extension {form!r}")
        else:
            others.append(path)
    parts = []
    if by_lines:
        lines = spark.read.text(by_lines)
        place = F.col("_metadata.file_path").alias("place")
        parts.append(_of_lines(lines.select(F.col("value").cast("binary"), place), coder))
    if others:
        whole = spark.read.format("binaryFile").load(others).select("path", "content")
        parts.append(whole.repartition(len(others)).mapInArrow(_by_files(*coder.made), _CODED))
    if not parts:
        raise KnowledgeError(f"{location}: there are no files")
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])


def _form(location: str) -> tuple[str, str | None]:
    """Return the format and the compression that a file's name shows."""
    suffixes = [suffix[1:].lower() for suffix in PurePosixPath(location).suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in _PACKED else None
    return suffixes[-1] if suffixes else "", packing


def _format(form: str) -> RdfFormat | None:
    return RdfFormat.N_QUADS if form in _LINES else _FORMATS.get(form) or RdfFormat.from_extension(form)


# --- a DataFrame of terms ---------------------------------------------------------------------

#: The datatypes of columns that are not text.
_TYPED: Final = {
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "double",
    "double": "double",
    "boolean": "boolean",
    "date": "date",
}


def _lines_of(rows: DataFrame, iri: str, place: str) -> DataFrame:
    """Return rows as lines of N-Triples in bytes; null for a row that lacks one of its terms."""
    kinds = dict(rows.dtypes)
    names = next((names for names in (("s", "p", "o"), ("subject", "predicate", "object"))
                  if kinds.keys() >= set(names)), None)  # fmt: skip
    if names is None:
        raise KnowledgeError(
            f"<{iri}>: a DataFrame of triples has the columns s, p, o or subject, predicate, object, and "
            f"perhaps datatype and lang; this one has {', '.join(rows.columns)}"
        )
    s, p, o = (F.col(name) for name in names)
    plain = F.concat(F.lit('"'), _escaped(o.cast("string")), F.lit('"'))
    kind = (
        F.lit(f"{_XSD}{_TYPED[kinds[names[2]]]}") if kinds[names[2]] in _TYPED else _given("datatype", kinds)
    )
    lang = _given("lang", kinds)
    value = (
        F.when(lang.isNotNull(), F.concat(plain, F.lit("@"), lang))
        .when(kind.isNotNull(), F.concat(plain, F.lit("^^"), _bracketed(kind)))
        .when(o.cast("string").startswith('"'), o.cast("string"))
        .otherwise(_bracketed(o.cast("string")))
    )
    line = F.concat(_bracketed(s), F.lit(" "), _bracketed(p), F.lit(" "), value, F.lit(" ."))
    return rows.select(line.cast("binary").alias("value"), F.lit(place).alias("place"))


def _given(name: str, kinds: Mapping[str, str]) -> Column:
    """Return a column that may be missing, with null for empty texts."""
    return F.nullif(F.col(name), F.lit("")) if name in kinds else F.lit(None).cast("string")


def _bracketed(term: Column) -> Column:
    """Return a term as in N-Triples: an IRI may be given without brackets."""
    is_term = term.startswith("<") | term.startswith("_:")
    return F.when(is_term, term).otherwise(F.concat(F.lit("<"), term, F.lit(">")))


def _escaped(text: Column) -> Column:
    for one, other in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = F.replace(text, F.lit(one), F.lit(other))
    return text


# --- in the workers ---------------------------------------------------------------------------

_Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _of_lines(lines: DataFrame, coder: Coder) -> DataFrame:
    return lines.mapInArrow(_by_lines(*coder.made), _CODED)


def _by_lines(name: str, seed: int, parts: tuple[int, ...]) -> _Stage:
    """Rows of a line (``value``) and where it is from (``place``) → ``_CODED``."""

    def texts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes, str]]:
        for batch in batches:
            places = batch.column("place")
            for place in pc.unique(places).to_pylist():
                own = batch.filter(pc.equal(places, place)).column("value")
                if own.null_count:
                    raise KnowledgeError(f"{place}: a subject, a predicate or an object is null")
                lines = pc.cast(pc.binary_join_element_wise(own, b"\n", b""), pa.large_binary())
                _, ends, data = lines.buffers()
                begin, end = np.frombuffer(ends, dtype=np.int64)[[lines.offset, lines.offset + len(lines)]]
                yield bytes(data[begin:end]), place

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        coder = Coder(NamedNode(name), seed, parts)
        return _told(batches, coder, lambda rows: (b for text in texts(rows) for b in coder.of_lines(*text)))

    return stage


def _by_files(name: str, seed: int, parts: tuple[int, ...]) -> _Stage:
    """Rows of a file (``path``, ``content``) → ``_CODED``."""

    def coded(coder: Coder, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in (row for batch in batches for row in batch.to_pylist()):
            form, packing = _form(row["path"])
            data = _unpacked(row["content"], packing)
            known = _format(form)
            assert known is not None  # which was seen when the files were listed
            triples = _triples(coder.name, lambda data=data: io.BytesIO(data), known, row["path"])  # type: ignore[misc]
            yield from coder.of_triples(triples, row["path"])

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        coder = Coder(NamedNode(name), seed, parts)
        return _told(batches, coder, partial(coded, coder))

    return stage


def _unpacked(data: bytes, packing: str | None) -> bytes:
    match packing:
        case "gz":
            return gzip.decompress(data)
        case "zst":
            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
                return stream.read()
    return data


def _told(batches: Iterable[pa.RecordBatch], coder: Coder, coded: _Stage) -> Iterator[pa.RecordBatch]:
    """Yield a task's blocks. Errors and warnings are rows too, which the driver shows."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        problem: str | None = None
        try:
            yield from coded(batches)
            yield coder.block()
        except (KnowledgeError, OSError, zstandard.ZstdError, EOFError) as error:
            problem = str(error)
        said: list[dict[str, Any]] = [{"note": str(note.message)} for note in notes[:1]]
        yield pa.RecordBatch.from_pylist([*said, *([{"problem": problem}] if problem else [])], schema=_ARROW)
    for _ in batches:  # Spark hands on all of them
        pass


class Coder:
    """Numbers the triples of one graph. It sends a term once, or again after it has forgotten its terms."""

    def __init__(self, name: NamedNode, seed: int, parts: tuple[int, ...]) -> None:
        self.name, self.seed = name, seed
        self.made = name.value, seed, parts
        self._parts = np.array(parts, dtype=np.int32)
        self._triples: list[tuple[Ids, Ids, Ids]] = []
        self._terms: list[tuple[Ids, pa.Array]] = []
        self._waiting = 0
        self._forget()
        own = np.array([self._graph])
        #: The number of the graph's name.
        self.graph = int(numbers(self._dictionary, own, seed)[0])
        self._terms.append((np.array([self.graph]), pa.array([str(name).encode()])))

    def _forget(self) -> None:
        self._dictionary = Dictionary()
        self._dictionary.table()
        self._graph = self._dictionary.intern(self.name)
        self._quads = Quads("nq", self._dictionary, Limits(term_bytes=None))
        self._number = np.zeros(0, dtype=np.int64)
        self._nodes: dict[tuple[str, int], int] = {}

    def block(self) -> pa.RecordBatch:
        """Return the rows of everything numbered since the last call."""
        rows: list[dict[str, Any]] = []
        if self._triples:
            p, s, o = (np.concatenate(column) for column in zip(*self._triples, strict=True))
            for part, own in self._spread(s * 3 + o):
                triples = pack({}, {"p": p[own], "s": s[own], "o": o[own]})
                rows.append({"part": part, "triples": triples})
        if self._terms:
            ids = np.concatenate([ids for ids, _ in self._terms])
            texts = pa.concat_arrays([texts for _, texts in self._terms])
            for part, own in self._spread(ids):
                _, ends, data = texts.take(pa.array(own)).buffers()
                arrays = {"id": ids[own], "ends": np.frombuffer(ends, np.int32, len(own) + 1)}
                arrays["text"] = np.frombuffer(data, np.uint8, arrays["ends"][-1]) if data else _NO_BYTES
                rows.append({"part": part, "terms": pack({}, arrays)})
        self._triples, self._terms, self._waiting = [], [], 0
        return pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    def _spread(self, codes: Ids) -> Iterator[tuple[int, Ids]]:
        """Return the parts, and for each the indices of its rows."""
        which = codes.view(np.uint64) % np.uint64(len(self._parts))
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(len(self._parts) + 1))
        for part, begin, end in zip(self._parts.tolist(), edges[:-1], edges[1:], strict=True):
            if end > begin:
                yield part, order[begin:end]

    def of_triples(self, triples: Iterable[Triple], place: str) -> Iterator[pa.RecordBatch]:
        """Rows of ``_CODED``. Blank nodes of one ``place`` with the same label are the same."""
        left = iter(triples)
        while some := list(islice(left, _AT_ONCE)):
            yield from self.of_lines("".join(f"{triple} .\n" for triple in some).encode(), place)

    def of_lines(self, text: bytes, place: str) -> Iterator[pa.RecordBatch]:
        """Do the same for lines of N-Triples, or of N-Quads of this graph. Raises KnowledgeError for other
        text.
        """
        if len(self._dictionary) > _TERMS:
            self._forget()
        text = text.removeprefix(MARK)
        with self._dictionary.lock:
            if not self._reads(text) and not self._reads(self._judged(text, place)):
                raise KnowledgeError(f"{place}: a line is not N-Triples")
            rows = self._quads.rows[:3, : self._quads.count]
            s, p, o = rows[:, rows[0] >= 0]
            s, o = self._scoped(s, place), self._scoped(o, place)
            used = np.unique(np.concatenate([s, p, o]))
            if (limit := self._dictionary.limit) > len(self._number):
                self._number = np.append(self._number, np.zeros(limit - len(self._number), dtype=np.int64))
            new = used[self._number[used] == 0]
            self._number[new] = numbers(self._dictionary, new, self.seed)
            found = terms_out(self._dictionary, new)
        self._triples.append((self._number[p], self._number[s], self._number[o]))
        ends = np.append(np.int32(0), found["ends"])
        self._terms.append((self._number[new], binaries(ends, found["terms"], len(new))))
        self._waiting += len(p)
        if self._waiting >= _BLOCK:
            yield self.block()

    def _reads(self, text: bytes) -> bool:
        """Return whether all lines are plain, and of this graph."""
        if not self._quads.read(text):
            return False
        s, _, _, graph = self._quads.rows[:4, : self._quads.count]
        return bool(np.isin(graph[s >= 0], (UNBOUND, self._graph)).all())

    def _judged(self, text: bytes, place: str) -> bytes:
        """Return the triples of lines of which some are not plain."""
        form = RdfFormat.N_QUADS
        try:
            triples = list(_triples(self.name, lambda: io.BytesIO(text), form, place))
        except KnowledgeError:
            for line in text.splitlines():
                try:
                    list(_triples(self.name, lambda line=line: io.BytesIO(line), form, place))  # type: ignore[misc]
                except KnowledgeError as error:
                    cited = bounded(line.decode(errors="replace"))
                    raise KnowledgeError(f"{str(error).replace(', line 1:', ':')}: {cited}") from None
            raise
        return "".join(f"{triple} .\n" for triple in triples).encode()

    def _scoped(self, ids: Ids, place: str) -> Ids:
        """Return the same terms, with blank nodes that are this place's own."""
        is_label = self._dictionary.table().terms[ids, KIND] == LABEL
        if not is_label.any():
            return ids
        before = f"k{blake2b(f'{self.name.value} {place}'.encode(), digest_size=6).hexdigest()}"
        labels, which = np.unique(ids[is_label], return_inverse=True)
        for label in labels.tolist():
            if (place, label) not in self._nodes:
                node = self._dictionary.term(label)
                assert isinstance(node, BlankNode)
                self._nodes[place, label] = self._dictionary.intern(BlankNode(f"{before}{node.value}"))
        scoped = ids.copy()
        scoped[is_label] = np.array([self._nodes[place, label] for label in labels.tolist()])[which]
        return scoped


_NO_BYTES: Final = np.zeros(0, dtype=np.uint8)


# --- each once ----------------------------------------------------------------------------------


def _blocks(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[tuple[list[int], dict[str, list[Any]]]]:
    """Yield the blocks of each part: the graph of each block, and the arrays of all by their names."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for _, members in groupby(rows, key=lambda row: row["part"]):
        graphs: list[int] = []
        found: dict[str, list[Any]] = {}
        for row in members:
            graphs.append(row["g"])
            for key, array in unpack(row[name])[1].items():
                found.setdefault(key, []).append(array)
        yield graphs, found


def _triples_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of ``_CODED``, ordered by part → each triple once in its graph."""
    for graphs, found in _blocks(batches, "triples"):
        p, s, o = (np.concatenate(found[name]) for name in "pso")
        g, s, p, o = without_repeated(np.repeat(graphs, list(map(len, found["p"]))), s, p, o)
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in (g, p, s, o)], names=list("gpso"))


def _terms_once(clashes: Accumulator[int]) -> _Stage:
    """Do the same for terms; ``clashes`` counts the numbers that several terms have."""

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, found in _blocks(batches, "terms"):
            ids = np.concatenate(found["id"])
            texts = pa.concat_arrays(map(binaries, found["ends"], found["text"], map(len, found["id"])))
            known, first, which = np.unique(ids, return_index=True, return_inverse=True)
            if not texts.equals(texts.take(pa.array(first[which]))):
                clashes.add(1)
            terms = texts.take(pa.array(first)).cast(pa.string())
            yield pa.RecordBatch.from_arrays([pa.array(known), terms], names=["id", "term"])

    return stage

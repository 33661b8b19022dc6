"""Files to graphs: ``spaseq.paths.load``, ``open`` and ``build``."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from spaseq.errors import KnowledgeError
from spaseq.limits import Limits
from spaseq.paths.graph.knowledge import KnowledgeGraph
from spaseq.paths.graph.loading import Source, load_triples
from spaseq.paths.graph.saved.check import check
from spaseq.paths.graph.saved.contents import Mapped, in_memory
from spaseq.paths.graph.saved.file import KeptFile, is_kept, mapped
from spaseq.paths.graph.saved.graph import Origin, save
from spaseq.paths.graph.snapshot import Snapshot

#: The default suffix of a saved graph's file.
SUFFIX: Final = ".spaseq"


def load(
    source: Source,
    prefixes: Mapping[str, str] | None = None,
    *,
    format: str | None = None,  # noqa: A002  # as everybody calls it
    limits: Limits | None = None,
    base: str | None = None,
    graph: str | None = None,
    sources: str | None = None,
) -> KnowledgeGraph:
    """Load a file, a graph of rdflib or networkx, a table of three columns, or an iterable of triples.

    A file is of any RDF format that its extension names, or ``format`` (``"ttl"``), or an edge list,
    ``.csv`` or ``.tsv``: rows of subject, predicate, object, or of two nodes, with a row of column names or
    without. ``.gz`` and ``.zst`` are unpacked; a file that ``save`` made is opened. A dataset counts as the
    union of its graphs, or ``graph`` is the IRI of the one named graph to read. ``base`` makes plain names
    IRIs (``"Ada Lovelace"`` is ``base + "Ada_Lovelace"``), in edge lists, networkx graphs, tables and
    triples; it is the prefix ``:`` then. With a base, objects that are numbers are numeric literals. Of
    networkx edges the attribute ``predicate``, ``relation`` or ``label`` is the predicate, else a key that
    is text, else ``edge``. ``sources`` says what names the sources of triples, which retrieved paths carry:
    ``"graph"``, their named graphs; or the IRI of a predicate, the annotations of RDF 1.2 with it. Other
    triples that only RDF 1.2 has (triple terms, base directions) are left out; a
    warning says how many. The prefixes of a file or an rdflib graph may be used in expressions, beside the
    ones given. Tables are pandas' and pyarrow's. Terms in them, and in triples, are rdflib's or
    pyoxigraph's, or text: N-Triples, absolute IRIs, and for objects anything else, which is a plain literal.
    A query that takes more memory than ``limits.query_bytes`` (1 GiB) ends with a LimitError.

    Raises KnowledgeError for what cannot be read, with file and line, or the number of the triple.
    """
    if isinstance(source, str | PathLike) and _is_kept(Path(fspath(source))):
        for name, given in (("format", format), ("base", base), ("graph", graph), ("sources", sources)):
            if given is not None:
                raise KnowledgeError(
                    f"{fspath(source)}: {name}={given!r} is for other files: a graph that spaseq saved"
                )
        return open(source, prefixes, limits)
    loaded = load_triples(source, format, base, graph, sources)
    return KnowledgeGraph(Snapshot(in_memory(loaded), prefixes, limits, sources=loaded.sources))


def build(
    source: str | PathLike[str],
    file: str | PathLike[str],
    format: str | None = None,  # noqa: A002  # as everybody calls it
    limits: Limits | None = None,
    base: str | None = None,
    graph: str | None = None,
    sources: str | None = None,
) -> KnowledgeGraph:
    """Make the graph's file of a file, as ``load`` reads it, and return the graph.

    When ``source`` changes, what was made of it is refused by ``open``. Raises KnowledgeError.
    """
    origin = _origin(Path(fspath(source)), Path(fspath(file)))
    loaded = load(source, format=format, limits=limits, base=base, graph=graph, sources=sources)
    save(loaded.snapshot, file, origin)
    return loaded


def _origin(source: Path, file: Path) -> Origin:
    try:
        if file.exists() and file.samefile(source):
            raise KnowledgeError(f"{file}: this is the graph's own file, which is not written over")
        return Origin.of(source, file)
    except OSError as error:
        raise KnowledgeError(f"{source}: {error.strerror or error}") from error


def open(
    file: str | PathLike[str], prefixes: Mapping[str, str] | None = None, limits: Limits | None = None
) -> KnowledgeGraph:
    """A graph that was saved, or built by ``spaseq graph build``: mapped, not read.

    Processes that open the same file share its pages. ``prefixes`` are added to the saved ones.
    The header is checked here, each block when it is first needed, and all by ``spaseq graph check``:
    checksums find damage, not malice, so open what you would unpickle.

    Raises KnowledgeError for a file that is damaged, of another version, or older than what it was made of.
    """
    path = Path(fspath(file))
    return KnowledgeGraph(Snapshot(Mapped(_fresh(path)), prefixes, limits))


def check_file(file: str | PathLike[str]) -> KnowledgeGraph:
    """Check all of a file, and give its graph. KnowledgeError as by ``open``, or for any block."""
    kept = _fresh(Path(fspath(file)))
    check(kept)
    return KnowledgeGraph(Snapshot(Mapped(kept)))


def _fresh(path: Path) -> KeptFile:
    kept = mapped(path)
    origin = kept.facts.get("origin")
    if origin is not None:
        Origin.of_json(origin).check(path)
    return kept


def _is_kept(path: Path) -> bool:
    try:
        return is_kept(path)
    except OSError:
        return False  # what reads it says why

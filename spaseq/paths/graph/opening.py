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

    Files: the extension, or ``format`` (``"ttl"``), names the RDF format, or an edge list (``.csv``,
    ``.tsv``). The rows of an edge list are subject, predicate, object, or two nodes; a first row of column
    names is skipped. ``.gz`` and ``.zst`` are unpacked; a file that ``save`` made is opened. A dataset is
    read as the union of its graphs; ``graph`` is the IRI of the only named graph to read.

    ``base`` turns plain names into IRIs (``"Ada Lovelace"`` is ``base + "Ada_Lovelace"``), in edge lists,
    networkx graphs, tables and triples. It is then also the prefix ``:``, and objects that are numbers become
    numeric literals. The predicate of a networkx edge is its attribute ``predicate``, ``relation`` or
    ``label``. Without these attributes, it is the edge's key if the key is text, otherwise ``edge``.

    ``sources`` says where a file names the sources of triples, for retrieved paths to cite. ``"graph"``: the
    named graphs are the sources. The IRI of a predicate: the RDF 1.2 annotations with this predicate are.
    Other triples that only RDF 1.2 has (triple terms, base directions) are left out; a warning says how many.

    Expressions may use the prefixes of a file or an rdflib graph, and ``prefixes``. Tables are those of
    pandas and pyarrow. Terms in tables and triples are rdflib's or pyoxigraph's, or text: N-Triples or an
    absolute IRI. Any other text is a plain literal, as an object only. A query that takes more memory than
    ``limits.query_bytes`` (1 GiB) ends with a LimitError.

    Raises KnowledgeError for a source that cannot be read, with file and line, or the number of the triple.
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
    """Load ``source`` as ``load`` does, save the graph to ``file``, and return the graph.

    Once ``source`` has changed, ``open`` refuses ``file``. Raises KnowledgeError.
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
    """Open a graph that was saved, or built by ``spaseq graph build``, by mapping its file into memory.

    Processes that open the same file share its pages. ``prefixes`` are added to the saved ones. The header is
    checked here, and each block when it is first needed; ``spaseq graph check`` checks all blocks. Checksums
    find damage, not malice: only open files that you would also unpickle.

    Raises KnowledgeError for a file that is damaged or of another version, or if the file that it was built
    from has changed.
    """
    path = Path(fspath(file))
    return KnowledgeGraph(Snapshot(Mapped(_fresh(path)), prefixes, limits))


def check_file(file: str | PathLike[str]) -> KnowledgeGraph:
    """Check all blocks of a file and return its graph. Raises KnowledgeError as ``open``, or for a block."""
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
        return False  # reading it will raise the error

"""Graphs to files and back: ``KnowledgeGraph.save`` and ``spaseq.paths.open``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spaseq.errors import KnowledgeError
from spaseq.limits import Limits
from spaseq.paths.graph.linking.candidates import Linker
from spaseq.paths.graph.linking.index import Index
from spaseq.paths.graph.saved.check import check
from spaseq.paths.graph.saved.contents import Mapped, arrays_of, facts_of
from spaseq.paths.graph.saved.file import Array, KeptFile, mapped, write, write_whole
from spaseq.paths.graph.saved.origin import Origin

if TYPE_CHECKING:
    from spaseq.paths.graph.knowledge import KnowledgeGraph
    from spaseq.paths.graph.snapshot import Snapshot

#: What a graph is called that came by a pipe, not from a file.
_PICKLED: Final = "<pickled graph>"

#: How the names of blocks begin that are indexes of names.
_NODES: Final = "names.nodes."
_PREDICATES: Final = "names.predicates."

#: How the file of a graph's name ends, if nothing else is said.
SUFFIX: Final = ".spaseq"


def save(graph: Snapshot, file: str | PathLike[str], origin: Origin | None = None) -> None:
    """A graph to a file, which ``open`` maps. What is there already is replaced at once, or stays.

    Raises KnowledgeError if it cannot be written.
    """
    path = Path(fspath(file))
    facts, arrays = _parts(graph)
    if origin is not None:
        facts["origin"] = origin.as_json()
    try:
        write_whole(path, facts, arrays)
    except OSError as error:
        raise KnowledgeError(f"{path}: {error.strerror or error}") from error


def build(
    source: str | PathLike[str],
    file: str | PathLike[str],
    format: str | None = None,  # noqa: A002  # as everybody calls it
    limits: Limits | None = None,
) -> KnowledgeGraph:
    """Make the graph's file of a file in an RDF format, as ``load`` reads it; gives the graph.

    When ``source`` changes, what was made of it is refused by ``open``. Raises KnowledgeError.
    """
    from spaseq.paths.graph.knowledge import load

    origin = _origin(Path(fspath(source)), Path(fspath(file)))
    graph = load(source, format=format, limits=limits)
    save(graph.now, file, origin)
    return graph


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

    Processes that open the same file share its pages. ``prefixes`` are added to those that were saved.
    The header is checked here, each block when it is first needed, and all by ``spaseq graph check``:
    checksums find damage, not malice, so open what you would unpickle.

    Raises KnowledgeError for a file that is damaged, of another version, or older than what it was made of.
    """
    path = Path(fspath(file))
    return _living(_graph(_fresh(path), prefixes, limits))


def check_file(file: str | PathLike[str]) -> KnowledgeGraph:
    """Check all of a file, and give its graph. KnowledgeError as by ``open``, or for any block."""
    kept = _fresh(Path(fspath(file)))
    check(kept)
    return _living(_graph(kept))


def _fresh(path: Path) -> KeptFile:
    kept = mapped(path)
    origin = kept.facts.get("origin")
    if origin is not None:
        Origin.of_json(origin).check(path)
    return kept


def pickled(graph: Snapshot) -> tuple[Any, ...]:
    """How pickle makes a graph anew: one that was opened, from its file, which both sides then share."""
    kept = graph.file
    if kept is not None and kept.name != _PICKLED:
        return _reopened, (str(Path(kept.name).absolute()), kept.facts, dict(graph.prefixes), graph.limits)
    file = io.BytesIO()
    write(file, *_parts(graph))
    return _of_bytes, (file.getvalue(), graph.limits)


def _reopened(name: str, facts: Mapping[str, Any], prefixes: Mapping[str, str], limits: Limits) -> Snapshot:
    kept = mapped(Path(name))
    if kept.facts != facts:
        raise KnowledgeError(f"{name}: this is no longer the graph that was pickled")
    return _graph(kept, prefixes, limits)


def _of_bytes(data: bytes, limits: Limits) -> Snapshot:
    return _graph(KeptFile(_PICKLED, bytearray(data)), None, limits)


def _graph(
    kept: KeptFile, prefixes: Mapping[str, str] | None = None, limits: Limits | None = None
) -> Snapshot:
    from spaseq.paths.graph.snapshot import Snapshot

    return Snapshot(Mapped(kept), prefixes, limits)


def _living(graph: Snapshot) -> KnowledgeGraph:
    from spaseq.paths.graph.knowledge import KnowledgeGraph

    return KnowledgeGraph(graph)


def _parts(graph: Snapshot) -> tuple[dict[str, Any], dict[str, Array]]:
    contents = graph.contents
    arrays = arrays_of(contents)
    for prefix, more in ((_NODES, graph.linker.arrays()), (_PREDICATES, graph.names.index.arrays())):
        arrays.update({f"{prefix}{name}": array for name, array in more.items()})
    return facts_of(contents, graph.prefixes), arrays


def kept_linker(file: KeptFile | None) -> Linker | None:
    """The names of nodes, as a file has them."""
    return None if file is None else Linker.of_arrays(_named(file, _NODES))


def kept_index(file: KeptFile | None) -> Index | None:
    """The names of predicates, as a file has them."""
    return None if file is None else Index.of_arrays(_named(file, _PREDICATES))


def _named(file: KeptFile, prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): file.array(name) for name in file.names() if name.startswith(prefix)}

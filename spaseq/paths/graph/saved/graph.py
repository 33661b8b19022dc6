"""Graphs to files: ``KnowledgeGraph.save``, pickle; and what of a file is more than the arrays of edges."""

from __future__ import annotations

import io
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spaseq.errors import KnowledgeError
from spaseq.paths.graph.linking.candidates import Linker
from spaseq.paths.graph.linking.index import Index
from spaseq.paths.graph.saved.check import block
from spaseq.paths.graph.saved.contents import arrays_of, facts_of
from spaseq.paths.graph.saved.file import Array, KeptFile, write, write_whole
from spaseq.paths.graph.saved.origin import Origin

if TYPE_CHECKING:
    from spaseq.paths.graph.snapshot import Snapshot

#: How the names of blocks begin that are indexes of names.
_NODES: Final = "names.nodes."
_PREDICATES: Final = "names.predicates."


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


def as_bytes(graph: Snapshot) -> bytes:
    """A graph as the bytes of its file."""
    file = io.BytesIO()
    write(file, *_parts(graph))
    return file.getvalue()


def _parts(graph: Snapshot) -> tuple[dict[str, Any], dict[str, Array]]:
    contents = graph.contents
    arrays = arrays_of(contents)
    for prefix, more in ((_NODES, graph.linker.arrays(graph)), (_PREDICATES, graph.names.index.arrays())):
        arrays.update({f"{prefix}{name}": array for name, array in more.items()})
    return facts_of(contents, graph.prefixes), arrays


def kept_linker(file: KeptFile | None) -> Linker | None:
    """The names of nodes, as a file has them."""
    return None if file is None else Linker.of_arrays(_named(file, _NODES))


def kept_index(file: KeptFile | None) -> Index | None:
    """The names of predicates, as a file has them."""
    return None if file is None else Index.of_arrays(_named(file, _PREDICATES))


def _named(file: KeptFile, prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): block(file, name) for name in file.names() if name.startswith(prefix)}

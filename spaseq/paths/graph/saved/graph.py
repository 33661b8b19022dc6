"""Graphs to files: ``KnowledgeGraph.save``, and pickle."""

from __future__ import annotations

import copyreg
import io
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from spaseq.errors import KnowledgeError
from spaseq.limits import Limits
from spaseq.paths.graph.linking.candidates import INDEX as NODES
from spaseq.paths.graph.linking.candidates import linker_of
from spaseq.paths.graph.names import INDEX as PREDICATES
from spaseq.paths.graph.names import names_of
from spaseq.paths.graph.provenance import arrays_of as blocks_of
from spaseq.paths.graph.saved.contents import Mapped, arrays_of, facts_of
from spaseq.paths.graph.saved.file import Array, KeptFile, mapped, write, write_whole
from spaseq.paths.graph.saved.origin import Origin
from spaseq.paths.graph.snapshot import Snapshot

#: The name of a graph that was unpickled without a file.
_PICKLED: Final = "<pickled graph>"


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


def _parts(graph: Snapshot) -> tuple[dict[str, Any], dict[str, Array]]:
    contents = graph.contents
    arrays = arrays_of(contents)
    for prefix, more in (
        (NODES, linker_of(graph).arrays(graph)),
        (PREDICATES, names_of(graph).index.arrays()),
    ):
        arrays.update({f"{prefix}{name}": array for name, array in more.items()})
    arrays.update(blocks_of(graph.sources))
    return facts_of(contents, graph.prefixes), arrays


def _reduced(graph: Snapshot) -> tuple[Any, ...]:
    """How pickle makes a graph anew: one that was opened, from its file, which both sides then share."""
    file = graph.file
    if file is not None and file.name != _PICKLED:
        place = str(Path(file.name).absolute())
        return _reopened, (place, file.facts, dict(graph.prefixes), graph.limits)
    return _of_bytes, (_as_bytes(graph), graph.limits)


def _as_bytes(graph: Snapshot) -> bytes:
    """Return a graph as the bytes of its file."""
    file = io.BytesIO()
    write(file, *_parts(graph))
    return file.getvalue()


def _reopened(name: str, facts: Mapping[str, Any], prefixes: Mapping[str, str], limits: Limits) -> Snapshot:
    file = mapped(Path(name))
    if file.facts != facts:
        raise KnowledgeError(f"{name}: this is no longer the graph that was pickled")
    return Snapshot(Mapped(file), prefixes, limits)


def _of_bytes(data: bytes, limits: Limits) -> Snapshot:
    return Snapshot(Mapped(KeptFile(_PICKLED, bytearray(data))), None, limits)


copyreg.pickle(Snapshot, _reduced)

"""Saving and pickling graphs, and checking whether the file that a graph was built from has changed."""

from __future__ import annotations

import copyreg
import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
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
from spaseq.paths.graph.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that a graph was built from, as it was then; ``name`` is relative to the graph's folder."""

    name: str
    size: int
    modified: int  # nanoseconds
    digest: str

    @classmethod
    def of(cls, source: Path, made: Path) -> Origin:
        """Describe ``source`` as it is now, for the graph file ``made``. Raises OSError."""
        stat = source.stat()
        name = os.path.relpath(source.absolute(), made.absolute().parent)
        return cls(name, stat.st_size, stat.st_mtime_ns, _digest(source))

    def as_json(self) -> dict[str, Any]:
        """Return the values that ``of_json`` reads."""
        return {
            "name": self.name, "size": self.size, "modified": self.modified, "digest": self.digest
        }  # fmt: skip

    @classmethod
    def of_json(cls, facts: dict[str, Any]) -> Origin:
        """Make an origin from the result of ``as_json``."""
        return cls(facts["name"], facts["size"], facts["modified"], facts["digest"])

    def check(self, made: Path) -> None:
        """Raise KnowledgeError if the source of the graph file ``made`` has changed, not if it is missing.

        The source is read only if its size is the same but its modification time is not.
        """
        source = made.absolute().parent / self.name
        try:
            stat = source.stat()
            if (stat.st_size, stat.st_mtime_ns) == (self.size, self.modified):
                return
            if stat.st_size == self.size and _digest(source) == self.digest:
                return
        except OSError:
            return
        shown = os.path.normpath(made.parent / self.name)
        raise KnowledgeError(
            f"{made}: it was made of {shown}, which has changed since: make it anew with "
            f"spaseq graph build {shown} -o {made}"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


#: The name of a graph that was unpickled without a file.
_PICKLED: Final = "<pickled graph>"


def save(graph: Snapshot, file: str | PathLike[str], origin: Origin | None = None) -> None:
    """Save a graph to a file, which ``open`` maps. An existing file is replaced atomically.

    Raises KnowledgeError if the file cannot be written.
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
    """Return how to unpickle a graph; a graph that was opened is mapped again from its file."""
    file = graph.file
    if file is not None and file.name != _PICKLED:
        place = str(Path(file.name).absolute())
        return _reopened, (place, file.facts, dict(graph.prefixes), graph.limits)
    return of_bytes, (as_bytes(graph), graph.limits)


def as_bytes(graph: Snapshot) -> bytes:
    """Return a graph as the bytes of its file."""
    file = io.BytesIO()
    write(file, *_parts(graph))
    return file.getvalue()


def _reopened(name: str, facts: Mapping[str, Any], prefixes: Mapping[str, str], limits: Limits) -> Snapshot:
    file = mapped(Path(name))
    if file.facts != facts:
        raise KnowledgeError(f"{name}: this is no longer the graph that was pickled")
    return Snapshot(Mapped(file), prefixes, limits)


def of_bytes(data: bytes, limits: Limits) -> Snapshot:
    return Snapshot(Mapped(KeptFile(_PICKLED, bytearray(data))), None, limits)


copyreg.pickle(Snapshot, _reduced)

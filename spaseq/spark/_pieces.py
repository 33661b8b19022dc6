"""Files → pieces that can be read by themselves, each time the same ones.

N-Quads and NDJSON are cut near the multiples of a size, wherever an event ends; other formats, and what is
compressed, are one piece a file. Since the cuts depend on the file alone, an offset means the same events
however often they are read. Arrival numbers count from the byte at which a piece begins (plus the bytes of
the files before), so they grow as the stream does, and are those of the file where it is one piece.
"""

from __future__ import annotations

import glob
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyoxigraph import DefaultGraph, NamedNode, RdfFormat, parse

from spaseq.errors import SourceError
from spaseq.sources import SourceOptions
from spaseq.sources._options import COMPRESSED, EXTENSIONS, check_options, resolve_format
from spaseq.sources.messages import announces_messages
from spaseq.spark._blocks import options_text
from spaseq.spark._files import is_local, normal

#: How much of a file is looked at to see whether its events stand together.
_HEAD: Final = 1 << 18

#: How far from where it should be a cut may lie.
_FAR: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a file, and the number of its first event; ``end`` None: to the end of the file."""

    path: str
    begin: int
    end: int | None
    first: int
    options: str

    def row(self, stream: str) -> dict[str, Any]:
        """As a block, see ``_blocks``."""
        whole = self.end is None
        return {
            "stream": stream,
            "first": self.first,
            "options": self.options,
            "data": None,
            "path": self.path,
            "begin": None if whole else self.begin,
            "end": self.end,
            "ended": False,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """How far a stream was read: up to a byte of a file, after so many bytes of earlier ones."""

    path: str = ""
    at: int = 0
    before: int = 0
    ended: bool = False

    def json(self) -> dict[str, Any]:
        """As Spark keeps it."""
        return {"path": self.path, "at": self.at, "before": self.before, "ended": self.ended}


def files(location: str) -> list[Path]:
    """The files of a stream, in the order of their names: a file, those of a folder, or of a pattern.

    Paths and ``file:``; SourceError for another scheme.
    """
    location = normal(location)
    if not is_local(location):
        raise SourceError(f"{location}: streams are not read from s3a: yet, but from paths and file:")
    path = Path(location)
    if path.is_dir():
        known = [*EXTENSIONS, *COMPRESSED]
        return sorted(p.resolve() for p in path.iterdir() if p.suffix.lower() in known and p.is_file())
    if path.exists():
        return [path.resolve()]
    if glob.has_magic(location):
        return sorted(Path(p).resolve() for p in glob.glob(location, recursive=True) if Path(p).is_file())
    raise SourceError(f"{location}: no such file, folder or pattern")


class Cutter:
    """The pieces of a stream's files."""

    def __init__(self, location: str, options: SourceOptions, size: int) -> None:
        self._location = location
        self._options = options
        self._size = size
        self._forms: dict[Path, tuple[str, bool]] = {}

    def after(self, place: Place) -> Iterator[tuple[Piece, Place]]:
        """The pieces that follow a place, each with the place behind it."""
        before, at = place.before, place.at
        found = files(self._location)
        if self._options.time == "arrival" and len(found) > 1:
            raise SourceError(f"{self._location}: time=arrival counts the events of one file, not of several")
        for path in found:
            if str(path) < place.path:
                continue
            if str(path) > place.path:
                at = 0
            size = path.stat().st_size
            form, divisible = self._form(path)
            text = options_text(self._options, form)
            while at < size:
                end = self._cut(path, form, at, size) if divisible else size
                whole = None if not divisible else end
                piece = Piece(str(path), at, whole, before + at, text)
                at = end
                yield piece, Place(str(path), at, before)
            before += size

    def _form(self, path: Path) -> tuple[str, bool]:
        """A file's format, and whether it may be cut."""
        found = self._forms.get(path)
        if found is None:
            form = resolve_format(str(path), self._options)
            check_options(str(path), form, self._options)
            can = form in ("nq", "ndjson") and path.suffix.lower() not in COMPRESSED
            divisible = can and self._options.time != "arrival"
            if divisible and form == "nq":
                with path.open("rb") as file:
                    divisible = self._stands_together(file.read(_HEAD))
            found = self._forms[path] = form, divisible
        return found

    def _stands_together(self, head: bytes) -> bool:
        """Whether every event's quads, and its time, follow each other at the beginning of a file."""
        if announces_messages(head):
            return False
        seen: set[object] = set()
        last: object = None
        for line in head.splitlines()[:-1] if len(head) == _HEAD else head.splitlines():
            event = self._event(line)
            if event is not None and event != last:
                if event in seen:
                    return False
                seen.add(event)
                last = event
        return True

    def _event(self, line: bytes) -> object:
        """The graph that a line belongs to; None if it does not say."""
        try:
            quad = next(iter(parse(io.BytesIO(line), format=RdfFormat.N_QUADS)), None)
        except SyntaxError:
            return None
        if quad is None:
            return None
        if isinstance(quad.graph_name, DefaultGraph):
            is_time = isinstance(self._options.time, NamedNode) and quad.predicate == self._options.time
            return quad.subject if is_time else None
        return quad.graph_name

    def _cut(self, path: Path, form: str, begin: int, size: int) -> int:
        """Where the piece that begins there ends."""
        wanted = (begin // self._size + 1) * self._size
        if wanted >= size:
            return size
        with path.open("rb") as file:
            file.seek(wanted)
            at = wanted + len(file.readline())
            last: object = None
            while at < min(size, wanted + _FAR):
                line = file.readline()
                if form == "ndjson":
                    return at
                event = self._event(line)
                if event is not None:
                    if last is not None and event != last:
                        return at
                    last = event
                at += len(line)
        return size

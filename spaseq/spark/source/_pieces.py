"""Files → pieces that can be read independently of each other, and are the same in every run.

N-Quads and NDJSON are cut near multiples of a size, wherever an event ends. A file of another format, or a
compressed one, is one piece. Since the cuts depend on the file alone, an offset means the same events however
often they are read. A piece's arrival numbers count up from the byte at which it begins, plus the bytes of
all files before. So they grow along the stream. In a file of one piece they equal the file's own numbers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from pyoxigraph import DefaultGraph, NamedNode, RdfFormat, parse

from spaseq.errors import SourceError
from spaseq.sources import SourceOptions
from spaseq.sources._options import COMPRESSED, check_options, resolve_format
from spaseq.sources.formats.messages import announces_messages
from spaseq.spark.source._blocks import options_text
from spaseq.spark.source._files import info, is_of, listed, opened

#: The size of pieces in bytes, unless ``pieceBytes`` gives another.
PIECE: Final = 8 << 20

#: How many bytes of a file are examined to see whether the lines of each event are adjacent.
_HEAD: Final = 1 << 18

#: How many bytes a cut may lie from its intended place.
_FAR: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of bytes of a file, and the number of its first event; ``end`` None: to the end of the file."""

    path: str
    begin: int
    end: int | None
    first: int
    options: str

    def row(self, stream: str) -> dict[str, Any]:
        """Return the piece as a block, see ``_blocks``."""
        whole = self.end is None
        return {
            "stream": stream,
            "first": self.first,
            "options": self.options,
            "data": None,
            "path": self.path,
            "begin": None if whole else self.begin,
            "end": self.end,
            "ended": None,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """How far a stream was read: up to a byte of a file, and the total bytes of the files before it.

    ``size`` and ``modified`` (nanoseconds) describe the file when it was examined; ``piece`` is the size of
    the planned pieces. ``ended``: everything was read, and the stream does not wait for more.
    """

    path: str = ""
    at: int = 0
    before: int = 0
    size: int = 0
    modified: int = 0
    piece: int = 0
    ended: bool = False


class Cutter:
    """The pieces of a stream's files."""

    def __init__(self, location: str, options: SourceOptions, size: int) -> None:
        self._location = location
        self._options = options
        self._size = size
        self._formats: dict[str, tuple[str, bool]] = {}

    def after(self, place: Place, last: Place | None = None) -> Iterator[tuple[Piece, Place]]:
        """Yield the pieces after a place, each with the place behind it; up to ``last``, if it is given."""
        before, at = place.before, place.at
        found = listed(self._location)
        if self._options.time == "arrival" and len(found) > 1:
            raise SourceError(f"{self._location}: time=arrival counts the events of one file, not of several")
        if place.path and place.path not in found:  # it was read, and deleted since
            before += place.size
        for path, file in found.items():
            if path < place.path:
                continue
            if path > place.path:
                at = 0
            # Later pieces read what was appended after this plan.
            size = last.at if last is not None and path == last.path else file.size
            form, divisible = self._form(path)
            text = options_text(self._options, form)
            if 0 < at < size and not divisible:
                raise SourceError(
                    f"{path}: it grew after its first {at:,} bytes were read: write further events to new "
                    "files. Files may grow that are N-Quads, whose events stand together, or NDJSON, without "
                    "by= and time=arrival"
                )
            while at < size:
                end = self._cut(path, form, at, size) if divisible else size
                whole = None if not divisible else end
                piece = Piece(path, at, whole, before + at, text)
                at = end
                yield piece, Place(path, at, before, file.size, file.written, self._size)
            before += file.size

    def between(self, first: Place, last: Place) -> list[Piece]:
        """Yield the pieces between two places, as planned. Raises SourceError if they are not there."""
        pieces: list[Piece] = []
        if (first.path, first.at) == (last.path, last.at):
            return pieces
        self.require(last)
        for piece, behind in self.after(first, last):
            pieces.append(piece)
            if (behind.path, behind.at) == (last.path, last.at):
                return pieces
        raise SourceError(f"{last.path}: deleted before it was read, as it was to be up to byte {last.at}")

    def require(self, place: Place) -> None:
        """Raise SourceError for a place of another stream, or in a file that has changed since."""
        if not place.path:
            return
        if not is_of(place.path, self._location) and place.path not in listed(self._location):
            raise SourceError(
                f"{self._location}: the checkpoint is of another stream, which was read up to {place.path}: "
                "give each query a checkpoint of its own"
            )
        read = f"after {place.at:,} of its {place.size:,} bytes were read: put it back, or begin anew"
        file = info(place.path)
        if file is None:
            if place.at < place.size:
                raise SourceError(f"{place.path}: deleted {read}")
            return
        if file.size < place.size:
            raise SourceError(f"{place.path}: shortened {read}")
        if place.at < place.size == file.size and file.written != place.modified:
            raise SourceError(f"{place.path}: changed {read}")

    def _form(self, path: str) -> tuple[str, bool]:
        """Return a file's format, and whether it may be cut."""
        found = self._formats.get(path)
        if found is None:
            form = resolve_format(path, self._options)
            check_options(path, form, self._options)
            can = form in ("nq", "ndjson") and PurePath(path).suffix.lower() not in COMPRESSED
            divisible = can and self._options.time != "arrival" and self._options.by is None
            if divisible and form == "nq":
                with opened(path) as file:
                    divisible = self._stands_together(file.read(_HEAD))
            found = self._formats[path] = form, divisible
        return found

    def _stands_together(self, head: bytes) -> bool:
        """Return whether, at the beginning of a file, each event's quads and its time are adjacent."""
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
        """Return the graph that a line belongs to; None if that cannot be seen."""
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

    def _cut(self, path: str, form: str, begin: int, size: int) -> int:
        """Return where the piece that begins at ``begin`` ends."""
        wanted = (begin // self._size + 1) * self._size
        if wanted >= size:
            return size
        with opened(path) as file:
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

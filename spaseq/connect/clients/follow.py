"""``file:…?follow``: a file that grows, is truncated or replaced, read as ``tail -F`` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import IO, Final

from pyoxigraph import NamedNode

from spaseq.connect.again import Count, Place, same
from spaseq.connect.live import Ending
from spaseq.errors import SourceError, warn
from spaseq.events import EventBatch
from spaseq.sources import BadEvent, SourceOptions
from spaseq.sources._bytes import BLOCK
from spaseq.sources._options import COMPRESSED, resolve_format

#: Seconds between two checks of a file that has not grown.
_LOOK: Final = 0.1


class EndedError(Exception):
    """A waiting read must end."""


def check_followed(path: str, options: SourceOptions) -> None:
    """Raise SourceError for a file that cannot be followed."""
    if not Path(path).is_file():
        raise SourceError(f"{path}: no such file to follow (relative to {Path.cwd()})")
    if path.endswith(COMPRESSED):
        raise SourceError(
            f"{path}: a compressed file cannot be followed: its end is known only when it is closed"
        )
    if resolve_format(path, options) == "jsonld":
        raise SourceError(
            f"{path}: a JSON-LD document has to be read whole: follow ndjsonld, a document a line"
        )
    if isinstance(options.by, NamedNode):
        raise SourceError(
            f"{path}: by={options.by} reads a document whole, and a file that is followed has no end: use "
            "by=subject"
        )
    if options.order == "time":
        raise SourceError(f"{path}: order=time waits for the end, and a followed file has no end")


class Follower:
    """A file that grows, and its successors, each read from its beginning to its end.

    A file that became shorter counts as a new file. A file that replaced another is read after the end of the
    replaced one. If nothing arrives for ``pause``, an empty block is yielded. With a ``place``, reading
    resumes there: the same file, which may have another name now, is read again from its beginning.
    """

    def __init__(
        self,
        path: str,
        ending: Ending,
        pause: timedelta | None,
        place: Place | None,
        on_bad: Callable[[BadEvent], None],
    ) -> None:
        """Create a follower. Raises SourceError for a place in another file."""
        self._path, self._ending, self._on_bad = path, ending, on_bad
        self._pause = None if pause is None else pause.total_seconds()
        self._of = f"file {Path(path).name}"
        if place is not None:
            same(place, self._of, path)
        self._before = place
        self._file = _opened(path)
        self._count = Count()
        # Bad events of the current file, and how many of them were reported before the restart.
        self._bad = self._told = 0

    def files(self) -> Iterator[tuple[Iterator[bytes], Count]]:
        """Yield the blocks of each file, and how many of its events were read before this run.

        Raises EndedError when the source must end.
        """
        place = self._before
        if place is not None:
            own = os.fstat(self._file.fileno())
            moved = None if own.st_ino == place["inode"] else self._moved(place)
            if moved is not None:
                self._file.close()
                self._file = moved
                yield self._begin(_rest(moved), place)
                self._change()
            elif own.st_ino == place["inode"] and own.st_size >= place["at"]:
                yield self._begin(self._blocks(), place)
                self._change()
        while True:
            yield self._begin(self._blocks(), None)
            self._change()

    def refuse(self, letter: BadEvent) -> None:
        """Report a bad event, unless it was reported before."""
        self._bad += 1
        if self._bad > self._told:
            self._on_bad(letter)

    def took(self, batch: EventBatch) -> Place:
        """Return the position in the current file after these new events."""
        self._count.took(batch)
        here = {"inode": os.fstat(self._file.fileno()).st_ino, "at": self._file.tell(), "bad": self._bad}
        return {"of": self._of, **here, **asdict(self._count)}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # --- inside ---------------------------------------------------------------------------------

    def _begin(self, blocks: Iterator[bytes], place: Place | None) -> tuple[Iterator[bytes], Count]:
        known = Count() if place is None else Count(place["events"], place["times"], place["sizes"])
        self._count, self._bad, self._told = replace(known), 0, 0 if place is None else place["bad"]
        return blocks, known

    def _moved(self, place: Place) -> IO[bytes] | None:
        """Return the file that was read before, if it is in the same folder under another name."""
        for path in Path(self._path).absolute().parent.iterdir():
            with suppress(OSError):
                found = path.stat()
                # Inode numbers of removed files are reused.
                if found.st_ino == place["inode"] and found.st_size >= place["at"] and path.is_file():
                    return _opened(str(path))
        warn(
            f"{self._path} is another file than the one that was read before, and that is not in its folder: "
            "what was added to it meanwhile is not read"
        )
        return None

    def _change(self) -> None:
        """Switch to the next file, or to the beginning of the same one, after its end."""
        new = _found(self._path)
        if new is not None and os.path.samestat(os.fstat(self._file.fileno()), new):
            self._file.seek(0)
        else:
            self._file.close()
            # While a file is replaced, there may be no file for a moment.
            self._file = _opened(self._path if new is not None else os.devnull)

    def _blocks(self) -> Iterator[bytes]:
        """Yield the contents of the current file, and what is appended, until it ends."""
        silent = 0.0
        try:
            while not self._ending.is_set:
                if block := self._file.read(BLOCK):
                    yield block
                    silent = 0.0
                    continue
                own, new = os.fstat(self._file.fileno()), _found(self._path)
                if own.st_size < self._file.tell():
                    return
                if new is not None and not os.path.samestat(own, new):
                    # Written between the two checks, before it was replaced.
                    if rest := self._file.read(BLOCK):
                        yield rest
                        continue
                    return
                self._ending.wait(_LOOK)
                silent += _LOOK
                if self._pause is not None and silent - _LOOK < self._pause <= silent:
                    yield b""
        except OSError as error:
            raise SourceError(f"{self._path} cannot be followed: {error.strerror or error}") from error
        raise EndedError


def _opened(path: str) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise SourceError(f"{path} cannot be followed: {error.strerror or error}") from error


def _rest(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


def _found(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None

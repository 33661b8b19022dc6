"""Where a run that goes on has come to: which rows of which micro-batch its output has.

A micro-batch that comes again after a crash is written from there on, and a line that was torn is taken away.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import IO, Final

from spaseq.cli.arguments import UsageError
from spaseq.errors import FormatError
from spaseq.results import Format, ResultWriter
from spaseq.results.match import Match

#: The micro-batch, how many of its rows and of all matches are written, and how large the output is by them.
_LAYOUT: Final = struct.Struct("<4q")

#: What is one document: it cannot be gone on with once it is closed.
DOCUMENTS: Final = (Format.TABLE, Format.JSON, Format.XML, Format.COUNT)


class Cursor:
    """The cursor of a checkpoint, in a file there, and the output that it is about: a file, or a pipe.

    It is moved by one small write after each row; so a crash between the two may repeat one row of a pipe.
    """

    def __init__(self, checkpoint: Path, out: Path | None, form: Format) -> None:
        """Raises UsageError for a document as the output file, and for another output than last time's."""
        if out is not None and form in DOCUMENTS:
            lines = ", ".join(f for f in Format if f not in DOCUMENTS)
            raise UsageError(
                f"-f {form} is one document, which --checkpoint could not go on with: use {lines}"
            )
        self.batch = self.rows = -1
        self.matches = self._size = 0
        self._out = out
        self._checkpoint = checkpoint
        path = checkpoint / "output"
        name = str(out.resolve() if out is not None else "-").encode()
        if path.exists():
            data = path.read_bytes()
            self.batch, self.rows, self.matches, self._size = _LAYOUT.unpack_from(data)
            before = data[_LAYOUT.size :]
            if before != name and b"-" not in (before, name):
                raise UsageError(
                    f"{checkpoint} is of a run that wrote to {before.decode()}: go on there, or begin anew"
                )
        checkpoint.mkdir(parents=True, exist_ok=True)
        # In place of what was there, since a run may die here, too.
        draft = path.with_name("output.draft")
        draft.write_bytes(self._packed() + name)
        draft.replace(path)
        self._file = os.open(path, os.O_RDWR)

    def open(self, path: Path) -> IO[bytes]:
        """The output file, to be gone on with."""
        if self.batch < 0 or not path.exists():
            self._size = 0
            return path.open("wb")
        os.truncate(path, min(self._size, path.stat().st_size))
        return path.open("ab")

    def begin(self, batch: int) -> int:
        """A micro-batch begins: how many of its rows are written already."""
        if batch != self.batch:
            self.batch, self.rows = batch, 0
            self._save()
        return self.rows

    def passed(self) -> None:
        """A row was written that is no match."""
        self.rows += 1
        self._save()

    def wrote(self, out: IO[bytes]) -> None:
        """A match was written to the output."""
        self.rows += 1
        self.matches += 1
        if self.is_file:
            self._size = out.tell()
        self._save()

    def require(self, query: str) -> None:
        """Raises UsageError if micro-batches of another query were begun with this checkpoint.

        Spark's states would say so, too, but only when something new comes.
        """
        path = self._checkpoint / "query"
        if self.batch >= 0 and path.exists() and path.read_text() != query:
            raise UsageError(f"{self._checkpoint} is of another query: give each a checkpoint of its own")
        draft = path.with_name("query.draft")
        draft.write_text(query)
        draft.replace(path)

    @property
    def is_file(self) -> bool:
        """Whether the output is a file, and not a pipe."""
        return self._out is not None

    def _save(self) -> None:
        os.pwrite(self._file, self._packed(), 0)

    def _packed(self) -> bytes:
        return _LAYOUT.pack(self.batch, self.rows, self.matches, self._size)


class NotedWriter(ResultWriter):
    """A writer that moves a cursor."""

    def __init__(self, writer: ResultWriter, cursor: Cursor, out: IO[bytes]) -> None:
        super().__init__(writer.query, out)
        self._writer = writer
        self._cursor = cursor
        if cursor.is_file and out.tell():
            writer.go_on(cursor.matches)

    def match(self, match: Match) -> None:
        """Write one match, and note it."""
        try:
            self._writer.match(match)
        except FormatError:
            self._cursor.passed()
            raise
        self._cursor.wrote(self._out)

    def close(self) -> None:
        """Write what the format ends with."""
        self._writer.close()

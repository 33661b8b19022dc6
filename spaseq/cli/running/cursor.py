"""The progress of a resumable run on Spark: how many rows of which micro-batch its output has.

After a crash, Spark repeats a micro-batch, and only its rows that are not written yet are written. Before
that, an incomplete line is removed, and so are dead letters of rows that the cursor does not count.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path
from typing import IO, Final

from spaseq.cli.arguments import UsageError
from spaseq.errors import FormatError
from spaseq.results import Format, ResultWriter
from spaseq.results.batch import Match

#: A mark; the micro-batch, how many of its rows and of all matches are written, and the sizes of the output
#: and of the file of dead letters. The paths of these two follow, separated by a 0.
_LAYOUT: Final = struct.Struct("<6q")
_MARK: Final = -2
#: The older layout without dead letters: no mark, and the path of the output alone.
_BEFORE: Final = struct.Struct("<4q")

#: Formats of one document, which cannot be continued once it is closed.
DOCUMENTS: Final = (Format.TABLE, Format.JSON, Format.XML, Format.COUNT)


class Cursor:
    """The cursor of a checkpoint, in a file there, and its output: a file, or a pipe.

    ``letters`` is the file of dead letters, open for appending. The cursor advances by one small write after
    each row, so a crash between the two may repeat one row of a pipe.
    """

    def __init__(
        self, checkpoint: Path, out: Path | None, form: Format, letters: IO[str] | None = None
    ) -> None:
        """Open a cursor. Raises UsageError for a document as the output file, and for another output than
        before.
        """
        if out is not None and form in DOCUMENTS:
            lines = ", ".join(f for f in Format if f not in DOCUMENTS)
            raise UsageError(f"-f {form} is one document, which --checkpoint cannot continue: use {lines}")
        self.batch = self.rows = -1
        self.matches = self._size = 0
        self._out = out
        self._checkpoint = checkpoint
        path = checkpoint / "output"
        name = str(out.resolve() if out is not None else "-").encode()
        is_file = letters is not None and stat.S_ISREG(os.fstat(letters.fileno()).st_mode)
        self._letters = letters if is_file else None
        beside = b"" if self._letters is None else os.fsencode(Path(self._letters.name).resolve())
        self._noted = self._letters_size
        if path.exists():
            data = path.read_bytes()
            layout = _LAYOUT if _BEFORE.unpack_from(data)[0] == _MARK else _BEFORE
            numbers = layout.unpack_from(data)
            first = int(layout is _LAYOUT)
            self.batch, self.rows, self.matches, self._size = numbers[first : first + 4]
            before, _, known = data[layout.size :].partition(b"\0")
            if self._letters is not None and known == beside:
                self._noted = min(numbers[5], self._noted)
                os.truncate(self._letters.fileno(), self._noted)
            if before != name and b"-" not in (before, name):
                raise UsageError(
                    f"{checkpoint} is of a run that wrote to {before.decode()}: go on there, or begin anew"
                )
        checkpoint.mkdir(parents=True, exist_ok=True)
        # Replaced atomically, since a run may crash here, too.
        draft = path.with_name("output.draft")
        draft.write_bytes(self._packed() + name + b"\0" + beside)
        draft.replace(path)
        self._file = os.open(path, os.O_RDWR)

    def open(self, path: Path) -> IO[bytes]:
        """Open the output file to continue it."""
        if self.batch < 0 or not path.exists():
            self._size = 0
            return path.open("wb")
        os.truncate(path, min(self._size, path.stat().st_size))
        return path.open("ab")

    def begin(self, batch: int) -> int:
        """Begin a micro-batch; return how many of its rows are written already."""
        if batch != self.batch:
            self.batch, self.rows = batch, 0
            self._save()
        return self.rows

    def passed(self) -> None:
        """Count a written row that is not a match."""
        self.rows += 1
        self.note()

    def refused(self) -> None:
        """Count a match that becomes a dead letter.

        Noted with the next row or at the end of the micro-batch.
        """
        self.rows += 1

    def wrote(self, out: IO[bytes]) -> None:
        """Count a match written to the output."""
        self.rows += 1
        self.matches += 1
        if self.is_file:
            self._size = out.tell()
        self.note()

    def require(self, query: str) -> None:
        """Raise UsageError if this checkpoint has micro-batches of another query.

        Spark's states would detect it, too, but only with new data.
        """
        path = self._checkpoint / "query"
        if self.batch >= 0 and path.exists() and path.read_text() != query:
            raise UsageError(f"{self._checkpoint} is of another query: give each a checkpoint of its own")
        draft = path.with_name("query.draft")
        draft.write_text(query)
        draft.replace(path)

    @property
    def is_file(self) -> bool:
        """Return whether the output is a file, and not a pipe."""
        return self._out is not None

    def note(self) -> None:
        """Note all rows so far, and their dead letters."""
        self._noted = self._letters_size
        self._save()

    @property
    def _letters_size(self) -> int:
        return 0 if self._letters is None else os.fstat(self._letters.fileno()).st_size

    def _save(self) -> None:
        os.pwrite(self._file, self._packed(), 0)

    def _packed(self) -> bytes:
        return _LAYOUT.pack(_MARK, self.batch, self.rows, self.matches, self._size, self._noted)


class NotedWriter(ResultWriter):
    """A writer that advances a cursor."""

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
            self._cursor.refused()
            raise
        self._cursor.wrote(self._out)

    def close(self) -> None:
        """Write the end of the document."""
        self._writer.close()

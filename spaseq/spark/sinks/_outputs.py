"""Answers as files: their formats, and which query owns which files of a folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

from pyoxigraph import BlankNode

from spaseq.errors import EngineError, FormatError, SourceError
from spaseq.language.syntax import Construct, Query
from spaseq.results import writer
from spaseq.results.writers._graphs import event_quads
from spaseq.sources import write_messages
from spaseq.spark.sinks._lines import match_of
from spaseq.spark.source._files import info, join, names, normal, opened, write

#: What files of answers hold, and what their names begin with.
MATCHES: Final = "matches"
LETTERS: Final = "letters"


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the answers of a query go: normal locations (see ``_files``), for its matches and its letters."""

    text: str
    folder: str
    letters: str

    @property
    def query(self) -> str:
        """By which its files are known."""
        return blake2b(self.text.encode(), digest_size=6).hexdigest()

    def of(self, what: str) -> str:
        """The folder of matches or letters."""
        return self.folder if what == MATCHES else self.letters

    def prefix(self, what: str) -> str:
        """What its files' names begin with."""
        return f"{what}-{self.query}-"

    def files(self, what: str, begin: str = "") -> list[str]:
        """Its files; ``begin``: those with this before their names."""
        prefix = begin + self.prefix(what)
        return [path for path in names(self.of(what)) if path.rpartition("/")[2].startswith(prefix)]

    def require(self, mode: str) -> None:
        """Raises EngineError if what is written at once must not be written there."""
        for folder in self._folders:
            owner = self._owner(folder)
            if owner is not None:
                raise EngineError(
                    f"{folder} is where this query writes as a stream, with the checkpoint {owner}"
                )
        if mode == "error" and self._is_there:
            raise EngineError(
                f"{self.folder} has answers of this query: give another folder, or mode= append or overwrite"
            )

    def claim(self, checkpoint: str | Path) -> None:
        """Makes the folders those of a stream with this checkpoint.

        Raises EngineError if they are another's, or if there are files that this one will not know of.
        """
        try:
            known = normal(checkpoint)
            is_begun = next(names(join(known, "offsets")), None) is not None
        except SourceError:  # on a file system that only Spark knows
            known, is_begun = str(checkpoint), True
        owners = {folder: self._owner(folder) for folder in self._folders}
        for folder, owner in owners.items():
            if owner not in (None, known):
                raise EngineError(
                    f"{folder} is where this query writes with checkpoint {owner}: go on with that one, "
                    "or give another folder"
                )
        if self._is_there and (None in owners.values() or not is_begun):
            raise EngineError(
                f"{self.folder} has answers of this query that this checkpoint has not made: "
                "give another folder"
            )
        for folder in self._folders:
            write(self._note(folder), known.encode())

    @property
    def _folders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.folder, self.letters)))

    @property
    def _is_there(self) -> bool:
        return any(self.files(what) for what in (MATCHES, LETTERS))

    def _note(self, folder: str) -> str:
        return join(folder, f".writer-{self.query}")

    def _owner(self, folder: str) -> str | None:
        if info(self._note(folder)) is None:
            return None
        with opened(self._note(folder)) as file:
            return file.read().decode()


class OutputForm(StrEnum):
    """What files of matches hold: a line of JSON each, or the events that CONSTRUCT makes of them."""

    NDJSON = "ndjson"
    NQUADS = "nquads"
    TRIG = "trig"
    MESSAGES = "messages"


#: The names of files end so, and are read as what they are.
EXTENSIONS: Final = {
    OutputForm.NDJSON: "ndjson",
    OutputForm.NQUADS: "nq",
    OutputForm.TRIG: "trig",
    OutputForm.MESSAGES: "messages",
}


def form_of(name: str, query: Query) -> OutputForm:
    """The form of that name. Raises FormatError for an unknown one, and for graphs of what makes none."""
    if name not in tuple(OutputForm):
        raise FormatError(
            f"unknown format {name!r} of files of matches: known are {', '.join(OutputForm)}, parquet"
        )
    form = OutputForm(name)
    if form is not OutputForm.NDJSON and not isinstance(query.form, Construct):
        raise FormatError(f"{form} holds graphs, which only CONSTRUCT makes: use {OutputForm.NDJSON}")
    return form


def write_lines(lines: Iterable[str], form: OutputForm, query: Query | None, out: IO[bytes]) -> None:
    """Writes the matches of some lines as a file of that form; NDJSON, or dead letters, need no query."""
    if form is OutputForm.NDJSON or query is None:
        out.writelines(f"{line}\n".encode() for line in lines)
    elif form is OutputForm.MESSAGES:
        found = enumerate((match_of(line, query) for line in lines), 1)
        # In TriG, as a file of that name is read.
        write_messages((event_quads(match, BlankNode(f"match{n}")) for n, match in found), out, "trig")
    else:
        with writer(form, query, out) as writing:
            for line in lines:
                writing.match(match_of(line, query))

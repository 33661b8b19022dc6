"""``spaseq run --state``: input, state and output are committed together, so a killed run resumes exactly."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from spaseq.cli.arguments import UsageError
from spaseq.cli.running.cursor import DOCUMENTS
from spaseq.connect import hide
from spaseq.engine import Engine, Source
from spaseq.engine.durable.replay import check
from spaseq.errors import EngineError
from spaseq.language.syntax import Query
from spaseq.results import Format, ResultWriter

if TYPE_CHECKING:
    from spaseq.cli.running.report import Report
    from spaseq.connect.sinks import Sink

#: The name of the file of dead letters among the outputs.
_LETTERS = "dead letters"


def check_state(state: Path, out: Path | str | None, form: Format, sources: Iterable[Source]) -> None:
    """Raise UsageError for an output or a source that a run with a state cannot resume.

    ``out``: a file, or a URL as text.
    """
    if out is None:
        raise UsageError("--state continues a file or a URL, not standard output: add -o FILE, or a URL")
    if isinstance(out, Path):
        _check_file(state, out, form)
    for source in sources:
        try:
            check(source.location)
        except EngineError as error:
            raise UsageError(f"--state: {error}") from None


def _check_file(state: Path, out: Path, form: Format) -> None:
    if form in DOCUMENTS:
        lines = ", ".join(f for f in Format if f not in DOCUMENTS)
        raise UsageError(f"-f {form} is one document, which --state cannot continue: use {lines}")
    if out.exists() and not out.is_file():
        raise UsageError(f"-o {out}: --state continues a file, and this is not a file")
    if out.resolve() == state.resolve():
        raise UsageError(f"--state {state} is the output, too: name two files")


class KeptOutputs:
    """The outputs of a run with a state: files, truncated to their length at the last commit, or a URL."""

    def __init__(
        self, engine: Engine, queries: Mapping[str, Query], every: timedelta | int, report: Report
    ) -> None:
        """Open the outputs; ``every``: the time, or the number of events, between two commits."""
        self._engine = engine
        self._every = every
        self._files: dict[str, IO[Any]] = {}
        self._at, self._events = time.monotonic(), engine.events
        if left := [name for name in engine.queries if name not in queries]:
            raise UsageError(
                f"--state: this state is of a run with {left[0]}, too: give the same queries again, or begin "
                "anew with another file"
            )
        for name, handle in engine.queries.items():
            if handle.query != queries[name]:
                raise UsageError(
                    f"--state: {name} is another query than the one that the state was made with: put it "
                    "back, or begin anew with another file"
                )
        letters = report.letters
        if letters is not None:
            # The previous run may have reported what is reported again now.
            known = engine.outputs.get(_LETTERS)
            if known is not None:
                os.truncate(letters.fileno(), min(known, os.fstat(letters.fileno()).st_size))
            self._files[_LETTERS] = letters

    def open(self, path: Path) -> IO[bytes]:
        """Open an output file to continue it. Raises UsageError if its contents are missing."""
        name = str(path.resolve())
        size = self._engine.outputs.get(name, 0)
        there = path.stat().st_size if path.exists() else 0
        if there < size:
            raise UsageError(
                f"-o {path}: it has {there} bytes, but {size} were written: put it back, or begin anew with "
                "another state file"
            )
        before = [o for o in self._engine.outputs if o not in (name, _LETTERS) and not self._files]
        if not size and any(self._engine.outputs[o] for o in before) and name not in self._engine.outputs:
            raise UsageError(
                f"-o {path}: with this state the output was {before[0]}: go on there, or begin anew with "
                "another state file"
            )
        file = path.open("ab" if path.exists() else "wb")
        file.truncate(size)
        self._files[name] = file
        return file

    def outbox(self, url: str, media: str) -> Sink:
        """Open an output by URL to continue it. Raises SourceError, SinkError and EngineError."""
        files = [name for name, size in self._engine.outputs.items() if size and name != _LETTERS]
        if files and "://" not in files[0]:
            raise UsageError(
                f"-o {hide(url)}: with this state the output was {files[0]}: go on there, or begin anew with "
                "another state file"
            )
        return self._engine.outbox(url, media)

    def go_on(self, name: str | None, writer: ResultWriter) -> None:
        """Continue a writer after what was written for the query of this name, or for all."""
        handles = self._engine.queries
        names = handles if name is None else [name]
        if sum(handles[each].delivered for each in names):
            writer.go_on(sum(handles[each].delivered for each in names))

    def settled(self, is_last: bool) -> None:
        """Commit after all matches are written, if it is due or the last time."""
        if is_last:
            is_due = True
        elif isinstance(self._every, int):
            is_due = self._engine.events - self._events >= self._every
        else:
            is_due = time.monotonic() - self._at >= self._every.total_seconds()
        if is_due:
            self.commit()

    def commit(self) -> None:
        """Commit input, state and output together."""
        self._engine.commit(self._files)
        self._at, self._events = time.monotonic(), self._engine.events

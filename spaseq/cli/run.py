"""``spaseq run``: matches from the engine to a file or standard output, whatever ends them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import typer

from spaseq.cli.console import Interrupts, StatusLine, Terminated, say, warnings_on_stderr
from spaseq.cli.cursor import Cursor
from spaseq.engine import Progress
from spaseq.engine.rejects import DeadLetterFile
from spaseq.results import ResultWriter
from spaseq.results.match import Match
from spaseq.sources import BadEvent

#: The exit status after SIGTERM, as shells give it.
TERMINATED: Final = 128 + signal.SIGTERM

#: How many reasons of bad and late events are shown.
_REASONS: Final = 5


class _ReaderGoneError(Exception):
    """Nobody reads the results any more, as after ``| head``."""


@dataclass(slots=True)
class Report:
    """What a run says on standard error: its progress, and in the end which events it had to refuse.

    ``dead_letters`` is where these go; ``letters`` the same, open, unless somebody else writes it.
    """

    dead_letters: Path | None
    letters: DeadLetterFile | None = None
    status: StatusLine = field(default_factory=StatusLine)
    last: Progress | None = None
    refused: list[BadEvent] = field(default_factory=list)

    def progress(self, progress: Progress) -> None:
        """Called by the engine every now and then, and at the end."""
        self.last = progress
        self.status.show(progress)

    def refuse(self, event: BadEvent) -> None:
        """Called by the engine with every bad or late event; the first few are kept if there is no file."""
        if self.letters is not None:
            self.letters(event)
        elif len(self.refused) < _REASONS:
            self.refused.append(event)

    def close(self) -> None:
        """The last figures, on a terminal."""
        self.status.close(self.last)
        if self.letters is not None:
            self.letters.close()

    def summarise(self) -> None:
        """The bad and late events, if there were any."""
        if self.last is None or not (self.last.bad or self.last.late):
            return
        where = f" (in {self.dead_letters})" if self.dead_letters else ""
        say(f"{self.last.bad} bad and {self.last.late} late events were left out{where}")
        for event in self.refused:
            say(f"  {event.stream}, {event.position}: {event.reason}")
        if self.refused and self.last.bad + self.last.late > len(self.refused):
            say("  … (--dead-letters FILE keeps them all)")
        if self.last.late:
            say("  late events count with --lateness; a source's option order=time sorts what has an end")


def deliver(matches: Generator[Match, None, None], results: ResultWriter, report: Report) -> None:
    """Write the matches as they come, until they end, are interrupted, or nobody reads them.

    Ctrl-C is the normal end of an endless stream: what was found is complete. SIGTERM ends it alike, but
    with the exit status that says so. What the engine raises passes through, after the document was ended.
    """
    status = 0
    with warnings_on_stderr(report.status):
        try:
            _write(matches, results, report)
        except _ReaderGoneError:
            silence_stdout()
        except Terminated:
            status = TERMINATED
        except KeyboardInterrupt:
            pass
        finally:
            report.close()
    report.summarise()
    if status:
        raise typer.Exit(status)


def _write(matches: Generator[Match, None, None], results: ResultWriter, report: Report) -> None:
    with Interrupts() as interrupts:
        try:
            with closing(matches):
                for match in matches:
                    with interrupts.held(), _reader_gone():
                        report.status.clear()
                        results.match(match)
        finally:
            with interrupts.held(), _reader_gone():
                report.status.clear()
                results.close()


@contextmanager
def output(path: Path | None, cursor: Cursor | None = None) -> Iterator[IO[bytes]]:
    """The file of ``-o``, or standard output; a file that ``cursor`` is in is gone on with."""
    if path is None:
        yield sys.stdout.buffer
    else:
        opened = path.open("wb") if cursor is None else cursor.open(path)
        with suppress(BrokenPipeError), opened as file:  # closing a pipe that broke fails again
            yield file


@contextmanager
def _reader_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGoneError from None


def silence_stdout() -> None:
    """Point standard output nowhere, so that Python's last flush does not fail in its turn."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

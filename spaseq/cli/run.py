"""``spaseq run``: matches from the engine to a file or standard output, whatever ends them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import typer

from spaseq.cli.console import (
    Interrupts,
    StatusLine,
    Terminated,
    say,
    standard_output,
    warnings_on_stderr,
)
from spaseq.cli.cursor import Cursor
from spaseq.engine import Handle, Progress
from spaseq.engine.rejects import DeadLetterFile
from spaseq.engine.running import Run
from spaseq.errors import FormatError, SourceError
from spaseq.results import ResultWriter
from spaseq.results._json import line_of
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match
from spaseq.sources import BadEvent

#: The exit status after SIGTERM, as shells give it.
TERMINATED: Final = 128 + signal.SIGTERM

#: How many reasons of bad and late events are shown.
_REASONS: Final = 5


class _ReaderGoneError(Exception):
    """Nobody reads the results any more, as after ``| head``."""


class Report:
    """What a run says on standard error: its progress, and in the end what it had to leave out.

    That is bad and late events, and matches that the format of the results cannot hold. ``dead_letters`` is
    the file that keeps them all. ``why``: where there is no match, it says the likeliest reason.
    """

    def __init__(self, dead_letters: Path | None, strict: bool, *, why: bool = True) -> None:
        self.status = StatusLine()
        self.last: Progress | None = None
        self._strict = strict
        self._why = why
        self._path = dead_letters
        self._file = DeadLetterFile(dead_letters) if dead_letters is not None else None
        self._shown: list[BadEvent] = []
        self._matches = 0
        self._unwritten = 0
        self._handle: Handle | None = None

    def watch(self, handle: Handle) -> None:
        """Called by the engine before the first event, with what can say why there is no match."""
        if self._why:
            self._handle = handle
        else:
            handle.keep(0)

    def progress(self, progress: Progress) -> None:
        """Called by the engine every now and then, and at the end."""
        self.last = progress
        self.status.show(progress)

    def refuse(self, event: BadEvent) -> None:
        """Called by the engine with every bad or late event."""
        if len(self._shown) < _REASONS:
            self._shown.append(event)
        if self._file is not None:
            self._file(event)

    def write(self, item: MatchBatch | Match, results: ResultWriter) -> None:
        """Write matches; one that the format cannot hold is refused, and with ``--strict`` the end."""
        self.status.clear()
        if isinstance(item, MatchBatch) and results.holds_all:
            self._matches += len(item)
            results.batch(item)
            return
        for match in item if isinstance(item, MatchBatch) else [item]:
            self._matches += 1
            try:
                results.match(match)
            except FormatError as error:
                if self._strict:
                    raise
                self._unwritten += 1
                streams = " ".join(stream.iri.value for stream in match.query.streams)
                self.refuse(BadEvent(streams, f"match {self._matches}", str(error), line_of(match)))

    def close(self) -> None:
        """The last figures, on a terminal."""
        self.status.close(self.last)
        if self._file is not None:
            self._file.close()

    @property
    def is_barren(self) -> bool:
        """Whether all that was read was bad."""
        return self.last is not None and self.last.bad > 0 and not self.last.events

    def explain(self) -> None:
        """If the query found nothing although it was to find something, the likeliest reason."""
        handle = self._handle
        if handle is None or handle.stats.matches or handle.done:
            return
        with suppress(KeyboardInterrupt):  # which ends that, too
            say(f"no match: {handle.why().cause}")

    def summarise(self) -> None:
        """What was left out, if anything was."""
        bad, late = (self.last.bad, self.last.late) if self.last is not None else (0, 0)
        left = []
        if bad or late:
            left.append(f"{bad} bad and {late} late events")
        if self._unwritten:
            left.append(f"{self._unwritten} of {self._matches} matches, which the format cannot hold,")
        if not left:
            return
        where = f" (in {self._path})" if self._path else ""
        say(f"{' and '.join(left)} were left out{where}")
        for event in self._shown:
            say(f"  {event.stream}, {event.position}: {event.reason}")
        if not self._path and bad + late + self._unwritten > len(self._shown):
            say("  … (--dead-letters FILE keeps them all)")
        if late:
            say("  late events count with --lateness; a source's option order=time sorts what has an end")


def deliver(matches: Run | Generator[Match, None, None], results: ResultWriter, report: Report) -> None:
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
        except SourceError:
            report.close()
            report.summarise()
            raise
        except Terminated:
            status = TERMINATED
        except KeyboardInterrupt:
            pass
        finally:
            report.close()
    report.summarise()
    if not status and report.is_barren:
        status = 1
    if status:
        raise typer.Exit(status)
    report.explain()


def _write(matches: Run | Generator[Match, None, None], results: ResultWriter, report: Report) -> None:
    with Interrupts() as interrupts:
        try:
            with closing(matches):
                for item in matches.batches() if isinstance(matches, Run) else matches:
                    with interrupts.held(), _reader_gone():
                        report.write(item, results)
        finally:
            with interrupts.held(), _reader_gone():
                report.status.clear()
                results.close()
                if sys.stdout is not None:
                    sys.stdout.flush()  # before what is said next on standard error


@contextmanager
def output(path: Path | None, cursor: Cursor | None = None) -> Iterator[IO[bytes]]:
    """The file of ``-o``, or standard output; a file that ``cursor`` is in is gone on with."""
    if path is None:
        yield standard_output()
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

"""``spaseq run``: matches from the engine to a file or standard output, whatever ends them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Final

import typer

from spaseq.cli.arguments import UsageError
from spaseq.cli.console import (
    Interrupts,
    StatusLine,
    Terminated,
    complain,
    say,
    standard_output,
    warnings_on_stderr,
)
from spaseq.cli.running.cursor import Cursor
from spaseq.cli.running.state import Kept
from spaseq.connect import hide
from spaseq.engine import Handle, Progress
from spaseq.engine.rejects import DeadLetterFile
from spaseq.errors import FormatError, SourceError, SpaseqError
from spaseq.language.syntax import Query
from spaseq.results import Format, ResultWriter, check_format, writer
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match
from spaseq.results.writers._json import line_of
from spaseq.results.writers.several import check_formats, writers
from spaseq.sources import BadEvent

#: The exit status after SIGTERM, as shells give it.
TERMINATED: Final = 128 + signal.SIGTERM

#: How many reasons of bad and late events are shown.
_REASONS: Final = 5

#: Seconds of the processor's time to look for why there is no match.
_LOOKING: Final = 3.0

#: Where the name of a query belongs in the path of ``-o``.
_PLACE: Final = "{query}"

#: What writes the matches of each query, and what has to be closed then.
Outputs = tuple[Mapping[str, ResultWriter], Iterable[ResultWriter]]

#: Matches as they come, with the name of their query.
Found = Generator[tuple[str, MatchBatch | Match], None, None]


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
        self._handles: Mapping[str, Handle] = {}
        self.has_failed = False

    def watch(self, handles: Mapping[str, Handle]) -> None:
        """Called by the engine before the first event, with what can say why there is no match."""
        if self._why:
            self._handles = handles
        else:
            for handle in handles.values():
                handle.keep(0)

    def fail(self, name: str, error: SpaseqError) -> None:
        """Called by the engine when one of several queries ends with an error."""
        self.status.clear()
        self.has_failed = True
        complain(SpaseqError(f"{name}: {error}"))

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

    def write(self, name: str, item: MatchBatch | Match, results: ResultWriter) -> None:
        """Write matches; one that the format cannot hold is refused, and with ``--strict`` the end.

        ``name`` is that of their query, if there are several.
        """
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
                which = f"match {self._matches}" + (f" of {name}" if name else "")
                self.refuse(BadEvent(streams, which, str(error), line_of(match)))

    @property
    def letters(self) -> IO[str] | None:
        """The file of bad and late events, if there is one."""
        return None if self._file is None else self._file.file

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
        """For a query that found nothing although it was to find something, the likeliest reason.

        Of several queries the first few are looked into, which share the time for that.
        """
        barren = [(n, h) for n, h in self._handles.items() if not h.stats.matches and not h.done]
        shown, several = barren[:_REASONS], len(self._handles) > 1
        with suppress(KeyboardInterrupt):  # which ends that, too
            for name, handle in shown:
                which = f"no match of {name}" if several else "no match"
                say(f"{which}: {handle.why(_LOOKING / len(shown)).cause}")
            if len(barren) > len(shown):
                say(
                    f"no match of {len(barren) - len(shown)} further queries, such as {barren[len(shown)][0]}"
                )

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


def of_one(name: str, matches: Generator[Match, None, None]) -> Found:
    """The matches of one query, with its name."""
    with closing(matches):
        for match in matches:
            yield name, match


def deliver(
    matches: Found, results: Mapping[str, ResultWriter], documents: Iterable[ResultWriter], report: Report
) -> None:
    """Write the matches as they come, until they end, are interrupted, or nobody reads them.

    ``results`` are for each query what writes its matches, ``documents`` what has to be closed then.

    Ctrl-C is the normal end of an endless stream: what was found is complete. SIGTERM ends it alike, but
    with the exit status that says so. What the engine raises passes through, after the document was ended.
    """
    status = 0
    with warnings_on_stderr(report.status):
        try:
            _write(matches, results, documents, report)
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
    if not status and (report.is_barren or report.has_failed):
        status = 1
    if status:
        raise typer.Exit(status)
    report.explain()


def _write(
    matches: Found, results: Mapping[str, ResultWriter], documents: Iterable[ResultWriter], report: Report
) -> None:
    several = len(results) > 1
    with Interrupts() as interrupts:
        try:
            with closing(matches):
                for name, item in matches:
                    with interrupts.held(), _reader_gone():
                        report.write(name if several else "", item, results[name])
        finally:
            with interrupts.held(), _reader_gone():
                report.status.clear()
                for document in documents:
                    document.close()
                if sys.stdout is not None:
                    sys.stdout.flush()  # before what is said next on standard error


def check_outputs(path: Path | None, form: Format, queries: Mapping[str, Query]) -> None:
    """Raises UsageError for what ``outputs`` cannot do.

    That is a format that cannot hold what a query gives, and a path that two queries would have.
    """
    try:
        if path is None or not is_pattern(path):
            check_formats(form, queries)
            return
        owners: dict[Path, str] = {}
        for name, query in queries.items():
            own = filled(path, name)
            other = owners.setdefault(own, name)
            if other != name:
                raise UsageError(f"-o {path}: {other} and {name} would both be written to {own}")
            try:
                check_format(form, query)
            except FormatError as error:
                raise FormatError(f"{error} (in {name})") from None
    except FormatError as error:
        raise UsageError(f"-f {error}") from None


@contextmanager
def outputs(
    path: Path | None, form: Format, queries: Mapping[str, Query], kept: Kept | None = None
) -> Iterator[Outputs]:
    """What writes the matches of several queries, to ``path`` or standard output.

    To one document, or, if the path has ``{query}``, to one for each; there that is the name of the query's
    file without its extension.
    """
    if path is None or not is_pattern(path):
        with output(path, kept) as file:
            several, documents = writers(form, queries, file)
            if kept is not None:
                for document in documents:
                    kept.go_on(None, document)
            yield several, documents
        return
    with ExitStack() as files:
        each = {
            name: writer(form, query, files.enter_context(output(filled(path, name), kept)))
            for name, query in queries.items()
        }
        if kept is not None:
            for name, one in each.items():
                kept.go_on(name, one)
        yield each, each.values()


def check_records(form: Format, queries: Mapping[str, Query]) -> None:
    """Raises UsageError for a format that cannot go to a URL, or cannot hold what a query gives."""
    from spaseq.connect.writing import check_records as check

    for query in queries.values():
        try:
            check(form, query)
        except FormatError as error:
            raise UsageError(f"-f {error}") from None


@contextmanager
def url_outputs(
    url: str, form: Format, queries: Mapping[str, Query], kept: Kept | None = None
) -> Iterator[Outputs]:
    """What sends the matches of queries to the URL of ``-o``. Raises UsageError for what is wrong in it."""
    # Imported only here: most runs write to a file.
    from spaseq.connect.sinks import open_sink
    from spaseq.connect.writing import RECORDS, RecordWriter

    try:
        sink = open_sink(url, RECORDS[form]) if kept is None else kept.outbox(url, RECORDS[form])
    except SourceError as error:
        raise UsageError(f"-o {hide(url)}: {error}") from None
    # An outbox is the state's, which closes it.
    with closing(sink) if kept is None else nullcontext():
        each = {name: RecordWriter(form, query, name, sink) for name, query in queries.items()}
        if kept is not None:
            for name, one in each.items():
                kept.go_on(name, one)
        yield each, each.values()


def is_pattern(path: Path) -> bool:
    """Whether the path of ``-o`` is one for each query."""
    return _PLACE in str(path)


def filled(path: Path, query: str) -> Path:
    """The path of ``-o`` for a query.

    >>> str(filled(Path("out/{query}.csv"), "alerts/acme.rq"))
    'out/acme.csv'
    """
    return Path(str(path).replace(_PLACE, Path(query).stem))


@contextmanager
def output(path: Path | None, cursor: Cursor | Kept | None = None) -> Iterator[IO[bytes]]:
    """The file of ``-o``, or standard output; a file that ``cursor`` is in is gone on with."""
    if path is None:
        yield standard_output()
    else:
        opened = path.open("wb") if cursor is None else cursor.open(path)
        try:
            with suppress(BrokenPipeError), opened as file:  # closing a pipe that broke fails again
                yield file
        except OSError as error:
            # What fails in a write does not say where, as what fails in an open does.
            if error.errno == errno.ENOSPC and error.filename is None:
                raise OSError(error.errno, error.strerror, str(path)) from None
            raise


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

"""``spaseq run``: matches from the engine into what writes them, whatever ends that."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final

import typer

from spaseq.cli.console import Interrupts, warnings_on_stderr
from spaseq.cli.running.report import Report
from spaseq.errors import SpaseqError
from spaseq.interrupts import Terminated
from spaseq.results import ResultWriter
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match

#: The exit status after SIGTERM, as shells give it.
TERMINATED: Final = 128 + signal.SIGTERM

#: Matches as they come, with the name of their query.
Found = Generator[tuple[str, MatchBatch | Match], None, None]


class _ReaderGoneError(Exception):
    """Nobody reads the results any more, as after ``| head``."""


def deliver(
    matches: Found,
    results: Mapping[str, ResultWriter],
    documents: Iterable[ResultWriter],
    report: Report,
    interrupts: Interrupts,
) -> None:
    """Write the matches as they come, until they end, are interrupted, or nobody reads them.

    ``results`` are for each query what writes its matches, ``documents`` what has to be closed then;
    ``interrupts`` are in force until then.

    Ctrl-C is the normal end of an endless stream: what was found is complete. SIGTERM ends it alike, but
    with the exit status that says so. What the engine raises passes through, after the document was ended.
    """
    status = 0
    with warnings_on_stderr(report.status):
        try:
            _write(matches, results, documents, report, interrupts)
        except _ReaderGoneError:
            silence_stdout()
        except SpaseqError:
            report.close()
            report.summarise()
            if report.last.events or report.last.bad:
                report.conclude()
            raise
        except Terminated:
            status = TERMINATED
        except KeyboardInterrupt:
            pass
        finally:
            report.close()
    report.summarise()
    status = status or int(report.is_barren or report.has_failed)
    if not status:
        report.explain()
    report.conclude()
    if status:
        raise typer.Exit(status)


def _write(
    matches: Found,
    results: Mapping[str, ResultWriter],
    documents: Iterable[ResultWriter],
    report: Report,
    interrupts: Interrupts,
) -> None:
    several = len(results) > 1
    with interrupts:
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

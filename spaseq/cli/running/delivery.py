"""``spaseq run``: matches of the engine → writers, until the end, an interrupt or a closed pipe."""

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
from spaseq.results.batch import Match, MatchBatch

#: The exit status after SIGTERM, by the shells' convention.
TERMINATED: Final = 128 + signal.SIGTERM

#: Matches with the name of their query, in order.
Found = Generator[tuple[str, MatchBatch | Match], None, None]


class _ReaderGoneError(Exception):
    """The reader of the results has closed the pipe, as ``| head`` does."""


def deliver(
    matches: Found,
    results: Mapping[str, ResultWriter],
    documents: Iterable[ResultWriter],
    report: Report,
    interrupts: Interrupts,
) -> None:
    """Write the matches as they arrive, until they end, are interrupted, or the reader has gone.

    ``results`` has a writer for each query, ``documents`` the writers to close at the end; ``interrupts`` are
    handled until then.

    Ctrl-C is the normal end of an endless stream: the output is complete. It is complete after SIGTERM, too,
    but the exit status is ``TERMINATED``. Exceptions of the engine pass through after the document is ended.
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
                    sys.stdout.flush()  # before the next output on standard error


@contextmanager
def _reader_gone() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGoneError from None


def silence_stdout() -> None:
    """Redirect standard output to nowhere, so that Python's last flush does not fail, too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

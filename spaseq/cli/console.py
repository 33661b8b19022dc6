"""Standard error and signals: messages, one line of progress, and deferred interrupts."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Self, TextIO

import typer
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from spaseq.cli.arguments import UsageError
from spaseq.errors import QueryError, SpaseqError, SpaseqWarning
from spaseq.excerpts import bounded
from spaseq.interrupts import DEFERRAL, Terminated
from spaseq.results.writers._base import harmless, show_time

if TYPE_CHECKING:
    from spaseq.engine import Progress

#: Seconds until an interrupt is raised again.
_AGAIN: Final = 0.05


def say(text: str, kind: str = "") -> None:
    """Print a message on standard error; control characters in quoted text are escaped."""
    typer.echo(f"{kind}{harmless(text)}", err=True)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    say(text, f"{typer.style('warning:', fg='yellow')} ")


def complain(error: BaseException) -> None:
    """Print an error on standard error; an error in a query contains its place."""
    if isinstance(error, QueryError):
        say(str(error))
    else:
        say(bounded(str(error)), f"{typer.style('error:', fg='red')} ")


def whole_streams() -> None:
    """Open the null device in place of a standard stream that is closed (``>&-``).

    Otherwise the next opened file would take its number, and get the output meant for the stream.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)  # the lowest free number: this one
            assert opened == number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # as long as the process lives


def standard_output() -> IO[bytes]:
    """Return standard output, as bytes. Raises ClosedError if it is closed."""
    if sys.stdout is None:
        raise ClosedError("standard output is closed: nowhere to write to (-o FILE writes to a file)")
    return sys.stdout.buffer


class ClosedError(SpaseqError):
    """A standard stream that is needed is closed."""


@contextmanager
def reporting() -> Iterator[None]:
    """Print errors as messages with an exit status, and warnings as messages; only a bug shows a
    traceback.
    """
    try:
        with warnings_on_stderr():
            yield
    except (QueryError, UsageError) as error:
        complain(error)
        raise typer.Exit(2) from None
    except (SpaseqError, OSError) as error:
        complain(error)
        raise typer.Exit(1) from None
    except MemoryError as error:
        reason = f": {error}" if str(error) else ""
        most = "--limit query-bytes=… bounds what a query keeps, --limit term-bytes=… a term of an event"
        say(f"there is no more memory{reason}; {most}", f"{typer.style('error:', fg='red')} ")
        raise typer.Exit(1) from None


class StatusLine:
    """The progress of a run, on the last line of a terminal; nothing anywhere else."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._terminal = sys.stderr.isatty()  # FORCE_COLOR makes rich take a file for a terminal
        self._shown = False
        self._began = time.monotonic()

    def show(self, progress: Progress) -> None:
        """Replace the line."""
        if self._terminal:
            self.clear()
            self._console.print(self._text(progress), end="", overflow="ellipsis", no_wrap=True, style="dim")
            self._shown = True

    def clear(self) -> None:
        """Clear the line for other output."""
        if self._shown:
            self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
            self._shown = False

    def _text(self, progress: Progress) -> str:
        rate = progress.events / max(time.monotonic() - self._began, 1e-9)
        parts = [f"{progress.events:,} events", f"{rate:,.0f} events/s", f"{progress.matches:,} matches"]
        parts += progress.more  # before the parts that a narrow line omits
        if progress.limit is not None and progress.limit.share >= 0.01:
            parts.append(str(progress.limit))
        if progress.watermark is not None:
            parts.append(f"watermark {show_time(progress.watermark)}")
        return "  ".join(parts)


class Interrupts:
    """Ctrl-C raises KeyboardInterrupt, SIGTERM ``Terminated``: at the end of a turn or of a ``held`` block.

    So a row is written whole or not at all. A second signal does not wait. An interrupt inside a finalizer,
    where Python ignores exceptions, is raised again later.
    """

    def __init__(self) -> None:
        self._again: threading.Timer | None = None
        self.held = DEFERRAL.held

    def __enter__(self) -> Self:
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._ignored
        self._before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number, before in self._before.items():
            if before is not signal.SIG_IGN:  # background jobs of a shell keep ignoring it
                signal.signal(number, DEFERRAL.handler)
        DEFERRAL.is_kept = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._again is not None:
                self._again.cancel()
                self._again.join()  # before the old handlers are back: they may end the process
        finally:
            DEFERRAL.is_kept = False
            for number, before in self._before.items():
                signal.signal(number, before)
            sys.unraisablehook = self._unraisable

    def _ignored(self, what: sys.UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            number = signal.SIGTERM if issubclass(what.exc_type, Terminated) else signal.SIGINT
            self._again = threading.Timer(_AGAIN, os.kill, (os.getpid(), number))
            self._again.daemon = True
            self._again.start()
        else:
            self._unraisable(what)


@contextmanager
def warnings_on_stderr(status: StatusLine | None = None) -> Iterator[None]:
    """Print spaseq's warnings as plain messages, above the progress."""
    show = warnings.showwarning
    said: set[str] = set()  # several queries may have the same warning

    def plainly(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, SpaseqWarning):
            if str(message) in said:
                return
            said.add(str(message))
            if status is not None:
                status.clear()
            warn(str(message))
        else:
            show(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SpaseqWarning)
        warnings.showwarning = plainly
        yield

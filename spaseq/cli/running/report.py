"""Output of ``spaseq run`` on standard error: progress, refused events, why there is no match, totals."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from spaseq.cli.console import StatusLine, complain, say
from spaseq.engine import Handle, Progress
from spaseq.engine.rejects import DeadLetterFile
from spaseq.errors import FormatError, SpaseqError
from spaseq.results import ResultWriter
from spaseq.results.batch import Match, MatchBatch
from spaseq.results.writers._json import line_of
from spaseq.sources import BadEvent
from spaseq.why.diagnosis import plural

#: How many reasons of refused events are shown.
_REASONS: Final = 5

#: From this many matches on, warn if they outnumber the events; warn again at ten times as many (a guess).
_MANY: Final = 1_000_000

#: CPU seconds to find out why there is no match.
_LOOKING: Final = 3.0


class Report:
    """The messages of a run on standard error: its progress, and at the end what it refused and its totals.

    Refused are bad and late events, and matches that the format cannot hold. ``dead_letters`` is the file
    that keeps them. ``why``: if there is no match, print the likeliest reason.
    """

    def __init__(self, dead_letters: Path | None, strict: bool, *, why: bool = True) -> None:
        self.status = StatusLine()
        self.last = Progress(0, 0, 0, 0, 0, None)
        self._began = time.monotonic()
        self._strict = strict
        self._why = why
        self._path = dead_letters
        self._file = DeadLetterFile(dead_letters) if dead_letters is not None else None
        self._shown: list[BadEvent] = []
        self._many = _MANY
        self._matches = 0
        self._unwritten = 0
        self._handles: Mapping[str, Handle] = {}
        self.has_failed = False

    def watch(self, handles: Mapping[str, Handle]) -> None:
        """Note the handles before the first event, for ``explain``; called by the engine."""
        if self._why:
            self._handles = handles
        else:
            for handle in handles.values():
                handle.keep(0)

    def fail(self, name: str, error: SpaseqError) -> None:
        """Report that one of several queries has failed; called by the engine."""
        self.status.clear()
        self.has_failed = True
        complain(SpaseqError(f"{name}: {error}"))

    def progress(self, progress: Progress) -> None:
        """Show progress; called by the engine regularly, and at the end."""
        self.last = progress
        if progress.matches >= max(self._many, progress.events):
            self._many = 10 ** len(str(progress.matches))
            self.status.clear()
            nearest = "" if progress.limit is None else f"; nearest limit: {progress.limit}"
            say(f"{progress.matches:,} matches so far, of {plural(progress.events, 'event')}{nearest}")
        self.status.show(progress)

    def refuse(self, event: BadEvent) -> None:
        """Record a bad or late event; called by the engine."""
        if len(self._shown) < _REASONS:
            self._shown.append(event)
        if self._file is not None:
            self._file(event)

    def write(self, name: str, item: MatchBatch | Match, results: ResultWriter) -> None:
        """Write matches; refuse one that the format cannot hold, and raise with ``--strict``.

        ``name`` is the name of their query, if there are several.
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
        """Return the file of bad and late events, or None."""
        return None if self._file is None else self._file.file

    def close(self) -> None:
        """Remove the line of progress, and close the file of dead letters."""
        self.status.clear()
        if self._file is not None:
            self._file.close()

    @property
    def is_barren(self) -> bool:
        """Return whether all input was bad."""
        return self.last.bad > 0 and not self.last.events

    def explain(self) -> None:
        """Print the likeliest reason why a query found nothing, if that is asked for.

        Of several queries the first few are analyzed, which share the time.
        """
        barren = [(n, h) for n, h in self._handles.items() if not h.stats.matches and not h.done]
        shown, several = barren[:_REASONS], len(self._handles) > 1
        with suppress(KeyboardInterrupt):  # which ends the analysis, too
            for name, handle in shown:
                which = f"no match of {name}" if several else "no match"
                say(f"{which}: {handle.why(_LOOKING / len(shown)).cause}")
            if len(barren) > len(shown):
                say(
                    f"no match of {len(barren) - len(shown)} further queries, such as {barren[len(shown)][0]}"
                )

    def summarise(self) -> None:
        """Print the first reasons of refused events; with ``--strict`` the error does that."""
        if self._strict:
            return
        for event in self._shown:
            say(f"refused: {event.stream}, {event.position}: {event.reason}")
        if self.last.late:
            say("late events count with --lateness; a source's option order=time sorts what has an end")

    def conclude(self) -> None:
        """Print the totals of the run on its last line."""
        events, matches = plural(self.last.events, "event"), plural(self.last.matches, "match")
        parts = [f"{events}, {matches} in {time.monotonic() - self._began:,.1f} s", *self.last.more]
        counts = {
            "malformed": self.last.bad - self.last.nonconforming,
            "late": self.last.late,
            "not conforming": self.last.nonconforming,
            f"of {matches} not writable": self._unwritten,
        }
        refused = [f"{count:,} {what}" for what, count in counts.items() if count]
        if refused and not self._strict:
            kept = f"kept in {self._path}" if self._path else "--dead-letters FILE keeps them"
            parts.append(f"{', '.join(refused)}: {kept}")
        say("; ".join(parts))

"""What ``spaseq run`` says on standard error: progress, what was left out, why there is no match."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from spaseq.cli.console import StatusLine, complain, say
from spaseq.engine import Handle, Progress
from spaseq.engine.rejects import DeadLetterFile
from spaseq.errors import FormatError, SpaseqError
from spaseq.results import ResultWriter
from spaseq.results.batch import MatchBatch
from spaseq.results.match import Match
from spaseq.results.writers._json import line_of
from spaseq.sources import BadEvent

#: How many reasons of bad and late events are shown.
_REASONS: Final = 5

#: Seconds of the processor's time to look for why there is no match.
_LOOKING: Final = 3.0


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

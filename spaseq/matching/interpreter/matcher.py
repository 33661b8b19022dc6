"""The interpreter: eager interpretation of NFA_scep, with every partial match kept (SPAseq paper, 6.3)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

from spaseq.automaton.pattern import SequencePattern
from spaseq.matching.context import Context, Rows
from spaseq.matching.interpreter.machine import PartitionRuns
from spaseq.matching.interpreter.program import RunsProgram
from spaseq.matching.interpreter.state import PartialMatch
from spaseq.matching.model import Found, Occurrence, StreamWindow, distinct


@dataclass(eq=False, slots=True)
class _Waiting:
    """A match that may still be withdrawn, with all the ways in which it was found.

    ``early``: it may be decided before ``closing``, the end of its window.
    """

    closing: int
    ways: list[tuple[PartialMatch, Found]]
    early: bool


class Interpreter:
    """Finds the matches of one sequence in one partition, see ``PartitionMatcher``.

    ``program`` is shared by the partitions of a query.
    """

    def __init__(
        self, program: RunsProgram, pattern: SequencePattern, context: Context, window: StreamWindow
    ) -> None:
        self._context = context
        self._window = window
        self._machine = PartitionRuns(program, context, window, len(set(pattern.streams)) == 1)
        self._numbers = count()
        self._newest: Occurrence | None = None
        # The waiting matches by the end of their window; and the matches that may be decided before that.
        self._waiting: list[tuple[int, int, _Waiting]] = []
        self._early: list[_Waiting] = []
        self._undecided = 0
        self._machine.start(PartialMatch(), context.start)

    @property
    def kept(self) -> tuple[int, int]:
        """See ``PartitionMatcher.kept``."""
        return self._machine.waiting + self._undecided, self._machine.size

    def push(self, occurrence: Occurrence) -> list[Found]:
        """See ``PartitionMatcher.push``."""
        self._newest = occurrence
        opening = self._window.opening(occurrence, occurrence)
        if self._waiting:
            # A waiting match may span a window, and be affected by events up to a window before it.
            opening = min(opening, self._waiting[0][0] - 2 * self._window.size)
        self._machine.memory.clear(opening)
        self._machine.push(occurrence)
        found = self._ended() if self._machine.ended else []
        if self._early:
            found = sorted(
                [*found, *self._decided(self._window.measure(occurrence) - 1, occurrence.time)],
                key=lambda match: match.last.position,
            )
        return found

    def _ended(self) -> list[Found]:
        found = []
        waiting: dict[object, list[tuple[PartialMatch, Found]]] = {}
        for run, rows in self._machine.ended:
            complete = self._context.complete(rows)
            if not complete or run.history is None:
                continue
            match = found_of(run, complete)
            if self._machine.absences.led(run, match):
                continue
            if run.gaps:
                waiting.setdefault(match.chosen, []).append((run, match))
            else:
                found.append(match)
        self._machine.ended.clear()
        found = distinct(found) if len(found) > 1 else found
        if waiting:
            certain = {match.chosen for match in found}
            for chosen, ways in waiting.items():
                if chosen not in certain:
                    self._wait(ways)
        return found

    def _wait(self, ways: list[tuple[PartialMatch, Found]]) -> None:
        closing = self._window.closing(ways[0][1].first)
        waits = _Waiting(closing, ways, any(self._machine.absences.early(run) for run, _ in ways))
        self._undecided += 1
        heapq.heappush(self._waiting, (closing, next(self._numbers), waits))
        if waits.early:
            self._early.append(waits)

    def _decided(self, at: int, time: int) -> list[Found]:
        """Return the matches that can no longer be withdrawn, before their windows end."""
        found: list[Found] = []
        asked = [waits for waits in self._early if waits.ways]
        self._early = []
        for waits in asked:
            absences = self._machine.absences
            waits.ways = [way for way in waits.ways if not absences.trailed(*way)]
            certain = [
                match
                for run, match in waits.ways
                if self._newest is not None and not absences.open(run, match, self._newest, at, time)
            ]
            if certain:
                found += distinct(certain)
                waits.ways = []
            if waits.ways:
                self._early.append(waits)
            else:
                self._undecided -= 1
        return found

    def advance(self, at: int, time: int) -> list[Found]:
        """See ``PartitionMatcher.advance``."""
        found = []
        while self._waiting and self._waiting[0][0] <= at:
            _, _, waits = heapq.heappop(self._waiting)
            found += distinct(match for run, match in waits.ways if not trailed(self._machine, run, match))
            self._undecided -= bool(waits.ways)
            waits.ways = []
        if self._early:
            found += self._decided(at, time)
        return sorted(found, key=lambda match: match.last.position)

    def drop(self) -> None:
        """See ``PartitionMatcher.drop``."""
        self._waiting.clear()
        self._early.clear()
        self._undecided = 0
        self._machine.reset()
        self._machine.start(PartialMatch(), self._context.start)


def led(machine: PartitionRuns, run: PartialMatch, match: Found) -> bool:
    """Return whether an element that must be absent before a match is there, in its window."""
    return machine.absences.led(run, match)


def trailed(machine: PartitionRuns, run: PartialMatch, match: Found) -> bool:
    """Return whether an element that must be absent after a match is there, in its window."""
    return machine.absences.trailed(run, match)


def found_of(run: PartialMatch, rows: Rows) -> Found:
    """Return a completed run, with its Ω, as a match."""
    return Found(tuple(sorted(run.choices, key=lambda choice: choice[1].position)), rows)

"""The runs evaluator: eager interpretation of NFA_scep, every partial match kept (SPAseq paper, 6.3)."""

from __future__ import annotations

import heapq
from itertools import count

from spaseq.automaton.pattern import SequencePattern
from spaseq.matching.context import Context, Rows
from spaseq.matching.model import Bounds, Found, Occurrence, distinct
from spaseq.matching.runs.machine import Machine
from spaseq.matching.runs.program import Program
from spaseq.matching.runs.state import Run

#: A match that waits for its window's end, in all the ways in which it was found.
_Waiting = list[tuple[Run, Found]]


class Runs:
    """Finds the matches of one sequence in one partition, see ``Evaluator``.

    ``program`` is shared by the partitions of a query.
    """

    def __init__(self, program: Program, pattern: SequencePattern, context: Context, bounds: Bounds) -> None:
        self._context = context
        self._bounds = bounds
        self._machine = Machine(program, context, bounds, len(set(pattern.streams)) == 1)
        self._numbers = count()
        # By the end of their window.
        self._waiting: list[tuple[int, int, _Waiting]] = []
        self._machine.start(Run(), context.start)

    @property
    def kept(self) -> tuple[int, int]:
        """See ``Evaluator.kept``."""
        return self._machine.waiting + len(self._waiting), self._machine.size

    def push(self, occurrence: Occurrence) -> list[Found]:
        """See ``Evaluator.push``."""
        opening = self._bounds.opening(occurrence, occurrence)
        if self._waiting:
            # A match that waits may span a window, and look back to what was before it there.
            opening = min(opening, self._waiting[0][0] - 2 * self._bounds.size)
        self._machine.memory.clear(opening)
        self._machine.push(occurrence)
        if not self._machine.ended:
            return []
        found = []
        waiting: dict[object, _Waiting] = {}
        for run, rows in self._machine.ended:
            complete = self._context.complete(rows)
            if not complete or run.history is None:
                continue
            match = found_of(run, complete)
            if led(self._machine, run, match):
                continue
            if run.gaps:
                waiting.setdefault(match.chosen, []).append((run, match))
            else:
                found.append(match)
        self._machine.ended.clear()
        found = distinct(found) if len(found) > 1 else found
        if not waiting:
            return found
        certain = {match.chosen for match in found}
        for chosen, runs in waiting.items():
            if chosen not in certain:
                closing = self._bounds.closing(runs[0][1].first)
                heapq.heappush(self._waiting, (closing, next(self._numbers), runs))
        return found

    def advance(self, at: int) -> list[Found]:
        """See ``Evaluator.advance``."""
        found = []
        while self._waiting and self._waiting[0][0] <= at:
            closing, _, runs = heapq.heappop(self._waiting)
            found += distinct(match for run, match in runs if not trailed(self._machine, run, match, closing))
        return sorted(found, key=lambda match: match.last.position)

    def drop(self) -> None:
        """See ``Evaluator.drop``."""
        self._waiting.clear()
        self._machine.reset()
        self._machine.start(Run(), self._context.start)


def led(machine: Machine, run: Run, match: Found) -> bool:
    """Whether something forbidden precedes a match in its window."""
    if not run.leading:
        return False
    opening = machine.bounds.opening(match.first, match.last)
    return any(
        machine.occurs(item.units, item.rows, item.inside, opening, item.before) for item in run.leading
    )


def trailed(machine: Machine, run: Run, match: Found, closing: int) -> bool:
    """Whether something forbidden follows a match, or what precedes the gap, in its window."""
    opening = machine.bounds.opening(match.first, match.last)
    return any(machine.occurs(gap.units, match.rows, (), gap.after or opening, closing) for gap in run.gaps)


def found_of(run: Run, rows: Rows) -> Found:
    """A run that ended, with its Ω, as a match."""
    return Found(tuple(sorted(run.choices, key=lambda choice: choice[1].position)), rows)

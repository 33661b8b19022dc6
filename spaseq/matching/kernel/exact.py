"""Whether nothing forbidden happened around a run: exactly, for what the tables could not tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from spaseq.automaton.nfa import Action, Again, Await, Decide, Enter, Forbid, Leave
from spaseq.automaton.pattern import Atom, Both
from spaseq.events import Stamp
from spaseq.matching.context import Context, Rows
from spaseq.matching.host import Key
from spaseq.matching.kernel.replay import Path, gathered, taken
from spaseq.matching.kernel.tables import Compiled
from spaseq.matching.model import Bounds, Occurrence
from spaseq.matching.past import Chunk, Past
from spaseq.matching.runs.memory import simultaneous
from spaseq.matching.runs.program import gpms_of
from spaseq.matching.runs.state import Frontier, all_precede, frontier, head


class Gap(NamedTuple):
    """A negation that waits for its end: what it forbids, after what (None: the window's beginning).

    ``owner`` is the element whose events close it, ``before`` the first of these.
    """

    units: tuple[Atom | Both, ...]
    after: Frontier | None
    owner: int | None = None
    before: tuple[Stamp, ...] = ()


class Leading(NamedTuple):
    """A negation at the beginning: decided when the window of the match is known, in this context."""

    units: tuple[Atom | Both, ...]
    before: tuple[Stamp, ...]
    rows: Rows
    inside: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run replayed: its events, Ω, and what its negations wait for."""

    events: tuple[Occurrence, ...]
    rows: Rows
    gaps: tuple[Gap, ...] = ()
    leading: tuple[Leading, ...] = ()

    @property
    def frontier(self) -> Frontier | None:
        return frontier([event.stamp for event in self.events]) if self.events else None


class Exact:
    """Replays runs of one query with all their negations."""

    def __init__(self, compiled: Compiled, context: Context, past: Past, bounds: Bounds) -> None:
        self._compiled = compiled
        self._context = context
        self._past = past
        self._bounds = bounds

    def stands(self, path: Path, accept: int, key: Key) -> bool:
        """Whether a run that ends in this way is a match, as far as negations can tell now."""
        run: _Run | None = _Run((), self._context.start)
        for step in taken(path, self._compiled.candidates):
            run = run and self._step(run, step, key)
        run = run and self._act(run, self._compiled.accepts[accept], key)
        if run is None:
            return False
        first, last = run.events[0], run.events[-1]
        opening, closing = self._bounds.opening(first, last), self._bounds.closing(first)
        if any(self._occurs(i.units, i.rows, i.inside, opening, i.before, key) for i in run.leading):
            return False
        rows = self._context.complete(run.rows) if run.gaps else ()
        return not any(self._occurs(g.units, rows, (), g.after or opening, closing, key) for g in run.gaps)

    def _step(self, run: _Run, step: Path, key: Key) -> _Run | None:
        candidates, past = self._compiled.candidates, self._past
        candidate = candidates[step[0][1]]
        begun = self._act(run, (*candidate.gate.ends, *candidate.begins), key)
        if begun is None:
            return None
        events = [past.occurrence(at, key, candidates[number].unit.gpm) for at, number in step]
        rows = gathered(self._context, past, begun.rows, step, candidates, key)
        first = head([event.stamp for event in events])
        gaps = tuple(
            g._replace(before=first) if g.owner is not None and not g.before else g for g in begun.gaps
        )
        return _Run((*begun.events, *events), rows, gaps, begun.leading)

    def _act(self, run: _Run, actions: Sequence[Action], key: Key) -> _Run | None:
        rows, gaps, leading = run.rows, run.gaps, list(run.leading)
        for action in actions:
            match action:
                case Enter() | Again() | Leave():
                    rows = self._context.act(rows, (action,))
                case Forbid(units):
                    gaps = (*gaps, Gap(units, run.frontier))
                case Await(owner):
                    gaps = tuple(g._replace(owner=owner) if g.owner is None else g for g in gaps)
                case Decide(owner, inside):
                    for gap in gaps:
                        if gap.owner != owner:
                            continue
                        if gap.after is None:
                            leading.append(Leading(gap.units, gap.before, rows, inside))
                        elif self._occurs(gap.units, rows, inside, gap.after, gap.before, key):
                            return None
                    gaps = tuple(gap for gap in gaps if gap.owner != owner)
        return _Run(run.events, rows, gaps, tuple(leading))

    def _occurs(
        self,
        units: Sequence[Atom | Both],
        rows: Rows,
        inside: tuple[int, ...],
        after: Frontier | int,
        before: Sequence[Stamp] | int,
        key: Key,
    ) -> bool:
        """Whether something forbidden lies in a gap; its ends are events, or places on the window's axis."""
        return any(
            True
            for unit in units
            for _, events in groupby(self._between(unit, after, before, key), key=_time)
            for _ in simultaneous(self._context, unit, rows, inside, list(events))
        )

    def _between(
        self, unit: Atom | Both, after: Frontier | int, before: Sequence[Stamp] | int, key: Key
    ) -> Iterator[Occurrence]:
        """The events in a gap that have solutions of a unit's GPMs."""
        measure = self._bounds.measure
        gpms = {gpm: self._compiled.gpms.index(gpm) for gpm in sorted(gpms_of(unit))}
        for chunk in self._past:
            assert chunk.rows is not None
            some = np.diff(chunk.rows[list(gpms.values())], axis=1).any(axis=0)
            for index in np.flatnonzero(some).tolist():
                if not self._past.sees(chunk, index, key):
                    continue
                event = self._seen(chunk, index, gpms, key)
                late = measure(event) >= after if isinstance(after, int) else after.precedes(event.stamp)
                if isinstance(before, int):
                    soon = measure(event) <= before
                else:
                    soon = all_precede((event.stamp,), before)
                if late and soon:
                    yield event

    def _seen(self, chunk: Chunk, index: int, gpms: Mapping[str, int], key: Key) -> Occurrence:
        """An event as one partition sees it."""
        solutions = {}
        for gpm, g in gpms.items():
            solutions[gpm] = self._past.solutions(chunk, index, g, key)
        stamp, position = chunk.batch.stamp(index), chunk.start + index
        return Occurrence(stamp, position, solutions, chunk.batch, index, chunk)


def _time(event: Occurrence) -> int:
    return event.time

"""The exact meaning of the kernel's runs: their Ω, and whether their negated elements are absent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from spaseq.automaton.nfa import Action
from spaseq.automaton.pattern import Atom, Both, Node, SequencePattern, children, walk
from spaseq.events import EARLIEST, LATEST
from spaseq.matching.columns.history import History
from spaseq.matching.context import Context, Rows
from spaseq.matching.host import Key
from spaseq.matching.model import Choice, Found, Occurrence, StreamWindow
from spaseq.matching.nfa.tables.analysis import GateCandidate, NfaTables
from spaseq.matching.search import Events, Partial, SequenceSearch

# The kernel's runs in the form of ``Context``.

#: A run: the positions and candidates of its events.
Path = Sequence[tuple[int, int]]


class RunReplay:
    """Replays the kernel's runs through ``Context``: exactly, regardless of the tables."""

    def __init__(self, own: Callable[[], NfaTables], context: Context, history: History) -> None:
        """``own`` compiles the query when it is first needed: most queries need no replay."""
        self._own = own
        self._context = context
        self._history = history

    @cached_property
    def _compiled(self) -> NfaTables:
        return self._own()

    @property
    def _candidates(self) -> Sequence[GateCandidate]:
        return self._compiled.candidates

    def match(self, path: Path, accept: int, key: Key) -> Found | None:
        """Return the match of a completed run; None if its Ω turns out to be empty."""
        rows = self._context.act(self.rows(path, key), self._compiled.accepts[accept])
        rows = self._context.complete(rows)
        if not rows:
            return None
        gpms = [self._candidates[number].unit.gpm for _, number in path]
        events = (self._history.occurrence(at, key, gpm) for (at, _), gpm in zip(path, gpms, strict=True))
        return Found(tuple(dict.fromkeys(zip(gpms, events, strict=True))), rows)

    def may_go_on(self, path: Path, ends: Sequence[Action], key: Key) -> bool:
        """Return whether a run's Ω is not empty after these actions."""
        return bool(self._context.act(self.rows(path, key), ends))

    def may_end(self, path: Path, ends: Sequence[Action], key: Key) -> bool:
        """Return whether a run is a match that ends with these actions."""
        return bool(self._context.complete(self._context.act(self.rows(path, key), ends)))

    def rows(self, path: Path, key: Key) -> Rows:
        """Return the Ω of a run right after its last event."""
        rows = self._context.start
        for step in taken(path, self._candidates):
            rows = self._extend(rows, step, key)
        return rows

    def is_relevant(self, path: Path, step: Path, key: Key) -> bool:
        """Return whether an event, or several at one time, are relevant for a candidate of a run."""
        return bool(self._extend(self.rows(path, key), step, key))

    def _extend(self, rows: Rows, step: Path, key: Key) -> Rows:
        candidate = self._candidates[step[0][1]]
        rows = self._context.act(self._context.act(rows, candidate.gate.ends), candidate.begins)
        return gathered(self._context, self._history, rows, step, self._candidates, key)


def taken(path: Path, candidates: Sequence[GateCandidate]) -> Iterator[Path]:
    """Yield the steps of a run: one event each, or the events that an ``&`` gathers."""
    at = 0
    while at < len(path):
        size = max(1, len(candidates[path[at][1]].parts))
        yield path[at : at + size]
        at += size


def gathered(
    context: Context, history: History, rows: Rows, step: Path, candidates: Sequence[GateCandidate], key: Key
) -> Rows:
    """Return the Ω with the events of one step added."""
    inside = candidates[step[0][1]].inside
    events = {}
    for position, number in step:
        atom = candidates[number].unit
        events[atom.id] = history.occurrence(position, key, atom.gpm)

    def joined(node: Node, rows: Rows) -> Rows:
        match node:
            case Atom():
                return context.extend(rows, node, events[node.id], inside)
            case Both(operands=operands):
                marked = context.mark(rows)
                return context.join([joined(operand, marked) for operand in operands], node, inside)
            case _:
                (chosen,) = (o for o in children(node) if any(n.id in events for n in walk(o)))
                return joined(chosen, rows)

    first = candidates[step[0][1]]
    return joined(first.both or first.unit, rows)


# Decide exactly whether elements that must be absent are absent, where the tables could not decide.
#
# The decision is a search that may only choose the run's events, each in its place.

#: The possible next choices, by the number of events so far: places in the sequence, with an event for each.
_Steps = dict[int, list[tuple[int, Occurrence]]]


class ExactRun:
    """Decides completed runs of one query."""

    def __init__(
        self,
        pattern: SequencePattern,
        compiled: NfaTables,
        context: Context,
        history: History,
        window: StreamWindow,
    ) -> None:
        self._pattern = pattern
        self._compiled = compiled
        self._context = context
        self._history = history
        self._window = window

    def stands(self, path: Path, key: Key) -> bool:
        """Return whether a run is a match, as far as absences can be decided now."""
        candidates = self._compiled.candidates
        steps: _Steps = {}
        events: dict[Choice, None] = {}
        for step in taken(path, candidates):
            atoms = [candidates[number].unit for _, number in step]
            seen = [
                self._history.occurrence(at, key, atom.gpm) for (at, _), atom in zip(step, atoms, strict=True)
            ]
            steps[len(events)] = [(atom.id, event) for atom, event in zip(atoms, seen, strict=True)]
            events |= {(atom.gpm, event): None for atom, event in zip(atoms, seen, strict=True)}
        told = _ToldRun(self._pattern, self._context, self._window, self._around(events, key))
        told.steps = steps
        found = told.partials(told.pool)
        return any(len(m.events) == len(events) and not told.broken(m) for m in found)

    def _around(self, events: Iterable[Choice], key: Key) -> Events:
        """Return the events of the match's window, as its partition sees them."""
        chosen = sorted((event for _, event in events), key=lambda event: (event.time, event.position))
        opening, closing = self._window.opening(chosen[0], chosen[-1]), self._window.closing(chosen[0])
        return list(self._seen(max(opening, EARLIEST), min(closing, LATEST), key))

    def _seen(self, opening: int, closing: int, key: Key) -> Iterator[Occurrence]:
        for chunk in self._history:
            batch = chunk.batch
            at = chunk.start + np.arange(len(batch)) if self._window.counted else batch.time
            begin, end = int(np.searchsorted(at, opening)), int(np.searchsorted(at, closing, side="right"))
            for index in range(begin, end):
                if self._history.sees(chunk, index, key):
                    solutions = {
                        gpm: rows
                        for g, gpm in enumerate(self._compiled.gpms)
                        if (rows := self._history.solutions(chunk, index, g, key))
                    }
                    stamp, position = batch.stamp(index), chunk.start + index
                    yield Occurrence(stamp, position, solutions, batch, index, chunk)


class _ToldRun(SequenceSearch):
    """A search for a match of the given events only; forbidden events are searched among all events."""

    #: Marks a search for the match's own events, which ``steps`` lists.
    pool: Events = ()
    steps: _Steps

    def _atom(self, node: Atom, m: Partial) -> Iterator[Partial]:
        if m.pool is not self.pool:
            yield from super()._atom(node, m)
            return
        for place, event in self.steps.get(len(m.events), ()):
            if place == node.id:
                for found in super()._atom(node, replace(m, pool=[event])):
                    yield replace(found, pool=m.pool)

"""The deterministic automaton of a query, built as it is used (CORE, section 5: I/O-determinisation).

Its input is an event with one of the GPMs that the event may be chosen as (a *label*). Two runs in different
states never choose the same events as the same GPMs, so every match is found once. A state is a set of
*configurations*: a place of NFA_scep and the counters of the Kleenes in progress.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import Atom, Kleene, SequencePattern, walk
from spaseq.matching.columns.blocks.plain import EventSite, Sites
from spaseq.matching.interpreter.program import Gate, GateEdge, ProgramState
from spaseq.matching.nfa.matches import plain_kleenes

Ints = npt.NDArray[np.int64]

#: The counters of Kleenes in progress, by Kleene.
Counts = tuple[tuple[int, int], ...]

_LEAST: Final = 16


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a run: its place, and how many iterations its Kleenes have begun."""

    place: ProgramState
    counts: Counts = ()


@dataclass(frozen=True, slots=True)
class DeterministicTransition:
    """A step of a run: its actions on Ω, and its target."""

    gate: Gate
    way: GateEdge
    unit: Atom
    to: Configuration


class DeterministicAutomaton:
    """The deterministic automaton's tables. ``target[state, label]`` is -1 if unknown; ``outgoing`` are
    labels as bits.

    ``unknown``: how many transitions are unknown.
    """

    def __init__(self, start: ProgramState, labels: Sequence[str]) -> None:
        self._labels = {gpm: number for number, gpm in enumerate(labels)}
        self._minima = _minima(start)
        self._numbers: dict[frozenset[Configuration], int] = {}
        self._states: list[frozenset[Configuration]] = []
        # The targets of the transitions from configurations, by label.
        self._steps: dict[Configuration, Mapping[int, Sequence[Configuration]]] = {}
        self.start = Configuration(start)
        #: A row of targets for each label, -1 for unknown; which states accept; the labels of each, as bits.
        self.table = np.zeros((len(labels) + 2, _LEAST), dtype=np.int64)
        self.table[: len(labels)] = -1
        self.unknown = 0
        self._number(frozenset({self.start}))

    def __len__(self) -> int:
        return len(self._states)

    def transitions(self, configuration: Configuration) -> Iterator[DeterministicTransition]:
        """Yield the steps that are possible from a configuration."""
        for gate in configuration.place.gates:
            ended = self._act(configuration.counts, gate.ends)
            for way in gate.ways if ended is not None else ():
                assert isinstance(way.unit, Atom)
                assert ended is not None
                counts = self._act(ended, way.begins)
                if counts is not None:
                    yield DeterministicTransition(gate, way, way.unit, Configuration(way.target, counts))

    def endings(self, configuration: Configuration) -> Iterator[tuple[Action, ...]]:
        """Yield the ways to end a match in a configuration."""
        for ends in configuration.place.accepts:
            if self._act(configuration.counts, ends) is not None:
                yield ends

    def find(self, state: int, label: int) -> None:
        """Compute one transition of the deterministic automaton."""
        reached = frozenset(
            to for configuration in self._states[state] for to in self._by_label(configuration).get(label, ())
        )
        target = self._number(reached)
        self.table[label, state] = target
        self.unknown -= 1

    def _by_label(self, configuration: Configuration) -> Mapping[int, Sequence[Configuration]]:
        """Return the targets of the possible transitions, by the label that they take."""
        if configuration not in self._steps:
            found = defaultdict[int, list[Configuration]](list)
            for transition in self.transitions(configuration):
                found[self._labels[transition.unit.gpm]].append(transition.to)
            self._steps[configuration] = found
        return self._steps[configuration]

    def configurations(self, state: int) -> frozenset[Configuration]:
        """Return the configurations of a state."""
        return self._states[state]

    def describe(self) -> None:
        """Compute the properties of states again, after transitions or endings were removed."""
        self._steps.clear()
        for number, state in enumerate(self._states):
            self._describe(number, state)
        targets = self.table[:-2, : len(self)]
        wanted = (self.table[-1, : len(self)] & (1 << np.arange(len(targets)))[:, None]) != 0
        self.unknown = int((wanted & (targets < 0)).sum())

    def _number(self, state: frozenset[Configuration]) -> int:
        number = self._numbers.get(state)
        if number is not None:
            return number
        number = self._numbers[state] = len(self._states)
        self._states.append(state)
        if number == self.table.shape[1]:
            more = np.zeros_like(self.table)
            more[:-2] = -1
            self.table = np.concatenate([self.table, more], axis=1)
        self._describe(number, state)
        self.unknown += int(self.table[-1, number]).bit_count()
        return number

    def _describe(self, number: int, state: frozenset[Configuration]) -> None:
        """Set whether matches end in a state, and by which labels runs leave it."""
        self.table[-2, number] = any(True for c in state for _ in self.endings(c))
        labels = {label for c in state for label in self._by_label(c)}
        self.table[-1, number] = sum(1 << label for label in labels)

    def _act(self, counts: Counts, actions: tuple[Action, ...]) -> Counts | None:
        """Return the counters after some actions; None if one of them is impossible."""
        now = dict(counts)
        for action in actions:
            match action:
                case Enter(kleene):
                    now[kleene] = 1
                case Again(kleene, maximum):
                    if maximum is not None and now[kleene] >= maximum:
                        return None
                    # Without a maximum, iterations beyond the minimum need not be counted.
                    now[kleene] = now[kleene] + 1 if maximum else min(now[kleene] + 1, self._minima[kleene])
                case Leave(kleene, minimum):
                    if now.pop(kleene) < minimum:
                        return None
        return tuple(sorted(now.items()))


def _minima(start: ProgramState) -> dict[int, int]:
    """Return the number of iterations that each Kleene needs."""
    found = dict[int, int]()
    actions: list[Action] = []
    for place in reachable(start):
        actions += [a for ends in place.accepts for a in ends]
        for gate in place.gates:
            actions += [*gate.ends, *(a for way in gate.ways for a in way.begins)]
    for action in actions:
        if isinstance(action, Leave):
            found[action.kleene] = max(found.get(action.kleene, 1), action.minimum)
        elif isinstance(action, Enter | Again):
            found.setdefault(action.kleene, 1)
    return found


def reachable(start: ProgramState) -> list[ProgramState]:
    """Return the places of a program that its runs may reach."""
    places = [start]
    for place in places:
        new = (way.target for gate in place.gates for way in gate.ways)
        places += [p for p in dict.fromkeys(new) if p not in places]
    return places


# The places in the sequence that labels determine, if each label has only one.


def sites(pattern: SequencePattern, start: ProgramState) -> Sites | None:
    """Return the site of each label, by number; None if matches must be replayed to know their events'
    places.

    A label determines its place if its GPM occurs once in the sequence, and always begins an iteration, or
    never.
    """
    kleenes = {node.id: node for node in walk(pattern.root) if isinstance(node, Kleene)}
    if pattern.where or plain_kleenes(pattern) != kleenes.keys():
        return None
    found: dict[str, tuple[int, EventSite]] = {}
    gpms = tuple(pattern.gpms)
    steps = [(g, way) for place in reachable(start) for g in place.gates for way in g.ways]
    for gate, way in steps:
        atom = way.unit
        assert isinstance(atom, Atom)  # no event is gathered here
        kleene = kleenes[way.inside[-1]] if way.inside else None
        site = EventSite(
            gpms.index(atom.gpm),
            atom.gpm,
            None if kleene is None else kleene.id,
            any(isinstance(action, Enter | Again) for action in (*gate.ends, *way.begins)),
            frozenset() if kleene is None else kleene.own,
        )
        if found.setdefault(atom.gpm, (atom.id, site)) != (atom.id, site):
            return None
    return Sites([found[gpm][1] if gpm in found else EventSite(g, gpm) for g, gpm in enumerate(gpms)], gpms)

"""Compile a query to tables for the kernel: those of the runs kernel, and the order of preference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from spaseq.automaton.nfa import Action, Again, Leave
from spaseq.automaton.pattern import SequencePattern
from spaseq.language.syntax import All, Conjunction, Not, SkipMode, Strategy
from spaseq.language.syntax.printing import print_sequence
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.postfix import Accumulator, BeyondTables, FilterSite, with_nearer
from spaseq.matching.filters.postfix import Instruction as Operation
from spaseq.matching.interpreter.program import Gate
from spaseq.matching.model import StreamWindow
from spaseq.matching.nfa.records import accepts, gates, places
from spaseq.matching.nfa.skip.preference import open_bounds
from spaseq.matching.nfa.skip.records import (
    AS_SUM,
    AS_TIME,
    EXACTLY,
    MOST_OPTIONS,
    PAST_LAST,
    TO_FIRST,
    TO_LAST,
    TO_NEXT,
    preferences,
)
from spaseq.matching.nfa.tables.analysis import Analysis, NfaTables
from spaseq.matching.nfa.tables.compiling import compile_tables
from spaseq.matching.obstacles import Obstacle, subsequences
from spaseq.terms.dictionary import Term

_MODES: Final = {
    SkipMode.PAST_LAST_EVENT: PAST_LAST,
    SkipMode.TO_NEXT_EVENT: TO_NEXT,
    SkipMode.TO_FIRST: TO_FIRST,
    SkipMode.TO_LAST: TO_LAST,
}

#: Of completed iterations, only 0, 1 and more are distinguished.
_MANY_ITERATIONS: Final = 2


def obstacles(pattern: SequencePattern) -> Iterator[Obstacle]:
    """Yield why the compiled form cannot run a query: then it runs event by event."""
    query = pattern.query
    if len(set(pattern.streams)) > 1 and query.window.unit == "EVENTS":
        yield Obstacle("windows of several streams are of time", f"WITHIN {query.window.size} EVENTS")
    for part in subsequences(query.sequence):
        match part:
            case Not():
                yield Obstacle("nothing is negated", print_sequence(part), part.span)
            case Conjunction():
                yield Obstacle("a step is one event", print_sequence(part), part.span)
            case All():
                yield Obstacle("nothing gathers events in any order", print_sequence(part), part.span)


def beyond(pattern: SequencePattern) -> tuple[Obstacle, ...]:
    """Return all obstacles of the compiled form."""
    found = tuple(obstacles(pattern))
    if not found:
        try:
            _compiled(pattern, lambda _: 1)
        except BeyondTables as reason:
            return (reason.obstacle,)
    return found


def _compiled(pattern: SequencePattern, intern: Callable[[Term], int]) -> NfaTables:
    """Return the tables of the runs kernel. Raises ``BeyondTables`` where runs may be equally preferred.

    A sequence may be written out once for each side of a ``|``. Then an event leads to several places, and
    only a later choice decides which is preferred. The kernel's runs, however, have an order from the
    beginning.
    """
    compiled = compile_tables(pattern, intern)
    if any(len(gate.ways) > 1 for gate in compiled.analysis.gates):
        sequence = pattern.query.sequence
        raise BeyondTables(
            "what a variable belongs to does not depend on the side of a |",
            print_sequence(sequence),
            sequence.span,
        )
    return compiled


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a run after an event: to a gate, or to the end of the match, after these actions."""

    order: tuple[int, ...]
    at: int
    ends: tuple[Action, ...]
    goes_on: bool


@dataclass(frozen=True, slots=True)
class Ordering:
    """The tables of the runs kernel, and the order of its runs: see ``records``.

    ``choices`` are the options of each place, in order of preference.
    """

    compiled: NfaTables
    options: v.Ints
    choices: tuple[tuple[Option, ...], ...]


@dataclass(frozen=True, slots=True)
class OptionStep:
    """The members of a candidate, as bits: the ``members`` that take an event as this candidate, the members
    that must not skip it (``bars``), and the members that name it in SKIP (``target``).
    """

    members: int
    bars: int
    target: int


@dataclass(frozen=True, slots=True)
class MemberMasks:
    """The members that each part of the tables is for, if queries run as one: each member is a bit.

    ``gates`` and ``accepts`` have the members of each gate and accept, by its number; ``steps`` has the
    members of each candidate. ``own`` has the GPMs of each member, as bits; it is empty if all members have
    all GPMs. ``reaches``: the reach of each member's window.
    """

    gates: Sequence[int]
    accepts: Sequence[int]
    steps: Sequence[OptionStep]
    reaches: Sequence[int]
    own: Sequence[int] = ()

    @property
    def all(self) -> int:
        """The bits of all members."""
        return (1 << len(self.reaches)) - 1

    def levels(self) -> list[tuple[int, int]]:
        """Return the reaches of windows, shortest first, and the members of each."""
        found: dict[int, int] = {}
        for number, reach in enumerate(self.reaches):
            found[reach] = found.get(reach, 0) | 1 << number
        return sorted(found.items())


def order_tables(pattern: SequencePattern, intern: Callable[[Term], int], window: StreamWindow) -> Ordering:
    """Return the tables of a query with AFTER MATCH SKIP, for such windows. Raises ``BeyondTables``."""
    skip = pattern.query.skip
    if skip is None:
        raise ValueError("without AFTER MATCH SKIP no match is preferred")
    compiled = _compiled(pattern, intern)
    rivals = [flag for gate in compiled.analysis.gates for flag in _rivals(compiled.analysis, gate)]
    steps = [
        OptionStep(int(one.way is not None), int(is_rival), int(one.unit.gpm == skip.gpm))
        for one, is_rival in zip(compiled.candidates, rivals, strict=True)
    ]
    alone = MemberMasks([1] * compiled.gates, [1] * len(compiled.accepts), steps, [window.reach])
    return ordering(compiled, skip.mode, window.sliding, alone)


def _rivals(analysis: Analysis, gate: Gate) -> Iterator[bool]:
    for parts, is_rival in analysis.candidates(gate):
        yield from (is_rival for _ in parts)


def ordering(compiled: NfaTables, mode: SkipMode, sliding: bool, members: MemberMasks) -> Ordering:
    """Return the tables of the runs kernel with the order of preference. Raises ``BeyondTables``."""
    analysis = compiled.analysis
    t = compiled.tables
    choices = tuple(_choices(compiled))
    most = max(map(len, choices))
    if most > MOST_OPTIONS:
        raise BeyondTables(f"there are at most {MOST_OPTIONS} ways on from an event", str(most))
    whose = _Whose(compiled, members)
    header = [0] * preferences.SIZE
    # A match counts as one option for each of its members.
    header[preferences.MOST] = max(
        sum(1 if option.goes_on else whose.of(option).bit_count() for option in options)
        for options in choices
    )
    header[preferences.MODE] = _MODES[mode]
    header[preferences.MEMBERS] = members.all
    # If a window ends for all at once, matches that a first event can still find end after a later one's.
    header[preferences.ACROSS] = int(mode is SkipMode.PAST_LAST_EVENT and not sliding)
    header[preferences.ASKS] = int(bool(analysis.pattern.where))
    header[preferences.BOUNDED] = int(bool(analysis.absences.withins))
    strict = any(gate.strategy is Strategy.STRICT for gate in analysis.gates)
    header[preferences.INDEXED] = int(
        not (strict or header[preferences.ACROSS] or header[preferences.BOUNDED])
    )
    ranges: dict[int, list[tuple[int, int]]] = {
        preferences.PLACES: [],
        preferences.GATES: [],
        preferences.BOUNDS: [],
    }
    cells: list[int] = []

    def add(section: int, rows: Iterable[tuple[int, ...]]) -> None:
        begin = len(cells)
        cells.extend(chain.from_iterable(rows))
        ranges[section].append((begin, len(cells)))

    for options in choices:
        add(preferences.PLACES, ((option.at, int(option.goes_on), whose.of(option)) for option in options))
    alike, ends = _Alike(compiled), open_bounds(analysis.gates)
    sinces, limits = int(t[v.SINCES]), int(t[v.LIMITS])
    for gate in analysis.gates:
        opened = [
            (sinces + analysis.absences.withins.index(end.within), limits + compiled.limits.index(end.limit))
            for end in ends[gate]
        ]
        add(preferences.GATES, [*alike.rows(gate), *((since, AS_TIME) for since, _ in opened)])
        add(preferences.BOUNDS, opened)
    first = len(header) + 2 * sum(map(len, ranges.values()))
    body: list[int] = []
    for section, found in ranges.items():
        header[section] = len(header) + len(body)
        body += [first + at for pair in found for at in pair]
    header[preferences.STEPS] = first + len(cells)
    cells += [cell for step in members.steps for cell in (step.members, step.bars, step.target)]
    header[preferences.LEVELS] = first + len(cells)
    cells += chain.from_iterable(members.levels())
    header[preferences.LEVELS_END] = first + len(cells)
    header[preferences.OWN] = first + len(cells) if members.own else 0
    return Ordering(compiled, np.array([*header, *body, *cells, *members.own], dtype=np.int64), choices)


class _Whose:
    """The members of an option."""

    def __init__(self, compiled: NfaTables, members: MemberMasks) -> None:
        self._members = members
        t = compiled.tables
        start = int(t[v.START])
        self._gates, self._accepts = int(t[start + places.GATES]), int(t[start + places.ACCEPTS])

    def of(self, option: Option) -> int:
        if option.goes_on:
            return self._members.gates[(option.at - self._gates) // gates.SIZE]
        return self._members.accepts[(option.at - self._accepts) // accepts.SIZE]


def _choices(compiled: NfaTables) -> Iterator[tuple[Option, ...]]:
    """Yield the options of each place."""
    t, analysis = compiled.tables, compiled.analysis
    start = int(t[v.START])
    first_gate, first_accept = int(t[start + places.GATES]), int(t[start + places.ACCEPTS])
    numbers = {gate: number for number, gate in enumerate(analysis.gates)}
    ending = 0
    for place in analysis.places:
        options = [
            Option(gate.order, first_gate + gates.SIZE * numbers[gate], gate.ends, True)
            for gate in place.gates
        ]
        for order, ends in zip(place.orders, place.accepts, strict=True):
            options.append(Option(order, first_accept + accepts.SIZE * ending, ends, False))
            ending += 1
        yield tuple(sorted(options, key=lambda option: (option.order, option.at)))


class _Alike:
    """What is read later of a run that waits before a gate: runs that agree in it have the same future."""

    def __init__(self, compiled: NfaTables) -> None:
        self._analysis = analysis = compiled.analysis
        self._kleenes = {identity: i for i, identity in enumerate(analysis.kleenes)}
        # Conditions on the whole match are evaluated at its end.
        where = analysis.pattern.where
        self._final = [step for item in where for step in analysis.steps(item, FilterSite())]

    def rows(self, gate: Gate) -> list[tuple[int, int]]:
        """Return the places in a wait that are read later, and how each is compared."""
        analysis = self._analysis
        ahead = self._ahead(gate)
        steps = [*self._final, *(step for one in ahead for step in self._steps(one))]
        folded = {step.what for step in steps if isinstance(step.what, Accumulator)}
        folded = set(with_nearer(folded))
        read = {str(step.what) for step in steps if step.op in ("PUSH", "ONE", "BOUND", "IF_BOUND")}
        read |= {a.variable for a in folded}
        for one in ahead:
            for parts, _ in analysis.candidates(one):
                read |= {name for part in parts for name in analysis.joined_by(part.unit)}
        slots = v.SLOTS
        begun = slots + len(analysis.slots)
        completed = begun + len(self._kleenes)
        aggregates = completed + len(self._kleenes)
        rows = [(slots + analysis.slots[name], EXACTLY) for name in sorted(read & analysis.slots.keys())]
        counted = self._counted(ahead)
        for kleene, number in self._kleenes.items():
            limit = counted.get(kleene, 0)
            if limit > 1:
                rows.append((begun + number, limit))
            # The number of completed iterations is read where one ends or by PREV.
            asked = any(step.op == "IF_COMPLETED" and step.what == kleene for step in steps)
            offsets = [a.offset for a in folded if a.kleene == kleene and a.kind == "PREVIOUS"]
            if asked or offsets or (kleene in counted and read & analysis.kleenes[kleene].own):
                rows.append((completed + number, _MANY_ITERATIONS + max(offsets, default=0)))
        sums = 0
        for i, a in enumerate(analysis.accumulators):
            if a in folded:
                rows.append((sums, AS_SUM) if a.kind == "SUM" else (aggregates + i, EXACTLY))
            sums += 3 if a.kind == "SUM" else 0
        return rows

    def _ahead(self, gate: Gate) -> list[Gate]:
        """Return the gates that a run may reach, this one included."""
        found = [gate]
        for one in found:
            for way in one.ways:
                found += [after for after in way.target.gates if after not in found]
        return found

    def _steps(self, gate: Gate) -> Iterator[Operation]:
        analysis = self._analysis
        yield from analysis.pruning(gate.ends, gate.inside)
        for parts, _ in analysis.candidates(gate):
            yield from analysis.together(parts[0])
            for part in parts:
                yield from analysis.codes[analysis.unit(part.unit)]

    def _counted(self, ahead: list[Gate]) -> dict[int, int]:
        """Return the Kleenes with a number of iterations that is read at the gates ``ahead``, each with the
        greatest number that is distinguished.
        """
        taken = [actions for one in ahead for actions in (one.ends, *(way.begins for way in one.ways))]
        taken += [ends for one in ahead for way in one.ways for ends in way.target.accepts]
        found: dict[int, int] = {}
        for action in chain.from_iterable(taken):
            if isinstance(action, Again) and action.maximum is not None:
                found[action.kleene] = max(found.get(action.kleene, 0), action.maximum)
            elif isinstance(action, Leave):
                found[action.kleene] = max(found.get(action.kleene, 0), action.minimum)
            elif isinstance(action, Again):
                found.setdefault(action.kleene, 0)
        return found

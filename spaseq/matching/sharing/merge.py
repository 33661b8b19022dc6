"""The automata of several queries as one, up to where the queries part.

The queries are under common names (``canonical``), so two of their gates are merged if they are equal and
lead to one place. A partial match belongs to all the queries that have its gate, so its queries need not be
stored with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from spaseq.automaton.nfa import Action
from spaseq.automaton.pattern import Either, SequencePattern
from spaseq.language.syntax import Strategy
from spaseq.matching.filters.postfix import BeyondTables
from spaseq.matching.interpreter.program import Gate, GateEdge, ProgramState
from spaseq.matching.nfa.tables.analysis import Analysis, NfaTables, candidates, reachable
from spaseq.matching.nfa.tables.writer import write
from spaseq.terms.dictionary import Term

Ints = npt.NDArray[np.int64]
#: The most ways out of a gate where several queries part.
_MOST_WAYS: Final = 60
#: For each way out of a gate, the members' gates, and the numbers of the way there.
_Ways = Sequence[Mapping[int, "tuple[Gate, int]"]]
#: The actions at the end of a match, and its order of preference.
_Ending = tuple[tuple[Action, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Merged:
    """Several queries, the members, as one.

    ``start`` is where the automaton begins. ``wanted``: for each place, the members with partial matches
    there. ``ends``: for each place and each way to end there, the members with these matches. If a way occurs
    in two orders of preference, the members of both are united.
    """

    pattern: SequencePattern
    start: ProgramState
    wanted: Mapping[ProgramState, frozenset[int]]
    ends: Mapping[ProgramState, Mapping[tuple[Action, ...], frozenset[int]]]


@dataclass(frozen=True, slots=True)
class Tables:
    """``merged`` queries as tables of ``nfa``, or as the tables that AFTER MATCH SKIP uses.

    ``gates``: the members of each gate; ``rivals``: for each candidate, the members that must not skip it.
    ``candidates`` and ``accepts``: for each member, its own number of each candidate and accept; -1: none.
    """

    merged: Merged
    compiled: NfaTables
    gates: tuple[frozenset[int], ...]
    rivals: tuple[frozenset[int], ...]
    candidates: Ints
    accepts: Ints


def together(patterns: Sequence[SequencePattern]) -> SequencePattern:
    """Return queries under common names as the alternatives of one."""
    return replace(
        patterns[0],
        root=Either(-1, tuple({pattern.root.id: pattern.root for pattern in patterns}.values()), apart=True),
        gpms={name: part for pattern in patterns for name, part in pattern.gpms.items()},
        group_of={name: kleene for pattern in patterns for name, kleene in pattern.group_of.items()},
        owners={name: kleenes for pattern in patterns for name, kleenes in pattern.owners.items()},
    )


def merge(patterns: Sequence[SequencePattern], starts: Sequence[ProgramState], by: str) -> Merged:
    """Return one automaton for several queries with common names of variables and GPMs.

    ``starts``: where the automaton of each query begins; ``by``: the matcher's name.
    """
    return _merged(patterns, starts, by)[0]


def tables(
    patterns: Sequence[SequencePattern], starts: Sequence[ProgramState], intern: Callable[[Term], int]
) -> Tables:
    """Return the merged automaton of queries as tables for ``nfa``. Raises ``BeyondTables``."""
    merged, merger = _merged(patterns, starts, "nfa")
    if merger.is_ordered and any(map(_is_twofold, merger.ways.values())):
        raise BeyondTables("what a variable belongs to does not depend on the side of a |", "several queries")
    analysis = Analysis(merged.pattern, start=merged.start)
    ways = [(merger.ways[gate], _size(gate)) for gate in analysis.gates]
    accepts = [
        (ends, merger.accepts[place][ends, order])
        for place in analysis.places
        for ends, order in zip(place.accepts, place.orders, strict=True)
    ]
    own = [reachable(start) for start in starts]
    return Tables(
        merged,
        write(analysis, {}, intern),
        tuple(frozenset(member for of in merger.ways[gate] for member in of) for gate in analysis.gates),
        tuple(of for of_gate, size in ways for of in _rivals(of_gate, size)),
        _candidates(ways, own),
        _accepts(accepts, own),
    )


def _merged(
    patterns: Sequence[SequencePattern], starts: Sequence[ProgramState], by: str
) -> tuple[Merged, _Merger]:
    whole = together(patterns)
    is_single = len(set(whole.streams)) == 1
    merger = _Merger(whole.query.skip is not None, is_told=by == "nfa" and is_single)
    start = merger.place(dict(enumerate(starts)))
    wanted = {place: frozenset(member for member, _ in key) for key, place in merger.known.items()}
    ends: dict[ProgramState, dict[tuple[Action, ...], frozenset[int]]] = {}
    for place, found in merger.accepts.items():
        of_place = ends[place] = {}
        for (actions, _), of in found.items():
            of_place[actions] = of_place.get(actions, frozenset()) | frozenset(of)
    return Merged(whole, start, wanted, ends), merger


class _Merger:
    """Merges places of members: a merged place stands for one place of each of some members.

    With ``;``, the members that share a gate may wait for different elements, none of which may be skipped. A
    partial match at such a gate has bits for the elements that it has taken or, with SKIP, for its
    members.
    """

    def __init__(self, is_ordered: bool, is_told: bool) -> None:
        self.is_ordered, self._is_told = is_ordered, is_told
        #: For each gate and each of its ways, the members' gates and the numbers of the way there.
        self.ways: dict[Gate, list[dict[int, tuple[Gate, int]]]] = {}
        self.accepts: dict[ProgramState, dict[_Ending, dict[int, ProgramState]]] = {}
        #: Merged places, by the members' places.
        self.known: dict[frozenset[tuple[int, ProgramState]], ProgramState] = {}

    def place(self, own: Mapping[int, ProgramState]) -> ProgramState:
        """Return the merged place that stands for one place of each of these members."""
        key = frozenset(own.items())
        known = self.known.get(key)
        if known is not None:
            return known
        made = self.known[key] = ProgramState()
        accepts: dict[_Ending, dict[int, ProgramState]] = {}
        alike: dict[object, dict[int, Gate]] = {}
        for member, place in own.items():
            for ends, order in zip(place.accepts, place.orders, strict=True):
                accepts.setdefault((ends, order if self.is_ordered else ()), {})[member] = place
            for gate in place.gates:
                alike.setdefault(self._what(gate), {})[member] = gate
        made.accepts = tuple(ends for ends, _ in accepts)
        made.orders = tuple(order for _, order in accepts)
        self.accepts[made] = accepts
        made.gates = tuple(self._gate(some) for of in alike.values() for some in self._in_parts(of))
        return made

    def _gate(self, own: dict[int, Gate]) -> Gate:
        ways: dict[object, dict[int, tuple[Gate, int]]] = {}
        for member, gate in own.items():
            for i, way in enumerate(gate.ways):
                ways.setdefault(_step(way), {})[member] = gate, i
        first = next(iter(own.values()))
        made = replace(
            first,
            parted=len(ways) > 1 and self._may_part(first),
            rivals=tuple(dict.fromkeys(rival for gate in own.values() for rival in gate.rivals)),
            ways=tuple(map(self._way, ways.values())),
            gpms=frozenset(gpm for gate in own.values() for gpm in gate.gpms),
        )
        self.ways[made] = list(ways.values())
        return made

    def _way(self, own: dict[int, tuple[Gate, int]]) -> GateEdge:
        found = {member: gate.ways[i] for member, (gate, i) in own.items()}
        target = self.place({member: way.target for member, way in found.items()})
        return replace(next(iter(found.values())), target=target)

    def _in_parts(self, own: dict[int, Gate]) -> Iterator[dict[int, Gate]]:
        """Split gates that are to be merged into as few parts as needed: a part has at most as many ways as
        there are bits.
        """
        some: dict[int, Gate] = {}
        steps = set[object]()
        for member, gate in own.items():
            more = steps | {_step(way) for way in gate.ways}
            if len(more) > _MOST_WAYS and self._may_part(gate):
                yield some
                some, more = {}, {_step(way) for way in gate.ways}
            some[member], steps = gate, more
        yield some

    def _may_part(self, gate: Gate) -> bool:
        """Return whether a partial match at a gate can wait for other members, too, with bits for the
        elements that it has taken.
        """
        if gate.strategy is not Strategy.NEXT or not self._is_told or len(gate.ways) != 1:
            return False
        return all(rival.unit.id == gate.ways[0].unit.id for rival in gate.rivals)

    def _what(self, gate: Gate) -> object:
        """Return a key that is equal for gates that are to be merged.

        A gate of ``;`` is merged only with gates that have the same ways, unless bits distinguish the
        members. Otherwise one member's element would bar the others.
        """
        parts = self._may_part(gate)
        rivals = () if parts else gate.rivals
        alone = tuple(map(_step, gate.ways)) if gate.strategy is Strategy.NEXT and not parts else ()
        return gate.ends, gate.strategy, rivals, gate.inside, gate.key, alone, gate.order


def _step(way: GateEdge) -> object:
    """Return a way without its target."""
    return way.begins, way.unit, way.inside


def _candidates(ways: Sequence[tuple[_Ways, int]], own: Sequence[Sequence[ProgramState]]) -> Ints:
    """Return, for each member, its own number of each candidate of the merged gates; -1 if it has none.

    A way is one candidate, since there is no ``&``; after the ways come rivals that are not ways. ``ways``:
    for each merged gate, its ways and its number of candidates. ``own``: the members' places.
    """
    begins = [_begins(places) for places in own]
    found = np.full((len(own), sum(size for _, size in ways)), -1, dtype=np.int64)
    at = 0
    for of_gate, size in ways:
        first: dict[int, int] = {}
        for i, of in enumerate(of_gate):
            for member, (gate, way) in of.items():
                begin = begins[member][gate]
                found[member, at + i] = begin + way
                first.setdefault(member, begin)
        for member, begin in first.items():
            found[member, at + len(of_gate) : at + size] = begin + np.arange(len(of_gate), size)
        at += size
    return found


def _begins(places: Sequence[ProgramState]) -> dict[Gate, int]:
    """Return the number of the first candidate of each gate."""
    begins, count = dict[Gate, int](), 0
    for place in places:
        for gate in place.gates:
            begins[gate] = count
            count += _size(gate)
    return begins


def _is_twofold(of_gate: Sequence[Mapping[int, tuple[Gate, int]]]) -> bool:
    """Return whether an event may lead a run of some member along two ways."""
    members = [member for of in of_gate for member in of]
    return len(set(members)) < len(members)


def _rivals(of_gate: Sequence[Mapping[int, tuple[Gate, int]]], size: int) -> Iterator[frozenset[int]]:
    """Yield, for each candidate of a gate, the members that must not skip it; see ``_candidates``."""
    for of in of_gate:
        yield frozenset(
            member
            for member, (gate, i) in of.items()
            if any(rival.unit.id == gate.ways[i].unit.id for rival in gate.rivals)
        )
    for _ in range(len(of_gate), size):
        yield frozenset(member for of in of_gate for member in of)


def _size(gate: Gate) -> int:
    """Return the number of a gate's candidates."""
    return sum(len(parts) for parts, _ in candidates(gate))


def _accepts(
    accepts: Sequence[tuple[tuple[Action, ...], Mapping[int, ProgramState]]],
    own: Sequence[Sequence[ProgramState]],
) -> Ints:
    """Return, for each member, its own number of each way to end; -1 if it has none."""
    numbers: list[dict[tuple[ProgramState, tuple[Action, ...]], int]] = []
    for places in own:
        of_member: dict[tuple[ProgramState, tuple[Action, ...]], int] = {}
        for number, way in enumerate((place, ends) for place in places for ends in place.accepts):
            of_member.setdefault(way, number)
        numbers.append(of_member)
    found = np.full((len(own), len(accepts)), -1, dtype=np.int64)
    for number, (ends, of) in enumerate(accepts):
        for member, place in of.items():
            found[member, number] = numbers[member][place, ends]
    return found

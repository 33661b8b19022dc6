"""Absences of a match, ``!X`` and ``X?``, and its time bounds: the parts of the tables for both."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Final

from spaseq.automaton.nfa import Action, Again, Await, Decide, Forbid, Leave, Omit, Since, Until
from spaseq.automaton.pattern import Atom, Both, Kleene, Node, starts, walk
from spaseq.automaton.show import show
from spaseq.language.syntax import Duration, Strategy
from spaseq.matching.filters.postfix import BeyondTables
from spaseq.matching.interpreter.program import Gate, ProgramState

#: The most gaps that may be open at a time.
_MOST_GAPS: Final = 8

#: An absence: a forbidden element, or an optional one that is left out.
Absence = Forbid | Omit

#: The open gaps: the absence of each, and the element that will close it, if it has begun.
_Gaps = tuple[tuple[Absence, int | None], ...]


@dataclass(frozen=True, slots=True)
class AbsenceCheck:
    """A GPM that must not be relevant in a gap. ``sure``: a relevant event alone violates the absence.

    For ``X & Y``, only X is searched, and for ``X?`` only the GPMs with which X may begin. If an event is
    found, the rest is decided exactly. ``free`` are variables that the GPM does not share with the match.
    """

    atom: Atom
    sure: bool
    free: frozenset[str] = frozenset()


class AbsenceTables:
    """All absences in the ways through an automaton.

    ``withins`` are the elements with time bounds, in the order in which runs number them; ``limits`` are the
    bounds. ``most``: the most gaps that are open at a time. Raises ``BeyondTables``.
    """

    def __init__(self, start: ProgramState, trails: bool) -> None:
        """``trails``: matches may wait for the end of their window."""
        self.withins: list[int] = []
        self.limits: list[Duration] = []
        self.most = int(trails)
        self._all: dict[Absence, None] = {}
        self._views: dict[tuple[int, ...], None] = {(): None} if trails else {}
        # Negations at the beginning that forbid a single event, the one right before the match.
        self._strict: set[Absence] = set()
        # For each gate, the absences with gaps that may be open in a run.
        self._open: dict[Gate, set[Absence]] = {}
        self._walk(start)

    @property
    def all(self) -> list[Absence]:
        """Return all absences."""
        return list(self._all)

    @property
    def views(self) -> list[tuple[int, ...]]:
        """The Kleenes inside which absences are decided."""
        return list(self._views)

    def open_at(self, gate: Gate) -> Set[Absence]:
        """Return the absences with open gaps in some run at a gate."""
        return self._open.get(gate, set())

    def _walk(self, start: ProgramState) -> None:
        """Follow all ways through the automaton."""
        reached: dict[tuple[ProgramState, _Gaps], None] = {(start, ()): None}
        todo = list(reached)
        while todo:
            place, gaps = todo.pop()
            for ends in place.accepts:
                for absence, _ in self._after(gaps, ends):
                    _waits_for_the_window(absence)
            for gate in place.gates:
                after = self._after(gaps, gate.ends)
                self._open.setdefault(gate, set()).update(absence for absence, _ in after)
                for way in gate.ways:
                    new = way.target, self._after(after, way.begins)
                    if new not in reached:
                        reached[new] = None
                        todo.append(new)

    def _after(self, gaps: _Gaps, actions: Iterable[Action]) -> _Gaps:
        """Return the gaps that are open after actions."""
        for action in actions:
            match action:
                case Forbid() | Omit():
                    self._all[action] = None
                    gaps = (*gaps, (action, None))
                case Await(owner, strategy):
                    if strategy is Strategy.STRICT:
                        self._strict |= {a for a, known in gaps if known is None and a.strategy is None}
                    gaps = tuple((a, owner if known is None else known) for a, known in gaps)
                case Decide(owner, inside):
                    self._views[inside] = None
                    gaps = tuple(gap for gap in gaps if gap[1] != owner)
                case Again() | Leave():
                    for open_, closing in gaps:
                        if closing is None:
                            raise BeyondTables("no iteration ends with what is absent", _show(open_))
                case Since(within):
                    self.withins += [within] * (within not in self.withins)
                case Until(_, limit):
                    self.limits += [limit] * (limit not in self.limits)
            self.most = max(self.most, len(gaps))
        if self.most > _MOST_GAPS:
            raise BeyondTables(f"at most {_MOST_GAPS} negations are open at a time", str(self.most))
        return gaps

    def checks(self, absence: Absence) -> list[AbsenceCheck]:
        """Return the GPMs with events that may violate an absence."""
        if isinstance(absence, Omit):
            optional = absence.optional
            readings = optional.readings or (optional.element,)
            units = dict.fromkeys(unit for reading in readings for _, unit in starts(reading))
            plain, free = False, frozenset[str]()
        else:
            units, free = dict.fromkeys(absence.units), absence.negation.free
            plain = absence.strategy is not Strategy.STRICT and absence.negation.limit is None
            plain = plain and absence not in self._strict
        found = []
        for unit in units:
            first: Node = unit
            while isinstance(first, Both):
                first = first.operands[0]
            sure = plain and isinstance(unit, Atom)
            found += [AbsenceCheck(node, sure, free) for node in walk(first) if isinstance(node, Atom)]
        return found


def _show(absence: Absence) -> str:
    return show(absence.optional if isinstance(absence, Omit) else absence.negation)


def _waits_for_the_window(absence: Absence) -> None:
    """Raise ``BeyondTables`` for an absence at the end of a match that may be decided before the
    window ends.
    """
    if absence.strategy is Strategy.STRICT:
        raise BeyondTables("no match waits for the next event alone", _show(absence))
    if isinstance(absence, Forbid) and absence.negation.limit is not None:
        raise BeyondTables("no match waits for less than its window", _show(absence))
    if isinstance(absence, Omit) and not _is_one_event(absence.optional.element):
        raise BeyondTables("what is optional at the end is one GPM, or a Kleene of one", _show(absence))


def _is_one_event(node: Node) -> bool:
    """Return whether a single event may be all of an element, so that it alone shows that the element is
    there.
    """
    if isinstance(node, Kleene):
        return node.minimum == 1 and _is_one_event(node.element)
    return isinstance(node, Atom)

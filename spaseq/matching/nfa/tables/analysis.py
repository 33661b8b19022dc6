"""A query → the input of its tables: places and gates, slots, aggregates, programs, negations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Final, NamedTuple

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import (
    Action,
    Enter,
    Leave,
    Unit,
)
from spaseq.automaton.pattern import (
    AnyOrder,
    Atom,
    Both,
    Either,
    Kleene,
    Node,
    SequencePattern,
    children,
    may_trail,
    walk,
)
from spaseq.automaton.show import show
from spaseq.language import scope
from spaseq.language.syntax import Duration, Filter
from spaseq.matching.columns.blocks.plain import Sites
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.derived import Derived
from spaseq.matching.filters.postfix import (
    Accumulator,
    BeyondTables,
    DerivedLookup,
    FilterSite,
    Instruction,
    needs,
    steps,
    touched,
    with_nearer,
)
from spaseq.matching.interpreter.program import Gate, GateEdge, ProgramState, RunsProgram
from spaseq.matching.nfa.records import buckets, parts
from spaseq.matching.nfa.tables.absences import AbsenceTables
from spaseq.patterns.spectra.solutions import Mask

#: The most alternatives of an `&` of `|`.
_MOST_ALTERNATIVES: Final = 16


@dataclass(frozen=True, slots=True)
class GateCandidate:
    """What an event may be for a run at a gate: a way to continue, or only a rival of one (``way`` is None).

    For a conjunction ``both``, it is the part ``unit`` of the alternative ``parts``.
    """

    gate: Gate
    way: GateEdge | None
    unit: Atom
    begins: tuple[Action, ...]
    inside: tuple[int, ...]
    both: Both | None = None
    parts: tuple[Atom, ...] = ()

    @property
    def apart(self) -> bool:
        """Whether each part of it is a separate event of a match."""
        return self.both is None or (
            not self.inside and len({atom.gpm for atom in self.parts}) == len(self.parts)
        )


#: What an event may be at a gate, and for each whether ``;`` must not skip it.
Alternatives = tuple[tuple[tuple[GateCandidate, ...], bool], ...]


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows of a GPM that negations look back at, grouped by the values of some variables."""

    gpm: str
    key: tuple[str, ...]


class Analysis:
    """Everything about a query that its tables are written from. The variables ``derived`` join nothing.

    ``start``: the start of its automaton, if that is not compiled from the pattern. Raises ``BeyondTables``,
    as ``codes``, ``slots`` and ``accumulators`` may.
    """

    def __init__(
        self, pattern: SequencePattern, derived: Container[str] = (), start: ProgramState | None = None
    ) -> None:
        self.pattern = pattern
        self._derived = derived
        self._candidates: dict[Gate, Alternatives] = {}
        self.start = start or RunsProgram(compile_pattern(pattern)).start
        self.gpms = tuple(pattern.gpms)
        self._inside: dict[int, tuple[int, ...]] = {}
        self._locate(pattern.root, ())
        self.atoms = {node.id: node for node in walk(pattern.root) if isinstance(node, Atom)}
        self.kleenes = {node.id: node for node in walk(pattern.root) if isinstance(node, Kleene)}
        self.places = reachable(self.start)
        self.gates = [gate for place in self.places for gate in place.gates]
        #: Matches may wait for the end of their window.
        self.trails = may_trail(pattern.root)
        self.absences = AbsenceTables(self.start, self.trails)
        self.free = {
            check.atom.id: check.free for a in self.absences.all for check in self.absences.checks(a)
        }

    # --- the automaton ------------------------------------------------------------------------

    def _locate(self, node: Node, inside: tuple[int, ...]) -> None:
        self._inside[node.id] = inside
        for child in children(node):
            self._locate(child, (*inside, node.id) if isinstance(node, Kleene) else inside)

    def candidates(self, gate: Gate) -> Alternatives:
        """See ``candidates``."""
        if gate not in self._candidates:
            self._candidates[gate] = tuple(candidates(gate))
        return self._candidates[gate]

    def _everything(self) -> Iterator[GateCandidate]:
        return (one for gate in self.gates for candidate, _ in self.candidates(gate) for one in candidate)

    def together(self, candidate: GateCandidate) -> list[Instruction]:
        """Return the conditions that all parts of a candidate must meet together."""
        parts = {atom.id for atom in candidate.parts}
        nodes = () if candidate.both is None else walk(candidate.both)
        met = (n for n in nodes if isinstance(n, Both) and parts & {inner.id for inner in walk(n)})
        code = [s for node in met for f in node.deferred for s in self.steps(f, FilterSite(candidate.inside))]
        return code + self._settling((atom.gpm for atom in candidate.parts), candidate.inside)

    def gate_key(self, gate: Gate) -> list[str]:
        """Return the variables by which the runs at a gate are looked up."""
        partition = {variable.name for variable in self.pattern.query.partition}
        names = (name for name in gate.key if name not in partition and name not in self._derived)
        return [name for name in names if name in self.slots][: buckets.KEY_LIMIT]

    # --- absences ---------------------------------------------------------------------------------

    def _checked(self) -> Iterator[Atom]:
        return (check.atom for absence in self.absences.all for check in self.absences.checks(absence))

    @property
    def ambiguous(self) -> bool:
        """Whether a waiting match may have the events of one that does not wait."""
        uses = Counter(
            candidate.unit.gpm for candidate in {c.unit.id: c for c in self._everything()}.values()
        )
        return self.trails and max(uses.values()) > 1

    def chain(self, atom: Atom) -> KeyedRows:
        """Return the chain of the rows that a check searches."""
        partition = {variable.name for variable in self.pattern.query.partition}
        certain = scope.gpm_certain(self.pattern.gpms[atom.gpm].gpm)
        names = sorted((certain & self._joined) - partition - self.free.get(atom.id, frozenset()))
        return KeyedRows(atom.gpm, tuple(names[: buckets.KEY_LIMIT]))

    # --- slots and aggregates -----------------------------------------------------------------

    @cached_property
    def _joined(self) -> frozenset[str]:
        """The variables by which an event joins a run."""
        count = Counter(name for a in self.atoms.values() for name in self.pattern.gpms[a.gpm].variables)
        repeated = {
            name
            for a in self.atoms.values()
            if self._inside[a.id]
            for name in self.pattern.gpms[a.gpm].variables
            if not any(name in self.kleenes[kleene].own for kleene in self._inside[a.id])
        }
        found = {name for name, number in count.items() if number > 1} | repeated
        # Those of PARTITION BY agree anyway, and so do columns derived from joined variables.
        partition = {variable.name for variable in self.pattern.query.partition}
        return frozenset(name for name in found - partition if name not in self._derived)

    def joined_by(self, atom: Atom) -> frozenset[str]:
        """Return the variables of an atom by which its events join a run."""
        return self._joined & self.pattern.gpms[atom.gpm].variables

    @cached_property
    def slots(self) -> dict[str, int]:
        """The variables that a run keeps with their values, numbered."""
        bound = frozenset().union(*(self.pattern.gpms[a.gpm].variables for a in self.atoms.values()))
        names = set(self._joined)
        # Variables of an optional element may be bound while it is forbidden in an earlier iteration's gap.
        taken = {candidate.unit.id for candidate in self._everything()}
        both = [atom for atom in self._checked() if atom.id in taken]
        names |= {name for atom in both for name in self.pattern.gpms[atom.gpm].variables}
        for step in self._all_steps():
            if step.op in ("PUSH", "ONE", "BOUND", "IF_BOUND"):
                names.add(str(step.what))
            elif isinstance(step.what, Accumulator):
                names.add(step.what.variable)
        return {name: i for i, name in enumerate(sorted(names & bound))}

    @cached_property
    def accumulators(self) -> list[Accumulator]:
        """The aggregates that a run keeps."""
        found = {s.what for s in self._all_steps() if isinstance(s.what, Accumulator)}
        for a in found:
            kleene = self.kleenes[a.kleene]
            nested = any(isinstance(node, Kleene) and node is not kleene for node in walk(kleene))
            if nested or self._inside[a.kleene]:
                raise BeyondTables(
                    "aggregates and PREV are of Kleenes that are in no other", f"?{a.variable}"
                )
        return with_nearer(found)

    def _all_steps(self) -> Iterator[Instruction]:
        for code in self.codes.values():
            yield from code
        for candidate in self._everything():
            yield from self.together(candidate)
        for item in self.pattern.where:
            yield from self.steps(item, FilterSite())

    def counting(self, atom: Atom) -> int | None:
        """Return the Kleene around an atom with aggregates that count the atom's solutions."""
        for a in self.accumulators:
            counts = a.kind in ("COUNT", "SUM") or (a.kind in ("FIRST", "LAST") and a.offset > 0)
            if counts and a.kleene in self._inside[atom.id]:
                return a.kleene
        return None

    # --- conditions ---------------------------------------------------------------------------

    def steps(self, item: Filter, site: FilterSite) -> list[Instruction]:
        """Return a filter as a program."""
        return steps(item, site, self.pattern.owners)

    def unit(self, atom: Atom) -> tuple[int, tuple[int, ...]]:
        """Return an atom with the Kleenes around it, as the key of ``codes``."""
        return atom.id, self._inside[atom.id]

    @cached_property
    def codes(self) -> dict[tuple[int, tuple[int, ...]], list[Instruction]]:
        """The conditions of atoms, by the Kleenes inside which they are evaluated."""
        negated = dict.fromkeys(atom.id for atom in self._checked())
        asked = dict.fromkeys(self.unit(candidate.unit) for candidate in self._everything())
        asked |= dict.fromkeys((a, inside) for a in negated for inside in self.absences.views)
        return {(a, inside): self._unit_code(self.atoms[a], inside) for a, inside in asked}

    def _unit_code(self, atom: Atom, inside: tuple[int, ...]) -> list[Instruction]:
        """Return the conditions on an event for an atom."""
        code = [s for f in atom.filters for s in self.steps(f, FilterSite(inside))]
        return code + self._settling([atom.gpm], inside)

    def _settling(self, gpms: Iterable[str], inside: tuple[int, ...]) -> list[Instruction]:
        """Return the filters of WHERE that may be decided when events for some GPMs are taken."""
        variables = frozenset[str]().union(*(self.pattern.gpms[gpm].variables for gpm in gpms))
        code = list[Instruction]()
        for item in self.pattern.where:
            condition = item.condition
            bound = needs(condition, self.pattern.owners) & variables
            if bound and not touched(condition, self.pattern.owners) & set(inside):
                code += self.steps(item, FilterSite(inside, guarded=True))
        return code

    def pruning(self, ends: Sequence[Action], inside: tuple[int, ...]) -> list[Instruction]:
        """Return the filters of WHERE that are decided by leaving Kleenes."""
        left = {action.kleene for action in ends if isinstance(action, Leave)}
        code = []
        for item in self.pattern.where:
            kleenes = touched(item.condition, self.pattern.owners)
            if kleenes & left and not kleenes & set(inside):
                code += self.steps(item, FilterSite(guarded=True))
        return code


def reachable(start: ProgramState) -> list[ProgramState]:
    """Return the places of an automaton. Raises ``BeyondTables``."""
    found = [start]
    for place in found:
        for gate in place.gates:
            for way in gate.ways:
                if isinstance(way.unit, AnyOrder):
                    raise BeyondTables("nothing gathers events in any order", "ALL")
                if way.target not in found:
                    found.append(way.target)
    return found


def candidates(gate: Gate) -> Iterator[tuple[tuple[GateCandidate, ...], bool]]:
    """Yield what an event may be at a gate (for ``&``, all parts), and whether ``;`` must not skip it."""
    rivals = {rival.unit.id for rival in gate.rivals}
    reached = set()
    for way in gate.ways:
        reached.add(way.unit.id)
        for given in _parts(way.unit):
            yield _candidates(gate, way, given, way.begins, way.inside, way.unit), way.unit.id in rivals
    for rival in gate.rivals:
        if rival.unit.id not in reached:
            begins = tuple(Enter(kleene) for kleene in rival.entered)
            inside = (*gate.inside, *rival.entered)
            for parts in _parts(rival.unit):
                yield _candidates(gate, None, parts, begins, inside, rival.unit), True


def _candidates(
    gate: Gate,
    way: GateEdge | None,
    parts: tuple[Atom, ...],
    begins: tuple[Action, ...],
    inside: tuple[int, ...],
    unit: Unit,
) -> tuple[GateCandidate, ...]:
    if isinstance(unit, Both):
        return tuple(GateCandidate(gate, way, atom, begins, inside, unit, parts) for atom in parts)
    return (GateCandidate(gate, way, parts[0], begins, inside),)


def _parts(unit: Unit) -> list[tuple[Atom, ...]]:
    """Return the GPMs that a unit gathers events for, in each of its alternatives."""

    def alternatives(node: Node) -> list[tuple[Atom, ...]]:
        match node:
            case Atom():
                return [(node,)]
            case Either(operands=operands):
                return [found for operand in operands for found in alternatives(operand)]
            case Both(operands=operands):
                return [tuple(chain(*found)) for found in product(*map(alternatives, operands))]
            case _:
                raise BeyondTables("& gathers GPMs and nothing else", show(node))

    found = alternatives(unit)
    if max(map(len, found)) > parts.LIMIT or len(found) > _MOST_ALTERNATIVES:
        raise BeyondTables(f"& gathers at most {parts.LIMIT} GPMs", show(unit))
    return found


@dataclass(frozen=True, slots=True)
class NfaTables:
    """A query's tables, and the meaning of their numbers.

    - ``columns`` are GPMs and variables; ``width`` and ``sums`` are the integers and floats of a wait.
    - ``entry``: integers of a row that negations look back at; ``offsets``: offset of each column in it.
    - ``derived`` are computed columns, ``lookups`` the expressions that Python evaluates.
    - ``limits`` are bounds of time; ``LIMITS`` is the offset of their values on the streams' clock.
    - ``ambiguous``: a waiting match may have the events of one that does not wait.
    - ``analysis`` is the source of the tables.
    - ``looks``: the forms of matches found so far, by whether every run is a match. Tables that differ only
      in constants share them.
    """

    analysis: Analysis
    tables: v.Ints
    gpms: tuple[str, ...]
    columns: tuple[tuple[int, str], ...]
    candidates: tuple[GateCandidate, ...]
    accepts: tuple[tuple[Action, ...], ...]
    gates: int
    constants: tuple[int, ...]
    width: int
    sums: int
    entry: int
    offsets: tuple[int, ...]
    derived: Mapping[str, Derived]
    lookups: tuple[DerivedLookup, ...]
    limits: tuple[Duration, ...]
    ambiguous: bool
    looks: dict[bool, Looks] = field(default_factory=dict)


class Looks(NamedTuple):
    """The form of matches: the sites of their events, and which candidates and endings are simple.

    A candidate is ``simple`` if its event adds its solution to Ω and does nothing else. ``simple_ends``:
    whether a way to end leaves Ω unchanged.
    """

    sites: Sites
    simple: Mask
    simple_ends: Mask

"""A query as tables for the runs kernel: one array, with references as places in it.

It begins with sizes and with where the sections are (``_kernel_values``). The columns of places, accepts,
gates, candidates, units and Kleenes are named in ``_kernel`` and ``_kernel_memory``; where two columns are a
start and an end, they enclose rows of another section.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

from spaseq.automaton.compile import compile_pattern
from spaseq.automaton.nfa import Action, Again, Enter, Leave
from spaseq.automaton.pattern import Absent, Atom, Kleene, Node, SequencePattern, children, may_trail, walk
from spaseq.language.syntax import Consume, Filter, Strategy
from spaseq.matching.kernel import _kernel_layout as lay
from spaseq.matching.kernel import _kernel_values as v
from spaseq.matching.kernel._kernel_layout import ANY, NEXT, STRICT
from spaseq.matching.kernel._kernel_memory import KEY_LIMIT
from spaseq.matching.kernel.conditions import (
    Accumulator,
    BeyondTables,
    Site,
    Step,
    needs,
    steps,
    touched,
)
from spaseq.matching.kernel.sections import Reference, Sections
from spaseq.matching.runs.program import Gate, Place, Program, Way
from spaseq.terms import Term

_STRATEGIES: Final = {Strategy.STRICT: STRICT, Strategy.NEXT: NEXT, Strategy.ANY: ANY, None: ANY}
_COMPARISONS: Final = {
    "=": v.EQUAL,
    "!=": v.UNEQUAL,
    "<": v.LESS,
    ">": v.GREATER,
    "<=": v.AT_MOST,
    ">=": v.AT_LEAST,
}
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an event may be for a run at a gate: a way on, or only a rival of one (``way`` is None)."""

    gate: Gate
    way: Way | None
    unit: Atom
    begins: tuple[Action, ...]
    inside: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query's tables, and what their numbers stand for.

    ``columns`` are GPMs and variables; ``width`` and ``sums`` are the integers and floats of a wait.
    """

    tables: v.Ints
    gpms: tuple[str, ...]
    columns: tuple[tuple[int, str], ...]
    candidates: tuple[Candidate, ...]
    accepts: tuple[tuple[Action, ...], ...]
    gates: int
    constants: tuple[int, ...]
    width: int
    sums: int


def fits(pattern: SequencePattern) -> str | None:
    """Why the kernel cannot run a query, in a few words; None if it can."""
    try:
        compile_tables(pattern, lambda _: 1)
    except BeyondTables as reason:
        return str(reason)
    return None


def compile_tables(pattern: SequencePattern, intern: Callable[[Term], int]) -> Compiled:
    """The tables of a query; its ``LIMIT`` is left to whoever knows the window.

    Raises ``BeyondTables``.
    """
    _check(pattern)
    return _Compiler(pattern, intern).compiled()


def _check(pattern: SequencePattern) -> None:
    query = pattern.query
    if query.consume is not Consume.NONE:
        raise BeyondTables("CONSUME ANY drops runs")
    if len(query.streams) > 60:
        raise BeyondTables("there are more than 60 streams")
    if may_trail(pattern.root):
        raise BeyondTables("a negation or ? comes last")
    if any(isinstance(node, Absent) for node in walk(pattern.root)):
        raise BeyondTables("a negation")


class _Compiler:
    def __init__(self, pattern: SequencePattern, intern: Callable[[Term], int]) -> None:
        self._pattern = pattern
        self._intern = intern
        self._program = Program(compile_pattern(pattern))
        self._gpms = tuple(pattern.gpms)
        self._inside: dict[int, tuple[int, ...]] = {}
        self._locate(pattern.root, ())
        self._atoms = {node.id: node for node in walk(pattern.root) if isinstance(node, Atom)}
        self._kleenes = {node.id: node for node in walk(pattern.root) if isinstance(node, Kleene)}
        self._kleene_number = {identity: i for i, identity in enumerate(self._kleenes)}
        self._columns: dict[tuple[int, str], int] = {}
        self._constants: dict[int, None] = {}
        self._places = self._reachable(self._program.start)
        self._codes = {atom.id: self._unit_code(atom) for atom in self._atoms.values()}
        self._slots = self._find_slots()
        self._accumulators = self._find_accumulators()
        self._out = Sections()

    def compiled(self) -> Compiled:
        out = self._out
        gates = [gate for place in self._places for gate in place.gates]
        for number, kleene in enumerate(self._kleenes.values()):
            own = out.rows("own", [(self._slots[n],) for n in sorted(kleene.own) if n in self._slots])
            mine = [i for i, a in enumerate(self._accumulators) if a.kleene == kleene.id]
            out.rows("kleenes", [(number, *own, mine[0] if mine else 0, mine[-1] + 1 if mine else 0)])
        sums = 0
        for a in self._accumulators:
            number = self._kleene_number[a.kleene]
            out.rows("aggregates", [(getattr(v, f"ACC_{a.kind}"), self._slots[a.variable], sums, number)])
            sums += 3 if a.kind == "SUM" else 0
        for atom in self._atoms.values():
            gpm = self._gpms.index(atom.gpm)
            names = sorted(self._pattern.gpms[atom.gpm].variables & self._slots.keys())
            binds = out.rows("binds", [(self._slots[name], self._column(gpm, name)) for name in names])
            code = self._write(self._codes[atom.id], gpm)
            out.rows("units", [(*binds, *code, self._counting(atom))])
        accepts, candidates = list[tuple[Action, ...]](), list[Candidate]()
        final = [step for item in self._pattern.where for step in self._steps(item, Site())]
        for place in self._places:
            start = len(accepts)
            for ends in place.accepts:
                out.rows("accepts", [(*self._act(ends), *self._write(final, None), len(accepts))])
                accepts.append(ends)
            first = gates.index(place.gates[0]) if place.gates else 0
            out.rows(
                "places",
                [
                    (
                        Reference("accepts", start),
                        Reference("accepts", len(accepts)),
                        Reference("gates", first),
                        Reference("gates", first + len(place.gates)),
                    )
                ],
            )
        for gate in gates:
            candidates += self._gate(gate, len(candidates))
        woken = []
        for name in self._gpms:
            mine = [i for i, gate in enumerate(gates) if self._wakes(gate, name)]
            woken.append(out.rows("woken", [(Reference("gates", i),) for i in mine]))
        out.rows("ranges", woken)
        for g, name in enumerate(self._gpms):
            known = self._pattern.gpms[name].variables
            keys = [self._column(g, x.name) if x.name in known else -1 for x in self._pattern.query.partition]
            out.rows("partition", [(column,) for column in keys])
        header: list[int | Reference] = [0] * v.TABLES_HEADER
        header[v.N_SLOTS] = len(self._slots)
        header[v.N_KLEENES] = len(self._kleenes)
        header[v.N_GPMS] = len(self._gpms)
        header[v.N_KEYS] = len(self._pattern.query.partition)
        header[v.SINGLE] = int(len(set(self._pattern.streams)) == 1)
        header[v.MOST_GATES] = max(len(place.gates) for place in self._places)
        header[v.MOST_ACCEPTS] = max(len(place.accepts) for place in self._places)
        header[v.START] = Reference("places", 0)
        header[v.WOKEN] = Reference("ranges", 0)
        header[v.PARTITION_COLUMNS] = Reference("partition", 0)
        header[v.AGGREGATES] = Reference("aggregates", 0)
        return Compiled(
            tables=out.array(header),
            gpms=self._gpms,
            columns=tuple(self._columns),
            candidates=tuple(candidates),
            accepts=tuple(accepts),
            gates=len(gates),
            constants=tuple(self._constants),
            width=v.SLOTS + len(self._slots) + 2 * len(self._kleenes) + len(self._accumulators),
            sums=sums,
        )

    def _gate(self, gate: Gate, number: int) -> list[Candidate]:
        """Writes a gate and its candidates, which are numbered from ``number`` on."""
        out, atoms = self._out, list(self._atoms)
        key = self._gate_key(gate)
        found = list[Candidate]()
        start = Reference("candidates", number)
        for candidate, is_rival in self._candidates(gate):
            gpm = self._gpms.index(candidate.unit.gpm)
            target: int | Reference = 0
            if candidate.way is not None:
                target = Reference("places", self._places.index(candidate.way.target))
            unit = Reference("units", atoms.index(candidate.unit.id))
            columns, _ = out.rows("keys", [(self._column(gpm, name),) for name in key])
            actions = self._act(candidate.begins)
            row = (unit, gpm, target, int(is_rival), number + len(found), *actions, columns)
            out.rows("candidates", [row])
            found.append(candidate)
        slots = out.rows("keys", [(self._slots[name],) for name in key])
        code = self._write(self._pruning(gate.ends, gate.inside), None)
        out.rows(
            "gates",
            [
                (
                    _STRATEGIES[gate.strategy],
                    start,
                    Reference("candidates", number + len(found)),
                    *self._act(gate.ends),
                    *code,
                    *slots,
                    *self._order(gate, key),
                    out.count("gates"),
                )
            ],
        )
        return found

    # --- what there is ------------------------------------------------------------------------

    def _locate(self, node: Node, inside: tuple[int, ...]) -> None:
        self._inside[node.id] = inside
        for child in children(node):
            self._locate(child, (*inside, node.id) if isinstance(node, Kleene) else inside)

    def _reachable(self, start: Place) -> list[Place]:
        found = [start]
        for place in found:
            for gate in place.gates:
                for way in gate.ways:
                    if not isinstance(way.unit, Atom):
                        raise BeyondTables("& or ALL gathers several events")
                    if way.target not in found:
                        found.append(way.target)
        return found

    def _candidates(self, gate: Gate) -> Iterable[tuple[Candidate, bool]]:
        rivals = {rival.unit.id for rival in gate.rivals}
        reached = set()
        for way in gate.ways:
            assert isinstance(way.unit, Atom)
            reached.add(way.unit.id)
            yield Candidate(gate, way, way.unit, way.begins, way.inside), way.unit.id in rivals
        for rival in gate.rivals:
            if rival.unit.id not in reached:
                if not isinstance(rival.unit, Atom):
                    raise BeyondTables("& gathers several events")
                begins = tuple(Enter(kleene) for kleene in rival.entered)
                yield Candidate(gate, None, rival.unit, begins, (*gate.inside, *rival.entered)), True

    def _wakes(self, gate: Gate, gpm: str) -> bool:
        waits = gate.strategy in (Strategy.NEXT, Strategy.ANY) and gate not in self._places[0].gates
        return waits and gpm in gate.gpms

    def _gate_key(self, gate: Gate) -> list[str]:
        partition = {variable.name for variable in self._pattern.query.partition}
        return [name for name in gate.key if name not in partition and name in self._slots][:KEY_LIMIT]

    def _joined(self) -> set[str]:
        """The variables by which an event is joined with a run."""
        count = Counter(name for a in self._atoms.values() for name in self._pattern.gpms[a.gpm].variables)
        own = frozenset().union(*(kleene.own for kleene in self._kleenes.values()))
        repeated = {
            name
            for a in self._atoms.values()
            if self._inside[a.id]
            for name in self._pattern.gpms[a.gpm].variables - own
        }
        found = {name for name, number in count.items() if number > 1} | repeated
        # Those of PARTITION BY agree anyway.
        return found - {variable.name for variable in self._pattern.query.partition}

    def _find_slots(self) -> dict[str, int]:
        bound = frozenset().union(*(self._pattern.gpms[a.gpm].variables for a in self._atoms.values()))
        names = self._joined()
        for step in self._all_steps():
            if step.op in ("PUSH", "ONE", "IF_BOUND"):
                names.add(str(step.what))
            elif isinstance(step.what, Accumulator):
                names.add(step.what.variable)
        return {name: i for i, name in enumerate(sorted(names & bound))}

    def _find_accumulators(self) -> list[Accumulator]:
        found = {s.what for s in self._all_steps() if isinstance(s.what, Accumulator)}
        for a in found:
            kleene = self._kleenes[a.kleene]
            nested = any(isinstance(node, Kleene) and node is not kleene for node in walk(kleene))
            if nested or self._inside[a.kleene]:
                raise BeyondTables(f"an aggregate or PREV of ?{a.variable}, in a Kleene inside another")
        return sorted(found)

    def _all_steps(self) -> Iterable[Step]:
        for code in self._codes.values():
            yield from code
        for item in self._pattern.where:
            yield from self._steps(item, Site())

    def _counting(self, atom: Atom) -> int | Reference:
        """The Kleene around an atom whose aggregates count its solutions, or 0."""
        for a in self._accumulators:
            if a.kind in ("COUNT", "SUM") and a.kleene in self._inside[atom.id]:
                return Reference("kleenes", self._kleene_number[a.kleene])
        return 0

    # --- conditions ---------------------------------------------------------------------------

    def _steps(self, item: Filter, site: Site) -> list[Step]:
        return steps(item, site, self._pattern.group_of)

    def _unit_code(self, atom: Atom) -> list[Step]:
        """The conditions that an event must meet for an atom."""
        inside = self._inside[atom.id]
        code = [s for f in atom.filters for s in self._steps(f, Site(inside))]
        variables = self._pattern.gpms[atom.gpm].variables
        for item in self._pattern.where:
            condition = item.condition
            if needs(condition) & variables and not touched(condition, self._pattern) & set(inside):
                code += self._steps(item, Site(inside, guarded=True))
        return code

    def _pruning(self, ends: tuple[Action, ...], inside: tuple[int, ...]) -> list[Step]:
        """The filters of WHERE that are decided by leaving Kleenes."""
        left = {action.kleene for action in ends if isinstance(action, Leave)}
        code = []
        for item in self._pattern.where:
            kleenes = touched(item.condition, self._pattern)
            if kleenes & left and not kleenes & set(inside):
                code += self._steps(item, Site(guarded=True))
        return code

    def _write(self, code: Sequence[Step], gpm: int | None) -> tuple[Reference, Reference]:
        """Writes a program, with numbers for names; where it starts and ends."""
        start = self._out.count("code")
        rows = []
        for i, step in enumerate(code):
            what: int | Reference = 0
            slot = column = -1
            match step:
                case Step("PUSH" | "ONE" | "IF_BOUND", str(name)):
                    slot, column = self._slots.get(name, -1), self._read(gpm, name)
                case Step("AGGREGATE", Accumulator() as a):
                    what = self._accumulators.index(a)
                    if step.inside:
                        slot, column = self._slots[a.variable], self._read(gpm, a.variable)
                case Step("COMPARE", str(operator)):
                    what = _COMPARISONS[operator]
                case Step("IF_COMPLETED", int(kleene)):
                    slot = self._kleene_number[kleene]
                case Step("CONSTANT", NamedNode() | Literal() as term):
                    what = self._intern(term)
                    self._constants[what] = None
            if step.op.startswith("IF_"):
                what = Reference("code", start + i + 1 + step.skip)
            rows.append((getattr(v, step.op), what, slot, column))
        return self._out.rows("code", rows)

    def _read(self, gpm: int | None, name: str) -> int:
        if gpm is None or name not in self._pattern.gpms[self._gpms[gpm]].variables:
            return -1
        return self._column(gpm, name)

    def _column(self, gpm: int, name: str) -> int:
        return self._columns.setdefault((gpm, name), len(self._columns))

    def _act(self, actions: tuple[Action, ...]) -> tuple[Reference, Reference]:
        rows = []
        for action in actions:
            match action:
                case Enter(kleene):
                    kind, most = lay.ENTER, 0
                case Again(kleene, maximum):
                    kind, most = lay.AGAIN, -1 if maximum is None else maximum
                case Leave(kleene, minimum):
                    kind, most = lay.LEAVE, minimum
                case _:
                    raise BeyondTables("a negation")
            rows.append((kind, Reference("kleenes", self._kleene_number[kleene]), most))
        return self._out.rows("actions", rows)

    def _order(self, gate: Gate, key: list[str]) -> tuple[int, int, int, int]:
        """The ordering filter that alone decides at a gate: sign, slot, column, whether equal will do."""
        none = (0, 0, 0, 0)
        if gate.strategy is not Strategy.NEXT or len(set(self._pattern.streams)) > 1:
            return none
        if len(gate.ways) != 1 or len(gate.rivals) != 1 or gate.rivals[0].unit != gate.ways[0].unit:
            return none
        atom = gate.ways[0].unit
        assert isinstance(atom, Atom)
        variables = self._pattern.gpms[atom.gpm].variables
        if variables & self._joined() - set(key):
            return none
        match self._codes[atom.id]:
            case [Step("PUSH", str(left)), Step("PUSH", str(right)), Step("COMPARE", str(operator))]:
                if operator not in _FLIPPED or (left in variables) == (right in variables):
                    return none
                if right in variables:
                    left, right, operator = right, left, _FLIPPED[operator]
                if right not in self._slots:
                    return none
                sign = 1 if operator.startswith(">") else -1
                column = self._column(self._gpms.index(atom.gpm), left)
                return sign, self._slots[right], column, int("=" in operator)
        return none

"""Write a query's tables for the runs kernel: its analysis → one array, with references as places in it.

The array begins with sizes and with the places of the sections (``_kernel_values``). The fields of a
section's rows are named in ``records``; a pair of start and end fields encloses rows of another section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spaseq.automaton.nfa import Action, Again, Await, Decide, Enter, Forbid, Leave, Omit, Since, Until
from spaseq.automaton.pattern import Atom
from spaseq.language.syntax import Consume, Emit, Strategy
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.derived import Derived
from spaseq.matching.filters.postfix import Accumulator, FilterSite, Instruction
from spaseq.matching.filters.programs import Programs, SectionReference, Sections
from spaseq.matching.interpreter.program import Gate
from spaseq.matching.nfa.compiled import _kernel_layout as lay
from spaseq.matching.nfa.records import actions, entries, gaps, gates
from spaseq.matching.nfa.tables.absences import Absence
from spaseq.matching.nfa.tables.analysis import Analysis, GateCandidate, KeyedRows, NfaTables
from spaseq.terms.dictionary import Term

_STRATEGIES: Final = {
    Strategy.STRICT: gates.STRICT,
    Strategy.NEXT: gates.NEXT,
    Strategy.ANY: gates.ANY,
    None: gates.ANY,
}
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def write(analysis: Analysis, derived: Mapping[str, Derived], intern: Callable[[Term], int]) -> NfaTables:
    """Return the tables of an analysis."""
    return _KernelWriter(analysis, derived, intern).compiled()


class _KernelWriter:
    def __init__(
        self, analysis: Analysis, derived: Mapping[str, Derived], intern: Callable[[Term], int]
    ) -> None:
        self._analysis = analysis
        self._derived = derived
        self._pattern = analysis.pattern
        self._units = {unit: i for i, unit in enumerate(analysis.codes)}
        self._columns: dict[tuple[int, str], int] = {}
        # The chains of rows that negations look back at, and the columns read of them, by GPM.
        self._chains: dict[KeyedRows, None] = {}
        self._remembered: dict[int, dict[int, None]] = {}
        self._most_parts = 0
        self._out = Sections()
        self._programs = Programs(self._out, analysis.slots, analysis.kleenes, analysis.accumulators, intern)

    def compiled(self) -> NfaTables:
        out, analysis = self._out, self._analysis
        self._programs.write_kleenes()
        sums = self._programs.write_aggregates()
        for atom, inside in analysis.codes:
            self._write_unit(analysis.atoms[atom], analysis.codes[atom, inside])
        accepts, candidates = self._write_places(), list[GateCandidate]()
        for gate in analysis.gates:
            candidates += self._gate(gate, len(candidates))
        self._write_checks()
        self._write_chains()
        woken = []
        waiting: dict[str, list[int]] = {name: [] for name in analysis.gpms}
        for i, gate in enumerate(analysis.gates):
            for name in gate.gpms if self._waits(gate) else ():
                waiting[name].append(i)
        for mine in waiting.values():
            woken.append(out.rows("woken", [(SectionReference("gates", i),) for i in mine]))
        out.rows("ranges", woken)
        for g, name in enumerate(analysis.gpms):
            known = self._pattern.gpms[name].variables
            keys = [self._column(g, x.name) if x.name in known else -1 for x in self._pattern.query.partition]
            out.rows("partition", [(column,) for column in keys])
        offsets = {}
        for columns in self._remembered.values():
            offsets.update({column: entries.VALUES + i for i, column in enumerate(columns)})
        first_gap = v.SLOTS + len(analysis.slots) + 2 * len(analysis.kleenes) + len(analysis.accumulators)
        bars = first_gap + (
            lay.FIRST_GAP + analysis.absences.most * gaps.SIZE if analysis.absences.most else 0
        )
        since = bars + (len(self._pattern.query.streams) if self._most_parts else 0)
        header = self._header()
        header[v.GAPS], header[v.BARS], header[v.SINCES] = first_gap, bars, since
        header[v.SINCES_END] = since + len(analysis.absences.withins)
        header[v.LIMITS], _ = out.rows("limits", [(0,) for _ in analysis.absences.limits])
        return NfaTables(
            analysis=analysis,
            tables=out.array(header),
            gpms=analysis.gpms,
            columns=tuple(self._columns),
            candidates=tuple(candidates),
            accepts=accepts,
            gates=len(analysis.gates),
            constants=tuple(self._programs.constants),
            width=since + 2 * len(analysis.absences.withins),
            sums=sums,
            entry=entries.VALUES + max(map(len, self._remembered.values()), default=0),
            offsets=tuple(offsets.get(i, 0) for i in range(len(self._columns))),
            derived=self._derived,
            lookups=tuple(self._programs.lookups),
            limits=tuple(analysis.absences.limits),
            ambiguous=analysis.ambiguous,
        )

    def _header(self) -> list[int | SectionReference]:
        analysis = self._analysis
        header: list[int | SectionReference] = [0] * v.TABLES_HEADER
        header[v.N_SLOTS] = len(analysis.slots)
        header[v.N_KLEENES] = len(analysis.kleenes)
        header[v.N_GPMS] = len(analysis.gpms)
        header[v.N_KEYS] = len(self._pattern.query.partition)
        header[v.SINGLE] = int(len(set(self._pattern.streams)) == 1)
        header[v.MOST_GATES] = max(len(place.gates) for place in analysis.places)
        header[v.MOST_ACCEPTS] = max(len(place.accepts) for place in analysis.places)
        trails = analysis.trails
        holds = trails and self._pattern.query.emit is not Emit.ALL
        header[v.TRAILS], header[v.HOLDS] = int(trails), int(holds)
        if trails:
            header[v.MOST_GATES] = max(len(place.gates) + len(place.accepts) for place in analysis.places)
            header[v.LAST_VIEW] = analysis.absences.views.index(())
        header[v.START] = SectionReference("places", 0)
        header[v.WOKEN] = SectionReference("ranges", 0)
        header[v.PARTITION_COLUMNS] = SectionReference("partition", 0)
        header[v.AGGREGATES] = SectionReference("aggregates", 0)
        header[v.N_GAPS] = analysis.absences.most
        header[v.CONSUMES] = int(self._pattern.query.consume is Consume.ANY)
        header[v.MOST_PARTS] = self._most_parts
        header[v.CHAINS] = SectionReference("chains", 0)
        header[v.CHAINS_END] = SectionReference("chains", self._out.count("chains"))
        return header

    # --- places and gates ---------------------------------------------------------------------

    def _write_places(self) -> tuple[tuple[Action, ...], ...]:
        """Write places and the ways to end there; return the latter."""
        out, analysis = self._out, self._analysis
        accepts = list[tuple[Action, ...]]()
        final = [step for item in self._pattern.where for step in analysis.steps(item, FilterSite())]
        number = 0
        for place in analysis.places:
            start = len(accepts)
            for ends in place.accepts:
                out.rows("accepts", [(*self._act(ends), *self._write(final, None), len(accepts))])
                accepts.append(ends)
            row = (
                SectionReference("accepts", start),
                SectionReference("accepts", len(accepts)),
                SectionReference("gates", number),
                SectionReference("gates", number + len(place.gates)),
            )
            out.rows("places", [row])
            number += len(place.gates)
        return tuple(accepts)

    def _gate(self, gate: Gate, number: int) -> list[GateCandidate]:
        """Write a gate and its candidates, which are numbered from ``number`` on."""
        out, analysis = self._out, self._analysis
        key = analysis.gate_key(gate)
        found = list[GateCandidate]()
        start = SectionReference("candidates", out.count("candidates"))
        for parts, is_rival in analysis.candidates(gate):
            self._candidate(parts, is_rival, key, number + len(found))
            found += parts
        end = SectionReference("candidates", out.count("candidates"))
        slots = out.rows("keys", [(analysis.slots[name],) for name in key])
        code = self._write(analysis.pruning(gate.ends, gate.inside), None)
        out.rows(
            "gates",
            [
                (
                    _STRATEGIES[gate.strategy],
                    start,
                    end,
                    *self._act(gate.ends),
                    *code,
                    *slots,
                    *self._order(gate, key),
                    out.count("gates"),
                    int(any(candidate.both is not None for candidate in found)),
                    int(gate.parted),
                )
            ],
        )
        return found

    def _candidate(self, parts: Sequence[GateCandidate], is_rival: bool, key: list[str], number: int) -> None:
        """Write what an event may be at a gate; its parts are numbered from ``number`` on."""
        out, analysis = self._out, self._analysis
        rows = []
        for part in parts:
            gpm = analysis.gpms.index(part.unit.gpm)
            unit = SectionReference("units", self._units[analysis.unit(part.unit)])
            columns, _ = out.rows("keys", [(self._column(gpm, name),) for name in key])
            rows.append((unit, gpm, columns))
        first = parts[0]
        gathered: tuple[int | SectionReference, int | SectionReference] = (0, 0)
        if first.both is not None:
            places = [self._every(part.unit) for part in parts]
            gathered = out.rows("parts", [(*row, place) for row, place in zip(rows, places, strict=True)])
            self._most_parts = max(self._most_parts, len(parts))
        target: int | SectionReference = 0
        if first.way is not None:
            target = SectionReference("places", analysis.places.index(first.way.target))
        code = self._write(analysis.together(first), None)
        unit, gpm, columns = rows[0]
        row = (unit, gpm, target, int(is_rival), number, *self._act(first.begins), columns, *gathered, *code)
        out.rows("candidates", [row])

    def _every(self, atom: Atom) -> SectionReference:
        """Return the chain of all rows of an atom's GPM."""
        chain = KeyedRows(atom.gpm, ())
        self._chains[chain] = None
        self._remember(atom, self._analysis.codes[self._analysis.unit(atom)])
        return SectionReference("chains", list(self._chains).index(chain))

    def _waits(self, gate: Gate) -> bool:
        return gate.strategy in (Strategy.NEXT, Strategy.ANY) and gate not in self._analysis.places[0].gates

    def _order(self, gate: Gate, key: list[str]) -> tuple[int, int, int, int]:
        """Return the ordering filter that alone decides at a gate: sign, slot, column, whether equality
        suffices.
        """
        none = (0, 0, 0, 0)
        if gate.strategy is not Strategy.NEXT or len(set(self._pattern.streams)) > 1:
            return none
        if len(gate.ways) != 1 or len(gate.rivals) != 1 or gate.rivals[0].unit != gate.ways[0].unit:
            return none
        atom = gate.ways[0].unit
        if not isinstance(atom, Atom):
            return none
        analysis = self._analysis
        variables = self._pattern.gpms[atom.gpm].variables
        if analysis.joined_by(atom) - set(key):
            return none
        match analysis.codes[analysis.unit(atom)]:
            case [
                Instruction("PUSH", str(left)),
                Instruction("PUSH", str(right)),
                Instruction("COMPARE", str(operator)),
            ]:
                if operator not in _FLIPPED or (left in variables) == (right in variables):
                    return none
                if right in variables:
                    left, right, operator = right, left, _FLIPPED[operator]
                if right not in analysis.slots:
                    return none
                sign = 1 if operator.startswith(">") else -1
                column = self._column(analysis.gpms.index(atom.gpm), left)
                return sign, analysis.slots[right], column, int("=" in operator)
        return none

    def _act(self, done: tuple[Action, ...]) -> tuple[SectionReference, SectionReference]:
        rows = []
        for action in done:
            about: int | SectionReference = 0
            number: int | SectionReference = 0
            match action:
                case Enter(kleene):
                    kind, about = actions.ENTER, self._programs.kleene(kleene)
                case Again(kleene, maximum):
                    kind, about = actions.AGAIN, self._programs.kleene(kleene)
                    number = -1 if maximum is None else maximum
                case Leave(kleene, minimum):
                    kind, about, number = actions.LEAVE, self._programs.kleene(kleene), minimum
                case Since(within):
                    kind, about = actions.SINCE, self._analysis.absences.withins.index(within)
                case Until(within, limit):
                    kind, about = actions.UNTIL, self._analysis.absences.withins.index(within)
                    number = SectionReference("limits", self._analysis.absences.limits.index(limit))
                case Forbid() | Omit():
                    kind = actions.FORBID
                    about = SectionReference("forbidden", self._first_view(action))
                case Await(owner):
                    kind, number = actions.AWAIT, owner + 1
                case Decide(owner, inside):
                    view = self._analysis.absences.views.index(inside) if self._analysis.absences.views else 0
                    kind, about, number = actions.DECIDE, view, owner + 1
            rows.append((kind, about, number))
        return self._out.rows("actions", rows)

    # --- negations ----------------------------------------------------------------------------

    def _first_view(self, absence: Absence) -> int:
        """Return the first row of ``forbidden`` for an absence, which has one row for each of the views."""
        return self._analysis.absences.all.index(absence) * len(self._analysis.absences.views)

    def _write_checks(self) -> None:
        out, analysis = self._out, self._analysis
        for forbid in analysis.absences.all:
            for inside in analysis.absences.views:
                rows = []
                for check in analysis.absences.checks(forbid):
                    atom = check.atom
                    chain = analysis.chain(atom)
                    every = KeyedRows(atom.gpm, ())
                    self._chains |= {every: None, chain: None}
                    chains = list(self._chains)
                    slots = out.rows("keys", [(analysis.slots[name],) for name in chain.key])
                    unit = SectionReference("units", self._units[atom.id, inside])
                    places = (
                        SectionReference("chains", chains.index(chain)),
                        SectionReference("chains", chains.index(every)),
                    )
                    rows.append((unit, int(check.sure), *places, *slots))
                    self._remember(atom, analysis.codes[atom.id, inside])
                out.rows("forbidden", [out.rows("checks", rows)])

    def _remember(self, atom: Atom, code: Sequence[Instruction]) -> None:
        """Note the columns that are read of an atom's rows."""
        gpm = self._analysis.gpms.index(atom.gpm)
        names = self._pattern.gpms[atom.gpm].variables
        columns = self._remembered.setdefault(gpm, {})
        read = {str(s.what) for s in code} | {
            s.what.variable for s in code if isinstance(s.what, Accumulator)
        }
        for name in sorted(names & (read | self._analysis.slots.keys())):
            columns[self._column(gpm, name)] = None

    def _write_chains(self) -> None:
        out, analysis = self._out, self._analysis
        for chain in self._chains:
            gpm = analysis.gpms.index(chain.gpm)
            key = out.rows("keys", [(self._column(gpm, name),) for name in chain.key])
            columns = out.rows("keys", [(column,) for column in self._remembered[gpm]])
            out.rows("chains", [(gpm, *key, *columns)])

    # --- units, conditions ----------------------------------------------------------------------

    def _write_unit(self, atom: Atom, code: Sequence[Instruction]) -> None:
        out, analysis = self._out, self._analysis
        gpm = analysis.gpms.index(atom.gpm)
        free = analysis.free.get(atom.id, frozenset())
        names = sorted((self._pattern.gpms[atom.gpm].variables & analysis.slots.keys()) - free)
        binds = out.rows("binds", [(analysis.slots[name], self._column(gpm, name)) for name in names])
        counting = analysis.counting(atom)
        code_rows = self._programs.write(code, lambda name: self._read(gpm, name), free)
        out.rows(
            "units",
            [(*binds, *code_rows, 0 if counting is None else self._programs.kleene(counting))],
        )

    def _write(
        self, code: Sequence[Instruction], gpm: int | None
    ) -> tuple[SectionReference, SectionReference]:
        """Write a program that reads the rows of a GPM, if any; return where it starts and ends."""
        return self._programs.write(code, lambda name: self._read(gpm, name))

    def _read(self, gpm: int | None, name: str) -> int:
        if gpm is None or name not in self._pattern.gpms[self._analysis.gpms[gpm]].variables:
            return -1
        return self._column(gpm, name)

    def _column(self, gpm: int, name: str) -> int:
        return self._columns.setdefault((gpm, name), len(self._columns))

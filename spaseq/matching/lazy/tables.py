"""Compile a query to tables for the lazy kernel: one array, with references as places in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Final

from pyoxigraph import Literal

from spaseq.automaton.pattern import AnyOrder, Atom, Kleene, SequencePattern
from spaseq.automaton.pattern import walk as nodes
from spaseq.automaton.show import show
from spaseq.language.scope import gpm_certain
from spaseq.language.syntax.printing import print_expression
from spaseq.matching.filters import _kernel_values as v
from spaseq.matching.filters.derived import Derived, Split, split
from spaseq.matching.filters.postfix import Accumulator, Instruction
from spaseq.matching.filters.programs import Programs, SectionReference, Sections
from spaseq.matching.lazy.compiled import _kernel_layout as lay
from spaseq.matching.lazy.demands import AbsenceDemand, Demands, PlanCondition, accumulators, demands
from spaseq.matching.lazy.plans import DoesNotFit, Item, Items, LazyPlan, plans
from spaseq.matching.lazy.ranges import Range, Summand, ranges
from spaseq.matching.lazy.records import posting, stored
from spaseq.matching.obstacles import Obstacle, in_text
from spaseq.terms.dictionary import Term

#: With this many elements or more, there may be many more partial matches than events.
_SEVERAL: Final = 3


@dataclass(frozen=True, slots=True)
class LazyTables:
    """A query's tables, and the meaning of their numbers.

    ``columns`` are GPMs and variables; ``sites`` the items of all plans. ``record`` and ``sums`` are the
    integers and floats of a partial match's bindings. ``values`` is the most values that are kept of a row,
    ``ordered`` how many of them are also kept as doubles. ``derived`` are computed columns.
    """

    tables: v.Ints
    gpms: tuple[str, ...]
    columns: tuple[tuple[int, str], ...]
    sites: tuple[Item, ...]
    constants: tuple[int, ...]
    record: int
    sums: int
    values: int
    ordered: int
    plans: tuple[tuple[LazyPlan, Demands], ...]
    derived: Mapping[str, Derived]


def fits(pattern: SequencePattern) -> str | None:
    """Return why a query cannot be run lazily, in a few words; None if it can."""
    try:
        compile_tables(pattern, lambda _: 1)
    except DoesNotFit as reason:
        return str(reason)
    return None


def costs(pattern: SequencePattern) -> Iterator[Obstacle]:
    """Yield why another matcher is as fast or faster, for a query that fits."""
    compiled = compile_tables(pattern, lambda _: 1)
    left = dict.fromkeys(item for _, demanded in compiled.plans for item in demanded.open)
    for item in left:
        demand = "tables hold all conditions, or each candidate is asked them"
        yield in_text(Obstacle(demand, print_expression(item.condition), item.condition.span), pattern.query)
    in_order = not any(isinstance(node, AnyOrder) for node in nodes(pattern.root))
    if in_order and max(len(plan.items) for plan, _ in compiled.plans) < _SEVERAL:
        yield Obstacle("there is ALL, or a match has three elements or more", show(pattern.root))


def compile_tables(pattern: SequencePattern, intern: Callable[[Term], int]) -> LazyTables:
    """Return the tables of a query. Raises ``DoesNotFit``."""
    if len(pattern.query.partition) >= posting.KEY_LIMIT:
        raise DoesNotFit(f"PARTITION BY names {posting.KEY_LIMIT} variables or more")
    taken = split(pattern)
    return _LazyWriter(taken.pattern, [taken], intern).compiled()


def compile_all(
    whole: SequencePattern, members: Sequence[SequencePattern], intern: Callable[[Term], int]
) -> LazyTables:
    """Return one table for several queries under common names, with their plans one after the other. Each
    query must fit.

    ``whole`` has the elements and GPMs of all. No member may read derived columns.
    """
    certain = {name: gpm_certain(part.gpm) for name, part in whole.gpms.items()}
    apart = [Split(member, {}, {name: certain[name] for name in member.gpms}) for member in members]
    return _LazyWriter(whole, apart, intern).compiled()


class _LazyWriter:
    """Writes the tables of queries with the same events; ``pattern`` has the elements and GPMs of all."""

    def __init__(
        self, pattern: SequencePattern, members: Sequence[Split], intern: Callable[[Term], int]
    ) -> None:
        self._pattern = pattern
        self._derived = {name: derived for taken in members for name, derived in taken.derived.items()}
        self._intern = intern
        of_members = [[(plan, demands(taken, plan)) for plan in plans(taken.pattern)] for taken in members]
        self._plans = [one for of in of_members for one in of]
        self._gpms = tuple(pattern.gpms)
        self._partition = tuple(variable.name for variable in pattern.query.partition)
        self._kleenes = {n.id: n for n in nodes(pattern.root) if isinstance(n, Kleene)}
        # The GPMs with rows that are searched; rows of an element that always comes last are not.
        self._looked_for = {
            item.atom.gpm
            for plan, _ in self._plans
            for i, item in enumerate(plan.items)
            if item.kleene is not None or item.before | 1 << i != plan.everything
        }
        self._accumulators = accumulators(_codes(self._plans))
        self._joined = frozenset[str]().union(*(_joined(taken.pattern) for taken in members))
        read = self._joined | set(_read(_codes(self._plans)))
        self._slots = _slots(read, [taken.pattern for taken in members])
        self._columns: dict[tuple[int, str], int] = {}
        self._bounds: dict[tuple[int, str], list[Range]] = {}
        self._written: dict[int, tuple[SectionReference, SectionReference]] = {}
        self._factors: dict[tuple[int, int], int] = {}
        self._ordered = self._find_ordered()
        self._out = Sections()
        self._programs = Programs(self._out, self._slots, self._kleenes, self._accumulators, intern)

    def compiled(self) -> LazyTables:
        out = self._out
        # A reference to the first Kleene must not be 0: the header precedes it.
        self._programs.write_kleenes(shared=self._partition)
        sums = self._programs.write_aggregates()
        values = self._write_buffers()
        ordered = max(map(len, self._ordered.values()), default=0)
        sites: list[Item] = []
        for plan, demanded in self._plans:
            self._write_plan(plan, demanded, len(sites))
            sites += plan.items
        keys = out.rows("keys", [(self._slots[name],) for name in self._partition])
        header: list[int | SectionReference] = [0] * lay.HEADER
        header[v.N_SLOTS] = slots = 1 + max(self._slots.values(), default=-1)
        header[v.N_KLEENES] = len(self._kleenes)
        header[v.AGGREGATES] = SectionReference("aggregates", 0)
        header[lay.T_PLANS], header[lay.T_PLANS_END] = (
            SectionReference("plans", 0),
            SectionReference("plans", len(self._plans)),
        )
        header[lay.T_BUFFERS] = SectionReference("buffers", 0)
        header[lay.T_KEYS], header[lay.T_KEYS_END] = keys
        header[lay.T_VALUES] = values
        header[lay.T_ORDERED] = ordered
        header[v.N_GPMS] = len(self._gpms)
        return LazyTables(
            tables=out.array(header),
            gpms=self._gpms,
            columns=tuple(self._columns),
            sites=tuple(sites),
            constants=tuple(self._programs.constants),
            record=slots + 2 * len(self._kleenes) + len(self._accumulators),
            sums=sums,
            values=values,
            ordered=ordered,
            plans=tuple(self._plans),
            derived=self._derived,
        )

    # --- what is kept of events -------------------------------------------------------------------

    def _kept(self, gpm: str) -> list[str]:
        """Return the variables of a GPM that are kept, in the order of a row's values."""
        return sorted(self._pattern.gpms[gpm].variables & self._slots.keys())

    def _write_buffers(self) -> int:
        out, most = self._out, 0
        rows = []
        for g, gpm in enumerate(self._gpms):
            kept = self._kept(gpm)
            most = max(most, len(kept))
            columns = out.rows("cells", [(self._column(g, name),) for name in kept])
            indexes = []
            for key in self._index_keys(gpm):
                pairs = [(kept.index(name), self._slots[name]) for name in key]
                indexes.append(out.rows("pairs", pairs))
            ordered = out.rows("ordered", [(kept.index(name),) for name in self._ordered[gpm]])
            rows.append((*columns, *out.rows("indexes", indexes), *ordered))
        out.rows("buffers", rows)
        return most

    def _index_keys(self, gpm: str) -> list[tuple[str, ...]]:
        """Return the variables of each index of rows: those of PARTITION BY, with one join variable."""
        if gpm not in self._looked_for:
            return []
        certain = gpm_certain(self._pattern.gpms[gpm].gpm)
        others = sorted((self._joined & certain) - set(self._partition))
        if not others:
            return [self._partition] if self._partition else []
        return [(*self._partition, name) for name in others[: stored.INDEX_LIMIT]]

    def _find_ordered(self) -> dict[str, list[str]]:
        """Return, for each GPM, the variables for which conditions give bounds."""
        found: dict[str, dict[str, None]] = {gpm: {} for gpm in self._gpms}
        for plan, demanded in self._plans:
            for i, item in enumerate(plan.items):
                of = self._ranges(i, item, demanded)
                found[item.atom.gpm] |= dict.fromkeys(one.variable for _, one in of)
            for check in demanded.checks:
                gpm = check.atom.gpm
                of_check = ranges(check.code, self._variables(gpm))
                found[gpm] |= dict.fromkeys(one.variable for one in of_check)
        return {gpm: [*names] for gpm, names in found.items()}

    def _ranges(self, i: int, item: Item, demanded: Demands) -> Iterator[tuple[Items, Range]]:
        """Yield the bounds of an item's values, each with the other items that it needs."""
        for condition in demanded.conditions:
            if condition.needs >> i & 1 and condition.iteration in (None, i):
                key = id(condition), item.atom.gpm  # the plans keep it
                if key not in self._bounds:
                    self._bounds[key] = [*ranges(condition.code, self._variables(item.atom.gpm))]
                for one in self._bounds[key]:
                    yield condition.needs & ~(1 << i), one

    def _variables(self, gpm: str) -> frozenset[str]:
        return self._pattern.gpms[gpm].variables

    def _column(self, gpm: int, name: str) -> int:
        return self._columns.setdefault((gpm, name), len(self._columns))

    # --- plans ----------------------------------------------------------------------------------

    def _write_plan(self, plan: LazyPlan, demanded: Demands, site: int) -> None:
        out = self._out
        items = []
        for i, item in enumerate(plan.items):
            kleene = item.kleene
            # The iterations of a match are of one partition.
            own = frozenset[str]() if kleene is None else kleene.own - set(self._partition)
            binds = self._binds(item.atom.gpm, own)
            whole = [c for c in demanded.conditions if c.needs >> i & 1 and c.iteration is None]
            iteration = [c for c in demanded.conditions if c.iteration == i]
            items.append(
                (
                    self._gpms.index(item.atom.gpm),
                    item.before,
                    plan.after(i),
                    0 if kleene is None else self._programs.kleene(kleene.id),
                    1 if kleene is None else kleene.minimum,
                    1 if kleene is None else -1 if kleene.maximum is None else kleene.maximum,
                    *binds,
                    *self._conditions(whole),
                    *self._conditions(iteration),
                    *self._write_ranges(item.atom.gpm, self._ranges(i, item, demanded)),
                    site + i,
                )
            )
        checks = out.rows("checks", [self._check(check, plan.everything) for check in demanded.checks])
        where = out.rows("items", items)
        out.rows("plans", [(*where, *checks, int(demanded.exact))])

    def _binds(self, gpm: str, own: frozenset[str]) -> tuple[SectionReference, SectionReference]:
        rows = [(self._slots[name], i, int(name in own)) for i, name in enumerate(self._kept(gpm))]
        return self._out.rows("binds", rows)

    def _conditions(self, conditions: Sequence[PlanCondition]) -> tuple[SectionReference, SectionReference]:
        return self._out.rows("conditions", [(c.needs, *self._program(c)) for c in conditions])

    def _program(self, condition: PlanCondition) -> tuple[SectionReference, SectionReference]:
        """Return where a condition's program is, which several items may share."""
        key = id(condition)  # the plans keep it
        if key not in self._written:
            self._written[key] = self._programs.write(condition.code)
        return self._written[key]

    def _check(self, check: AbsenceDemand, everything: int) -> tuple[int | SectionReference, ...]:
        absence, gpm = check.absence, check.atom.gpm
        binds = [
            (self._slots[name], i, int(name not in check.joined)) for i, name in enumerate(self._kept(gpm))
        ]
        return (
            self._gpms.index(gpm),
            absence.after,
            absence.before,
            # Absences since the window began can be decided once the last event is known.
            check.needs if absence.after else everything,
            int(check.sure),
            *self._out.rows("binds", binds),
            *self._programs.write(check.code),
            *self._write_ranges(gpm, ((0, one) for one in ranges(check.code, self._variables(gpm)))),
        )

    def _write_ranges(
        self, gpm: str, found: Iterable[tuple[Items, Range]]
    ) -> tuple[SectionReference, SectionReference]:
        ordered = self._ordered[gpm]
        return self._out.rows(
            "ranges",
            [(needs, ordered.index(r.variable), r.bounds, *self._write_sum(r.sum)) for needs, r in found],
        )

    def _write_sum(self, terms: Iterable[Summand]) -> tuple[SectionReference, SectionReference]:
        rows = []
        for term in terms:
            ratio = term.factor.as_integer_ratio()
            factor = self._factors.get(ratio)
            if factor is None:
                factor = self._factors[ratio] = self._intern(Literal(float(term.factor)))
                self._programs.constants[factor] = None
            rows.append((-1 if term.name is None else self._slots[term.name], factor))
        return self._out.rows("terms", rows)


def _codes(found: Iterable[tuple[LazyPlan, Demands]]) -> list[tuple[Instruction, ...]]:
    """Return the programs of plans."""
    codes = []
    for _, demanded in found:
        codes += [condition.code for condition in demanded.conditions]
        codes += [check.code for check in demanded.checks]
    return codes


def _joined(pattern: SequencePattern) -> frozenset[str]:
    """Return the variables that several atoms or iterations share."""
    atoms = [node for node in nodes(pattern.root) if isinstance(node, Atom)]
    kleenes = [node for node in nodes(pattern.root) if isinstance(node, Kleene)]
    own = frozenset[str]().union(*(kleene.own for kleene in kleenes))
    repeated = {atom.id for k in kleenes for atom in nodes(k) if isinstance(atom, Atom)}
    found, seen = {variable.name for variable in pattern.query.partition}, set[str]()
    for atom in atoms:
        variables = pattern.gpms[atom.gpm].variables
        found |= variables & seen
        seen |= variables
        if atom.id in repeated:
            found |= variables - own
    return frozenset(found)


def _read(codes: Iterable[Sequence[Instruction]]) -> Iterator[str]:
    """Yield the variables that programs read."""
    for step in (step for code in codes for step in code):
        if step.op in ("PUSH", "ONE", "BOUND"):
            yield str(step.what)
        elif isinstance(step.what, Accumulator):
            yield step.what.variable


def _slots(names: Set[str], members: Sequence[SequencePattern]) -> dict[str, int]:
    """Return the slots of variables. Variables may share a slot if no query has both."""
    found: dict[str, int] = {}
    for member in members:
        own = names & frozenset[str]().union(
            *(part.variables for part in member.gpms.values()),
            (variable.name for variable in member.query.partition),
        )
        taken = {found[name] for name in own if name in found}
        free = (slot for slot in count() if slot not in taken)
        found |= {name: next(free) for name in sorted(own - found.keys())}
    return found

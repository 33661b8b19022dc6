"""When the conditions of a plan can be tested, in any order of its items.

In the order of the sequence, a filter sees only what precedes it; in another order more may be bound already.
So a condition is compiled only if each of its variables is surely bound by an item that it sees, and it is
tested as soon as these items are there. Other conditions are left to ``Context``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spaseq.automaton.pattern import Atom, Both, Node
from spaseq.automaton.pattern import walk as nodes
from spaseq.language.scope import conjuncts, mentioned, walk
from spaseq.language.syntax import Aggregate, Expression, Filter, Prev
from spaseq.matching.filters.derived import Split
from spaseq.matching.filters.postfix import (
    Accumulator,
    BeyondTables,
    FilterSite,
    Instruction,
    needs,
    steps,
    with_nearer,
)
from spaseq.matching.lazy.plans import Absence, Items, LazyPlan


@dataclass(frozen=True, slots=True)
class PlanCondition:
    """A program, and the items that must have been taken when it is run.

    ``iteration``: if it tests a Kleene's iteration in progress, the item of that Kleene.
    """

    needs: Items
    code: tuple[Instruction, ...]
    iteration: int | None = None


@dataclass(frozen=True, slots=True)
class AbsenceDemand:
    """How to decide which rows of a GPM violate an absence.

    ``joined`` are the variables in which a row must agree with the match. ``sure``: a row that agrees and
    meets all conditions violates the absence. If not ``sure``, such a row is judged exactly elsewhere.
    """

    absence: Absence
    atom: Atom
    needs: Items
    joined: tuple[str, ...]
    code: tuple[Instruction, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class Demands:
    """The conditions of a plan's events. ``exact``: no condition is left to ``Context``. ``open``: the
    filters that could not be compiled.

    ``joined`` are the sets of items that share a variable.
    """

    conditions: tuple[PlanCondition, ...]
    checks: tuple[AbsenceDemand, ...]
    joined: tuple[Items, ...]
    open: tuple[Filter, ...]

    @property
    def exact(self) -> bool:
        return not self.open


class _Open(Exception):  # noqa: N818  # caught here, always
    """A condition that cannot be compiled."""


class _DemandReader:
    """Reads the conditions of one plan."""

    def __init__(self, taken: Split, plan: LazyPlan) -> None:
        pattern = taken.pattern
        self._pattern = pattern
        self._plan = plan
        parts = [pattern.gpms[item.atom.gpm] for item in plan.items]
        self._surely = taken.certain
        self._certain = [taken.certain[part.name] for part in parts]
        self._may = [part.variables for part in parts]
        self._item_of = {item.kleene.id: i for i, item in enumerate(plan.items) if item.kleene is not None}

    def read(self) -> Demands:
        conditions: list[PlanCondition] = []
        left: list[Filter] = []
        for i, item in enumerate(self._plan.items):
            for part in item.atom.filters:
                # Filters that need no other operands of an ALL are also tested without them.
                seen = item.near if part in item.atom.loose else item.seen
                for test in _tests([part]):
                    try:
                        conditions.append(self._of_item(i, test, seen))
                    except (_Open, BeyondTables):
                        left.append(test)
        for test in _tests(self._pattern.where):
            try:
                conditions.append(self._of_match(test))
            except (_Open, BeyondTables):
                left.append(test)
        checks = tuple(check for absence in self._plan.absences for check in self._checks(absence))
        sharing = {name: self._items_with(name) for names in self._may for name in sorted(names)}
        joined = tuple(items for items in sharing.values() if items & (items - 1))
        return Demands(tuple(c for c in conditions if c.code), checks, joined, tuple(left))

    def _items_with(self, name: str) -> Items:
        return sum(1 << i for i, names in enumerate(self._may) if name in names)

    def _of_item(self, i: int, test: Filter, seen: Items) -> PlanCondition:
        item = self._plan.items[i]
        needed = 1 << i
        for name in needs(test.condition, self._pattern.owners):
            needed |= self._provider(name, seen, i)
        inside = () if item.kleene is None else (item.kleene.id,)
        for kleene in self._kleenes(test.condition, inside):
            needed |= self._complete(kleene, seen)
        code = self._steps(test, inside)
        if item.kleene is None:
            return PlanCondition(needed, code)
        if any(self._plan.items[j].kleene for j in _bits(needed & ~(1 << i) & ~item.before)):
            raise _Open  # two Kleenes that wait for each other
        return PlanCondition(needed, code, i)

    def _of_match(self, test: Filter) -> PlanCondition:
        everything = self._plan.everything
        needed = 0
        for name in needs(test.condition, self._pattern.owners):
            needed |= self._provider(name, everything)
        for kleene in self._kleenes(test.condition, ()):
            needed |= self._complete(kleene, everything)
        if not needed:
            raise _Open
        return PlanCondition(needed, self._steps(test, ()))

    def _steps(self, test: Filter, inside: tuple[int, ...]) -> tuple[Instruction, ...]:
        code = steps(test, FilterSite(inside), self._pattern.owners)
        if any(step.op == "LOOK_UP" for step in code):
            raise _Open  # the lazy kernel has no lookups
        return tuple(code)

    def _provider(self, name: str, seen: Items, i: int | None = None) -> Items:
        """Return an item that surely binds a variable as a filter of item ``i`` sees it."""
        if i is not None and name in self._may[i]:
            if name in self._certain[i]:
                return 1 << i
            raise _Open
        for j in _bits(seen):
            if name in self._certain[j] and name not in self._own(j):
                return 1 << j
        raise _Open

    def _own(self, j: int) -> frozenset[str]:
        kleene = self._plan.items[j].kleene
        return frozenset() if kleene is None else kleene.own

    def _kleenes(self, expression: Expression, inside: tuple[int, ...]) -> Iterator[int]:
        """Yield the Kleenes outside of ``inside`` over which aggregates range."""
        group_of = self._pattern.group_of
        for part in walk(expression):
            if isinstance(part, Prev) and group_of.get(part.variable.name) not in (None, *inside):
                raise _Open
            if isinstance(part, Aggregate):
                found = {group_of.get(name) for name in mentioned(part)}
                if part.before and not found <= {*inside}:
                    raise _Open
                if len(found) != 1 or None in found:
                    raise _Open
                yield from (kleene for kleene in found if kleene is not None and kleene not in inside)

    def _complete(self, kleene: int, seen: Items) -> Items:
        """Return the item of a Kleene among those seen."""
        i = self._item_of.get(kleene)
        if i is None or not seen >> i & 1:
            raise _Open
        return 1 << i

    # --- absences -----------------------------------------------------------------------------

    def _checks(self, absence: Absence) -> Iterator[AbsenceDemand]:
        first: Node = absence.unit
        while isinstance(first, Both):
            first = first.operands[0]  # of ``X & Y``, only X is searched here
        for atom in nodes(first):
            if isinstance(atom, Atom):
                yield self._check(absence, atom, isinstance(absence.unit, Atom))

    def _check(self, absence: Absence, atom: Atom, sure: bool) -> AbsenceDemand:
        part = self._pattern.gpms[atom.gpm]
        certain = self._surely[part.name]
        seen, needed = absence.seen, absence.after | absence.before
        joined, code = [], list[Instruction]()
        for name in sorted(part.variables):
            mine = [j for j in _bits(seen) if name in self._may[j]]
            if not mine:
                continue
            if any(name in self._own(j) for j in mine):
                sure = False
                continue
            providers = [j for j in mine if name in self._certain[j]]
            hidden = any(name in may for j, may in enumerate(self._may) if not seen >> j & 1)
            if not providers and hidden:
                sure = False
                continue
            needed |= 1 << providers[0] if providers else sum(1 << j for j in mine)
            joined.append(name)
        for test in _tests(atom.filters):
            try:
                more = 0
                for name in needs(test.condition, self._pattern.owners):
                    if name in part.variables:
                        if name not in certain:
                            raise _Open
                    else:
                        more |= self._provider(name, seen)
                for kleene in self._kleenes(test.condition, ()):
                    more |= self._complete(kleene, seen)
                code += self._steps(test, ())
                needed |= more
            except (_Open, BeyondTables):
                sure = False
        bound = frozenset[str]().union(*(self._certain[j] - self._own(j) for j in _bits(seen)))
        asked = frozenset[str]().union(*(mentioned(f.condition) for f in self._pattern.where))
        if asked & (part.variables - bound):
            sure = False  # an unbound variable may decide a filter of WHERE
        return AbsenceDemand(absence, atom, needed, tuple(joined), tuple(code), sure)


def demands(taken: Split, plan: LazyPlan) -> Demands:
    """Return the conditions of a plan's events."""
    return _DemandReader(taken, plan).read()


def accumulators(conditions: Iterable[tuple[Instruction, ...]]) -> list[Accumulator]:
    """Return the aggregates that programs use."""
    return with_nearer({s.what for code in conditions for s in code if isinstance(s.what, Accumulator)})


def _tests(filters: Iterable[Filter]) -> Iterator[Filter]:
    """Yield the conjuncts of filters, each separately where possible."""
    for item in filters:
        if any(
            isinstance(part, Prev) or (isinstance(part, Aggregate) and part.before)
            for part in walk(item.condition)
        ):
            yield item  # the filter as a whole would not apply to a first iteration
        else:
            yield from (Filter(part) for part in conjuncts(item.condition))


def _bits(items: Items) -> Iterator[int]:
    i = 0
    while items >> i:
        if items >> i & 1:
            yield i
        i += 1


# The order in which a chain takes its items (section 4 of the paper): rarest first.
#
# Items that conditions link to items taken before have fewer rows left, and come earlier.

#: The assumed selectivity of a condition: one event in this many meets it.
_SELECTS: Final = 4
#: An order is changed if its new first item is rarer than the old one by this factor.
_RARER: Final = 2


def chain_order(plan: LazyPlan, demanded: Demands, counts: Sequence[float]) -> tuple[int, ...]:
    """Return the items in order; ``counts`` are the numbers of events of each.

    The result is empty for a plan with Kleene closures: they have as many values as there are sets of events,
    and come last in any case.
    """
    if any(item.kleene is not None for item in plan.items):
        return ()
    order: list[int] = []
    taken = 0

    def cost(i: int) -> float:
        linked = sum(1 for c in demanded.conditions if c.needs & taken and not c.needs & ~(taken | 1 << i))
        linked += sum(1 for items in demanded.joined if items >> i & 1 and items & taken)
        return counts[i] / float(_SELECTS**linked)

    while len(order) < len(plan.items):
        rest = (i for i in range(len(plan.items)) if not taken >> i & 1)
        order.append(min(rest, key=cost))
        taken |= 1 << order[-1]
    return tuple(order)


def is_better(new: Sequence[int], old: Sequence[int], counts: Sequence[float]) -> bool:
    """Return whether changing an order pays, although waiting partial matches must then be made again."""
    return bool(new) and _RARER * counts[new[0]] < counts[old[0]]

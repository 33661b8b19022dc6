"""From a checked query to its normal form: see ``spaseq.automaton.pattern``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Chain,
    Either,
    Empty,
    GpmPart,
    Kleene,
    Maybe,
    Node,
    SequencePattern,
    Within,
    walk,
)
from spaseq.automaton.scopes import owners, scoped
from spaseq.language import scope
from spaseq.language import syntax as s


def normalise(query: s.Query) -> SequencePattern:
    """Return the normal form of a checked query."""
    references = list(scope.references(query.sequence))
    positive = {ref.name for ref, negated in references if not negated}
    counts = Counter(name for g in query.gpms if g.name in positive for name in scope.gpm_variables(g))
    gpms = {gpm.name: _part(query, gpm, counts, gpm.name in positive) for gpm in query.gpms}
    root = _NormalBuilder(gpms, query.skip is None).build(query.sequence, frozenset(), frozenset())
    variables = {name: part.variables for name, part in gpms.items()}
    root = scoped(root, variables, frozenset(variable.name for variable in query.partition))
    found, mixed = owners(root, variables)
    keys = frozenset(variable.name for variable in query.partition)
    # Other operators see only events of a partition for which a GPM is relevant.
    is_asked = any(map(is_strict, walk(root))) or any(
        is_negated and not keys <= scope.gpm_certain(gpms[ref.name].gpm) for ref, is_negated in references
    )
    witnesses = _witnesses(keys, gpms) if is_asked else {}
    return SequencePattern(
        query=query,
        root=root,
        gpms={**gpms, **witnesses},
        group_of={name: kleenes[-1] for name, kleenes in found.items()},
        owners=found,
        mixed=mixed,
        where=query.filters,
        negated=frozenset(gpm.name for gpm in query.gpms) - positive,
        streams=tuple(declaration.iri for declaration in query.streams),
        witnesses=frozenset(witnesses),
    )


def is_strict(node: Node) -> bool:
    """Return whether a node contains an operator about adjacent events, relevant or not."""
    match node:
        case Chain(operators=operators):
            return s.Strategy.STRICT in operators
        case Kleene(strategy=strategy, maximum=maximum):
            return strategy is s.Strategy.STRICT and maximum != 1
        case _:
            return False


def _witnesses(keys: frozenset[str], gpms: Mapping[str, GpmPart]) -> dict[str, GpmPart]:
    """Return a copy without FILTERs of each GPM that has FILTERs and binds all PARTITION BY variables.

    Copies give an event its partitions if a FILTER rejects it: ``,`` sees events of a partition for which no
    GPM is relevant. A negated GPM that binds no key is relevant in all partitions that other GPMs or copies
    give the event.
    """
    found = {}
    for name, part in gpms.items():
        elements = tuple(e for e in part.stateless.elements if not isinstance(e, s.Filter))
        has_filters = len(elements) < len(part.stateless.elements)
        if keys and has_filters and keys <= scope.gpm_certain(part.gpm):
            bare = replace(part.stateless, elements=elements)
            gpm = replace(part.gpm, name=f"{name} without filters", pattern=bare)
            found[gpm.name] = replace(part, gpm=gpm, stateless=bare, correlated=())
    return found


def _part(query: s.Query, gpm: s.Gpm, counts: Counter[str], positive: bool) -> GpmPart:
    """Return a GPM's part.

    ``counts``: how many GPMs that are not negated, this one included, may bind a name.
    """
    own = scope.gpm_variables(gpm)
    filters = (element for element in gpm.pattern.elements if isinstance(element, s.Filter))
    asked = frozenset[str]().union(*(scope.mentioned(element.condition) for element in filters))
    alone = {name for name in own if counts[name] == 1} if positive else set()
    elsewhere = frozenset(name for name in asked if counts[name]) - alone
    stateless, correlated = scope.split(gpm, elsewhere)
    return GpmPart(
        gpm=gpm,
        streams=frozenset(query.stream(name) for name in gpm.streams),
        stateless=stateless,
        correlated=correlated,
        variables=own,
    )


def _sides(operand: s.Seq) -> tuple[s.Seq, ...]:
    """Return an operand of ``&`` once for each choice of a side of every ``|`` in it."""
    match operand:
        case s.Disjunction(operands=operands):
            return tuple(side for inner in operands for side in _sides(inner))
        case s.Conjunction(operands=operands):
            return tuple(s.Conjunction(way, span=operand.span) for way in product(*map(_sides, operands)))
        case _:
            return (operand,)


class _NormalBuilder:
    """Numbers the places of a sequence in the order written and hands filters to their node."""

    def __init__(self, gpms: Mapping[str, GpmPart], joins: bool) -> None:
        self._gpms = gpms
        self._joins = joins  # whether X? is a left join
        self._count = 0

    def _identity(self) -> int:
        self._count += 1
        return self._count - 1

    def build(self, seq: s.Seq, simultaneous: frozenset[str], unordered: frozenset[str]) -> Node:
        """Build a node. ``simultaneous``: variables that only other operands of the ``&`` around it bind.

        ``unordered``: variables that other operands of the ``ALL`` around it bind.
        """
        identity = self._identity()

        def inner(part: s.Seq) -> Node:
            return self.build(part, simultaneous, unordered)

        match seq:
            case s.Ref(name=name):
                filters = self._filters(seq, simultaneous)
                return Atom(identity, name, filters, self._without(filters, seq, unordered))
            case s.Sequence(elements=elements, operators=operators):
                return Chain(identity, tuple(map(inner, elements)), operators)
            case s.Disjunction(operands=operands):
                return Either(identity, tuple(map(inner, operands)))
            case s.Conjunction(operands=operands) if self._side_waits(operands):
                # Only the side that is taken counts: X & (Y | Z) is (X & Y) | (X & Z).
                ways = product(*map(_sides, operands))
                return inner(s.Disjunction(tuple(s.Conjunction(way, span=seq.span) for way in ways)))
            case s.Conjunction(operands=operands):
                return self._both(identity, operands, simultaneous, unordered)
            case s.All(operands=operands):
                # A variable of another operand may also be bound here, except on a side of a | that is not
                # taken.
                nodes = tuple(
                    self.build(o, simultaneous, unordered | self._bound(operands[:i] + operands[i + 1 :]))
                    for i, o in enumerate(operands)
                )
                return AnyOrder(identity, nodes)
            case s.Not(element=element):
                return Absent(identity, inner(element))
            case s.Bounded(element=s.Not(element=element), within=within):
                return Absent(identity, inner(element), within)
            case s.Bounded(element=element, within=within):
                return Within(identity, inner(element), within)
            case s.Repeat(element=element, minimum=0, maximum=maximum, optional=optional):
                plain = replace(seq, minimum=1, optional=False)
                some = inner(element if optional and maximum == 1 else plain)
                if optional and self._joins:
                    return Maybe(identity, some)
                none = Empty(self._identity())
                return Either(identity, (none, some) if seq.reluctant else (some, none), apart=True)
            case s.Repeat(element=element, minimum=minimum, maximum=maximum, strategy=strategy):
                own = frozenset[str]()  # until all places are known
                return Kleene(identity, inner(element), minimum, maximum, strategy, own, seq.reluctant)

    def _both(
        self,
        identity: int,
        operands: tuple[s.Seq, ...],
        simultaneous: frozenset[str],
        unordered: frozenset[str],
    ) -> Both:
        others = [self._others(operands, i) for i in range(len(operands))]
        nodes = tuple(
            self.build(o, simultaneous | waited, unordered)
            for o, waited in zip(operands, others, strict=True)
        )
        deferred: dict[s.Filter, None] = {}
        loose: dict[s.Filter, None] = {}
        for operand, waited in zip(operands, others, strict=True):
            for ref, _ in scope.references(operand):
                here = self._filters(ref, simultaneous)
                mine = [f for f in here if self._waits(ref, f, waited)]
                deferred.update(dict.fromkeys(mine))
                loose.update(dict.fromkeys(self._without(mine, ref, unordered)))
        return Both(identity, nodes, tuple(deferred), tuple(loose))

    def _side_waits(self, operands: tuple[s.Seq, ...]) -> bool:
        """Return whether a filter on one side of a ``|`` needs a variable that this side does not bind, but
        another operand does.
        """
        for i, operand in enumerate(operands):
            sides = _sides(operand)
            for side in sides if len(sides) > 1 else ():
                others = self._others((*operands[:i], side, *operands[i + 1 :]), i)
                for ref, _ in scope.references(side):
                    if any(self._waits(ref, f, others) for f in self._gpms[ref.name].correlated):
                        return True
        return False

    def _filters(self, ref: s.Ref, waited: frozenset[str]) -> tuple[s.Filter, ...]:
        return self._without(self._gpms[ref.name].correlated, ref, waited)

    def _without(
        self, filters: Iterable[s.Filter], ref: s.Ref, waited: frozenset[str]
    ) -> tuple[s.Filter, ...]:
        return tuple(f for f in filters if not self._waits(ref, f, waited))

    def _waits(self, ref: s.Ref, condition: s.Filter, waited: frozenset[str]) -> bool:
        """Return whether a filter of a GPM needs a variable that only a sibling operand binds."""
        needed = scope.mentioned(condition.condition) - self._gpms[ref.name].variables
        return bool(needed & waited)

    def _bound(self, operands: Iterable[s.Seq]) -> frozenset[str]:
        references = (ref for operand in operands for ref, _ in scope.references(operand))
        return frozenset().union(*(self._gpms[ref.name].variables for ref in references))

    def _others(self, operands: tuple[s.Seq, ...], i: int) -> frozenset[str]:
        """Return the variables that operands other than ``i`` bind and ``i`` does not."""
        return self._bound(operands[:i] + operands[i + 1 :]) - self._bound(operands[i : i + 1])

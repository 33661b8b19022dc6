"""Plans: the items of a ``:`` sequence, their partial order, and absences. A plan has no order of evaluation.

A plan is one alternative of a sequence, with all ``|`` and ``?`` decided; the paper's *multi-chain* has a
chain for each. Its order is partial: items of different operands of an ``ALL`` are in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from spaseq.automaton.pattern import (
    Absent,
    AnyOrder,
    Atom,
    Both,
    Chain,
    Either,
    Empty,
    Kleene,
    Maybe,
    Node,
    SequencePattern,
    Within,
    units,
)
from spaseq.language.scope import gpm_certain
from spaseq.language.syntax import Consume, Strategy

#: The most alternatives of a sequence, and the most items of each.
_MOST_PLANS: Final = 24
_MOST_ITEMS: Final = 24

#: Items of a plan, as the bits of an integer.
Items = int


class DoesNotFit(ValueError):  # noqa: N818  # an answer more than an error
    """A query that the lazy matcher cannot run; the message says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """An event that a match chooses, or with ``kleene`` one or more.

    ``before`` are the items that precede it, ``seen`` the items with variables that its filters may use.
    ``near`` are the items of ``seen`` that are not in another operand of an ``ALL``.
    """

    atom: Atom
    kleene: Kleene | None
    before: Items
    seen: Items
    near: Items


@dataclass(frozen=True, slots=True)
class Absence:
    """No event that is relevant for a unit may be after some items (or after the beginning of the window) and
    before others.
    """

    unit: Atom | Both
    after: Items
    before: Items
    seen: Items


@dataclass(frozen=True, slots=True)
class LazyPlan:
    """One alternative of a sequence."""

    items: tuple[Item, ...]
    absences: tuple[Absence, ...]

    @property
    def everything(self) -> Items:
        """All items."""
        return (1 << len(self.items)) - 1

    def after(self, i: int) -> Items:
        """Return the items that an item precedes."""
        return sum(1 << j for j, item in enumerate(self.items) if item.before >> i & 1)


@dataclass(frozen=True, slots=True)
class _Partial:
    """A sequence read so far: its own items, the items it sees, and the open absences.

    ``items`` and ``absences`` are those of the whole plan.
    """

    items: tuple[Item, ...] = ()
    absences: tuple[Absence, ...] = ()
    events: Items = 0
    seen: Items = 0
    pending: tuple[tuple[Absent, Items], ...] = ()


def plans(pattern: SequencePattern) -> tuple[LazyPlan, ...]:
    """Return the alternatives of a sequence. Raises ``DoesNotFit``."""
    if pattern.query.consume is not Consume.NONE:
        raise DoesNotFit("CONSUME ANY drops partial matches, which are not kept")
    partition = {variable.name for variable in pattern.query.partition}
    for name, part in pattern.gpms.items():
        if partition and partition - gpm_certain(part.gpm):
            raise DoesNotFit(f"{name} does not bind what PARTITION BY names")
    found = []
    for partial in islice(_element(pattern.root, _Partial()), _MOST_PLANS + 1):
        if partial.pending:
            raise DoesNotFit("a negation or ? comes last, and matches wait for the end of their window")
        found.append(LazyPlan(partial.items, partial.absences))
    if len(found) > _MOST_PLANS:
        raise DoesNotFit(f"there are more than {_MOST_PLANS} alternatives")
    return tuple(found)


def _element(node: Node, m: _Partial) -> Iterator[_Partial]:
    """Extend ``m`` by an element, which closes the open absences."""
    for extended in _node(node, replace(m, pending=()) if m.pending else m):
        new = extended.events & ~m.events
        if not new:
            yield replace(extended, pending=m.pending + extended.pending)
            continue
        if not m.pending:
            yield extended
            continue
        closed = tuple(
            Absence(unit, after, new, extended.seen)
            for negation, after in m.pending
            for unit in units(negation.element)
        )
        yield replace(extended, absences=extended.absences + closed)


def _node(node: Node, m: _Partial) -> Iterator[_Partial]:
    match node:
        case Atom():
            yield _taken(node, None, m)
        case Kleene(element=element, strategy=strategy, maximum=maximum):
            if not isinstance(element, Atom):
                raise DoesNotFit("a group is repeated")
            if strategy is not Strategy.ANY and maximum != 1:
                raise DoesNotFit(f"the iterations of {element.gpm} follow each other by {strategy.value!r}")
            yield _taken(element, node, m)
        case Chain(items=items, operators=operators):
            others = [operator.value for operator in operators if operator is not Strategy.ANY]
            if others:
                raise DoesNotFit(f"an operator is {others[0]!r}")
            yield from _chain(items, m)
        case Maybe() | Absent():
            yield from _chain((node,), m)
        case Either(operands=operands):
            for operand in operands:
                yield from _node(operand, m)
        case AnyOrder(operands=operands):
            yield from _any_order(operands, m)
        case Both():
            raise DoesNotFit("& gathers events of one time")
        case Empty() | Within():
            raise DoesNotFit("X{0,m} and WITHIN inside the sequence need another matcher")


def _taken(atom: Atom, kleene: Kleene | None, m: _Partial) -> _Partial:
    _check_length(m.items)
    own = 1 << len(m.items)
    item = Item(atom, kleene, m.events, m.seen | own, m.seen | own)
    return _Partial((*m.items, item), m.absences, m.events | own, m.seen | own, m.pending)


def _check_length(before: tuple[object, ...]) -> None:
    """Raise ``DoesNotFit`` if there are too many elements, since each one is a level of recursion."""
    if len(before) >= _MOST_ITEMS:
        raise DoesNotFit(f"there are more than {_MOST_ITEMS} elements")


def _chain(items: Sequence[Node], m: _Partial) -> Iterator[_Partial]:
    if not items:
        yield m
        return
    item, *rest = items
    if isinstance(item, Maybe | Absent):
        _check_length(m.pending)
        absent = Absent(item.id, item.element)
        yield from _chain(rest, replace(m, pending=(*m.pending, (absent, m.events))))
    if isinstance(item, Absent):
        return
    for extended in _element(item.element if isinstance(item, Maybe) else item, m):
        yield from _chain(rest, extended)


def _any_order(operands: Sequence[Node], m: _Partial) -> Iterator[_Partial]:
    """Yield one match of each operand; each sees the variables of the others."""
    found: list[tuple[_Partial, tuple[_Partial, ...]]] = [(m, ())]
    for operand in operands:
        found = [
            (replace(extended, events=m.events, seen=m.seen, pending=()), (*parts, extended))
            for before, parts in found
            for extended in islice(_element(operand, before), _MOST_PLANS + 1)
        ]
        if len(found) > _MOST_PLANS:
            raise DoesNotFit(f"there are more than {_MOST_PLANS} alternatives")
    for last, parts in found:
        added = [part.events & ~m.events for part in parts]
        every = m.events | sum(added)
        first, none = len(m.items), len(m.absences)
        items = tuple(
            replace(item, seen=item.seen | every & ~_own(added, i)) if i >= first else item
            for i, item in enumerate(last.items)
        )
        absences = tuple(
            replace(absence, seen=absence.seen | every & ~_owns(added, absence.seen))
            if i >= none
            else absence
            for i, absence in enumerate(last.absences)
        )
        pending = tuple(waiting for part in parts for waiting in part.pending)
        yield _Partial(items, absences, every, m.seen | every, pending)


def _own(added: Sequence[Items], i: int) -> Items:
    """Return the operand that contains an item."""
    return next(items for items in added if items >> i & 1)


def _owns(added: Sequence[Items], seen: Items) -> Items:
    """Return the first operand that contains some of the items seen, 0 if none does."""
    return next((items for items in added if items & seen), 0)

"""Which variables may be bound at each place of a GPM in SEQ, and which variables a filter needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spaseq.language import syntax as s
from spaseq.language.scope import group_variables, parts, references

_NONE: frozenset[str] = frozenset()

#: A place of a GPM: its name, whether it is negated there, and the variables that may be bound before it.
Reached = tuple[s.Ref, bool, frozenset[str]]


def reached(query: s.Query, bound: Mapping[str, frozenset[str]]) -> Iterator[Reached]:
    """Yield every place of a GPM in SEQ; ``bound`` are the variables of each GPM."""
    own = {id(node): names for node, names in group_variables(query)}
    yield from _Reach(bound, own).places(query.sequence, _NONE, _NONE)


class _Reach:
    def __init__(self, bound: Mapping[str, frozenset[str]], own: Mapping[int, frozenset[str]]) -> None:
        self._bound = bound
        self._own = own

    def places(self, seq: s.Seq, before: frozenset[str], after: frozenset[str]) -> Iterator[Reached]:
        """Yield the places in ``seq``: ``before`` may be bound earlier, ``after`` by the element that follows
        a negation.
        """
        match seq:
            case s.Ref():
                yield seq, False, before
            case s.Not(element):
                for ref, _ in references(element):
                    yield ref, True, before | after
            case s.Sequence(elements):
                for i, element in enumerate(elements):
                    yield from self.places(element, before, self._next(elements[i + 1 :], after))
                    before |= self._of(element)
            case s.Disjunction(operands):
                for operand in operands:
                    yield from self.places(operand, before, after)
            case s.Conjunction(operands) | s.All(operands):
                for i, operand in enumerate(operands):
                    others = (self._of(o) for j, o in enumerate(operands) if j != i)
                    yield from self.places(operand, before.union(*others), after)
            case s.Repeat(element):
                if seq.repeats:
                    inside = self._of(element)
                    before |= inside - self._own.get(id(seq), _NONE)
                    after |= inside
                yield from self.places(element, before, after)
            case s.Bounded(element):
                yield from self.places(element, before, after)

    def _next(self, following: tuple[s.Seq, ...], after: frozenset[str]) -> frozenset[str]:
        """Return the variables that the next positive element may bind, whichever element comes next."""
        names = _NONE
        for element in following:
            names |= self._of(element)
            if not matches_nothing(element):
                return names
        return names | after

    def _of(self, seq: s.Seq) -> frozenset[str]:
        """Return the variables that the GPMs of a sequence bind, without negated ones."""
        if isinstance(seq, s.Not):
            return _NONE
        if isinstance(seq, s.Ref):
            return self._bound.get(seq.name, _NONE)
        return _NONE.union(*map(self._of, parts(seq)))


def matches_nothing(seq: s.Seq) -> bool:
    """Return whether ``seq`` has a match without any event.

    >>> matches_nothing(s.Disjunction((s.Ref("A"), s.Not(s.Ref("B")))))
    True
    """
    match seq:
        case s.Ref():
            return False
        case s.Not():
            return True
        case s.Repeat(element, minimum):
            return minimum == 0 or matches_nothing(element)
        case s.Disjunction(operands):
            return any(map(matches_nothing, operands))
        case s.Bounded(element):
            return matches_nothing(element)
        case s.Sequence() | s.Conjunction() | s.All():
            return all(map(matches_nothing, parts(seq)))


def needed(expression: s.Expression) -> frozenset[str]:
    """Return the variables without which an expression is an error, whatever the others are."""
    match expression:
        case s.Var(name):
            return frozenset([name])
        case s.Binary("||", left, right):
            return needed(left) & needed(right)
        case s.Binary(_, left, right):
            return needed(left) | needed(right)
        case s.Unary(_, operand) | s.In(operand):
            return needed(operand)
        case s.Call("BOUND" | "COALESCE"):
            return _NONE
        case s.Call("IF", (condition, then, otherwise)):
            return needed(condition) | (needed(then) & needed(otherwise))
        case s.Call(_, arguments) | s.FunctionCall(_, arguments):
            return _NONE.union(*map(needed, arguments))
        case s.Constant() | s.Exists() | s.Aggregate() | s.Prev():
            return _NONE


def ends(seq: s.Seq) -> Iterator[s.Not]:
    """Yield the negations that stand first or last in a match, each once."""
    seen: set[int] = set()
    for last in (False, True):
        for negation in _at(seq, last):
            if id(negation) not in seen:
                seen.add(id(negation))
                yield negation


def _at(seq: s.Seq, last: bool) -> Iterator[s.Not]:
    match seq:
        case s.Not():
            yield seq
        case s.Ref() | s.Conjunction():
            pass
        case s.Sequence(elements):
            for element in reversed(elements) if last else elements:
                yield from _at(element, last)
                if not matches_nothing(element):
                    return
        case s.Disjunction(inner) | s.All(inner):
            for operand in inner:
                yield from _at(operand, last)
        case s.Repeat(element) | s.Bounded(element):
            yield from _at(element, last)
